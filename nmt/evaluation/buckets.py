"""Sentences in groups of similar length, or with words as rare; and the scores of a metric by sentence and by group.

A statistic, its sum, its score: a metric's statistics are computed once for each sentence, by sacreBLEU, and all scores
come from their sums. It knows metrics, sentences and numbers, and no files.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from sacrebleu.metrics import BLEU
from sacrebleu.metrics.base import Metric

FREQUENCIES = (0, 1, 2, 5, 10, 100, 1000)  # where the groups of rare words begin
LENGTHS = 6  # groups of about as many sentences


class Bucket(NamedTuple):
    """A group of sentences."""

    label: str
    indices: list[int]


def by_length(lengths: Sequence[int], *, groups: int = LENGTHS) -> list[Bucket]:
    """About equally many sentences in each of at most so many groups, shortest first; equal lengths stay together."""
    ordered = sorted(lengths)
    begins = sorted({ordered[len(ordered) * group // groups] for group in range(groups)}) if ordered else []
    return _ranges(lengths, [*begins, ordered[-1] + 1] if ordered else [])


def by_frequency(counts: Sequence[int | None]) -> list[Bucket]:
    """Groups by how often a word occurs: never, once, 2 to 4 times, 5 to 9, 10 to 99, …; none for None."""
    known = [-1 if count is None else count for count in counts]
    last = _ranges(known, [FREQUENCIES[-1], max(max(known, default=0) + 1, FREQUENCIES[-1] + 1)])
    open_ended = [Bucket(f"{FREQUENCIES[-1]:,} or more", bucket.indices) for bucket in last]
    return _ranges(known, FREQUENCIES) + open_ended


def _ranges(values: Sequence[int], edges: Sequence[int]) -> list[Bucket]:
    """The places of the values in [edge, next edge), for each edge but the last; only those where something is."""
    buckets = []
    for begin, end in pairwise(edges):
        label = f"{begin:,}" if end == begin + 1 else f"{begin:,}–{end - 1:,}"
        buckets.append(Bucket(label, [index for index, value in enumerate(values) if begin <= value < end]))
    return [bucket for bucket in buckets if bucket.indices]


class Scored:
    """A metric's statistics of every sentence of one system: the score of a sentence, and of any group."""

    def __init__(self, metric: Metric, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
        """`references`: one or more lists, with a line for each hypothesis."""
        self.statistics = np.array(metric._extract_corpus_statistics(hypotheses, references), dtype=np.int64)
        self._score: Callable[[list[int]], float] = lambda sums: metric._compute_score_from_stats(sums).score
        self._of_sentence = _sentence_bleu if isinstance(metric, BLEU) else self._score

    def of(self, indices: Iterable[int]) -> float:
        """The corpus score of these sentences."""
        return self._score(self.statistics[list(indices)].sum(axis=0).tolist())

    def sentences(self, most: int) -> list[float]:
        """The score of each sentence by itself, of at most so many."""
        return [self._of_sentence(row) for row in self.statistics[:most].tolist()]


def _sentence_bleu(statistics: list[int]) -> float:
    """BLEU of the n-gram orders that the sentence is long enough for, as sacreBLEU's `sentence_bleu`."""
    translation, reference, *counts = statistics
    orders = len(counts) // 2
    score = BLEU.compute_bleu(
        counts[:orders], counts[orders:], translation, reference, smooth_method="exp", effective_order=True
    )
    return float(score.score)
