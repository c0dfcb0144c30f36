"""Groups of sentences by hand, and their scores against sacreBLEU's own on the same sentences."""

from contextlib import nullcontext

import pytest
import sacrebleu

from nmt.evaluation.buckets import Bucket, Scored, by_frequency, by_length
from nmt.evaluation.metrics import METRICS


@pytest.mark.parametrize(
    ("lengths", "groups", "expected"),
    [
        ([5, 1, 2, 4, 3, 6], 3, [("1–2", [1, 2]), ("3–4", [3, 4]), ("5–6", [0, 5])]),
        ([7, 7, 7], 3, [("7", [0, 1, 2])]),
        ([7, 2, 7, 7], 2, [("2–6", [1]), ("7", [0, 2, 3])]),  # equal lengths stay together
        ([0, 1200], 2, [("0–1,199", [0]), ("1,200", [1])]),
        ([], 3, []),
    ],
)
def test_groups_by_length(lengths: list[int], groups: int, expected: list[Bucket]) -> None:
    assert by_length(lengths, groups=groups) == expected


def test_groups_by_frequency() -> None:
    counts = [0, 1, 3, None, 4, 9, 10, 999, 1000, 5_000_000]
    assert by_frequency(counts) == [
        ("0", [0]),
        ("1", [1]),
        ("2–4", [2, 4]),
        ("5–9", [5]),
        ("10–99", [6]),
        ("100–999", [7]),
        ("1,000 or more", [8, 9]),
    ]
    assert by_frequency([7]) == [("5–9", [0])]
    assert by_frequency([None]) == []


HYPOTHESES = ["The cat sat on a mat.", "Yes", "Dogs don't bark, they sing.", ""]
REFERENCES = [
    ["The cat sat on the mat.", "No", "Dogs don't sing, they bark.", "Nothing."],
    ["A cat sat.", "Yes, sure", "Dogs bark.", "No."],
]


@pytest.mark.parametrize("name", ["bleu", "chrf"])
@pytest.mark.parametrize("references", [REFERENCES[:1], REFERENCES])
def test_scores_are_those_of_sacrebleu(name: str, references: list[list[str]]) -> None:
    scored = Scored(METRICS[name].build("13a", False, nullcontext), HYPOTHESES, references)
    corpus = {"bleu": sacrebleu.corpus_bleu, "chrf": sacrebleu.corpus_chrf}[name]
    for places in ([0, 2, 3], [1], [3]):
        chosen = [[lines[place] for place in places] for lines in (HYPOTHESES, *references)]
        assert scored.of(places) == pytest.approx(corpus(chosen[0], chosen[1:]).score, abs=1e-9)
    sentence = {"bleu": sacrebleu.sentence_bleu, "chrf": sacrebleu.sentence_chrf}[name]
    expected = [
        sentence(hypothesis, list(lines)).score for hypothesis, *lines in zip(HYPOTHESES, *references, strict=True)
    ]
    assert scored.sentences(4) == pytest.approx(expected, abs=1e-9)
    assert scored.sentences(1) == pytest.approx(expected[:1], abs=1e-9)
