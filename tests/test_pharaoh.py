"""The Pharaoh format: what is a link, and how a mistake is told."""

import pytest

from nmt.errors import UserError
from nmt.pharaoh import Gold, links_of_line, pharaoh, read_gold, read_links


def test_pharaoh_format() -> None:
    assert pharaoh([(1, 0), (0, 1), (12, 10)]) == "1-0 0-1 12-10"
    assert read_links(["1-0 0-1  12-10 0-1", "", " "], name="a") == [[(1, 0), (0, 1), (12, 10)], [], []]


def test_gold_has_sure_and_possible_links() -> None:
    assert read_gold(["0-0 1p2 2?2", ""], name="g") == [Gold({(0, 0)}, {(0, 0), (1, 2), (2, 2)}), Gold(set(), set())]


@pytest.mark.parametrize("word", ["1-", "-1", "a-b", "1-2-3", "1:2", "1p2", "1--2", "٣-٤"])
def test_what_is_no_link_is_named_with_its_line(word: str) -> None:
    with pytest.raises(UserError, match=r"^file, line 2: '.*' is not a link; expected source-target, such as 0-2$"):
        read_links(["0-0", f"0-0 {word}"], name="file")
    if word != "1p2":
        with pytest.raises(UserError, match=r"line 1: .* or 0p2 for a possible one"):
            read_gold([word], name="file")


def test_a_number_that_is_too_long_for_a_word_is_no_link() -> None:
    with pytest.raises(UserError, match=r"^file, line 2: '0-9{28}' is not a link"):
        read_links(["0-0", f"0-0 0-{'9' * 4301}"], name="file")
    assert read_links(["000000012-999999999"], name="file") == [[(12, 999999999)]]


def test_one_line_by_itself() -> None:
    assert links_of_line(" 2-1 0-0 2-1", place="here") == [(2, 1), (0, 0)]
    with pytest.raises(UserError, match=r"^here: '0p1' is not a link; expected source-target, such as 0-2$"):
        links_of_line("0-0 0p1", place="here")
