"""How hypothesis makes cases: valid inputs with mistakes in them, and inputs built from the parts of their language.

It knows bytes, YAML and files of tensors as text; it knows no readers.
"""

import gzip
import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tests.fuzz.sealed import TYPES, Parts, Stored, put_together, taken_apart, with_header

NUMBERS = (
    b"0", b"-1", b"1e999", b"9" * 25, b"-1e308", b"0.1", b"4294967296", b"9223372036854775808", b"NaN", b"1" * 4400,
)  # fmt: skip
BYTES = (
    b"", b"\0", b"\n", b"\r\n", b"\t", b" ", b"\xff", b"\xef\xbb\xbf", b"\xc3", b"\xed\xa0\x80", b"\xe2\x80\xa8",
    b"-", b"{}",
)  # fmt: skip
WORDS = (*NUMBERS, *BYTES, b"null", b"true", b"[]", b'""', b'"x"', b"Infinity", b"[[[[", b'{"a":')


@st.composite
def damaged(draw: DrawFn, content: bytes, words: Sequence[bytes] = WORDS) -> bytes:
    """`content` with one to six mistakes: bits flipped, parts cut out, said twice, exchanged, or words put in."""
    changed = bytearray(content)
    for _ in range(draw(st.integers(1, 6))):
        if not changed:
            return draw(st.sampled_from([bytes(word) for word in words]))
        first = draw(st.integers(0, len(changed) - 1))
        length = draw(st.sampled_from((1, 2, 4, 8, 30, 1000)))
        match draw(st.integers(0, 7)):
            case 0:
                changed[first] ^= 1 << draw(st.integers(0, 7))
            case 1:
                changed[first] = draw(st.integers(0, 255))
            case 2:
                del changed[first : first + length]
            case 3:
                changed[first:first] = changed[first : first + length] * draw(st.sampled_from((1, 1, 2, 40)))
            case 4:
                other = draw(st.integers(0, len(changed) - 1))
                changed[first : first + length] = changed[other : other + length]
            case 5:
                changed[first:first] = draw(st.sampled_from(words))
            case 6:
                changed[first : first + length] = draw(st.sampled_from(words))
            case 7:
                del changed[first:]
    return bytes(changed)


def one_damaged(seeds: Sequence[bytes], words: Sequence[bytes] = WORDS) -> SearchStrategy[bytes]:
    """One of the seeds with mistakes in it."""
    return st.one_of([damaged(seed, words) for seed in seeds])


def named(files: dict[str, SearchStrategy[bytes]]) -> SearchStrategy[bytes]:
    """Cases of one file among several, as the readers take them."""
    return st.one_of(
        [content.map(lambda text, name=name: f"{name}\n".encode() + text) for name, content in files.items()]
    )


# ---------------------------------------------------------------------------------------------------------------- YAML

_STRANGE = [
    "1", "0", "-1", "2", "0.5", "1e-3", "1e400", ".inf", ".nan", "~", "true", "null", "", "x", "'a b'", "no", "500",
    "1 epoch", "2 updates", "'", "luong", "adam", "bpe", "dot", "./a", "~/a", "~nobody/x", "\\0", "<<",
    "2024-01-01", "!!python/object:os.system x", "!x 1", ">", "&a", "*a", "0x1F", "1_000", "12:30", "\u2028", "ä",
    '"\\ud800"',
]  # fmt: skip
_SCALARS = st.one_of(
    st.sampled_from([*_STRANGE, "|", "9" * 101]),
    st.integers(-(10**30), 10**30).map(str),
    st.floats().map(str),
    st.text(max_size=8),
)


def flow(keys: Sequence[str]) -> SearchStrategy[str]:
    """YAML values in flow style, of such keys."""
    key = st.one_of(st.sampled_from([*keys, "<<", "a", "1", "true", "? x", "[a]"]), st.text(max_size=4))

    def below(inner: SearchStrategy[str]) -> SearchStrategy[str]:
        return st.one_of(
            st.lists(inner, max_size=4).map(lambda items: f"[{', '.join(items)}]"),
            st.lists(st.tuples(key, inner), max_size=4).map(
                lambda items: "{" + ", ".join(f"{name}: {value}" for name, value in items) + "}"
            ),
        )

    return st.recursive(_SCALARS, below, max_leaves=12)


def bombs() -> SearchStrategy[str]:
    """Depth and number; short texts of great values cannot be written without aliases, which are refused."""
    deep = st.builds(
        lambda bracket, depth: bracket * depth, st.sampled_from(["[", "{a: ", "- ", "? "]), st.integers(1, 30_000)
    )
    many = st.builds(
        lambda item, count: "[" + item * count + "]", st.sampled_from(["1,", "a: 1,", "[],"]), st.integers(1, 30_000)
    )
    return st.one_of(deep, many)


