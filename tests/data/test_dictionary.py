"""Dictionaries: two and three columns, tabs and spaces, and a message for every line that is not an entry."""

import gzip
from pathlib import Path

import pytest

from nmt.data.dictionary import read_dictionary
from nmt.errors import UserError


def entries(tmp_path: Path, text: str) -> dict[str, str]:
    path = tmp_path / "words"
    path.write_text(text, encoding="utf-8")
    return read_dictionary(path)


def problems(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(UserError) as caught:
        entries(tmp_path, text)
    assert all(message.startswith(f"{tmp_path / 'words'}") for message in caught.value.messages)
    return [message.removeprefix(f"{tmp_path / 'words'}") for message in caught.value.messages]


def test_tabs_and_spaces(tmp_path: Path) -> None:
    text = "Hund dog\n\nNeujahr\tNew  Year\n  Katze   cat  \nÅse\tÅse \r\n"
    assert entries(tmp_path, text) == {"Hund": "dog", "Neujahr": "New Year", "Katze": "cat", "Åse": "Åse"}


def test_of_several_entries_the_first_counts(tmp_path: Path) -> None:
    assert entries(tmp_path, "Bank bank\nBank bench\nbank sofa\n") == {"Bank": "bank", "bank": "sofa"}


def test_of_several_entries_the_one_with_the_largest_weight_counts(tmp_path: Path) -> None:
    text = "Bank bench 0.25\nBank bank 0.5\nBank shore 0.5\nBank\tthe bank\t-1e3\n"
    assert entries(tmp_path, text) == {"Bank": "bank"}


def test_gzip_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "words.gz"
    path.write_bytes(gzip.compress("\ufeffHund dog\n".encode()))
    assert read_dictionary(path) == {"Hund": "dog"}


def test_every_malformed_line_is_named(tmp_path: Path) -> None:
    text = (
        "Hund dog 1\nKatze\nMaus mouse\nKuh cow much\nalter Mann\told man\t1\n\t dog\t1\nPferd\t\t1\na b c d\nx y nan\n"
    )
    assert problems(tmp_path, text) == [
        ", line 2: 1 column; expected: source target [weight]",
        ", line 3: 2 columns, but line 1 has 3",
        ", line 4: the weight 'much' is not a number",
        ", line 5: the source 'alter Mann' is more than one word, but words are looked up one by one",
        ", line 6: the source is empty",
        ", line 7: the target is empty",
        ", line 8: 4 columns; expected: source target [weight]",
        ", line 9: the weight 'nan' is not a number",
    ]


def test_a_file_without_entries(tmp_path: Path) -> None:
    assert problems(tmp_path, "\n \n") == [": has no entries; expected lines such as: Hund dog"]


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nowhere: no such file"):
        read_dictionary(tmp_path / "nowhere")
    (tmp_path / "words").write_bytes(b"Hund dog\nK\xe4tzchen kitten\n")
    with pytest.raises(UserError, match="line 2: not valid UTF-8"):
        read_dictionary(tmp_path / "words")
