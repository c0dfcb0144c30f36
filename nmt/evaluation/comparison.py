"""Systems side by side: their scores, 95% intervals, whether a difference may be chance, and how much seeds differ.

It knows sentences, names, and sacreBLEU, but no files, models, or subwords, and prints nothing. Intervals and p-values
come from `sacrebleu.significance`, with its seed (SACREBLEU_SEED, by default 12345) and its number of samples, so they
are those of `sacrebleu REFERENCE… -i BASELINE SYSTEM… --paired-bs`. Paired bootstrap resampling: Koehn (2004),
"Statistical Significance Tests for Machine Translation Evaluation".

`compare` counts the statistics of each sentence once; scores, intervals, and the test are made of their sums.
"""

import operator
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from nmt.errors import UserError
from nmt.evaluation.metrics import METRICS, TOKENIZERS, USUAL, Counted, Metric, counted

RESAMPLES: Final = 1_000  # sacreBLEU's default
SIGNIFICANT: Final = 0.025
"""Below this p, a difference counts as more than chance: about one of 20 pairs of equal systems has such a p.

sacreBLEU's p is one-sided. With the difference d of two systems and d* of a resample, it counts how
often |d*| - mean |d*| > |d|, which in the resamples of a clear difference is d* > 2d alone, not d* < 0.
"""


class Interval(NamedTuple):
    """The mean of a score over bootstrap resamples, and half the width of the range of the middle 95% of them.

    So sacreBLEU has it. Where the scores are skewed, as near 0 or 100, the mean is not in the middle of that range.
    """

    mean: float
    half_width: float


@dataclass(frozen=True, kw_only=True)
class SystemScore:
    """A corpus score of one system, on the scale of its metric, and its interval if one was asked for."""

    score: float
    interval: Interval | None
    counted: Counted = field(compare=False, repr=False)  # what it was computed from


@dataclass(frozen=True, kw_only=True)
class System:
    """A system's translations, line by line, and its scores by metric."""

    name: str
    hypotheses: Sequence[str]
    scores: Mapping[str, SystemScore]


@dataclass(frozen=True, kw_only=True)
class Significance:
    """Whether the other systems differ from the baseline by more than chance, by the paired bootstrap.

    `p_values[system][metric]`: the probability of a difference at least as large as the one seen, if the two systems
    were equally good, one-sided (see SIGNIFICANT); None if the metric counts the same in every sentence of both, as in
    identical translations, or is 0 for both, where sacreBLEU's would be the smallest possible one. `signatures`:
    sacreBLEU's by metric, with the samples and the seed.
    """

    baseline: str
    samples: int
    seed: int | None  # None: another one each time
    signatures: Mapping[str, str]
    p_values: Mapping[str, Mapping[str, float | None]]


