"""Differences between rows: which seeds are compared, and what their p allows to say. Results are made up."""

import pytest

from benchmarks.attention_orders import Difference, difference
from benchmarks.attention_tasks import Result

REFERENCE = [f"the {number} dogs of house {number} run home ." for number in range(60)]
WRONG = [line.replace("dogs of", "cats") for line in REFERENCE]


def result(row: str, seed: int, bleu: float, translations: list[str]) -> Result:
    return Result(
        row, "multi30k", seed, "0123abcd", 7.0, bleu, "signature", 11, 1.0, 5000.0, None, "Abacus", 1, "2.13.0",
        "float32", translations,
    )  # fmt: skip


def test_seeds_that_both_have_are_compared() -> None:
    first = [result("dot", seed, bleu, REFERENCE) for seed, bleu in ((1, 99.0), (2, 40.0))]
    second = [result("none", seed, bleu, WRONG) for seed, bleu in ((2, 36.5), (3, 10.0))]
    compared = difference(first, second, REFERENCE, tokenize="none")
    assert compared is not None
    assert (compared.first, compared.second, compared.seeds, compared.bleu) == ("dot", "none", [2], [3.5])
    assert list(compared.p) == pytest.approx([1 / 1001]), "the smallest of 1,000 resamples"
    assert (compared.outcome, compared.shown, compared.chances) == ("holds", "+3.50", "0.001")
    assert difference(first[:1], second, REFERENCE, tokenize="none") is None


@pytest.mark.parametrize(
    ("bleu", "p", "outcome"),
    [
        ([1.0, 2.0], [0.01, 0.024], "holds"),
        ([-1.0, -2.0], [0.01, 0.024], "reversed"),
        ([1.0, 2.0], [0.01, 0.025], "within noise"),
        ([1.0, -2.0], [0.01, 0.01], "within noise"),
        ([0.0], [0.001], "within noise"),
    ],
)
def test_outcomes(bleu: list[float], p: list[float], outcome: str) -> None:
    assert Difference("a", "b", [*range(len(p))], bleu, p).outcome == outcome
