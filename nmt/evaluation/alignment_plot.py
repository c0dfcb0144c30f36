"""Pictures of attention between words: a heat map with the source words at the top and the target words on the left.

It knows words and weights; it knows no model. matplotlib, an optional dependency, is imported only to draw, and its
global state is left alone.
"""

import unicodedata
import warnings
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from nmt.errors import UserError

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.figure import Figure

CELL = 0.24  # side of a cell, in inches
LONGEST_SIDE = 40.0  # inches, beyond which cells shrink: a picture of 2,000 words must fit into memory
LABEL_SPACE = 0.15  # inches that a label needs; with smaller cells only some words are written
LONGEST_LABEL = 24  # characters of a word
POINTS = 8  # of the labels
DOTS = 120  # per inch
FONTS = (  # the first comes with matplotlib; after it fonts for scripts that it lacks, as systems install them
    "DejaVu Sans",
    "Noto Sans",
    *(f"Noto Sans CJK {variant}" for variant in ("SC", "TC", "JP", "KR")),
    *(f"Noto Sans {script}" for script in ("Arabic", "Devanagari", "Bengali", "Tamil", "Telugu", "Thai", "Hebrew")),
    *("Arial Unicode MS", "Hiragino Sans", "PingFang SC", "Apple SD Gothic Neo", "Microsoft YaHei", "Yu Gothic"),
    *("Malgun Gothic", "Nirmala UI", "Leelawadee UI", "WenQuanYi Zen Hei", "IPAGothic", "FreeSans", "Unifont"),
)
MISSING = "no installed font has glyphs for some characters; in the pictures boxes stand for them"

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


def plot_alignment(
    source_words: Sequence[str],
    target_words: Sequence[str],
    weights: "npt.ArrayLike",
    file: IO[bytes],
    *,
    fonts: Fonts,
) -> bool:
    """Write the heat map of `weights` (target words, source words), from 0 to 1, as a PNG; both sides need words.

    Long words are cut short, and unprintable characters are omitted or shown as U+FFFD. If there are more words than
    fit beside the picture, only some are written, evenly spaced. Returns whether a character has no glyph in `fonts`.
    """
    from matplotlib.figure import Figure

    sides = [[shortened(word) for word in words] for words in (source_words, target_words)]
    cell = min(CELL, LONGEST_SIDE / max(map(len, sides)))
    width, height = (len(labels) * cell for labels in sides)
    figure = Figure(figsize=(width, height), dpi=DOTS)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    image = axes.imshow(np.asarray(weights), cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
    spacing = max(1, round(LABEL_SPACE / cell))
    axes.xaxis.tick_top()
    for axis, labels, rotation in ((axes.xaxis, sides[0], 90), (axes.yaxis, sides[1], 0)):
        places = range(0, len(labels), spacing)
        for tick in axis.set_ticks(places, labels=labels[::spacing]):
            for label in (tick.label1, tick.label2):
                # Without parse_math a dollar sign would start a formula.
                label.set(rotation=rotation, fontfamily=fonts, fontsize=POINTS, parse_math=False)
        axis.set_ticks(np.arange(0.5, len(labels) - 1), minor=True)
    axes.tick_params(length=0, which="both")
    if spacing == 1:
        axes.grid(which="minor", color="0.85", linewidth=0.5)
    bar = figure.add_axes((1.0 + 0.15 / width, 0.0, 0.12 / width, min(1.0, 2.0 / height)))
    figure.colorbar(image, cax=bar, ticks=[0.0, 0.5, 1.0]).ax.tick_params(labelsize=POINTS)
    return saved(figure, file, format="png", bbox_inches="tight", pad_inches=0.1)


def saved(figure: "Figure", file: IO[bytes], **options: Any) -> bool:
    """Save a figure without matplotlib's warnings about fonts; returns whether a character has no glyph in them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure.savefig(file, **options)
    return any(str(warning.message).startswith("Glyph ") for warning in caught)


def shortened(word: str) -> str:
    """A word as it is written beside a picture: not too long, and without what cannot be printed."""
    printable = [
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}"
        for character in word
        if unicodedata.category(character) != "Cf"
    ]
    text = "".join(printable)
    return text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…"
