"""Small heat maps of attention between pieces, drawn within milliseconds, for pictures that are made again and again.

It knows pieces and weights; it knows no model. `alignment_plot` makes larger pictures for people to keep, which take
matplotlib some tenths of a second; here matplotlib, an optional dependency, only renders the labels, and without it
there are none.
"""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from nmt.evaluation.alignment_plot import Fonts, shortened

if TYPE_CHECKING:
    import numpy.typing as npt

    Pixels = npt.NDArray[np.uint8]

CELL = 20  # pixels on each side, with the line to the next one
POINTS, DOTS = 8, 96  # of the labels: their size, and pixels per inch
_GAP = 4  # pixels between a label and its cells
_BASELINE = 0.7  # of a cell, from its top or left side: where the letters of its label stand
_LINE = 225  # the gray between cells
_SHARES = (0.0, 0.5, 1.0)  # weights, and the red, green and blue of their cells; between them they change evenly
_COLORS = ((255, 107, 8), (255, 174, 48), (255, 214, 107))


def heat_map(
    source_pieces: Sequence[str],
    target_pieces: Sequence[str],
    weights: "npt.ArrayLike",
    *,
    fonts: Fonts | None,
) -> "Pixels":
    """`weights` (target pieces, source pieces), from 0 to 1, as a picture: white is 0, dark blue is 1.

    Returns the red, green and blue of its pixels, of shape (height, width, 3).
    The source is at the top and the target on the left; without `fonts` neither has labels. Both need pieces.
    """
    shares = np.asarray(weights, dtype=np.float64).clip(0.0, 1.0)
    cells = np.stack([np.interp(shares, _SHARES, color) for color in _COLORS], axis=-1).round().astype(np.uint8)
    columns, rows = (_labels(pieces, fonts) for pieces in (source_pieces, target_pieces))
    top, left = (max((image.shape[1] + _GAP for image, _ in labels), default=0) for labels in (columns, rows))
    height, width = (count * CELL + 1 for count in shares.shape)
    pixels = np.full((top + height, left + width, 3), 255, dtype=np.uint8)
    drawn = pixels[top:, left:]
    drawn[:-1, :-1] = cells.repeat(CELL, axis=0).repeat(CELL, axis=1)
    drawn[::CELL, :] = drawn[:, ::CELL] = _LINE
    for number, (image, above) in enumerate(rows):
        place = top + round((number + _BASELINE) * CELL) - above
        _darken(pixels, image, place, left - _GAP - image.shape[1])
    for number, (image, above) in enumerate(columns):
        place = left + round((number + _BASELINE) * CELL) - above
        _darken(pixels, np.rot90(image), top - _GAP - image.shape[1], place)
    return pixels


def _labels(pieces: Sequence[str], fonts: Fonts | None) -> "list[tuple[Pixels, int]]":
    """How dark the pixels of each label are, and how many rows of them are above its baseline; none without `fonts`."""
    try:
        return [] if fonts is None else _rendered([shortened(piece) for piece in pieces], fonts)
    except (OSError, RuntimeError, ValueError):  # a font that is damaged or gone must not end a training
        return []


def _rendered(texts: Sequence[str], fonts: Fonts) -> "list[tuple[Pixels, int]]":
    from matplotlib.font_manager import FontProperties, findfont, get_font

    font = get_font([findfont(FontProperties(family=[family])) for family in fonts])
    font.set_size(POINTS, DOTS)
    labels = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a box stands for what no font has
        for text in texts:
            font.set_text(text, 0.0)
            font.draw_glyphs_to_bitmap(antialiased=True)
            image = np.array(font.get_image(), dtype=np.uint8, ndmin=2)
            labels.append((image, image.shape[0] - round(font.get_descent() / 64)))
    return labels


def _darken(pixels: "Pixels", image: "Pixels", top: int, left: int) -> None:
    """Draw a label in black, with its upper left corner at this place; what is outside the picture is left out."""
    image = image[max(-top, 0) :, max(-left, 0) :]
    there = pixels[max(top, 0) :, max(left, 0) :][: image.shape[0], : image.shape[1]]
    np.minimum(there, 255 - image[: there.shape[0], : there.shape[1], np.newaxis], out=there)
