"""Texts as the page holds them: fit to be shown whatever they contain, cut where they are long, with what is marked."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from nmt.evaluation.sentences import Span

MOST_WORDS = 200  # of a text that are shown
MOST_CHARACTERS = 2000

_SPACE = re.compile(r"\s")
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")  # control characters, halves of surrogate pairs, …


class Shown(NamedTuple):
    """A text to be shown."""

    text: str
    omitted: int  # characters at its end that are not


def shown(text: str) -> Shown:
    """The text on one line, its first words if there are many; words stay what stands between white space."""
    fit = _UNFIT.sub("\N{REPLACEMENT CHARACTER}", _SPACE.sub(" ", text[: MOST_CHARACTERS + 1])).rstrip()
    end = min(len(fit), MOST_CHARACTERS)
    for number, word in enumerate(re.finditer(r"[^ ]+", fit)):
        if number == MOST_WORDS:
            end = min(end, word.start())
            break
    if end < len(fit):
        fit = fit[:end].rstrip()
    return Shown(fit, len(text.rstrip()) - len(fit))


def in_browser(text: str, spans: Sequence[Span]) -> list[int]:
    """The begins and ends of spans in the units in which JavaScript counts: characters beyond U+FFFF are two."""
    places = [place for span in spans for place in span]
    if text.isascii() or max(text) <= "\uffff":
        return places
    return [place + sum(character > "\uffff" for character in text[:place]) for place in places]
