"""Pictures of alignments: the cells by hand, the labels beside them, with and without matplotlib, and any words."""

import warnings

import numpy as np
import pytest

from nmt.evaluation.alignment_plot import CELL, heat_map, shortened, usual_fonts

SOURCE, TARGET = ["▁the", "▁house", "</s>"], ["▁Haus", "▁da"]
WEIGHTS = np.array([[0.0, 0.5, 1.0], [1.5, -0.5, 0.75]])
# White at 0, dark blue at 1; between 0.5 and 1 half of the way; beyond 0 and 1 as at them.
WHITE, MIDDLE, DARK = (255, 255, 255), (107, 174, 214), (8, 48, 107)
COLORS = [[WHITE, MIDDLE, DARK], [DARK, WHITE, (58, 111, 160)]]


def pixels(source: list[str], target: list[str], weights: np.ndarray, *, labels: bool) -> np.ndarray:
    return heat_map(source, target, weights, fonts=usual_fonts() if labels else None)


def test_cells_without_labels() -> None:
    drawn = pixels(SOURCE, TARGET, WEIGHTS, labels=False)
    assert drawn.shape == (2 * CELL + 1, 3 * CELL + 1, 3)
    for row, colors in enumerate(COLORS):
        for column, color in enumerate(colors):
            cell = drawn[row * CELL + 1 : (row + 1) * CELL, column * CELL + 1 : (column + 1) * CELL]
            assert (cell == color).all(), (row, column)
    assert (drawn[::CELL] == 225).all()
    assert (drawn[:, ::CELL] == 225).all()


def test_labels_stand_beside_the_same_cells() -> None:
    drawn, cells = (pixels(SOURCE, TARGET, WEIGHTS, labels=labels) for labels in (True, False))
    assert (drawn[-len(cells) :, -cells.shape[1] :] == cells).all()
    top, left = drawn.shape[0] - cells.shape[0], drawn.shape[1] - cells.shape[1]
    assert (drawn[:top, :left] == 255).all()  # the corner
    assert (drawn[:, left - 4 : left] == 255).all()  # the gaps
    assert (drawn[top - 4 : top] == 255).all()
    for row in range(2):
        assert drawn[top + row * CELL : top + (row + 1) * CELL, left - 16 : left].min() < 200
    for column in range(3):
        assert drawn[top - 16 : top, left + column * CELL : left + (column + 1) * CELL].min() < 200


def test_the_source_is_read_upward() -> None:
    """One label on both sides: that at the top is the other one, turned to the left."""
    drawn = pixels(["▁Jagd"], ["▁Jagd"], np.ones((1, 1)), labels=True)
    margin = len(drawn) - CELL - 1
    beside, above = drawn[margin:, : margin - 4], drawn[: margin - 4, margin:]
    assert beside.min() < 100
    assert (np.rot90(beside) == above).all()


@pytest.mark.parametrize("piece", ["", " ", "\ufeff", "\x00\n", "▁" * 300, "\U000f0000", "שלום", "∫" * 30, "g$x_2$"])
def test_any_piece_is_drawn_without_a_warning(piece: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = pixels([piece, "a"], [piece], np.ones((1, 2)), labels=True)
    assert max(drawn.shape) < 500


def test_sixty_words_and_two_thousand() -> None:
    for count, size in ((60, CELL), (2000, 2)):
        drawn = heat_map(["word"] * count, ["Wort"] * 30, np.full((30, count), 1 / count), fonts=usual_fonts())
        assert count * size < drawn.shape[1] < count * size + 100


def test_long_and_unprintable_words() -> None:
    assert [*map(shortened, ["x" * 100, "a\x00b", "a\u200db", "\u202e"])] == ["x" * 23 + "…", "a\ufffdb", "ab", ""]
