"""Unknown words of a translation, replaced through the attention after the search.

A word of the translation with an unknown piece in it gives way to one source word: the one that its unknown pieces
attend to most, looked up in a dictionary or copied as the line has it. So names and numbers that no vocabulary knows
come through: Luong, Pham & Manning (2015), section 4.2, after Luong et al. (2015), arXiv 1410.8206, and Jean et al.
(2015), arXiv 1412.2007. The weights come from forced decoding of the translation, as for alignments. It knows weights,
pieces and text; no models and no files. A word is what stands between spaces, and in scripts without spaces a single
character, so that a sentence in one is not replaced as a whole.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from torch import Tensor

from nmt.data.subwords import Subwords
from nmt.data.words import UNKNOWN_MARK, PieceWords, words_of
from nmt.symbols import UNKNOWN


class Replaced(NamedTuple):
    """A translation whose unknown words were replaced."""

    text: str  # with UNKNOWN_MARK for each unknown piece that stays
    parts: list[tuple[str, str]]  # of each word, also in scripts without spaces: what was written, and what it is now


def with_unknown_replaced(
    tokens: Sequence[int],
    weights: Tensor,
    source: PieceWords,
    *,
    subwords: Subwords,
    dictionary: Mapping[str, str],
    forced: int = 0,
) -> Replaced:
    """The text of `tokens`, with every unknown word replaced; what the first `forced` tokens spell stays as it is.

    `weights` (tokens, source pieces) is the attention with which `tokens` were written, and `source` has the words of
    the source pieces, finer in scripts without spaces. The weights of the unknown pieces of one word are added up, and
    so are those of the source pieces of one word; of equals the first wins. A word that attends to nothing stays
    unknown.

    The source word is looked up as it stands, then in lower case, then both ways without the punctuation at its ends;
    otherwise it is copied. What is found is written with single spaces. Punctuation that the translation itself has
    around the unknown word takes the place of the source word's.
    """
    rows = iter(weights[[place >= forced and token == UNKNOWN for place, token in enumerate(tokens)]].tolist())
    begin = len(subwords.decode_marked(tokens[:forced], UNKNOWN_MARK))
    parts: list[tuple[str, str]] = []

    def replaced(match: re.Match[str]) -> str:
        written = [(match[0][start:stop], match.start() + start) for start, stop in words_of(match[0])]
        instead = [replaced_part(part, max(begin - start, 0)) for part, start in written]
        parts.extend((part, new) for (part, _), new in zip(written, instead, strict=True))
        return "".join(instead)

    def replaced_part(part: str, place: int) -> str:
        stays, word = part[:place], part[place:]
        attention = [next(rows) for _ in range(word.count(UNKNOWN_MARK))]
        attended = _most_attended([sum(column) for column in zip(*attention, strict=True)], source) if attention else []
        return stays + (_replaced(word, attended, dictionary) if attended else word)

    return Replaced(re.sub(r"\S+", replaced, subwords.decode_marked(tokens, UNKNOWN_MARK)), parts)


def _most_attended(weights: Iterable[float], source: PieceWords) -> list[str]:
    """The word with the largest sum of weights, or several where a piece stands for several; none when all are 0."""
    sums = dict.fromkeys(source.places, 0.0)
    for weight, place in zip(weights, source.places, strict=True):
        sums[place] += weight
    best = max(sums, key=lambda place: sums[place], default=None)
    if best is None or sums[best] == 0:
        return []
    return source.words[best : source.lasts[source.places.index(best)] + 1]


class _Word(NamedTuple):
    before: str  # punctuation
    core: str
    after: str  # punctuation


def _replaced(unknown: str, source: Sequence[str], dictionary: Mapping[str, str]) -> str:
    """What takes the place of the word `unknown`, with marks in it, when it attends to the words `source`."""
    words = [_translated(word, dictionary) for word in source]
    before, _, after = _parts(unknown)
    words[0] = words[0]._replace(before=before or words[0].before)
    words[-1] = words[-1]._replace(after=after or words[-1].after)
    return " ".join("".join(word) for word in words)


def _translated(word: str, dictionary: Mapping[str, str]) -> _Word:
    whole = _looked_up(word, dictionary)
    if whole is not None:
        return _Word("", whole, "")
    before, core, after = _parts(word)
    if not core:
        return _Word("", word, "")  # nothing but punctuation
    found = _looked_up(core, dictionary)
    return _Word(before, core if found is None else found, after)


def _looked_up(word: str, dictionary: Mapping[str, str]) -> str | None:
    translation = dictionary.get(word, dictionary.get(word.lower()))
    return None if translation is None else " ".join(translation.split())


def _parts(word: str) -> _Word:
    before = "".join(takewhile(_is_punctuation, word))
    core = word[len(before) :]
    after = "".join(takewhile(_is_punctuation, reversed(core)))[::-1]
    return _Word(before, core.removesuffix(after), after)


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character).startswith("P")
