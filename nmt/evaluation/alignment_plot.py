"""Pictures of attention between words: a heat map with the source words at the top and the target words on the left.

It knows words and weights; it knows no model. matplotlib, an optional dependency, is imported only to draw, and its
global state is left alone.
"""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import regex

from nmt.errors import UserError, shown
from nmt.text_form import INVISIBLE

if TYPE_CHECKING:
    import numpy.typing as npt

    Pixels = npt.NDArray[np.uint8]

CELL = 20  # pixels on each side, with the line to the next one
LONGEST_SIDE = 4800  # pixels, beyond which cells shrink: a picture of 2,000 words must fit into memory
LABEL_SPACE = 13  # pixels that a label needs; with smaller cells only some words are written
LONGEST_LABEL = 24  # characters of a word
POINTS, DOTS = 8, 96  # of the labels: their size, and pixels per inch
_INVISIBLE = regex.compile(INVISIBLE)
_GAP = 4  # pixels between a label and its cells
_BASELINE = 0.7  # of a label's space, from its top or left side: where its letters stand
_LINE = 225  # the gray between cells
_SHARES = (0.0, 0.5, 1.0)  # weights, and the red, green and blue of their cells; between them they change evenly
_COLORS = ((255, 107, 8), (255, 174, 48), (255, 214, 107))
FONTS = (  # the first comes with matplotlib; after it fonts for scripts that it lacks, as systems install them
    "DejaVu Sans",
    "Noto Sans",
    *(f"Noto Sans CJK {variant}" for variant in ("SC", "TC", "JP", "KR")),
    *(f"Noto Sans {script}" for script in ("Arabic", "Devanagari", "Bengali", "Tamil", "Telugu", "Thai", "Hebrew")),
    *("Arial Unicode MS", "Hiragino Sans", "PingFang SC", "Apple SD Gothic Neo", "Microsoft YaHei", "Yu Gothic"),
    *("Malgun Gothic", "Nirmala UI", "Leelawadee UI", "WenQuanYi Zen Hei", "IPAGothic", "FreeSans", "Unifont"),
)

Fonts = Sequence[str]  # names of families


def check_plots() -> None:
    """Raise UserError if matplotlib is not installed."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise UserError("pictures need matplotlib, which is not installed: pip install matplotlib") from None


def usual_fonts() -> Fonts:
    """Those of FONTS that are installed; for each character matplotlib takes the first of them that has a glyph.

    Raises ImportError without matplotlib.
    """
    from matplotlib import font_manager

    installed = set(font_manager.get_font_names())
    return [name for name in FONTS if name in installed]


def heat_map(
    source_words: Sequence[str], target_words: Sequence[str], weights: "npt.ArrayLike", *, fonts: Fonts | None
) -> "Pixels":
    """`weights` (target words, source words), from 0 to 1, as a picture: white is 0, dark blue is 1.

    Returns the red, green and blue of its pixels, of shape (height, width, 3). The source is at the top and the target
    on the left; without `fonts` neither has labels. Both need words. Long words are cut short, unprintable characters
    are omitted or shown as U+FFFD, and characters that no font has are drawn as boxes. If there are more words than fit
    beside the picture, only some are written, evenly spaced.
    """
    shares = np.asarray(weights, dtype=np.float64).clip(0.0, 1.0)
    size = max(1, min(CELL, LONGEST_SIDE // max(shares.shape)))
    step = -(-LABEL_SPACE // size)
    cells = np.stack([np.interp(shares, _SHARES, color) for color in _COLORS], axis=-1).round().astype(np.uint8)
    columns, rows = (_labels(words[::step], fonts) for words in (source_words, target_words))
    top, left = (max((image.shape[1] + _GAP for image, _ in labels), default=0) for labels in (columns, rows))
    height, width = (count * size + 1 for count in shares.shape)
    pixels = np.full((top + height, left + width, 3), 255, dtype=np.uint8)
    drawn = pixels[top:, left:]
    drawn[:-1, :-1] = cells.repeat(size, axis=0).repeat(size, axis=1)
    if step == 1:
        drawn[::size, :] = drawn[:, ::size] = _LINE
    for number, (image, above) in enumerate(rows):
        place = top + round((number + _BASELINE) * size * step) - above
        _darken(pixels, image, place, left - _GAP - image.shape[1])
    for number, (image, above) in enumerate(columns):
        place = left + round((number + _BASELINE) * size * step) - above
        _darken(pixels, np.rot90(image), top - _GAP - image.shape[1], place)
    return pixels


def _labels(words: Sequence[str], fonts: Fonts | None) -> "list[tuple[Pixels, int]]":
    """How dark the pixels of each label are, and how many rows of them are above its baseline; none without `fonts`."""
    labels: list[tuple[Pixels, int]] = []
    if fonts is None:
        return labels
    from matplotlib.font_manager import FontProperties, findfont, get_font

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of glyphs that are missing
            font = get_font([findfont(FontProperties(family=[family])) for family in fonts])
            font.set_size(POINTS, DOTS)
            for word in words:
                font.set_text(shortened(word), 0.0)
                font.draw_glyphs_to_bitmap(antialiased=True)
                image = np.array(font.get_image(), dtype=np.uint8, ndmin=2)
                labels.append((image, image.shape[0] - round(font.get_descent() / 64)))
    except (OSError, RuntimeError, ValueError):  # a font that is damaged or gone must not end a training
        return []
    return labels


def _darken(pixels: "Pixels", image: "Pixels", top: int, left: int) -> None:
    """Draw a label in black, with its upper left corner at this place; what is outside the picture is left out."""
    image = image[max(-top, 0) :, max(-left, 0) :]
    there = pixels[max(top, 0) :, max(left, 0) :][: image.shape[0], : image.shape[1]]
    np.minimum(there, 255 - image[: there.shape[0], : there.shape[1], np.newaxis], out=there)


def shortened(word: str) -> str:
    """A word as it is written beside a picture: not too long, and without what cannot be printed."""
    text = shown(_INVISIBLE.sub("", word))
    return text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…"
