"""Configuration files from snippets: required sections that a snippet lacks are appended to it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from nmt.config.contradictions import contradictions
from nmt.config.loading import read_config
from nmt.config.problems import Problem
from nmt.config.schema import Config
from nmt.errors import UserError

REST = {
    "name:": "name: demo\n",
    "data:": (
        "data:\n"
        "  source_language: en\n"
        "  target_language: de\n"
        "  train: [{source: train.en, target: train.de}]\n"
        "  valid: {source: valid.en, target: valid.de}\n"
    ),
    "training:": "training: {max_epochs: 20}\n",
}


FAMILIES = {"cell": ["gru", "lstm"]}
Check = Callable[[Config], list[Problem]]


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Config]:
    """load(snippet, *overrides, checks=()): the configuration in the completed file."""

    def load(snippet: str, *overrides: str, checks: Sequence[Check] = ()) -> Config:
        rest = [text for key, text in REST.items() if not any(line.startswith(key) for line in snippet.splitlines())]
        path = tmp_path / "my.yaml"
        path.write_text(snippet.rstrip("\n") + "\n" + "".join(rest), encoding="utf-8")
        config, sources = read_config(path, overrides, families=FAMILIES)
        sources.refuse([problem for check in (contradictions, *checks) for problem in check(config)])
        return config

    return load


@pytest.fixture
def messages(load: Callable[..., Config], tmp_path: Path) -> Callable[..., list[str]]:
    """messages(snippet, *overrides, checks=()): what the user reads, without the folder of the file."""

    def messages(snippet: str, *overrides: str, checks: Sequence[Check] = ()) -> list[str]:
        try:
            load(snippet, *overrides, checks=checks)
        except UserError as error:
            return [message.replace(f"{tmp_path}/", "") for message in error.messages]
        return []

    return messages
