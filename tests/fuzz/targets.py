"""What is fuzzed: each reader of `readers` with inputs to begin with and a way to make others.

`short` is how many cases the short form runs: a few seconds of them.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from nmt.config import json_schema
from nmt.config.yaml_text import write_yaml
from nmt.models.combinations import FAMILIES
from tests.fuzz import readers, samples
from tests.fuzz.strategies import (
    damaged,
    json_texts,
    lines_of,
    named,
    one_damaged,
    overrides,
    packed,
    settings,
    tensor_files,
)
from tests.fuzz.worker import Prepare

Seeds = list[bytes]


class Target(NamedTuple):
    """A reader and its cases."""

    name: str
    prepare: Prepare
    seeds: Callable[[], Seeds]
    strategy: Callable[[Seeds], SearchStrategy[bytes]]
    short: int
    guided: bool  # whether coverage is worth to be followed: where the bytes are ours to take apart


@lru_cache
def _keys() -> tuple[str, ...]:
    """The names of the configuration, and the whole paths of the nested ones."""
    names: dict[str, None] = {}

    def walk(tree: Any, path: str = "") -> None:
        for name, value in (
            tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
        ):
            names[str(name)] = names[f"{path}{name}"] = None
            walk(value, f"{path}{name}.")

    walk(samples.configuration())
    sections = json_schema({**FAMILIES, "metric": ["bleu"]}).get("$defs", {}).values()
    names.update(dict.fromkeys(name for section in sections for name in section.get("properties", {})))
    return tuple(names)


def _valid() -> str:
    return write_yaml(samples.configuration())


def _by_name(seeds: Seeds) -> dict[str, bytes]:
    return {name.decode(): content for name, _, content in (seed.partition(b"\n") for seed in seeds)}


def _as_seeds(files: Callable[[], Any]) -> Seeds:
    return [f"{name}\n".encode() + content for name, content in files()]


def _model(seeds: Seeds) -> SearchStrategy[bytes]:
    def configurations(valid: str) -> SearchStrategy[str]:
        return settings(valid, _keys()).map(lambda text: text.decode("utf-8", "replace"))

    texts = {"config": configurations, "sizes": json_texts, "training": json_texts}
    return tensor_files(seeds[0], texts, {"subwords.source": damaged})


def _run_file(name: str, content: bytes) -> SearchStrategy[bytes]:
    if name.startswith("state"):  # whose content is ours where the checksum is right
        return damaged(content)
    if name.endswith(".safetensors"):
        return st.one_of(damaged(content), tensor_files(content, {"training": json_texts, "sizes": json_texts}, {}))
    if name.endswith(".jsonl"):
        line = content.splitlines(keepends=True)[1]
        strange = json_texts(line.decode()).map(lambda text: content + text.encode("utf-8", "replace") + b"\n")
        return st.one_of(damaged(content), strange)
    return damaged(content)


def _state(seeds: Seeds) -> SearchStrategy[bytes]:
    files = {name: _run_file(name, content) for name, content in _by_name(seeds).items()}
    state = named({"state.safetensors": files["state.safetensors"]})
    return st.one_of(named(files), state, state)


def _chunk(name: str, content: bytes) -> SearchStrategy[bytes]:
    if name.endswith(".json"):
        return json_texts(content.decode()).map(lambda text: text.encode("utf-8", "replace"))
    return damaged(content)


def _text_seeds(*texts: str) -> Seeds:
    return [text.encode() for text in texts]


_TEXT = partial(lines_of, ["a", "dog", "ä", "\u2028", "\r", "\0", "\ufeff", "𝄞"], [" ", "", "\t", "\r\n"])
_LINKS = partial(
    lines_of,
    ["0", "1", "2", "3", "17", "999999999", "9" * 4400, "²", "-1", "0-0", "1p2", "٣"],
    ["-", " ", "p", "?", "-0 "],
)
_DICTIONARY = partial(
    lines_of,
    ["Hund", "dog", "0.5", "1e999", "nan", "-1", "0x1p3", "1_0", "ä", "a b", ""],
    [" ", "\t", "\t\t", " \t", ""],
)
_VOCABULARY = partial(
    lines_of, ["Hund", "ru@@", "<s>", "▁", "7", "²", "\0", "\xa0", "ä", "a b", ""], ["", "", " ", " 3", "\t"]
)
_VECTORS = partial(
    lines_of, ["Hund 1 2", "▁Hund", "s", "0.5", "1e999", "nan", "1_0", "ä", "3 2", ""], [" ", "", "\t", "  "]
)
_CONSTRAINTS = partial(
    lines_of, ["a", "dog", "runs", "a dog", ".", "ball", "Ж", "the green field", ""], ["\t", " ", "\t\t", ""]
)

TARGETS = {
    target.name: target
    for target in (
        Target(
            "configuration",
            readers.prepare_configuration,
            lambda: _text_seeds(_valid()),
            lambda seeds: settings(seeds[0].decode(), _keys()),
            75,
            False,
        ),
        Target(
            "set",
            readers.prepare_set,
            lambda: _text_seeds("training.batch_size=3", "data.train.0.source=x", "model={encoder: {hidden_size: 3}}"),
            lambda seeds: st.one_of(overrides(_keys()), overrides(_keys()), one_damaged(seeds)),
            150,
            False,
        ),
        Target(
            "corpus",
            readers.prepare_corpus,
            lambda: _text_seeds("a dog\nruns\n", "\ufeffa\r\nb"),
            lambda seeds: st.one_of(packed(_TEXT()), one_damaged(seeds)),
            150,
            True,
        ),
        Target(
            "dictionary",
            readers.prepare_dictionary,
            lambda: _text_seeds("Hund dog\nBall ball\n", "Hund\tbig dog\t0.5\nBall\tball\t0.25\n"),
            lambda seeds: st.one_of(_DICTIONARY(), one_damaged(seeds), packed(_DICTIONARY())),
            150,
            False,
        ),
        Target(
            "vocabulary",
            readers.prepare_vocabulary,
            lambda: _text_seeds("<unk>\n<s>\n</s>\ndog\nru@@\n", "dog 40\nru@@ 7\n"),
            lambda seeds: st.one_of(_VOCABULARY(), one_damaged(seeds), packed(_VOCABULARY())),
            100,
            False,
        ),
        Target(
            "vectors",
            readers.prepare_vectors,
            lambda: _text_seeds("3 2\nHund 1 2\ndog 0.5 -1e-3\ns 1 1\n", "▁Hund 1 2\ns 3 4\n"),
            lambda seeds: st.one_of(_VECTORS(), one_damaged(seeds), packed(_VECTORS())),
            100,
            False,
        ),
        Target(
            "constraints",
            readers.prepare_constraints,
            lambda: _text_seeds("a dog\tball\n\nruns\n", "the green field"),
            lambda seeds: st.one_of(_CONSTRAINTS(), one_damaged(seeds)),
            40,
            False,
        ),
        Target(
            "pharaoh",
            readers.prepare_pharaoh,
            lambda: _text_seeds("0-0 1-1 2-1\n\n0-3 3-0\n", "0-0 1p2\n"),
            lambda seeds: st.one_of(_LINKS(), one_damaged(seeds)),
            100,
            False,
        ),
        Target(
            "cache",
            readers.prepare_cache,
            lambda: _as_seeds(samples.cache_files),
            lambda seeds: named({name: damaged(content) for name, content in _by_name(seeds).items()}),
            40,
            True,
        ),
        Target("model", readers.prepare_model, lambda: [samples.model_file()], _model, 100, True),
        Target(
            "subwords",
            readers.prepare_subwords,
            lambda: list(samples.subword_models()),
            one_damaged,
            300,
            True,
        ),
        Target(
            "shortlist",
            readers.prepare_shortlist,
            lambda: [samples.shortlist_file()],
            lambda seeds: tensor_files(seeds[0], {"target_size": json_texts}, {}),
            125,
            True,
        ),
        Target("state", readers.prepare_state, lambda: _as_seeds(samples.run_files), _state, 12, True),
        Target(
            "chunks",
            readers.prepare_chunks,
            lambda: _as_seeds(samples.chunk_files),
            lambda seeds: named({name: _chunk(name, content) for name, content in _by_name(seeds).items()}),
            15,
            False,
        ),
    )
}
