"""Pictures of alignments: what is drawn where, in which fonts, and without warnings."""

import io
import sys
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from nmt.errors import UserError
from nmt.evaluation.alignment_plot import check_plots, plot_alignment, usual_fonts

SOURCE, TARGET = ["the", "house", "$5$"], ["Haus", "da"]
WEIGHTS = np.array([[0.1, 0.7, 0.2], [0.6, 0.0, 0.4]])


def drawn(source: list[str], target: list[str], weights: np.ndarray) -> Image.Image:
    file = io.BytesIO()
    plot_alignment(source, target, weights, file, fonts=usual_fonts())
    file.seek(0)
    image = Image.open(file)
    assert image.format == "PNG"
    return image


def labels(axis: Any) -> list[str]:
    return [tick.get_text() for tick in axis.get_ticklabels()]


def test_words_stand_beside_their_rows_and_columns(figures: list[Figure]) -> None:
    image = drawn(SOURCE, TARGET, WEIGHTS)
    (figure,) = figures
    axes = figure.axes[0]
    assert labels(axes.xaxis) == SOURCE
    assert labels(axes.yaxis) == TARGET
    np.testing.assert_array_equal(axes.images[0].get_array(), WEIGHTS)
    assert axes.yaxis_inverted()  # the first target word at the top
    assert image.width > 3 * 0.24 * 120
    (cell,) = {axes.transData.transform((1, 1))[0] - axes.transData.transform((0, 1))[0]}
    assert cell == pytest.approx(0.24 * 120)


@pytest.mark.slow
def test_sixty_words_have_all_their_labels_and_two_thousand_fit(figures: list[Figure]) -> None:
    image = drawn(["word"] * 60, ["Wort"] * 50, np.full((50, 60), 1 / 60))
    assert len(labels(figures[0].axes[0].xaxis)) == 60
    assert image.width > 60 * 0.24 * 120
    image = drawn(["word"] * 2000, ["Wort"] * 300, np.full((300, 2000), 1 / 2000))
    shown = labels(figures[1].axes[0].xaxis)
    assert 200 <= len(shown) < 300  # 0.15 inches each on 40 inches
    assert image.width < 5500


def test_long_and_unprintable_words(figures: list[Figure]) -> None:
    drawn(["x" * 100, "a\x00b", "a\u200db", "\u202e"], ["y"], np.zeros((1, 4)))
    assert labels(figures[0].axes[0].xaxis) == ["x" * 23 + "…", "a\ufffdb", "ab", ""]


def test_characters_without_a_glyph_are_reported_and_make_no_noise(recwarn: pytest.WarningsRecorder) -> None:
    """DejaVu Sans has Cyrillic letters, and no Han."""
    assert usual_fonts()[0] == "DejaVu Sans"
    for source, is_missing in (("Größe Кот", False), ("猫", True)):
        file = io.BytesIO()
        assert plot_alignment([source], ["cat"], np.zeros((1, 1)), file, fonts=["DejaVu Sans"]) == is_missing
    assert not recwarn


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    check_plots()
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UserError, match=r"pictures need matplotlib.*pip install matplotlib"):
        check_plots()
