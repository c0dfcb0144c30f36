import pytest
from sacrebleu import sentence_bleu, sentence_chrf

from nmt.evaluation.sentence_scores import sentence_score

REFERENCE = "Der Hund sieht den Kater im Garten."
TRANSLATIONS = ["Der Hund sieht den Kater.", "Ein Hund", "Hund", "", REFERENCE, "der hund SIEHT den kater im garten ."]


@pytest.mark.parametrize("translation", TRANSLATIONS)
def test_they_are_those_of_sacrebleu(translation: str) -> None:
    bleu = sentence_score("bleu", tokenize="13a", lowercase=False)
    assert bleu(translation, REFERENCE) == sentence_bleu(translation, [REFERENCE]).score
    chrf = sentence_score("chrf", tokenize="13a", lowercase=False)
    assert chrf(translation, REFERENCE) == sentence_chrf(translation, [REFERENCE]).score


def test_a_translation_without_long_matches_by_hand() -> None:
    """Of "Ein Hund" one word of two matches and no pair of one, which counts as 1/2; the translation has two words of
    eight, as the period is one."""
    computed = sentence_score("bleu", tokenize="13a", lowercase=False)("Ein Hund", REFERENCE)
    assert computed == pytest.approx(100 * 2.718281828459045 ** (1 - 8 / 2) * (1 / 2 * 1 / 2) ** 0.5)


def test_tokens_and_case_are_as_they_are_asked_for() -> None:
    other = TRANSLATIONS[-1]
    assert sentence_score("bleu", tokenize="13a", lowercase=True)(other, REFERENCE) == pytest.approx(100)
    assert sentence_score("bleu", tokenize="none", lowercase=True)(other, REFERENCE) < 90
    assert sentence_score("chrf", tokenize="none", lowercase=True)(other, REFERENCE) == pytest.approx(100)
