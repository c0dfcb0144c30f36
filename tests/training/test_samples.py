"""Which sentences are shown, and how."""

import numpy as np
import pytest

from nmt.training.samples import Sample, as_markdown, chosen


@pytest.mark.parametrize(
    ("lengths", "number", "expected"),
    [
        ([5] * 10, 4, [0, 2, 5, 7]),
        ([5] * 3, 4, [0, 1, 2]),
        ([5] * 3, 0, []),
        ([], 4, []),
        ([0, 61, 0, 999], 4, []),  # blank and long lines
        ([0, 1, 61, 60, 0, 7], 2, [1, 3]),
    ],
)
def test_which_sentences(lengths: list[int], number: int, expected: list[int]) -> None:
    assert chosen(np.array(lengths, dtype=np.int32), number) == expected


def test_texts_are_shown_as_they_are() -> None:
    """In a block of code, which an indented line begins: no markup, no link and no line of theirs counts."""
    sample = Sample("a *b*  <script>", "c\u2028# d\x85![e](http://f)", "", [], [], None)
    assert as_markdown(sample).split("\n") == [
        "    source       a *b* <script>",
        "    reference    c # d ![e](http://f)",
        "    translation  ",
    ]
