"""Intervals and p-values are those of sacreBLEU's own command; the rest can be checked by hand."""

import dataclasses
import json
import math
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.errors import UserError
from nmt.evaluation.comparison import (
    SIGNIFICANT,
    Comparison,
    Interval,
    Runs,
    compare,
)
from nmt.evaluation.metrics import METRICS, Metric, _Rate
from tests.conftest import write_texts

SYSTEMS = {
    "old": [
        "A cat sat on a mat.",
        "Dogs don't bark, they sing.",
        "Yes, of course.",
        "the man go to house",
        "Two girls play in the park.",
        "A train leaves",
        "Nobody reads a long book.",
    ],
    "new": [
        "The cat sat on the mat.",
        "Dogs do not sing, they bark.",
        "Yes, of course!",
        "The man goes to the house.",
        "Two girls are playing in a park.",
        "The train is leaving now.",
        "Nobody reads long books.",
    ],
    "odd": ["", "Dogs sing.", "No.", "The man goes home.", "Park girls two play.", "A train leaves.", "Books."],
}
REFERENCES = [
    [
        "The cat sat on the mat.",
        "Dogs don't sing, they bark.",
        "Yes, of course.",
        "The man goes to the house.",
        "Two girls are playing in the park.",
        "The train is leaving.",
        "Nobody reads long books.",
    ],
    [
        "A cat was sitting on the mat.",
        "Dogs do not sing; they bark!",
        "Certainly.",
        "The man is going home.",
        "Two girls play in a park.",
        "A train leaves now.",
        "No one reads a long book.",
    ],
]
# The command as it is, but for numbers of NumPy, such as the mean of TER, which version 2.6.0 cannot print as JSON.
SACREBLEU = """
import json
from sacrebleu.sacrebleu import main
from tests.conftest import write_texts
json.JSONEncoder.default = lambda self, number: float(number)
main()
"""
RESAMPLES = 53


@pytest.fixture(scope="module")
def both() -> Comparison:
    """All systems and metrics, with two references."""
    return compare(SYSTEMS, REFERENCES, metrics=tuple(METRICS), tested=True, resamples=RESAMPLES)


def sacrebleu(folder: Path, *options: str) -> list[dict[str, Any]]:
    """What `sacrebleu reference0 reference1 -i old new odd` and these options print as JSON."""
    write_texts(folder, SYSTEMS | {f"reference{i}": lines for i, lines in enumerate(REFERENCES)})
    command = [sys.executable, "-c", SACREBLEU, "reference0", "reference1", "--input", *SYSTEMS, "--format", "json"]
    done = subprocess.run([*command, *options], cwd=folder, check=True, stdout=subprocess.PIPE)
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


@pytest.mark.parametrize(("chrf", "order"), [("chrf", "0"), ("chrf++", "2")])
def test_figures_equal_those_of_sacrebleus_command(chrf: str, order: str, both: Comparison, tmp_path: Path) -> None:
    """Not approximately; the command's JSON has every digit. Its chrF is one of the two at a time."""
    count = ["--paired-bs", "--paired-bs-n", str(RESAMPLES)]
    rows = sacrebleu(tmp_path, *count, "--chrf-word-order", order, "--metrics", "bleu", "chrf", "ter")

    test = both.significance
    assert test is not None
    assert (test.baseline, test.samples, test.seed) == ("old", RESAMPLES, 12345)
    assert [row["system"] for row in rows] == ["Baseline: old", "new", "odd"]
    for system, row in zip(both.systems, rows, strict=True):
        for metric in ("bleu", chrf, "ter"):
            theirs = row[METRICS[metric].title]
            assert system.scores[metric].score == theirs["score"]
            assert test.p_values.get(system.name, {}).get(metric) == theirs["p_value"]
            assert system.scores[metric].interval == Interval(theirs["mean"], theirs["ci"])
    counted = [p_value for p_values in test.p_values.values() for p_value in p_values.values()]
    assert any(
        p_value and 1 / (RESAMPLES + 1) < p_value < 1 for p_value in counted
    )  # or the figures would prove little