def settings(valid: str, keys: Sequence[str]) -> SearchStrategy[bytes]:
    """Configuration files: a valid one damaged, one with strange values for its keys or a bomb, and strange ones."""
    lines = valid.splitlines()
    value = st.one_of(*[flow(keys)] * 9, bombs())

    def replaced(place: int, text: str) -> str:
        head, colon, _ = lines[place].partition(":")
        return "\n".join([*lines[:place], f"{head}{colon} {text}", *lines[place + 1 :]])

    one_replaced = st.builds(replaced, st.integers(0, len(lines) - 1), value)
    added = st.builds(lambda key, text: f"{valid}{key}: {text}\n", st.sampled_from([*keys, "<<"]), value)
    texts = st.one_of(one_replaced, one_replaced, one_replaced, added, value).map(
        lambda text: text.encode("utf-8", "surrogatepass")
    )
    return st.one_of(texts, texts, damaged(valid.encode()))


def overrides(keys: Sequence[str]) -> SearchStrategy[bytes]:
    """Arguments of --set: keys with strange values, keys that are none, and nothing of the kind."""
    part = st.one_of(st.sampled_from([*keys, "0", "1", "-1", "99999999999", "", " ", "²"]), st.text(max_size=5))
    path = st.one_of(st.sampled_from(keys), st.lists(part, min_size=1, max_size=6).map(".".join))
    value = st.one_of(*[flow(keys)] * 9, bombs())
    option = st.one_of(st.builds("{}={}".format, path, value), path, st.text(max_size=20))
    return st.lists(option, min_size=1, max_size=3).map(lambda all_: "\0".join(all_).encode("utf-8", "surrogatepass"))


# ---------------------------------------------------------------------------------------------------------------- text


def lines_of(words: Sequence[str], joints: Sequence[str]) -> SearchStrategy[bytes]:
    """Text in lines of such words with such joints between them, a few of it strange."""
    word = st.one_of(st.sampled_from(words), st.sampled_from(words), st.text(max_size=4))
    part = st.tuples(word, st.sampled_from(joints)).map("".join)
    line = st.lists(part, max_size=12).map("".join)
    many = st.tuples(st.sampled_from(words), st.sampled_from(joints), st.integers(1, 20_000)).map(
        lambda parts: (parts[0] + parts[1]) * parts[2]
    )
    text = st.lists(st.one_of(line, line, line, line, many), max_size=5).map("\n".join)
    return text.map(lambda lines: lines.encode("utf-8", "surrogatepass"))


def packed(content: SearchStrategy[bytes]) -> SearchStrategy[bytes]:
    """The content as it is, or in gzip: in one part or two, damaged, or far larger than it seems."""
    zipped = content.map(lambda text: gzip.compress(text, mtime=0))
    # Reading 2**18 blank lines takes 0.15 s where the limit was set, and a case reads its corpus four times
    bomb = st.sampled_from(((b"a", 26), (b"\0", 26), (b"\n", 18), (b"a ", 24))).map(lambda pair: _repeated(*pair))
    damaged_zip = zipped.flatmap(damaged)
    two = st.tuples(zipped, st.one_of(zipped, damaged_zip, content)).map(b"".join)
    return st.one_of(content, content, content, zipped, damaged_zip, two, st.one_of(bomb, *[content] * 9))


