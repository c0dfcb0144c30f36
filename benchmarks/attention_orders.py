"""Is one row better than another, or is it chance: their difference in BLEU for each seed, with p by paired bootstrap.

The test is sacreBLEU's (Koehn 2004), as nmt-eval makes it, on the translations that each result keeps. It knows results
and a reference, not folders.
"""

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.attention_tasks import Result
from nmt.evaluation.comparison import SIGNIFICANT, compare

LIMIT = SIGNIFICANT
OUTCOMES = {"holds": "hold", "reversed": "are reversed", "within noise": "are within noise"}  # of one, of several


class Difference(NamedTuple):
    """What the first row has more than the second: BLEU, and p of the bootstrap, for each seed of both."""

    first: str
    second: str
    seeds: Sequence[int]
    bleu: Sequence[float]
    p: Sequence[float]

    @property
    def outcome(self) -> str:
        """What is shown of "the first row is better": it holds or is reversed if every seed says so significantly."""
        if all(p < LIMIT for p in self.p):
            if min(self.bleu) > 0:
                return "holds"
            if max(self.bleu) < 0:
                return "reversed"
        return "within noise"

    @property
    def shown(self) -> str:
        """Such as +1.20, or +1.20 ± 0.31 for several seeds."""
        spread = f" ± {statistics.stdev(self.bleu):.2f}" if len(self.bleu) > 1 else ""
        return f"{statistics.fmean(self.bleu):+.2f}{spread}"

    @property
    def chances(self) -> str:
        """p of each seed, such as "0.001, 0.240"."""
        return ", ".join(f"{p:.3f}" for p in self.p)


def difference(
    first: Sequence[Result], second: Sequence[Result], reference: Sequence[str], *, tokenize: str
) -> Difference | None:
    """The difference of two rows on one task, over the seeds that both have; None if they share none.

    `first`, `second`: the results of a row, one for each seed. `reference`: a line for each line of the translations.
    """
    pairs = [(one, other) for one in first for other in second if one.seed == other.seed]
    if not pairs:
        return None
    chances = []
    for one, other in pairs:
        systems = {"first": one.translations, "second": other.translations}
        tested = compare(systems, [reference], metrics=["bleu"], tokenize=tokenize, tested=True)
        assert tested.significance is not None
        p = tested.significance.p_values["second"]["bleu"]
        chances.append(1.0 if p is None else p)  # None: no sentence counts differently
    return Difference(
        pairs[0][0].row,
        pairs[0][1].row,
        seeds=[one.seed for one, _ in pairs],
        bleu=[one.bleu - other.bleu for one, other in pairs],
        p=chances,
    )
