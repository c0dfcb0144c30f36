"""YAML is read strictly, and written so that it reads back equal."""

import random
from typing import Any

import pytest

from nmt.config.yaml_text import YamlError, read_yaml, write_yaml

VALUES = {"true": True, "False": False, "null": None, "": None, "80": 80, "-1": -1, "010": 10, "'80'": "80"}
NUMBERS = {"5e-4": 5e-4, "1e4": 1e4, "1.5": 1.5, ".5": 0.5}
STAY_TEXT = ["no", "yes", "on", "1_000", "0o7", "1:30", "2020-01-01", ".inf"]


@pytest.mark.parametrize(
    ("written", "value"), [*VALUES.items(), *NUMBERS.items(), *((text, text) for text in STAY_TEXT)]
)
def test_values(written: str, value: Any) -> None:
    read = read_yaml(f"key: {written}").value["key"]
    assert read == value
    assert type(read) is type(value)


TEXTS = [*STAY_TEXT, "1e5", "5e-4", "", "~", "null", "true", "a: b", "- x", "<<", "#", " a"]
UNUSUAL = ["Grüße ☃", "two\nlines", "\x85", "\u2028"]
OTHERS: list[Any] = [5e-4, 1e-8, 1.0, 1e300, 80, -3, True, None, [], {}, [{"a": None}]]


@pytest.mark.parametrize("value", [*TEXTS, *UNUSUAL, *OTHERS])
def test_written_values_read_back_the_same(value: Any) -> None:
    again = read_yaml(write_yaml({"key": value})).value["key"]
    assert again == value
    assert type(again) is type(value)


def test_any_text_reads_back_the_same() -> None:
    draw = random.Random(1)
    characters = [
        *"ab1 \n\t\r:#'\"-?\\%@&*!|><{}[],~._=\x07\x85\xa0\u2028\ufeffé漢😀\udcff",
        "true",
        "<<",
        "long " * 50,
    ]
    texts = ["".join(draw.choices(characters, k=draw.randrange(6))) for _ in range(300)]
    for text in texts:
        value = {"text": text, "texts": [text, 1], "none": {}}
        assert read_yaml(write_yaml(value)).value == value


@pytest.mark.parametrize("key", ["", "a: b", "漢" * 50, "x" * 300, "😀", "\udcff", "two\nlines", "- x", "true"])
def test_written_keys_read_back_the_same(key: str) -> None:
    assert read_yaml(write_yaml({key: {key: key}})).value == {key: {key: key}}


def test_what_is_read_is_not_shared() -> None:
    """A text is parsed once, and who has changed its values changes those of no other."""
    values = read_yaml("a: [1, {b: c}]").value
    values["a"][1]["b"] = "d"
    assert read_yaml("a: [1, {b: c}]").value == {"a": [1, {"b": "c"}]}


def test_keys_are_text_and_keep_their_order() -> None:
    text = "zebra: 1\n2: b\ntrue: c\n"
    assert list(read_yaml(text).value) == ["zebra", "2", "true"]
    assert write_yaml({"zebra": 1, "ant": 2}) == "zebra: 1\nant: 2\n"
    assert write_yaml({"name": "v1..."}) == "name: v1...\n"


@pytest.mark.parametrize(
    ("text", "line", "fragment"),
    [
        ("a:\n\tb: 1", 2, "column 1: not valid YAML: a tab; YAML allows only spaces"),
        ("a:\n  b: 1\n   c: 2", 3, "check the indentation"),
        ("a: b: c", 1, "column 5"),
        ("a: 'x", 1, "a quotation mark is missing"),
        (
            "a: 1\nb: 'x\nc: 3\nd: 4\n",
            2,
            "column 4: not valid YAML: a quotation mark is missing; the line reads: b: 'x",
        ),
        ("a:\n  b:\n  80\n  c: 3\n", 3, 'column 3: not valid YAML: a key without ":"; the line reads: 80'),
        ("a:\n  b:\n80\n\n\nc: 3\n", 3, 'a key without ":"; the line reads: 80'),
        ("a: [1, 2", 1, "expected ',' or ']', but got '<stream end>'"),
        ("a: @x", 1, "put it in quotes"),
        ("a: 1\nb: *other", 2, "aliases such as *other are not allowed here"),
        ("? [a]\n: 1", 1, "a key must be one word"),
        ("a: 1\nb: {c: 1, c: 2}\n", 2, "the key c is given twice; both times in this line"),
        ("a: 1\nb: 2\na: 3\n", 3, "the key a is given twice; first in line 1"),
        ("a: !!python/object:os.system x", 1, "are not allowed here"),
        ("a: 1\n---\nb: 2", 2, "another document"),
        ("a: 1\nb: \x07", 2, "U+0007 is not allowed"),
        ("a: " + "[" * 5000, 1, "nested too deeply, more than 50 levels"),
        ("%YAML 1." + "1" * 5000, None, "not valid YAML"),
        ('a: "\\UFFFFFFFF"', None, "not valid YAML"),
    ],
)
def test_what_is_not_yaml_is_said_with_its_line(text: str, line: int | None, fragment: str) -> None:
    with pytest.raises(YamlError) as error:
        read_yaml(text)
    assert error.value.line == line
    assert fragment in error.value.message


def test_lines_of_keys_and_items() -> None:
    document = read_yaml("base:\n  p: 1\n  q: 2\nlist:\n  - a: 1\n  - a: 2\n")
    assert document.line(("base", "q")) == (3, True)
    assert document.line(("list", 1, "a")) == (6, True)
    assert document.line(("list", 1, "b")) == (6, False)
    assert document.line(("nowhere", "b")) == (None, False)
