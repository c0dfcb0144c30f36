"""What is said of single sentences, by tables that a person can check."""

import pytest

from nmt.evaluation.sentences import (
    Share,
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


def test_letters_that_differ() -> None:
    assert differing(["ẹ́kọ̀"], ["ẹ̀kọ̀n"], by_letters=True) == ([[(0, 2)]], [[(0, 2), (5, 6)]])
