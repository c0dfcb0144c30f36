"""Texts and weights as the page holds them, by hand."""

import base64

import numpy as np
import pytest

from nmt.evaluation.page.attention import packed
from nmt.evaluation.page.texts import MOST_CHARACTERS, MOST_WORDS, in_browser, shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A  dog.", "A  dog."),
        ("tab\there\u2028and\xa0there\x1cends  ", "tab here and there ends"),
        ("\x00\ud800\x9f", "\N{REPLACEMENT CHARACTER}" * 3),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),  # escaping is not its business
        ("", ""),
    ],
)
def test_texts_fit_to_be_shown(text: str, expected: str) -> None:
    assert shown(text) == (expected, 0)


def test_long_texts_are_cut() -> None:
    line = " ".join(f"w{number:04}" for number in range(10_000))
    text, omitted = shown(line)
    assert text.split() == line.split()[:MOST_WORDS]
    assert len(text) + omitted == len(line)
    assert shown("x" * 1_000_000) == ("x" * MOST_CHARACTERS, 1_000_000 - MOST_CHARACTERS)
    assert shown("x" * MOST_CHARACTERS) == ("x" * MOST_CHARACTERS, 0)


def test_places_as_javascript_counts_them() -> None:
    text = "a 😀 b𝔘"
    assert in_browser(text, [(0, 1), (2, 3), (4, 5), (5, 6)]) == [0, 1, 2, 4, 5, 6, 6, 8]
    assert in_browser("aö狗", [(1, 2), (2, 3)]) == [1, 2, 2, 3]


def test_packed_weights() -> None:
    assert base64.b64decode(packed([[0.0, 1.0, 0.0], [0.0, 0.2, 0.001]])) == bytes([0, 1, 255, 0, 2, 51, 0, 1])
    assert base64.b64decode(packed(np.zeros((3, 200)))) == bytes([0, 255, 0, 255, 0, 90])
    assert base64.b64decode(packed([[1.0000001, -1e-9]])) == bytes([255, 0, 1])
    assert packed(np.zeros((0, 4))) == ""
