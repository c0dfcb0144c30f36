"""Pictures of attention between words: a heat map with the source words at the top and the target words on the left.

It knows words and weights; it knows no model. matplotlib, an optional dependency, is imported only to draw, and its
global state is left alone.
"""

import unicodedata
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from typing import IO, TYPE_CHECKING

import numpy as np

from nmt.errors import UserError

if TYPE_CHECKING:
    import numpy.typing as npt

CELL = 0.24  # side of a cell, in inches
LONGEST_SIDE = 40.0  # inches, beyond which cells shrink: a picture of 2,000 words must fit into memory
LABEL_SPACE = 0.15  # inches that a label needs; with smaller cells only some words are written
LONGEST_LABEL = 24  # characters of a word
POINTS = 8  # of the labels
DOTS = 120  # per inch
USUAL_FONT = "DejaVu Sans"  # comes with matplotlib
_INVISIBLE = ("Cf", "Mn", "Me")  # joiners and marks: at worst a font omits them


def check_plots() -> None:
    """Raise UserError if matplotlib is not installed."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise UserError("pictures need matplotlib, which is not installed: pip install matplotlib") from None


class Fonts:
    """The installed fonts that the words so far need, looked up on demand: the usual one, then others.

    `missing` has the characters that no font has a glyph for, which are drawn as boxes.
    """

    def __init__(self) -> None:
        self.families = [USUAL_FONT]
        self.missing: set[str] = set()
        self._characters = cache(_characters)
        self._covered = set(self._characters(USUAL_FONT))
        self._others = list(_other_families())

    def cover(self, texts: Iterable[str]) -> None:
        """Find a font for each character of the texts."""
        for character in sorted(set("".join(texts)) - self.missing):
            if ord(character) in self._covered:
                continue
            family = next((family for family in self._others if ord(character) in self._characters(family)), None)
            if family is None:
                self.missing.add(character)
            else:
                self.families.append(family)
                self._covered.update(self._characters(family))

    def missing_scripts(self) -> list[str]:
        """The first words of the Unicode names of the missing characters, such as "ARABIC", "CJK" or "HIRAGANA"."""
        visible = (character for character in self.missing if unicodedata.category(character) not in _INVISIBLE)
        return sorted({unicodedata.name(character, "UNNAMED").split()[0] for character in visible})


def _other_families() -> Iterator[str]:
    from matplotlib import font_manager

    fonts = font_manager.fontManager.ttflist
    upright = {font.name for font in fonts if (font.style, font.weight, font.stretch) == ("normal", 400, "normal")}
    # The last resort has a box for every character, and boxes are what `missing` is about.
    yield from sorted(name for name in upright - {USUAL_FONT} if not name.startswith("Last Resort"))


def _characters(family: str) -> Collection[int]:
    """The characters in the font that matplotlib uses for a family; none if the font cannot be read."""
    from matplotlib import ft2font

    try:
        (path,) = font_files([family])
        return ft2font.FT2Font(path).get_charmap()
    except (OSError, RuntimeError, ValueError):
        return ()


def font_files(families: Iterable[str]) -> list[str]:
    """The files of the fonts that matplotlib has for these families. Raises ValueError where it has none."""
    from matplotlib import font_manager

    properties = [font_manager.FontProperties(family=[family]) for family in families]
    return [font_manager.findfont(family, fallback_to_default=False) for family in properties]


def plot_alignment(
    source_words: Sequence[str],
    target_words: Sequence[str],
    weights: "npt.ArrayLike",
    file: IO[bytes],
    *,
    fonts: Fonts,
) -> None:
    """Write the heat map of `weights` (target words, source words), from 0 to 1, as a PNG; both sides need words.

    Long words are cut short, and unprintable characters are omitted or shown as U+FFFD. If there are more words than
    fit beside the picture, only some are written, evenly spaced.
    """
    from matplotlib.figure import Figure

    sides = [[shortened(word) for word in words] for words in (source_words, target_words)]
    fonts.cover(label for labels in sides for label in labels)
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
                label.set(rotation=rotation, fontfamily=fonts.families, fontsize=POINTS, parse_math=False)
        axis.set_ticks(np.arange(0.5, len(labels) - 1), minor=True)
    axes.tick_params(length=0, which="both")
    if spacing == 1:
        axes.grid(which="minor", color="0.85", linewidth=0.5)
    bar = figure.add_axes((1.0 + 0.15 / width, 0.0, 0.12 / width, min(1.0, 2.0 / height)))
    figure.colorbar(image, cax=bar, ticks=[0.0, 0.5, 1.0]).ax.tick_params(labelsize=POINTS)
    with warnings.catch_warnings():
        # The caller reports `fonts.missing` once for all pictures.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        figure.savefig(file, format="png", bbox_inches="tight", pad_inches=0.1)


def shortened(word: str) -> str:
    """A word as it is written beside a picture: not too long, and without what cannot be printed."""
    printable = [
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}"
        for character in word
        if unicodedata.category(character) != "Cf"
    ]
    text = "".join(printable)
    return text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…"
