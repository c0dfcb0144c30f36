"""What is fuzzed: each reader of `readers` with inputs to begin with and a way to make others.

`short` is how many cases the short form runs: a second or two of them.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from nmt.config.yaml_text import write_yaml
from nmt.models.combinations import FAMILIES
from scripts.make_configuration_reference import json_schema
from tests.fuzz import readers, samples
from tests.fuzz.strategies import (
    WORDS,
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
Strategy = Callable[[Seeds], SearchStrategy[bytes]]


class Target(NamedTuple):
    """A reader and its cases."""

    name: str
    prepare: Prepare
    seeds: Callable[[], Seeds]
    strategy: Strategy
    short: int
    guided: bool  # whether coverage is worth to be followed: where the bytes are ours to take apart

    def whole(self) -> Seeds:
        """The cases with nothing damaged. Where each is one of several files, all of which are there, one is enough."""
        return self.seeds()[: 1 if self.name in ("cache", "state", "chunks") else None]


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


def _each(case: Callable[[str, bytes], SearchStrategy[bytes]]) -> Strategy:
    """Cases of one of the files that the seeds name, made by `case` of its name and content."""
    return lambda seeds: named({name: case(name, content) for name, content in _by_name(seeds).items()})


def _lines(words: str, joints: Sequence[str], *, zipped: bool = False) -> Strategy:
    """Text of such words, which stand between bars, and joints; damaged seeds; and the text in gzip if `zipped`."""

    def strategy(seeds: Seeds) -> SearchStrategy[bytes]:
        text = lines_of(words.split("|"), joints)
        return st.one_of(text, one_damaged(seeds), *([packed(text)] if zipped else []))

    return strategy


def _settings(seeds: Seeds) -> SearchStrategy[bytes]:
    return settings(seeds[0].decode(), _keys())


def _overrides(seeds: Seeds) -> SearchStrategy[bytes]:
    return st.one_of(overrides(_keys()), overrides(_keys()), one_damaged(seeds))


def _shortlist(seeds: Seeds) -> SearchStrategy[bytes]:
    return tensor_files(seeds[0], {"target_size": json_texts}, {})


_MARKUP = (
    b"<", b"</", b"<b>", b"</b>", b"<!--", b">", b"&#1;", b"&amp;", b"&", b'"', b"\\", b"\\N", b"{", b"}", b"[",
    b"](", b"--> ", b"|", b"*", b"=", b"`", b"<!ENTITY a 'b'>", b"\xe2\x80\xa8", b"\r", b"00:00:01,000", b"msgid",
    b"msgstr[1]",
)  # fmt: skip


def _markup(_: str, content: bytes) -> SearchStrategy[bytes]:
    return damaged(content, (*WORDS, *_MARKUP, *_MARKUP))


_SETS = ("training.batch_size=3", "data.train.0.source=x", "model={encoder: {hidden_size: 3}}")
_CORPUS = _lines("a|dog|ä|\u2028|\r|\0|\ufeff|𝄞", [" ", "", "\t", "\r\n"], zipped=True)
_DICTIONARY = _lines("Hund|dog|0.5|1e999|nan|-1|0x1p3|1_0|ä|a b|", [" ", "\t", "\t\t", " \t", ""], zipped=True)
_VOCABULARY = _lines("Hund|ru@@|<s>|▁|7|²|\0|\xa0|ä|a b|", ["", "", " ", " 3", "\t"], zipped=True)
_VECTORS = _lines("Hund 1 2|▁Hund|s|0.5|1e999|nan|1_0|ä|3 2|", [" ", "", "\t", "  "], zipped=True)
_CONSTRAINTS = _lines("a|dog|runs|a dog|.|ball|Ж|the green field|", ["\t", " ", "\t\t", ""])
_LINKS = _lines(f"0|1|2|3|17|999999999|{'9' * 4400}|²|-1|0-0|1p2|٣", ["-", " ", "p", "?", "-0 "])

# name: seeds, strategy, cases of the short form, and whether coverage is followed
_TABLE: dict[str, tuple[Callable[[], Seeds] | Sequence[str], Strategy, int, bool]] = {
    "configuration": (lambda: [write_yaml(samples.configuration()).encode()], _settings, 40, False),
    "set": (_SETS, _overrides, 75, False),
    "corpus": (("a dog\nruns\n", "\ufeffa\r\nb"), _CORPUS, 75, True),
    "dictionary": (("Hund\tdog\nBall\tball\n", "Hund,big dog\nBall,ball\n"), _DICTIONARY, 75, False),
    "vocabulary": (("<unk>\n<s>\n</s>\ndog\nru@@\n", "dog 40\nru@@ 7\n"), _VOCABULARY, 50, False),
    "vectors": (("3 2\nHund 1 2\ndog 0.5 -1e-3\ns 1 1\n", "▁Hund 1 2\ns 3 4\n"), _VECTORS, 50, False),
    "constraints": (("a dog\tball\n\nruns\n", "the green field"), _CONSTRAINTS, 20, False),
    "pharaoh": (("0-0 1-1 2-1\n\n0-3 3-0\n", "0-0 1p2\n"), _LINKS, 50, False),
    "documents": (lambda: _as_seeds(samples.document_files), _each(_markup), 100, True),
    "pairs": (lambda: _as_seeds(samples.pair_files), _each(_markup), 75, True),
    "cache": (lambda: _as_seeds(samples.cache_files), _each(lambda _, content: damaged(content)), 20, True),
    "model": (lambda: [samples.model_file()], _model, 50, True),
    "subwords": (lambda: list(samples.subword_models()), one_damaged, 150, True),
    "shortlist": (lambda: [samples.shortlist_file()], _shortlist, 60, True),
    "state": (lambda: _as_seeds(samples.run_files), _state, 8, True),
    "chunks": (lambda: _as_seeds(samples.chunk_files), _each(_chunk), 8, False),
}


def _target(name: str) -> Target:
    seeds, strategy, short, guided = _TABLE[name]
    given = seeds if callable(seeds) else partial(list, [text.encode() for text in seeds])
    return Target(name, readers.PREPARE[name], given, strategy, short, guided)


TARGETS = {name: _target(name) for name in _TABLE}
