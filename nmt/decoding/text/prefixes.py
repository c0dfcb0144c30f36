"""What translations are told to begin with: the text side of forced prefixes, whose rules are in `rules.py`.

The pieces of a prefix are those that the subword model cuts it into. Its last word is complete: what follows begins a
new word or is punctuation, unless the prefix ends with something else than a letter or digit, such as a hyphen or an
opening bracket. Scripts that are written without spaces have no such end of a word.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.data.subwords import Subwords
from nmt.decoding.text.segments import WORD_START
from nmt.errors import UserError
from nmt.symbols import UNKNOWN

_BYTE = re.compile(r"<0x[0-9A-F]{2}>")  # a piece of a model with byte fallback
_WITHOUT_SPACES = frozenset(
    ("CJK", "HIRAGANA", "KATAKANA", "HALFWIDTH", "BOPOMOFO", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")
)  # the first words of the Unicode names of their characters


class Prefix(NamedTuple):
    """What one translation begins with."""

    text: str = ""
    tokens: list[int] = []  # noqa: RUF012 - of a tuple, never changed
    complete: bool = False  # whether the last word is


def encoded(texts: Sequence[str], target: Subwords) -> list[Prefix]:
    """The prefixes with these texts; a blank one forces nothing."""
    lines = [" ".join(text.splitlines()).strip() for text in texts]
    return [
        Prefix(text, tokens, bool(text) and in_word(text[-1]))
        for text, tokens in zip(lines, target.encode_batch(lines), strict=True)
    ]


def word_continuations(target: Subwords) -> Tensor:
    """Whether each piece (vocabulary,), written after a word, would make it longer."""
    pieces = target.pieces(range(target.size))
    return torch.tensor(
        [
            bool(_BYTE.fullmatch(piece)) or (not piece.startswith(WORD_START) and piece != "" and in_word(piece[0]))
            for piece in pieces
        ]
    )


def in_word(character: str) -> bool:
    """Whether it is a letter, a digit or a mark of a script whose words are separated by spaces; "" is nothing."""
    if not character:
        return False
    script = unicodedata.name(character, "").partition(" ")[0]
    return unicodedata.category(character)[0] in "LMN" and script not in _WITHOUT_SPACES


def as_given(text: str, prefix: Prefix, target: Subwords, *, same_words: bool) -> str:
    """`text` with the prefix's own text at its beginning, where the subword model has changed it or does not know it.

    A normalised, lowercased or unknown character of the prefix comes back so. A text that does not begin as the
    prefix's pieces are spelled, since unknown words in it were replaced, is left as it is; with `same_words` also one
    whose number of words would change.
    """
    if not prefix.tokens or not text.startswith(spelled := target.decode(prefix.tokens)):
        return text
    rest = text[len(spelled) :]
    if prefix.tokens[-1] == UNKNOWN:
        rest = rest.removeprefix(" ")  # which sentencepiece writes behind an unknown piece
    given = prefix.text + rest
    return text if same_words and len(given.split()) != len(text.split()) else given


def check_prefix(prefix: Prefix, *, line: int, blank: bool, longest: int) -> None:
    """Raise UserError where the translation of line `line`, counted from 0, cannot begin with its prefix.

    `blank`: whether the line is. `longest`: the most tokens of its translation, END counted.
    """
    if prefix.tokens and blank:
        raise UserError(f"line {line + 1} is blank and has a prefix, {prefix.text!r}; do the files go together?")
    if len(prefix.tokens) >= longest:
        raise UserError(
            f"the prefix of line {line + 1} has {len(prefix.tokens)} pieces, and the line's translation at most "
            f"{longest - 1}; shorten it, or raise max_length_ratio"
        )