@lru_cache
def _repeated(unit: bytes, bits: int) -> bytes:
    return gzip.compress(unit * ((1 << bits) // len(unit)), 9, mtime=0)


# ----------------------------------------------------------------------------------------------------- files of tensors

_JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(),
        st.sampled_from(["", "x", "0", "1" * 5000, "\ud800", -1, 0, 1, 10**12, 1e308]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)


@st.composite
def other_json(draw: DrawFn, valid: Any) -> Any:
    """A JSON value like this one, with one to three of its parts exchanged, left out or added."""
    value = json.loads(json.dumps(valid))
    for _ in range(draw(st.integers(1, 3))):
        around, place = None, None
        here = value
        while isinstance(here, dict | list) and here and (around is None or draw(st.integers(0, 3))):
            around = here
            place = (
                draw(st.sampled_from(sorted(here))) if isinstance(here, dict) else draw(st.integers(0, len(here) - 1))
            )
            here = here[place]
        if around is None or draw(st.integers(0, 15)) == 0:
            value = draw(_JSON)
        elif draw(st.integers(0, 4)):
            around[place] = draw(_JSON)
        elif draw(st.booleans()):
            del around[place]
        elif isinstance(around, dict):
            around[draw(st.text(max_size=5))] = draw(_JSON)
        else:
            around.append(draw(_JSON))
    return value


def json_texts(valid: str) -> SearchStrategy[str]:
    """Texts that are JSON like this one, or nearly, or nested too deeply."""
    return st.one_of(
        other_json(json.loads(valid)).map(json.dumps),
        other_json(json.loads(valid)).map(json.dumps),
        damaged(valid.encode()).map(lambda text: text.decode("utf-8", "replace")),
        st.sampled_from(["[" * 100_000, '{"a":' * 100_000, "", "nul", "1" * 5000]),
    )


def tensor_files(
    seed: bytes,
    texts: dict[str, Callable[[str], SearchStrategy[str]]],
    contents: dict[str, Callable[[bytes], SearchStrategy[bytes]]],
) -> SearchStrategy[bytes]:
    """Files like the seed with right checksums and wrong parts; some damaged, some with a header of any kind.

    `texts` and `contents` make other texts and other contents of tensors, by their names, out of those of the seed.
    """
    parts = taken_apart(seed)

    @st.composite
    def other_texts(draw: DrawFn) -> bytes:
        changed = dict(parts.texts)
        name = draw(st.sampled_from(sorted(changed)))
        way = draw(st.integers(0, 9))
        if way == 0:
            del changed[name]
        elif way == 1:
            changed[name] = draw(_JSON)
        elif name in texts:
            changed[name] = draw(texts[name](changed[name]))
        else:
            changed[name] = draw(st.text(max_size=5))
        return put_together(Parts(parts.tensors, changed))

    @st.composite
    def other_tensors(draw: DrawFn) -> bytes:
        changed = dict(parts.tensors)
        for _ in range(draw(st.integers(1, 2))):
            if not changed:
                break
            name = draw(st.sampled_from(sorted(changed)))
            old = changed[name]
            match draw(st.integers(0, 7)):
                case 0:
                    del changed[name]
                case 1:
                    changed[draw(st.sampled_from([f"{name}.x", name[:-1], name.replace("0", "1e9"), "x", ""]))] = (
                        changed.pop(name)
                    )
                case 2:
                    kind = draw(st.sampled_from(sorted(TYPES)))
                    count = len(old.content) // TYPES[kind][1]
                    changed[name] = Stored(kind, [count], old.content[: count * TYPES[kind][1]])
                case 3:
                    unit = draw(
                        st.sampled_from(
                            [b"\x00\x00\xc0\x7f", b"\x00\x00\x80\x7f", b"\xca\xf2\x49\x71", b"\xff" * 4, bytes(4)]
                        )
                    )
                    changed[name] = old._replace(content=(unit * len(old.content))[: len(old.content)])
                case 4:
                    changed[name] = old._replace(
                        shape=draw(st.sampled_from([old.shape[::-1], [*old.shape, 1], [1, *old.shape]]))
                    )
                case 5:
                    changed[name] = Stored(old.type, draw(st.sampled_from([[0], [0, 7], [0, 2**40]])), b"")
                case 6:
                    size = TYPES[old.type][1]
                    content = draw(damaged(old.content))
                    content = content[: len(content) // size * size]
                    changed[name] = Stored(old.type, [len(content) // size], content)
                case 7:
                    length = len(old.content)
                    changed[name] = old._replace(content=(draw(damaged(old.content)) + bytes(length))[:length])
        return put_together(Parts(changed, parts.texts))

    @st.composite
    def other_contents(draw: DrawFn) -> bytes:
        name = draw(st.sampled_from(sorted(contents)))
        content = draw(contents[name](parts.tensors[name].content))
        return put_together(Parts({**parts.tensors, name: Stored("U8", [len(content)], content)}, parts.texts))

    size = int.from_bytes(seed[:8], "little")
    header, content = json.loads(seed[8 : 8 + size]), seed[8 + size :]
    any_header = other_json(header).map(lambda other: with_header(other, content))
    ours = header["__metadata__"]["nmt-toolkit"]
    any_metadata = json_texts(ours).map(
        lambda text: with_header({**header, "__metadata__": {"nmt-toolkit": text}}, content)
    )
    ways = [other_texts(), other_texts(), other_tensors(), other_tensors(), any_header, any_metadata, damaged(seed)]
    return st.one_of(*ways, *([other_contents()] * 2 if contents else []))
