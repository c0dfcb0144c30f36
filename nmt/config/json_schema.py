"""The configuration as a JSON schema, with which editors complete and check YAML files."""

from collections.abc import Sequence
from typing import Any

from nmt.config.allowed import default_name
from nmt.config.schema import Config


def json_schema(score_names: Sequence[str]) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of a configuration file.

    `score_names` are the attention scores that exist; the configuration itself, a layer below them, cannot know them.
    """
    schema = Config.model_json_schema()
    schema["$defs"]["AttentionConfig"]["properties"]["score"]["enum"] = list(score_names)
    for section in list(schema["$defs"].values()):
        for node in section.get("properties", {}).values():
            if name := default_name(node):  # then only the default variant fits a section without a name
                reference = node["discriminator"]["mapping"][name]
                schema["$defs"][reference.rpartition("/")[2]]["required"].remove("name")
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Configuration of nmt-train"}
    return head | {key: value for key, value in schema.items() if key not in head}
