"""What the user requires of translations: the prefixes they begin with, and the phrases they contain (constraints).

This is the text side; how a search meets them is in `search/rules.py` and `search/constrained.py`. A line of
constraints holds the phrases for one line of the text, separated by tabs; it may be empty. The subword model cuts each
prefix and phrase into pieces by itself, so a phrase begins a word. Its last word is complete: a new word or punctuation
follows, unless it ends with something other than a letter or digit, such as a hyphen or an opening bracket. Scripts
that are written without spaces have no such end of a word.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from nmt.data.segmentation import WORD_START
from nmt.data.subwords import Subwords
from nmt.data.words import ALONE, UNKNOWN_MARK, parts_of_line
from nmt.symbols import UNKNOWN

MOST_PIECES = 200
"""Of the prefix and the constraints of a line together: its translation may be as much longer, and takes longer."""

_BYTE = re.compile(r"<0x[0-9A-F]{2}>")  # a piece of a model with byte fallback
_WORD = regex.compile(rf"(?![{ALONE}\u3100-\u312f\u31a0-\u31bf\uff66-\uff9f])[\p{{L}}\p{{M}}\p{{N}}]")


class Required(NamedTuple):
    """A prefix, or one of the phrases of a line."""

    text: str = ""
    tokens: list[int] = []  # noqa: RUF012 - of a tuple, never changed
    complete: bool = False  # whether the last word is
    parts: list[str] = []  # noqa: RUF012 - of the text, one for each piece; of a prefix only


def encoded_prefix(text: str, target: Subwords) -> Required:
    """The prefix with this text, on one line; a blank one forces nothing."""
    is_cut = target.joiner != "" and text.endswith(target.joiner)
    complete = in_word(text[-1:]) and not is_cut
    return Required(target.whole_words(text), target.encode(text), complete, parts=parts_of_line(text, target))


def encoded_constraints(line: str, target: Subwords) -> list[Required]:
    """The phrases of a line of constraints, without repetitions and blank ones."""
    texts = list(filter(None, (" ".join(text.split()) for text in line.split("\t"))))
    phrases = []
    for text, tokens in zip(texts, target.encode_batch(texts), strict=True):
        if len(tokens) > 1 and not in_word(text[:1]) and target.pieces(tokens[:1]) == [WORD_START]:
            del tokens[0]  # a lone space before text that begins no word, such as punctuation
        phrases.append(Required(text, tokens, in_word(text[-1:])))
    return distinct(phrases)


def distinct(phrases: Iterable[Required]) -> list[Required]:
    """The phrases without those that the search cannot tell from an earlier one, as "Park" and "park" in lower case."""
    by_pieces: dict[object, Required] = {}
    for phrase in phrases:
        by_pieces.setdefault((tuple(phrase.tokens) or phrase.text, phrase.complete), phrase)
    return list(by_pieces.values())


def word_continuations(target: Subwords) -> NDArray[np.bool_]:
    """Whether each piece (vocabulary,), written after a word, would make it longer; UNKNOWN may, where any piece does,
    as it does not in a word model."""
    pieces = target.pieces(range(target.size))
    continuing = np.array(
        [bool(_BYTE.fullmatch(piece)) or (not piece.startswith(WORD_START) and in_word(piece[:1])) for piece in pieces]
    )
    continuing[UNKNOWN] = continuing.any()
    return continuing


def in_word(character: str) -> bool:
    """Whether it is a letter, a digit or a mark of a script whose words are separated by spaces; "" is nothing."""
    return _WORD.match(character) is not None


def as_given(text: str, prefix: Required, target: Subwords) -> str:
    """`text`, with UNKNOWN_MARK for the unknown pieces of the prefix, and the prefix as the user wrote it.

    This undoes what the subword model has normalized, lowercased or not known, which may change the number of words. A
    text is left as it is if it does not begin as the prefix's pieces are spelled.
    """
    if not prefix.tokens or not text.startswith(spelled := target.decode_marked(prefix.tokens, UNKNOWN_MARK)):
        return text
    return prefix.text + text[len(spelled) :]


def impossible(prefix: Required, phrases: Sequence[Required], *, line: str) -> list[str]:
    """Why the translation of a `line`, as messages call it, cannot begin with its prefix, or contain its phrases."""
    problems = []
    if prefix.text and not prefix.tokens:
        problems.append(
            f"the prefix {prefix.text!r} of {line} cannot be written: the model's subword model leaves nothing of it"
        )
    for phrase in phrases:
        if not phrase.tokens or UNKNOWN in phrase.tokens:
            problems.append(
                f"the constraint {phrase.text!r} of {line} cannot be written: it has characters or words that "
                "the model's vocabulary lacks"
            )
    pieces = len(prefix.tokens) + sum(len(phrase.tokens) for phrase in phrases)
    if pieces > MOST_PIECES:
        problems.append(f"{line}: {pieces:,} pieces are required of its translation; it may be {MOST_PIECES}")
    return problems


def missing(prefix: str, constraints: str, stays: str, *, line: str) -> list[str]:
    """That a line that `stays` as it is, such as 42 or a blank one, lacks its prefix, or its phrases."""
    lacking = [] if stays.startswith(prefix.strip()) else [prefix.strip()]
    lacking += [
        phrase for phrase in (" ".join(text.split()) for text in constraints.split("\t")) if phrase not in stays
    ]
    what = f"stays {stays!r}" if stays else "is blank"
    required = ", ".join(map(repr, lacking))
    return [f"{line} {what} and is to have {required}; do the files go together?"] if lacking else []