def test_intervals_without_a_test_are_the_same(both: Comparison) -> None:
    alone = compare({"new": SYSTEMS["new"]}, REFERENCES, intervals=True, resamples=RESAMPLES)
    assert alone.systems[0].scores == {name: both.systems[1].scores[name] for name in ("bleu", "chrf", "ter")}
    assert alone.significance is None
    interval = alone.systems[0].scores["bleu"].interval
    assert interval is not None
    assert interval.half_width > 0


def test_the_best_is_what_has_the_most_or_the_fewest_edits(both: Comparison) -> None:
    assert both.best("bleu") == both.best("ter") == {"new"}
    twins = compare({"a": SYSTEMS["new"], "b": SYSTEMS["odd"], "c": SYSTEMS["new"]}, REFERENCES, metrics=["ter"])
    assert twins.best("ter") == {"a", "c"}
    assert compare({"a": SYSTEMS["new"], "b": SYSTEMS["new"]}, REFERENCES).best("bleu") == set()
    assert compare({"a": SYSTEMS["new"]}, REFERENCES).best("bleu") == set()


def test_means_that_differ_by_rounding_are_equal(both: Comparison) -> None:
    """The mean of three floating-point numbers depends on their order."""
    means = {"a": 0.1 + 0.2, "b": 0.3, "c": 0.2}
    runs = tuple(Runs(name=name, members=(), mean={"bleu": mean}, deviation={}) for name, mean in means.items())
    assert 0.1 + 0.2 != 0.3
    assert dataclasses.replace(both, runs=runs).best("bleu") == {"a", "b"}


def test_where_no_sentence_differs_in_a_metric_there_is_no_p_of_it() -> None:
    """Such as case with lowercase=True; sacreBLEU's p is the smallest possible one."""
    references, old = ["der Hund sieht die Katze", "ein Mann isst"], ["der Hund sah die Katze", "Mann isst"]
    systems = {"old": old, "cased": [line.upper() for line in old], "new": references}
    test = compare(
        systems, [references], metrics=("bleu", "chrf"), lowercase=True, tested=True, resamples=100
    ).significance
    assert test is not None
    assert test.p_values["cased"] == {"bleu": None, "chrf": None}
    assert None not in test.p_values["new"].values()


def test_where_both_have_zero_there_is_no_p() -> None:
    """Sentences of other lengths count differently, but every resample has 0 in both."""
    systems = {"a": ["x", "y z a b"], "b": ["x x x", "z"], "c": ["der Hund sah ihn", "y"]}
    references = [["der Hund sieht ihn", "ein Mann"]]
    test = compare(systems, references, metrics=("bleu",), tested=True, resamples=50).significance
    assert test is not None
    assert test.p_values["b"] == {"bleu": None}
    assert test.p_values["c"]["bleu"] is not None


def test_seeds_have_a_mean_and_a_standard_deviation() -> None:
    """None, 1, 2, and 3 of 4 words are wrong: 0 and 25 with the first system, 50 and 75 with the second."""
    systems = {"x": ["a b c d"], "y": ["a b c e"], "z": ["a b e e"], "w": ["a e e e"]}
    old, new = compare(systems, [["a b c d"]], metrics=["ter"], runs={"old": ["x", "y"], "new": ["z", "w"]}).runs
    assert (old.mean["ter"], new.mean["ter"]) == (12.5, 62.5)
    assert old.deviation["ter"] == new.deviation["ter"] == pytest.approx(math.sqrt(312.5))


# ---------------------------------------------------------------------------------- a metric whose scores are known

SCORES = {"old": [50.0, 60, 70, 80, 90, 40, 30], "new": [55.0, 65, 75, 85, 90, 45, 42], "odd": [0.0] * 7}


