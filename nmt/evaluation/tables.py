"""The outcome of `compare` for people and for programs: a table of 80 columns with its meaning in words, and JSON.

It knows names, scores, and p-values; it computes none of them, and prints nothing.
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations, islice
from typing import Any, Final

from nmt.errors import counted
from nmt.evaluation.comparison import (
    SIGNIFICANT,
    SIGNIFICANT_MEANS,
    Comparison,
    Interval,
    Measure,
    Method,
    Runs,
    Significance,
    System,
    SystemScore,
    smallest_p,
)

WIDTH: Final = 80
_REPLACED: Final = "\N{REPLACEMENT CHARACTER}"  # for what no terminal shows
_P: Final[Mapping[Method, str]] = {"bootstrap": "p (boot.)", "randomization": "p (rand.)"}
_TESTS: Final[Mapping[Method, str]] = {
    "bootstrap": "paired bootstrap resampling with {:,} resamples. It is one-sided, so that",
    "randomization": "paired approximate randomization with {:,} trials, so that",
}
_PERMUTATION: Final = "p (perm.)"

Row = Sequence[str]


def table(comparison: Comparison) -> str:
    """One system: a line for each metric. Several, or runs: a block for each metric, and what its columns mean."""
    if len(comparison.systems) == 1:
        return f"{_one_system(comparison)}\n{_count(comparison)}"
    rows_of = _rows_of_runs if comparison.runs else _rows_of_systems
    rows = [[*rows_of(comparison, metric)] for metric in comparison.measures]
    lines = iter(_aligned([*chain(*rows)], width=WIDTH))
    blocks = ["\n".join(islice(lines, len(block))) for block in rows]
    words = (textwrap.fill(text, WIDTH, subsequent_indent="  ") for text in _meaning(comparison))
    signatures = [f"{measure.title} {measure.signature}" for measure in comparison.measures.values()]
    return "\n\n".join([*blocks, "\n".join(words), "\n".join([*signatures, _count(comparison)])])


def json_object(comparison: Comparison, *, tokenize: str, lowercase: bool) -> dict[str, Any]:
    """The scores as an object for `json.dump`, rounded to six decimals.

    One system: {"score", "signature"} for each metric, with "interval" where there is one. Several: `systems`,
    `signatures`, and `references`, with `significance` and `runs` where there are any. Both: what was scored how.
    Rounding makes a perfect translation 100.0, not the 100.00000000000004 of floating point.
    """
    how = {"sentences": comparison.sentences, "tokenize": tokenize, "lowercase": lowercase}
    signatures = {metric: measure.signature for metric, measure in comparison.measures.items()}
    if len(comparison.systems) == 1:
        scores = _scores(comparison.systems[0])
        return {**{metric: {**score, "signature": signatures[metric]} for metric, score in scores.items()}, **how}
    numbers: dict[str, Any] = {
        "systems": [{"name": scored.name, "scores": _scores(scored)} for scored in comparison.systems],
        "signatures": signatures,
    }
    if comparison.significance:
        numbers["significance"] = [
            {
                "method": test.method,
                "baseline": test.baseline,
                "samples": test.samples,
                "seed": test.seed,
                "signatures": dict(test.signatures),
                "p_values": {name: _rounded(p_values) for name, p_values in test.p_values.items()},
            }
            for test in comparison.significance
        ]
    if comparison.runs:
        numbers["runs"] = [
            {
                "name": runs.name,
                "members": list(runs.members),
                "mean": _rounded(runs.mean),
                "standard_deviation": _rounded(runs.deviation),
                **_json_of_differences(runs),
            }
            for runs in comparison.runs
        ]
    return {**numbers, "references": len(comparison.references), **how}


def _json_of_differences(runs: Runs) -> dict[str, Any]:
    if runs.differences is None:
        return {}
    columns: dict[str, dict[str, float | None]] = {
        "difference": {metric: one.value for metric, one in runs.differences.items()},
        "standard_error": {metric: one.error for metric, one in runs.differences.items()},
        "p_values": {metric: one.p for metric, one in runs.differences.items()},
    }
    return {name: _rounded(column) for name, column in columns.items()}


def _scores(scored: System) -> dict[str, dict[str, Any]]:
    return {metric: _score(score) for metric, score in scored.scores.items()}


def _score(score: SystemScore) -> dict[str, Any]:
    if score.interval is None:
        return {"score": round(score.score, 6)}
    return {"score": round(score.score, 6), "interval": _rounded(score.interval._asdict())}


def _rounded(numbers: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: None if number is None else round(number, 6) for name, number in numbers.items()}


# -------------------------------------------------------------------------------------------------------------- tables


def _one_system(comparison: Comparison) -> str:
    (scored,) = comparison.systems
    rows: list[Row] = [("metric", "score", "95% interval", "better", "signature")]
    for metric, measure in comparison.measures.items():
        score = scored.scores[metric]
        rows.append((measure.title, f"{score.score:.2f}", _interval(score.interval), measure.better, measure.signature))
    if not _has_intervals(comparison):
        rows = [(title, score, *rest) for title, score, _, *rest in rows]
    return "\n".join(_aligned(rows, left=("better", "signature")))


def _rows_of_systems(comparison: Comparison, metric: str) -> Iterator[Row]:
    """The systems with their differences from the first one, which is the baseline."""
    measure, best, shows_intervals = comparison.measures[metric], comparison.best(metric), _has_intervals(comparison)
    tests = comparison.significance
    head = (f"{measure.title}, {measure.better} is better", "score", "diff.")
    yield (*head, *["95% interval"] * shows_intervals, *(_P[test.method] for test in tests))
    baseline, *_ = comparison.systems
    for scored in comparison.systems:
        score = scored.scores[metric]
        difference = "" if scored is baseline else f"{score.score - baseline.scores[metric].score:+.2f}"
        p_values = [test.p_values[scored.name][metric] for test in tests if scored is not baseline]
        yield (
            _marked(scored.name, scored.name in best),
            f"{score.score:.2f}",
            difference,
            *[_interval(score.interval)] * shows_intervals,
            *(map(_shown_p, p_values) if p_values else [""] * len(tests)),
        )


def _rows_of_runs(comparison: Comparison, metric: str) -> Iterator[Row]:
    """The runs of each system, and their mean with the standard deviation."""
    measure, shows_intervals = comparison.measures[metric], _has_intervals(comparison)
    systems = {scored.name: scored for scored in comparison.systems}
    head = [f"{measure.title}, {measure.better} is better", "score", "s.d.", *["95% interval"] * shows_intervals]
    head += ["diff.", _PERMUTATION] * (len(comparison.runs) > 1)
    yield head
    for runs in comparison.runs:
        for name in runs.members:
            score = systems[name].scores[metric]
            cells = [_marked(name), f"{score.score:.2f}", "", *[_interval(score.interval)] * shows_intervals]
            yield cells + [""] * (len(head) - len(cells))
        mean = _marked(f"{runs.name}, mean of {len(runs.members)}", runs.name in comparison.best_mean(metric))
        cells = [mean, f"{runs.mean[metric]:.2f}", f"{runs.deviation[metric]:.2f}", *[""] * shows_intervals]
        if runs.differences is not None:
            value, error, p = runs.differences[metric]
            cells += [f"{value:+.2f} ± {error:.2f}", _shown_p(p)]
        yield cells + [""] * (len(head) - len(cells))


def _shown_p(p: float | None) -> str:
    """Such as 0.0120; a dash where nothing was tested."""
    return "–" if p is None else f"{p:.4f}" if p >= 0.00005 else "< 0.0001"


def equation_of_p(p: float) -> str:
    """Such as p = 0.0120, or p < 0.0001."""
    text = _shown_p(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def _has_intervals(comparison: Comparison) -> bool:
    return any(score.interval is not None for score in comparison.systems[0].scores.values())


def _interval(interval: Interval | None) -> str:
    return "" if interval is None else f"{interval.mean:.2f} ± {interval.half_width:.2f}"


def _marked(name: str, best: bool = False) -> str:
    return f"{'*' if best else ' '} {shown(name)}"


def shown(name: str) -> str:
    """A name as a terminal can show it, in one line."""
    return "".join(character if character.isprintable() else _REPLACED for character in name)


def _aligned(rows: Sequence[Row], *, left: Sequence[str] = (), width: int | None = None) -> list[str]:
    """Columns two spaces apart; the first one and those with the headers `left` are flush left, and all others right.

    The first column is cut to what `width` leaves it, at its middle, where names that differ at an end stay different.
    """
    head, *body = rows
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    if width is not None:
        widths[0] = max(min(widths[0], width - sum(widths[1:]) - 2 * len(widths[1:])), len(head[0]))
    lines = []
    for first, *others in (head, *body):
        cells = [_cut(first, widths[0]).ljust(widths[0])]
        for title, cell, size in zip(head[1:], others, widths[1:], strict=True):
            cells.append(cell.ljust(size) if title in left else cell.rjust(size))
        lines.append("  ".join(cells).rstrip())
    return lines


def _cut(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    start = (width - 1) // 2
    return f"{text[:start]}…{text[start + 1 - width :]}"


def _count(comparison: Comparison) -> str:
    return counted(comparison.sentences, "sentence")


# --------------------------------------------------------------------------------------------------------------- words


def _meaning(comparison: Comparison) -> Iterator[str]:
    """What the columns mean, in sentences; then what they say about each system."""
    best = comparison.best_mean if comparison.runs else comparison.best
    if any(map(best, comparison.measures)):
        yield "* the best."
    if comparison.runs:
        yield "s.d.: the sample standard deviation of the scores of the runs (n - 1 in the denominator)."
        yield from _meaning_of_runs(comparison)
    else:
        yield f"diff.: the difference from {shown(comparison.systems[0].name)}, the baseline."
    if _has_intervals(comparison):
        yield (
            "95% interval: the mean over the bootstrap's resamples of the sentences, ± half the width of the range of "
            "the middle 95% of them."
        )
    if not comparison.significance:
        return
    yield from meaning_of_p(comparison.significance)
    for scored in comparison.systems[1:]:
        yield _verdict(comparison, scored)


def _meaning_of_runs(comparison: Comparison) -> Iterator[str]:
    systems = {scored.name: list(scored.hypotheses) for scored in comparison.systems}
    for one, other in combinations(systems, 2):
        if systems[one] == systems[other]:
            yield (
                f"{shown(one)} and {shown(other)} are identical, line by line, as two seeds hardly ever are: is it the "
                "same run?"
            )
    yield from meaning_of_differences(comparison.runs)
    first, *rivals = comparison.runs
    for runs in rivals:
        kinds = {}
        for metric, measure in comparison.measures.items():
            value, _, p = (runs.differences or {})[metric]
            kinds[measure.title] = "untested" if p is None else _kind(measure, value, p < SIGNIFICANT_MEANS)
        yield _told(runs.name, first.name, kinds, f"{_PERMUTATION} < {SIGNIFICANT_MEANS:g}")


def meaning_of_differences(runs: Sequence[Runs]) -> Iterator[str]:
    """What the differences between the means of systems with several runs say, in sentences; nothing of one system."""
    if len(runs) < 2:
        return
    first, *rivals = runs
    yield f"diff.: the difference of the means from that of {shown(first.name)}, ± its standard error."
    yield (
        f"{_PERMUTATION}: the share of all ways to divide the runs between the two systems in which the means differ "
        "at least as much, in either direction (exact permutation test)."
    )
    for size in sorted({len(one.members) for one in rivals}):
        least = smallest_p(len(first.members), size)
        if least >= SIGNIFICANT_MEANS:
            yield (
                f"With {len(first.members)} and {size} runs, p is {least:.2g} or more, and so shows no difference; "
                "4 and 4 runs can."
            )


def meaning_of_p(tests: Sequence[Significance], *, baseline: str = "the baseline") -> Iterator[str]:
    """What the p-values of one test or more say, in sentences; nothing without tests. `baseline`: what to call it."""
    if not tests:
        return
    seed = "none" if tests[0].seed is None else tests[0].seed
    yield (
        f"p: how probable a difference from {baseline} at least as large would be if the two systems were equally "
        f"good, as the sacrebleu command has it, seed {seed}."
    )
    for test in tests:
        name, how = _P[test.method], _TESTS[test.method].format(test.samples)
        yield f"{name}: by {how} about one of 20 pairs of equal systems has less than {SIGNIFICANT[test.method]:g}."
    yield "A larger p does not show that two systems are equal."


def _verdict(comparison: Comparison, scored: System) -> str:
    """Such as "new is better than old in BLEU (p (boot.) < 0.025); in TER the difference may be chance." """
    baseline = comparison.systems[0]
    if list(scored.hypotheses) == list(baseline.hypotheses):
        return f"{shown(scored.name)} and {shown(baseline.name)} are identical, line by line; there is nothing to test."
    kinds = {}
    for metric, measure in comparison.measures.items():
        rise = scored.scores[metric].score - baseline.scores[metric].score
        p_values = {test.method: test.p_values[scored.name][metric] for test in comparison.significance}
        is_clear = all(p is not None and p < SIGNIFICANT[method] for method, p in p_values.items())
        kinds[measure.title] = "equal" if None in p_values.values() else _kind(measure, rise, is_clear)
    return _told(scored.name, baseline.name, kinds, _limits(comparison.significance))


def _kind(measure: Measure, rise: float, is_clear: bool) -> str:
    """What a difference shows: better, worse, or unclear."""
    if not is_clear or rise == 0:
        return "unclear"
    return "better" if (rise > 0) == (measure.better == "higher") else "worse"


def _told(name: str, baseline: str, kinds: Mapping[str, str], limits: str) -> str:
    """The verdict: `kinds` has better, worse, unclear, untested, or equal for each metric, by its title."""
    titles = {kind: [title for title, one in kinds.items() if one == kind] for kind in kinds.values()}
    told = [
        f"{kind} than {shown(baseline)} in {_listed(titles[kind])} ({limits})"
        for kind in ("better", "worse")
        if kind in titles
    ]
    parts = [f"{shown(name)} is {' and '.join(told)}"] if told else []
    if "unclear" in titles:
        parts.append(f"in {_listed(titles['unclear'])} the difference may be chance")
    if "untested" in titles:
        parts.append(
            f"in {_listed(titles['untested'])} nothing was tested, for there are too many ways to divide the runs"
        )
    if "equal" in titles:
        parts.append(f"in {_listed(titles['equal'])} there is nothing to test")
    return f"{'' if told else f'{shown(name)}: '}{'; '.join(parts)}."


def _limits(tests: Sequence[Significance]) -> str:
    """Below which p a difference is called significant, if all of these tests say so."""
    return _listed([f"{_P[test.method]} < {SIGNIFICANT[test.method]:g}" for test in tests])


def _listed(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
