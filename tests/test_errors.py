"""Mistakes are collected in a plain list and reported all at once."""

from pathlib import Path

import pytest

from nmt.errors import (
    UserError,
    collected,
    counted,
    first_of,
    nothing_at,
    refuse,
    refuse_lines,
    visible,
)


def refusing() -> int:
    raise UserError("one", "two")


def test_problems_are_collected_and_refused_all_at_once_each_once() -> None:
    problems = ["zero"]
    with collected(problems):
        refusing()
    with collected(problems):
        raise OSError(36, "File name too long", "nnn")
    with collected(problems):
        problems.append("zero")
    assert problems == ["zero", "one", "two", "nnn: File name too long", "zero"]
    with pytest.raises(UserError) as error:
        refuse(problems)
    assert error.value.messages == ("zero", "one", "two", "nnn: File name too long")
    refuse([])


def test_of_many_the_first_are_told() -> None:
    assert first_of(["a", "b", "c"], 3) == ["a", "b", "c"]
    assert first_of(["a", "b", "c"], 2) == ["a", "b", "and 1 more"]
    refuse_lines("file", [])
    with pytest.raises(UserError) as error:
        refuse_lines("file", [f"line {number}" for number in range(1254)])
    assert error.value.messages == (*(f"line {number}" for number in range(20)), "file: 1,234 more lines are malformed")


def test_a_character_that_cannot_be_read_by_itself_is_told_by_its_number() -> None:
    assert [*map(visible, "aक\u0651\u093f\u00a0\u200f")] == ["a", "क", "U+0651", "U+093F", "U+00A0", "U+200F"]


def test_where_nothing_is_the_nearest_name_is_told(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "train.en").touch()
    (tmp_path / "corpus" / "link.en").symlink_to("nowhere")
    assert nothing_at(tmp_path / "corpus" / "train.en") is None
    missing = tmp_path / "corpus" / "trian.en"
    assert nothing_at(missing) == f"{missing}: no such file; nearest: {tmp_path / 'corpus' / 'train.en'}"
    missing = tmp_path / "corpus" / "zebra"
    assert nothing_at(missing, "no such run") == f"{missing}: no such run"
    many = [tmp_path / "corpus" / (letter * 9) for letter in "abcdefghij"]  # whichever the system lists first
    for file in many:
        file.touch()
    for file in many:
        missing = file.with_name(f"{file.name}x")
        assert nothing_at(missing) == f"{missing}: no such file; nearest: {file}"
    missing, folder = tmp_path / "corpsu" / "train.en", tmp_path / "corpsu"
    nearest = tmp_path / "corpus"
    assert nothing_at(missing) == f"{missing}: no such file; there is no folder {folder}; nearest: {nearest}"
    link = tmp_path / "corpus" / "link.en"  # to nothing; it is not its own nearest name
    assert nothing_at(link) in (f"{link}: no such file", f"{link}: no such file; nearest: {link.with_name('train.en')}")


def test_one_has_no_plural() -> None:
    assert [counted(number, "line") for number in (0, 1, 2, 1000)] == ["0 lines", "1 line", "2 lines", "1,000 lines"]
    assert [counted(number, "batch", "batches") for number in (1, 2)] == ["1 batch", "2 batches"]
