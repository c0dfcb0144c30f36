"""Learning curves: what is drawn in which panel, and names that are hard to write."""

import io
from pathlib import Path
from typing import Any, Literal

import pytest
from matplotlib.figure import Figure
from PIL import Image

from nmt.evaluation.curves import names, plot_curves

RUN = [
    {"step": 10, "split": "train", "loss": 3.5, "perplexity": 33.1, "seconds": 60.0},
    {"step": 20, "split": "train", "loss": 3.0, "perplexity": 20.1, "seconds": 120.0},
    {"step": 20, "split": "valid", "loss": 3.1, "perplexity": 22.2, "bleu": 10.0, "seconds": 150.0},
    {"step": 30, "split": "train", "loss": None, "perplexity": None, "seconds": 210.0},
    {"step": 40, "split": "valid", "loss": 2.1, "perplexity": 8.2, "bleu": 20.0, "seconds": 300.0},
    {"step": 40, "split": "average", "loss": 2.0, "perplexity": 7.4, "bleu": 21.0, "seconds": 330.0},
]


def points(axes: Any) -> list[list[tuple[float, float]]]:
    return [list(zip(*line.get_data(), strict=True)) for line in axes.lines]


def test_each_quantity_by_update_and_by_minute(figures: list[Figure]) -> None:
    """What is not finite is left out; a star stands for the average."""
    file = io.BytesIO()
    plot_curves({"run": RUN, "other": RUN[:1]}, file)
    (figure,) = figures
    loss, perplexity, bleu = (figure.axes[index : index + 2] for index in (0, 2, 4))
    assert points(loss[0]) == [[(10, 3.5), (20, 3.0)], [(10, 3.5)]]
    assert points(loss[1]) == [[(1, 3.5), (2, 3.0)], [(1, 3.5)]]
    assert points(perplexity[0]) == [[(20, 22.2), (40, 8.2)], [(40, 7.4)], [], []]
    assert points(bleu[1]) == [[(2.5, 10.0), (5.0, 20.0)], [(5.5, 21.0)], [], []]
    assert [axes.get_ylabel() for axes in figure.axes[::2]] == [
        *("training loss, nats per token", "validation perplexity", "validation BLEU")
    ]
    assert [axes.get_xlabel() for axes in figure.axes[-2:]] == ["updates", "minutes of training and validation"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["run", "other"]
    assert Image.open(file).size[0] == 960


def test_perplexities_are_written_as_numbers(figures: list[Figure]) -> None:
    plot_curves({"run": RUN}, io.BytesIO())
    axes = figures[0].axes[2]
    labels = [label.get_text() for which in ("major", "minor") for label in axes.get_yticklabels(which=which)]
    assert {"10", "20"} <= set(labels)
    assert not any("$" in label for label in labels)


@pytest.mark.parametrize(("largest", "form"), [(1e100, "png"), (1e308, "svg")])
def test_numbers_of_a_run_that_has_diverged(figures: list[Figure], largest: float, form: Literal["png", "svg"]) -> None:
    """Those beyond what matplotlib can scale are left out, without a warning."""
    train = [{"step": step, "split": "train", "loss": loss, "seconds": 60.0} for step, loss in ((1, 2.5), (2, largest))]
    values = [(1, 12.2), (2, largest)]
    valid = [{"step": step, "split": "valid", "perplexity": value, "seconds": 60.0} for step, value in values]
    valid.append({"step": 6, "split": "valid", "perplexity": 7.5, "seconds": 1e301})
    plot_curves({"run": [*train, *valid]}, io.BytesIO(), form=form)
    loss, perplexity = figures[0].axes[:2], figures[0].axes[2:4]
    drawn = [(2, largest)] if largest == 1e100 else []
    assert points(loss[0]) == [[(1, 2.5), *drawn]]
    assert points(perplexity[0])[0] == [(1, 12.2), *drawn, (6, 7.5)]
    assert points(perplexity[1])[0] == [(1, 12.2), *((1, value) for _, value in drawn)]


@pytest.mark.parametrize(
    ("folders", "expected"),
    [
        (["/runs/a", "/runs/b"], ["a", "b"]),
        (["/x/a", "/y/a", "/y/b"], ["x/a", "y/a", "y/b"]),
        (["/x/y/a", "/z/y/a"], ["x/y/a", "z/y/a"]),
        (["/runs/a", "/runs/a"], ["/runs/a", "/runs/a"]),
    ],
)
def test_names_tell_the_folders_apart(folders: list[str], expected: list[str]) -> None:
    assert names([Path(folder) for folder in folders]) == expected
