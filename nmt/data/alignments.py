"""Word alignments of a parallel corpus: checked against its text, and turned into a distribution over source pieces.

Words are what stands between white space in the text as it was given, counted from 0; `words.py` knows their pieces.
A target word w that is linked to n source words gives each of them 1/n, and a source word v its share to its m pieces
in equal parts; every piece of w has the same distribution:

    A_tj = 1 / (n_w m_v)      for target piece t of w and source piece j of v, where v-w is a link

A row A_t sums to 1, or is empty where w has no link. So merged to words (the sum over the pieces of a source word, the
mean over those of a target word, as `decoding.text.alignment` merges attention) it is the given alignment, normalized.

Aligners agree on what a word is only where white space is spaces and tabs. "Bonjour !" with a no-break space is one
word to fast_align, and two to `str.split()`. Links that count other words teach something wrong, and nothing would show
it; so a line with links and such white space is refused, which one command on the text mends. To leave out its links
would be worse: in French, the lines with a question, an exclamation or a quotation would have none.

It knows links, lines and pieces; it knows no ids and no cache.
"""

import re
import unicodedata
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nmt.data.corpus import read_lines, read_pairs
from nmt.errors import InputWarning, UserError, collected, counted, refuse_lines
from nmt.pharaoh import Link, links_of_line
from nmt.text_form import TextForm

_DISPUTED = re.compile(r"[^\S \t]")  # white space that separates words to some aligners, and not to others
_BLANKS = re.compile(r"[ \t]+")
PieceLink = tuple[int, int, float]  # target piece t, source piece j, A_tj


def piece_links(links: Iterable[Link], source: Sequence[int], target: Sequence[int]) -> Iterator[PieceLink]:
    """Where A_tj is not 0, by target piece, for links without repetitions; `source` and `target` are words of pieces.

    A word without a piece of its own, which normalization removed or a piece of several words covers, has no link.
    """
    pieces: dict[int, list[int]] = defaultdict(list)
    for piece, word in enumerate(source):
        pieces[word].append(piece)
    linked: dict[int, list[int]] = defaultdict(list)
    for source_word, target_word in links:
        if source_word in pieces:
            linked[target_word].append(source_word)
    for target_piece, target_word in enumerate(target):
        words = linked.get(target_word, [])
        for source_word in sorted(words):
            share = 1.0 / (len(words) * len(pieces[source_word]))
            yield from ((target_piece, source_piece, share) for source_piece in pieces[source_word])


def links_of_words(links: npt.NDArray[np.float32], source: Sequence[int], target: Sequence[int]) -> set[Link]:
    """The links between words that these links of pieces, (links, 3), come from; each piece's word as above."""
    return {(source[int(piece)], target[int(target_piece)]) for target_piece, piece, _ in links}


def check_alignments(pair: tuple[Path, Path], alignments: Path) -> None:
    """Read a pair of files with their alignments.

    Raises:
        UserError: a file cannot be read, the numbers of lines differ, or for each of the first lines with a malformed
            link, one beyond the words of its pair, or white space at which aligners differ.
    """
    pairs, lines = read_pairs(*pair), read_lines(alignments)
    problems: list[str] = []
    for number, (texts, line) in enumerate(zip_longest(pairs, lines), start=1):
        if texts is None or line is None:
            rows = number - (texts is None) + sum(1 for _ in pairs)
            links = number - (line is None) + sum(1 for _ in lines)
            raise UserError(
                f"{alignments} has {counted(links, 'line')}, but {pair[0]} has {rows:,}; line i must have the links of "
                "pair i, and be empty if there are none"
            )
        with collected(problems):
            _check_line(line, texts, pair, place=f"{alignments}, line {number}")
    refuse_lines(alignments, problems)


def _check_line(line: str, texts: tuple[str, str], pair: tuple[Path, Path], *, place: str) -> None:
    links = links_of_line(line, place=place)
    for text, path in zip(texts, pair, strict=True):
        if links and (space := disputed(text)):
            raise UserError(
                f"{place}: the links may count other words: {path} has {space} in this line, which ends a word to "
                "some aligners, but not to fast_align; put a space in its place, and align the text again"
            )
    check_within(links, texts, place=place)


def check_within(
    links: Iterable[Link], texts: tuple[str, str], *, place: str, first_word: int = 0, advice: str = ""
) -> None:
    """Raise UserError, which begins with `place` and counts words from `first_word`, for a link beyond the words."""
    source_words, target_words = (len(text.split()) for text in texts)
    for source, target in links:
        if source >= source_words or target >= target_words:
            raise UserError(
                f"{place}: {source + first_word}-{target + first_word} is beyond the words of the pair, {source_words} "
                f"of the source and {target_words} of the target; expected source-target, counted from {first_word}"
                f"{advice}"
            )


def check_words(path: Path) -> None:
    """Read text to align; raises UserError for its first lines with white space at which aligners differ, and warns if
    words have no spaces between them."""
    form, problems = TextForm(), list[str]()
    for number, text in enumerate(read_lines(path), start=1):
        form.add(text)
        if space := disputed(text):
            which = f"{path}, line {number}: {space} ends a word to some aligners, but not to others"
            problems.append(f"{which}; put a space in its place")
    refuse_lines(path, problems)
    if form.has_no_spaces:
        warnings.warn(
            f"{path}: {form.share('unspaced'):.0%} of the lines have no spaces between words, so that all of one "
            "may count as a word; cut the text into words first",
            InputWarning,
            stacklevel=2,
        )


def disputed(text: str) -> str:
    """White space that ends a word to some aligners only, such as U+00A0 (NO-BREAK SPACE); empty if there is none."""
    space = _DISPUTED.search(text)
    if space is None or [word.strip() for word in _BLANKS.split(text.strip(" \t"))] == text.split():
        return ""
    name = unicodedata.name(space[0], "")
    return f"U+{ord(space[0]):04X}" + (f" ({name})" if name else "")
