"""The outcome of `compare` for people and for programs: a table of 80 columns with one line that explains it, and JSON.

It knows names, scores, and p-values; it computes none of them, and prints nothing.
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain, islice
from typing import Any, Final

from nmt.errors import counted, shown
from nmt.evaluation.comparison import SIGNIFICANT, Comparison, Interval, System

WIDTH: Final = 80
_BOOTSTRAP: Final = "p (boot.)"

Row = Sequence[str]


def table(comparison: Comparison) -> str:
    """One system: a line for each metric. Several, or runs: a block for each metric, and a line about its columns."""
    count = counted(comparison.sentences, "sentence")
    if len(comparison.systems) == 1:
        return f"{_one_system(comparison)}\n{count}"
    rows_of = _rows_of_runs if comparison.runs else _rows_of_systems
    rows = [[*rows_of(comparison, metric)] for metric in comparison.measures]
    lines = iter(_aligned([*chain(*rows)], width=WIDTH))
    blocks = ["\n".join(islice(lines, len(block))) for block in rows]
    signatures = [f"{measure.title} {measure.signature}" for measure in comparison.measures.values()]
    return "\n\n".join([*blocks, textwrap.fill(legend(comparison), WIDTH), "\n".join([*signatures, count])])


def legend(comparison: Comparison) -> str:
    """What the columns of several systems mean, and below which p a difference is more than chance."""
    parts = ["* best"] if any(map(comparison.best, comparison.measures)) else []
    if comparison.runs:
        parts.append("s.d.: the standard deviation of the runs")
    elif len(comparison.systems) > 1:
        parts.append(f"baseline: {shown(comparison.systems[0].name)}")
    if has_intervals(comparison):
        parts.append("95% interval: of bootstrap resamples, their mean ± half its width")
    if (test := comparison.significance) is not None:
        how = f"{test.samples:,} resamples, one-sided, seed {'none' if test.seed is None else test.seed}"
        parts.append(f"{_BOOTSTRAP}: {how}, significant below {SIGNIFICANT:g}")
    return "; ".join(parts)


def json_object(comparison: Comparison) -> dict[str, Any]:
    """The scores as an object for `json.dump`, rounded to six decimals.

    One system: {"score", "lines", "signature"} for each metric, with "interval" where there is one, and of BLEU its
    parts. Several: `systems`, `signatures`, and `references`, with `significance` and `runs` where there are any. Both:
    what was scored how. Rounding makes a perfect translation 100.0, not the 100.00000000000004 of floating point.
    """
    how = {name: getattr(comparison, name) for name in ("sentences", "tokenize", "lowercase")}
    signatures = {metric: measure.signature for metric, measure in comparison.measures.items()}
    if len(comparison.systems) == 1:
        scores = _scores(comparison.systems[0])
        return {**{metric: {**score, "signature": signatures[metric]} for metric, score in scores.items()}, **how}
    numbers: dict[str, Any] = {
        "systems": [{"name": scored.name, "scores": _scores(scored)} for scored in comparison.systems],
        "signatures": signatures,
    }
    if (test := comparison.significance) is not None:
        p_values = {name: _rounded(by_metric) for name, by_metric in test.p_values.items()}
        numbers["significance"] = {**asdict(test), "p_values": p_values}
    if comparison.runs:
        numbers["runs"] = [
            {
                "name": runs.name,
                "members": list(runs.members),
                "mean": _rounded(runs.mean),
                "standard_deviation": _rounded(runs.deviation),
            }
            for runs in comparison.runs
        ]
    return {**numbers, "references": len(comparison.references), **how}


def _scores(scored: System) -> dict[str, dict[str, Any]]:
    scores: dict[str, dict[str, Any]] = {}
    for metric, score in scored.scores.items():
        scores[metric] = {"score": round(score.score, 6)}
        if score.interval is not None:
            scores[metric]["interval"] = _rounded(score.interval._asdict())
        scores[metric] |= score.counted.parts()
        scores[metric]["lines"] = [round(line, 6) for line in score.counted.sentences()]
    return scores


def _rounded(numbers: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: None if number is None else round(number, 6) for name, number in numbers.items()}


# -------------------------------------------------------------------------------------------------------------- tables


def _one_system(comparison: Comparison) -> str:
    (scored,) = comparison.systems
    rows: list[Row] = [("metric", "score", "95% interval", "better", "signature")]
    for metric, measure in comparison.measures.items():
        score = scored.scores[metric]
        rows.append((measure.title, f"{score.score:.2f}", _interval(score.interval), measure.better, measure.signature))
    return "\n".join(_aligned(rows, left=("better", "signature")))


def _rows_of_systems(comparison: Comparison, metric: str) -> Iterator[Row]:
    """The systems with their differences from the first one, which is the baseline."""
    measure, test = comparison.measures[metric], comparison.significance
    yield f"{measure.title}, {measure.better} is better", "score", "diff.", "95% interval", _BOOTSTRAP
    baseline = comparison.systems[0]
    for scored in comparison.systems:
        score = scored.scores[metric]
        difference = p = ""
        if scored is not baseline:
            difference = f"{score.score - baseline.scores[metric].score:+.2f}"
            p = "" if test is None else _shown_p(test.p_values[scored.name][metric])
        name = _marked(scored.name, scored.name in comparison.best(metric))
        yield name, f"{score.score:.2f}", difference, _interval(score.interval), p


def _rows_of_runs(comparison: Comparison, metric: str) -> Iterator[Row]:
    """The runs of each system, and their mean with the standard deviation."""
    measure, best = comparison.measures[metric], comparison.best(metric)
    scores = {scored.name: scored.scores[metric] for scored in comparison.systems}
    yield f"{measure.title}, {measure.better} is better", "score", "s.d.", "95% interval"
    for runs in comparison.runs:
        for name in runs.members:
            yield _marked(name), f"{scores[name].score:.2f}", "", _interval(scores[name].interval)
        mean = _marked(f"{runs.name}, mean of {len(runs.members)}", runs.name in best)
        yield mean, f"{runs.mean[metric]:.2f}", f"{runs.deviation[metric]:.2f}", ""


def _shown_p(p: float | None) -> str:
    """Such as 0.0120; a dash where nothing was tested."""
    if p is None:
        return "–"
    return f"{p:.4f}" if p >= 0.00005 else "< 0.0001"


def equation_of_p(p: float | None) -> str:
    """Such as p = 0.0120, or p < 0.0001; p: – where nothing was tested."""
    text = _shown_p(p)
    sign = "" if text.startswith("<") else "= "
    return f"p: {text}" if p is None else f"p {sign}{text}"


def has_intervals(comparison: Comparison) -> bool:
    return any(score.interval is not None for score in comparison.systems[0].scores.values())


def _interval(interval: Interval | None) -> str:
    return "" if interval is None else f"{interval.mean:.2f} ± {interval.half_width:.2f}"


def _marked(name: str, best: bool = False) -> str:
    return f"{'*' if best else ' '} {shown(name)}"


def _aligned(rows: Sequence[Row], *, left: Sequence[str] = (), width: int | None = None) -> list[str]:
    """Columns two spaces apart, without those that are empty below their head; the first one and those with the heads
    `left` are flush left, and all others right.

    The first column is cut to what `width` leaves it, at its middle, where names that differ at an end stay different.
    """
    columns = [column for column in zip(*rows, strict=True) if not {*column} <= {"", column[0]}]
    widths = [max(map(len, column)) for column in columns]
    if width is not None:
        others = sum(widths[1:]) + 2 * len(widths[1:])
        widths[0] = max(min(widths[0], width - others), len(rows[0][0]))
    cells = []
    for place, (column, size) in enumerate(zip(columns, widths, strict=True)):
        is_left = place == 0 or column[0] in left
        cells.append([_cut(cell, size).ljust(size) if is_left else cell.rjust(size) for cell in column])
    return ["  ".join(row).rstrip() for row in zip(*cells, strict=True)]


def _cut(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    start = (width - 1) // 2
    return f"{text[:start]}…{text[start + 1 - width :]}"
