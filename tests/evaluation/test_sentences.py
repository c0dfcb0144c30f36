"""What is said of single sentences, by tables that a person can check."""

import random
from functools import cache
from itertools import pairwise

import pytest

from nmt.evaluation.sentences import (
    Share,
    common_subsequence,
    differing,
    frequencies,
    rarest,
    repetition,
    spans,
    total,
    unknown,
    unseen,
    words,
)


@pytest.mark.parametrize(
    ("text", "tokens", "expected"),
    [
        ("A dog's bone, ok.", ["A", "dog", "'", "s", "bone", ",", "ok", "."], ["A", "dog", "s", "bone", "ok"]),
        ("3.5 kg", ["3", ".", "5", "kg"], ["3", "5", "kg"]),
        ("हिन्दी है।", ["हिन्दी", "है", "।"], ["हिन्दी", "है"]),  # vowel signs belong to their words
        ("كلب، يركض", ["كلب", "،", "يركض"], ["كلب", "يركض"]),
        ("一只狗。", ["一", "只", "狗", "。"], ["一", "只", "狗"]),  # no spaces: each character by itself
        ("ひとつ", ["ひ", "と", "つ"], ["ひ", "と", "つ"]),
        ("한 마리", ["한", "마리"], ["한", "마리"]),
        ("نمی‌خواهم", ["نمی‌خواهم"], ["نمی‌خواهم"]),  # a zero-width non-joiner is inside a word
        ("\t \u2028", [], []),
        ("", [], []),
        ("a\ud800b", ["a", "\ud800", "b"], ["a", "b"]),
    ],
)
def test_words_and_signs(text: str, tokens: list[str], expected: list[str]) -> None:
    assert [text[start:stop] for start, stop in spans(text)] == tokens
    assert words(text) == expected


@pytest.mark.parametrize(
    ("one", "other", "pairs"),
    [
        ("abc", "abc", [(0, 0), (1, 1), (2, 2)]),
        ("abc", "xyz", []),
        ("", "abc", []),
        ("abcd", "acd", [(0, 0), (2, 1), (3, 2)]),
        ("xaby", "azb", [(1, 0), (2, 2)]),
        ("aa", "a", [(0, 0)]),
        ("ab", "ba", [(0, 1)]),  # of two equally long ones, that which begins first in the first
    ],
)
def test_common_subsequence(one: str, other: str, pairs: list[tuple[int, int]]) -> None:
    assert common_subsequence(one, other) == pairs


def test_common_subsequences_are_longest() -> None:
    """Against the recursion that defines them."""

    @cache
    def length(one: str, other: str) -> int:
        if not one or not other:
            return 0
        if one[0] == other[0]:
            return 1 + length(one[1:], other[1:])
        return max(length(one[1:], other), length(one, other[1:]))

    generator = random.Random(5)
    for _ in range(300):
        one, other = ("".join(generator.choices("abc", k=generator.randrange(8))) for _ in range(2))
        pairs = common_subsequence(one, other)
        assert len(pairs) == length(one, other)
        assert all(one[first] == other[second] for first, second in pairs)
        assert all(a < c and b < d for (a, b), (c, d) in pairwise(pairs))


def test_a_comparison_that_would_fill_the_memory_is_none() -> None:
    """10,001 tokens in both take more than 10⁸ bits; what both begin and end with does not count."""
    for size, is_compared in ((10_000, True), (10_001, False)):
        one, other = "x" + "ab" * size, "y" + "bc" * size
        one, other = (f"((({text[:size]})" for text in (one, other))
        pairs = common_subsequence(one, other)
        assert pairs[:3] == [(0, 0), (1, 1), (2, 2)]
        assert pairs[-1] == (size + 3, size + 3)
        assert (len(pairs) > 4) == is_compared


def test_words_that_differ() -> None:
    translations = ["Ein Hund läuft.", "Der Hund rennt."]
    references = ["Ein Hund rennt schnell."]
    ours, theirs = differing(translations, references)

    def marked(texts: list[str], all_places: list[list[tuple[int, int]]]) -> list[list[str]]:
        return [[text[start:stop] for start, stop in places] for text, places in zip(texts, all_places, strict=True)]

    assert marked(translations, ours) == [["läuft"], ["Der"]]
    assert marked(references, theirs) == [["schnell"]]  # each other word is in one of the translations
    long = ["".join(f"{word} {number} " for number in range(500)) for word in ("a", "b")]  # compared to their ends
    ours, theirs = differing(long[:1], long[1:])
    assert marked(long, ours + theirs) == [["a"] * 500, ["b"] * 500]
    assert differing(["a b"], []) == ([[(0, 1), (2, 3)]], [])


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("the cat and the cat cat", (2, 5)),
        ("the The THE", (2, 2)),
        ("a dog and a cat", (0, 4)),
        ("one", (0, 0)),
        ("", (0, 0)),
    ],
)
def test_repetition(text: str, share: tuple[int, int]) -> None:
    assert repetition(text.split()) == share


def test_unknown_words() -> None:
    assert unknown("Ein ⁇ läuft zu <unk>.") == Share(2, 5)
    assert unknown("") == Share(0, 0)
    assert Share(0, 0).rate is None
    assert Share(1, 4).rate == 0.25
    assert total([Share(1, 4), Share(0, 3)]) == Share(1, 7)
    assert total([]) == Share(0, 0)


def test_rare_and_new_words() -> None:
    counts = frequencies(["Der Hund, der Hund.", "Katze"], ["der", "HUND", "Katze", "Maus"])
    assert counts == {"der": 2, "hund": 2, "katze": 1, "maus": 0}
    assert rarest(["Der", "Hund", "Katze"], counts) == ("Katze", 1)
    assert rarest(["Hund", "der"], counts) == ("Hund", 2)  # the first of equals
    assert rarest([], counts) is None
    assert unseen(["Maus", "Hund", "Maus"], counts) == Share(2, 3)
