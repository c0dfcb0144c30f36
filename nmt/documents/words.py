"""The words of a line, also in scripts that have no spaces between them: there every character is one.

It knows lines and alignments, and no marks.
"""

import re

from nmt.data.words import CLOSING_SIGNS, OPENING_SIGNS, Span, are_together, words_of
from nmt.decoding.text.alignment import weighted_links
from nmt.decoding.text.marks import Weighted
from nmt.decoding.writing import Translation

# As in « Non ! »; dots by themselves may begin what follows
_OPENING_WORD = re.compile(f"[{OPENING_SIGNS}]+")
_CLOSING_WORD = re.compile(rf"(?![.…]+\Z)[{CLOSING_SIGNS}]+")


def unbroken(text: str) -> list[Span]:
    """Words of a text joined where a line is better not broken between them, as before a closing bracket."""
    joined: list[Span] = []
    for start, stop in words_of(text):
        if joined and (
            (joined[-1][1] == start and are_together(text, start - 1))
            or _OPENING_WORD.fullmatch(text, *joined[-1])
            or _CLOSING_WORD.fullmatch(text, start, stop)
        ):
            start = joined.pop()[0]
        joined.append((start, stop))
    return joined


def attention_links(translation: Translation, source: str, target: str) -> list[Weighted]:
    """How much each word of a translation attends to those of its source; both may have other white space."""
    return weighted_links(translation.finer_alignment or translation.soft_alignment, source, target)
