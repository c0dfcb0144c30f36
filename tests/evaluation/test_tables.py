"""Tables show the figures unchanged, as JSON does of one system, in 80 columns, and say in words what they mean."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nmt.evaluation.comparison import (
    Comparison,
    Interval,
    Significance,
    System,
    SystemScore,
)
from nmt.evaluation.metrics import METRICS, Counted
from nmt.evaluation.tables import json_object, table

MEASURES = {
    "bleu": METRICS["bleu"]._replace(signature="nrefs:1|tok:13a"),
    "chrf": METRICS["chrf"]._replace(signature="nrefs:1|nc:6"),
    "ter": METRICS["ter"]._replace(signature="nrefs:1|tok:tercom"),
}
NOTHING = Counted(METRICS["accuracy"].build("none", False), [])


def compared(
    scores: Mapping[str, Mapping[str, tuple[float, Interval | None]]],
    sentences: int = 7,
    texts: Mapping[str, str] = {},
    **more: Any,
) -> Comparison:
    """A comparison with these scores and intervals, by system and metric; every system has its own text."""
    systems = tuple(
        System(
            name=name,
            hypotheses=[texts.get(name, name)] * sentences,
            scores={
                metric: SystemScore(score=score, interval=interval, counted=NOTHING)
                for metric, (score, interval) in by_metric.items()
            },
        )
        for name, by_metric in scores.items()
    )
    measures = {metric: MEASURES[metric] for metric in systems[0].scores}
    references = (["y"] * sentences,)
    missing: dict[str, Any] = {"source": None, "significance": None, "runs": (), "tokenize": "13a", "lowercase": False}
    return Comparison(measures=measures, systems=systems, references=references, **{**missing, **more})


ONE = {"hyp": {"bleu": (27.304, None), "chrf": (100.00000000000004, None), "ter": (131.125, None)}}


def test_one_system_has_a_line_for_each_metric_that_says_which_way_is_better() -> None:
    assert table(compared(ONE)).splitlines() == [
        "metric   score  better  signature",
        "BLEU     27.30  higher  nrefs:1|tok:13a",
        "chrF2   100.00  higher  nrefs:1|nc:6",
        "TER     131.12  lower   nrefs:1|tok:tercom",
        "7 sentences",
    ]
    assert table(compared(ONE, sentences=1)).endswith("\n1 sentence")


def test_intervals_of_one_system() -> None:
    comparison = compared({"hyp": {"bleu": (27.304, Interval(27.25, 1.125)), "ter": (131.125, Interval(130.5, 10.25))}})
    assert table(comparison).splitlines()[:3] == [
        "metric   score    95% interval  better  signature",
        "BLEU     27.30    27.25 ± 1.12  higher  nrefs:1|tok:13a",
        "TER     131.12  130.50 ± 10.25  lower   nrefs:1|tok:tercom",
    ]
    assert json_object(comparison)["ter"] == {
        "score": 131.125,
        "interval": {"mean": 130.5, "half_width": 10.25},
        "lines": [],
        "signature": "nrefs:1|tok:tercom",
    }


# ------------------------------------------------------------------------------------------------------ several systems

SEVERAL = {
    "old": {"bleu": (27.304, Interval(27.25, 1.125)), "ter": (55.5, Interval(55.625, 2.0))},
    "new": {"bleu": (28.5, Interval(28.375, 1.25)), "ter": (55.0, Interval(54.875, 2.0))},
    "odd": {"bleu": (3.0, Interval(2.875, 0.25)), "ter": (97.25, Interval(97.125, 2.5))},
}
BOOTSTRAP = Significance(
    baseline="old",
    samples=1000,
    seed=12345,
    signatures={"bleu": "nrefs:1|bs:1000|seed:12345|tok:13a", "ter": "nrefs:1|bs:1000|seed:12345|tok:tercom"},
    p_values={"new": {"bleu": 0.011988, "ter": 0.3333333333}, "odd": {"bleu": 0.000999, "ter": 0.000999}},
)


def test_systems_are_compared_metric_by_metric_and_in_words() -> None:
    assert (
        table(compared(SEVERAL, significance=BOOTSTRAP))
        == """\
BLEU, higher is better  score   diff.  95% interval  p (boot.)
  old                   27.30          27.25 ± 1.12
* new                   28.50   +1.20  28.38 ± 1.25     0.0120
  odd                    3.00  -24.30   2.88 ± 0.25     0.0010

TER, lower is better    score   diff.  95% interval  p (boot.)
  old                   55.50          55.62 ± 2.00
* new                   55.00   -0.50  54.88 ± 2.00     0.3333
  odd                   97.25  +41.75  97.12 ± 2.50     0.0010

* best; baseline: old; 95% interval: of bootstrap resamples, their mean ± half
its width; p (boot.): 1,000 resamples, one-sided, seed 12345, significant below
0.025

BLEU nrefs:1|tok:13a
TER nrefs:1|tok:tercom
7 sentences"""
    )


def test_no_line_is_longer_than_80_columns_and_long_names_keep_both_ends() -> None:
    names = {
        "runs/one/very/long/folder/of/experiments/first.de": "old",
        "runs/one/very/long/folder/of/experiments/second.de": "new",
    }
    scores = {
        name: {"bleu": (100.0, Interval(99.99, 10.01)), "ter": (123.45, Interval(123.45, 12.34))} for name in names
    }
    first, second = names
    p_values = {second: BOOTSTRAP.p_values["new"]}
    shown = table(compared(scores, significance=replace(BOOTSTRAP, baseline=first, seed=None, p_values=p_values)))
    assert max(map(len, shown.splitlines())) <= 80
    first, second = shown.splitlines()[1:3]
    assert first.startswith("  runs/one")
    assert "first.de " in first
    assert "second.de " in second
    assert "seed none" in shown


def test_a_name_cannot_disturb_the_terminal() -> None:
    shown = table(compared({"a\x1b[2J\n": SEVERAL["old"], "b\udc80": SEVERAL["new"]}))
    assert "\x1b" not in shown
    shown.encode("utf-8")


def test_what_was_not_tested_has_a_dash_and_equal_systems_no_star() -> None:
    p_values = {"b": {"ter": None}, "c": {"ter": 0.00001}}
    test = Significance(baseline="a", samples=3, seed=None, signatures={}, p_values=p_values)
    scores = {"a": {"ter": (55.0, None)}, "b": {"ter": (55.0, None)}, "c": {"ter": (60.0, None)}}
    lines = table(compared(scores, significance=test)).splitlines()
    assert lines[0] == "TER, lower is better  score  diff.  p (boot.)"
    assert lines[2].split() == ["*", "b", "55.00", "+0.00", "–"]
    assert lines[3].split() == ["c", "60.00", "+5.00", "<", "0.0001"]
    assert "p (boot.): 3 resamples, one-sided, seed none, significant below 0.025" in " ".join(lines)
    assert "* b" not in table(compared({name: scores[name] for name in "ab"}))