@dataclass(frozen=True, kw_only=True)
class Runs:
    """Several seeds of one system, two or more: the mean and the sample standard deviation of their scores, by metric.

    With scores x₁ … xₙ and their mean m: √(Σ (xᵢ − m)² / (n − 1)).
    """

    name: str
    members: tuple[str, ...]  # names of systems
    mean: Mapping[str, float]
    deviation: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The outcome of `compare`: one system or several, in the order that they were given in.

    Metrics are keys of `measures`, in the order in which they are shown.
    """

    measures: Mapping[str, Metric]
    tokenize: str
    lowercase: bool
    systems: tuple[System, ...]
    references: tuple[Sequence[str], ...]  # one or more, each with a line for each sentence
    source: Sequence[str] | None
    significance: Significance | None
    runs: tuple[Runs, ...]

    @property
    def sentences(self) -> int:
        return len(self.references[0])

    def counted(self, metric: str) -> list[Counted]:
        """The statistics of each system by a key of METRICS, which are counted now if it is not among `measures`."""
        if metric in self.measures:
            return [one.scores[metric].counted for one in self.systems]
        built = METRICS[metric].build(self.tokenize, self.lowercase)
        return [counted(built, one.hypotheses, self.references) for one in self.systems]

    def best(self, metric: str) -> frozenset[str]:
        """The names of the systems with the best score, or where there are runs, of those with the best mean: more than
        one where they are equal; none if all are equal."""
        means = {runs.name: runs.mean[metric] for runs in self.runs}
        scores = means or {one.name: one.scores[metric].score for one in self.systems}
        if len(scores) < 2:
            return frozenset()
        rounded = {name: round(score, 6) for name, score in scores.items()}
        top = (max if self.measures[metric].better == "higher" else min)(rounded.values())
        names = frozenset(name for name, score in rounded.items() if score == top)
        return names if len(names) < len(scores) else frozenset()


def compare(
    systems: Mapping[str, Sequence[str]],
    references: Sequence[Sequence[str]],
    *,
    source: Sequence[str] | None = None,
    metrics: Sequence[str] = USUAL,
    tokenize: str = TOKENIZERS[0],
    lowercase: bool = False,
    tested: bool = False,
    intervals: bool = False,
    resamples: int = RESAMPLES,
    runs: Mapping[str, Sequence[str]] | None = None,
) -> Comparison:
    """Score systems against the same references; hypothesis i and line i of each reference are of the same sentence.

    `systems`: the detokenized translations by the name of the system; the first system is the baseline. `metrics`:
    keys of METRICS, with `tokenize` and `lowercase` as in `metrics.corpus_scores`. `tested`: whether each system is
    tested against the baseline by a bootstrap of so many `resamples`, at least 40. `intervals`: have them without the
    test, too, which makes them anyway. `runs`: names of systems that are seeds of one, by its name, two or more.

    Raises UserError when the tokenizer is unavailable; ValueError when there are no systems, references, or sentences,
    or line counts differ.
    """
    counts = {len(lines) for lines in (*systems.values(), *references)}
    if not systems or not references or len(counts) != 1 or counts == {0}:
        raise ValueError(f"{len(systems)} systems and {len(references)} references, lines: {sorted(counts)}")
    built = {name: METRICS[name].build(tokenize, lowercase) for name in metrics}
    columns = {
        metric: {name: counted(one, lines, references) for name, lines in systems.items()}
        for metric, one in built.items()
    }
    tests = {metric: _tested(column, resamples) for metric, column in columns.items()} if tested else {}
    scored = []
    for name, hypotheses in systems.items():
        scores = {}
        for metric, column in columns.items():
            interval = None
            if tested or intervals:  # without a test its baseline has one, so every system is that in turn
                _, results = tests[metric] if tested else _tested({name: column[name]}, resamples)
                interval = Interval(float(results[name].mean), float(results[name].ci))
            scores[metric] = SystemScore(score=column[name].score, interval=interval, counted=column[name])
        scored.append(System(name=name, hypotheses=hypotheses, scores=scores))
    return Comparison(
        measures={name: METRICS[name]._replace(signature=str(one.get_signature())) for name, one in built.items()},
        tokenize=tokenize,
        lowercase=lowercase,
        systems=tuple(scored),
        references=tuple(references),
        source=source,
        significance=_significance(tests, columns, samples=resamples) if tested else None,
        runs=tuple(_over_seeds(runs or {}, scored)),
    )


class _Precounted:
    """A metric for `PairedTest` whose "hypotheses" are the statistics of sentences, which it does not count again."""

    def __init__(self, metric: Any) -> None:
        self._metric = metric

    def _extract_corpus_statistics(self, hypotheses: Any, references: None) -> Any:
        return hypotheses

    def __getattr__(self, name: str) -> Any:
        return getattr(self._metric, name)


def _tested(column: Mapping[str, Counted], samples: int) -> tuple[Any, dict[str, Any]]:
    """The signature of a test of one metric, and what it says about each system: all have a `mean` and its `ci`, and
    all but the first a `p_value`."""
    from sacrebleu.significance import PairedTest  # only here: it needs NumPy, and the everyday scores do not

    lines: Any = [(name, one.statistics) for name, one in column.items()]
    metric: Any = _Precounted(next(iter(column.values())).metric)
    try:
        test = PairedTest(lines, {"": metric}, None, test_type="bs", n_samples=samples)
    except ValueError as error:  # of the only thing that it has not from here
        raise UserError(f"SACREBLEU_SEED: {error}") from None
    signatures, results = test()
    ((title, signature),) = signatures.items()
    return signature, dict(zip(column, results[title], strict=True))


def _significance(
    tests: Mapping[str, tuple[Any, Mapping[str, Any]]],
    columns: Mapping[str, Mapping[str, Counted]],
    *,
    samples: int,
) -> Significance:
    baseline, *rivals = next(iter(columns.values()))
    p_values: dict[str, dict[str, float | None]] = {rival: {} for rival in rivals}
    for metric, (_, results) in tests.items():
        for rival in rivals:
            one, other = columns[metric][baseline], columns[metric][rival]
            # Where no sentence makes a difference, sacreBLEU's p would be the smallest possible one.
            equal = all(map(operator.eq, one.statistics, other.statistics)) or one.score == other.score == 0
            p_values[rival][metric] = None if equal else float(results[rival].p_value)
    signatures = {metric: str(signature) for metric, (signature, _) in tests.items()}
    seed: str = next(signature.info["seed"] for signature, _ in tests.values())
    return Significance(
        baseline=baseline,
        samples=samples,
        seed=None if seed == "none" else int(seed),
        signatures=signatures,
        p_values=p_values,
    )


def _over_seeds(members: Mapping[str, Sequence[str]], systems: Sequence[System]) -> Iterator[Runs]:
    scores = {one.name: one.scores for one in systems}
    for name, runs in members.items():
        columns = {metric: [scores[run][metric].score for run in runs] for metric in systems[0].scores}
        yield Runs(
            name=name,
            members=tuple(runs),
            mean={metric: statistics.mean(column) for metric, column in columns.items()},
            deviation={metric: statistics.stdev(column) for metric, column in columns.items()},
        )