def known(scores: Mapping[str, float]) -> Metric:
    """A metric that is the mean of the scores of the sentences."""
    return Metric("known", "higher", lambda *_: _Rate("known", False, lambda line, _: (scores[line.strip()] / 100, 1)))


def test_a_mean_of_sentence_scores_is_tested_as_the_others_are(monkeypatch: pytest.MonkeyPatch) -> None:
    by_line = {line: score for name, lines in SYSTEMS.items() for line, score in zip(lines, SCORES[name], strict=True)}
    monkeypatch.setitem(METRICS, "known", known(by_line))
    comparison = compare(
        SYSTEMS,
        REFERENCES,
        metrics=["bleu", "known"],
        tested=True,
        resamples=53,
    )
    assert comparison.systems[0].scores["known"].score == pytest.approx(60)
    bootstrap = comparison.significance
    assert bootstrap is not None
    assert bootstrap.p_values["odd"]["known"] == 1 / 54
    # The same in NumPy: resamples of the sentences with sacreBLEU's seed.
    rows = np.random.default_rng(12345).choice(7, size=(53, 7))
    old, new = (np.array(SCORES[name], dtype=np.float32)[rows].mean(axis=1) for name in ("old", "new"))
    differences = np.abs(new - old)
    extreme = (differences - differences.mean() > np.mean(SCORES["new"]) - 60).sum()
    assert bootstrap.p_values["new"]["known"] == (extreme + 1) / 54
    interval = comparison.systems[0].scores["known"].interval
    assert interval is not None
    assert interval.mean == pytest.approx(old.mean(), rel=1e-6)


@pytest.mark.slow
def test_of_twenty_pairs_of_equal_systems_about_one_differs_significantly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Systems are equal where either could have written each translation. 5% of 400 pairs are 20 ± 4.4."""
    draw, pairs, sentences = np.random.default_rng(7), 400, 101
    p_values: list[float | None] = []
    for _ in range(pairs):
        scores = draw.normal(70, 10, sentences) + draw.normal(0, 5, (2, sentences))
        systems = {name: [f"{name}{line}" for line in range(sentences)] for name in "ab"}
        lines = [f"{name}{line}" for name in "ab" for line in range(sentences)]
        monkeypatch.setitem(METRICS, "known", known(dict(zip(lines, scores.flatten(), strict=True))))
        compared = compare(systems, [["a"] * sentences], metrics=("known",), tested=True, resamples=239)
        assert compared.significance is not None
        p_values.append(compared.significance.p_values["b"]["known"])
    below, doubled = (sum(p is not None and p < limit for p in p_values) for limit in (SIGNIFICANT, 2 * SIGNIFICANT))
    assert 10 <= below <= 32
    assert doubled > 1.5 * below, "or p of the bootstrap is not one-sided"


# --------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("systems", "references"),
    [({}, [["a"]]), ({"x": ["a"]}, []), ({"x": ["a"]}, [["a"], ["a", "b"]]), ({"x": []}, [[]])],
)
def test_what_cannot_be_scored_is_a_mistake_of_the_caller(
    systems: dict[str, list[str]], references: list[list[str]]
) -> None:
    with pytest.raises(ValueError, match=r"systems and \d references, lines: "):
        compare(systems, references)


@pytest.mark.parametrize(("text", "number"), [("7", 7), ("None", None)])
def test_the_seed_is_sacrebleus(text: str, number: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACREBLEU_SEED", text)
    test = compare(SYSTEMS, REFERENCES, metrics=["bleu"], tested=True, resamples=53).significance
    assert test is not None
    assert test.seed == number
    assert f"|bs:53|seed:{text.lower()}|" in test.signatures["bleu"]
    for wrong, why in {"x": "invalid literal", "": "invalid literal", "-1": "expected non-negative integer"}.items():
        monkeypatch.setenv("SACREBLEU_SEED", wrong)
        with pytest.raises(UserError, match=rf"^SACREBLEU_SEED: {why}"):
            compare(SYSTEMS, REFERENCES, metrics=["bleu"], tested=True, resamples=53)
