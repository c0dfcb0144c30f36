"""The sentences of a line: a model that was trained on single sentences translates them better one by one.

Where a sentence ends depends on the language. `sentencex` (Wikimedia, github.com/wikimedia/sentencex) knows the rules
and abbreviations of some thirty languages; others have those of a related language, or English ones. It is imported on
first use. It knows lines and languages; it knows no subwords and no models.
"""

import re
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import pairwise
from typing import NamedTuple

from nmt.decoding.text.required import in_word
from nmt.errors import UserError

INSTALL = "pip install 'nmt-toolkit[text]'"
ENDS = ".!?…。！？؟۔।॥།။።։"  # marks at the end of a sentence, in many scripts
_CODE = re.compile(r"([a-z]{2,3})([-_].*)?", re.DOTALL)
_SPACE = re.compile(r"[^\S\n]")
_LINE_END = re.compile(r"\r\n|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")  # where str.splitlines cuts
_BLOCK = 10_000  # characters looked at together: the time for quotation marks that are never closed grows with n²


class Sentence(NamedTuple):
    """A sentence of a line, without the white space around it."""

    text: str
    start: int = 0  # its first character in the line


class Line(NamedTuple):
    """A line and its sentences, in order; or the line as its own only sentence."""

    text: str = ""
    sentences: Sequence[Sentence] = ()

    def spaces(self) -> list[str]:
        """The white space before the first sentence, between two, and after the last one; a line end is a space.

        What stands there besides white space, since the subword model has no piece for it, is left out.
        """
        starts = [*(sentence.start for sentence in self.sentences), len(self.text)]
        stops = [0, *(sentence.start + len(sentence.text) for sentence in self.sentences)]
        between = (self.text[stop:start] for stop, start in zip(stops, starts, strict=True))
        return [_LINE_END.sub(" ", "".join(filter(str.isspace, text))) for text in between]


def is_installed() -> bool:
    """Whether lines can be cut into sentences."""
    return find_spec("sentencex") is not None


def checked_language(name: str) -> str:
    """The code of a language that is named by its code, perhaps with a region: en for en, EN-us or en_GB.

    Raises UserError for another name, of which sentencex would make English; and where that is not installed.
    """
    if not is_installed():
        raise UserError(f"sentencex, which knows where sentences end, is not installed; {INSTALL}")
    match = _CODE.fullmatch(name.lower())
    if match is None:
        raise UserError(
            f"{name!r} is no code of a language; name the one whose rules say where sentences end, such as "
            "split_sentences='en' (--split-sentences en)"
        )
    return match[1]


def sentences_of(line: str, language: str, *, whole_words: bool = False) -> list[Sentence]:
    """The sentences of a line by the rules of the language with this code; none of a blank one.

    `whole_words`: only where there is white space between them.
    """
    sentences: list[Sentence] = []
    place = end = 0
    for part in _parts(_SPACE.sub(" ", line), language):  # as long as before: it fails at some wider spaces
        text = line[place : place + len(part)]
        start, place = place + len(text) - len(text.lstrip()), place + len(text)
        text = text.strip()
        if text and sentences and whole_words and start == end:
            start = sentences.pop().start
            text = line[start : end + len(text)]
        if text:
            sentences.append(Sentence(text, start))
            end = start + len(text)
    return sentences


def _parts(text: str, language: str) -> Iterator[str]:
    """The text cut after each sentence and the white space that follows it."""
    from sentencex import segment

    start = 0
    while len(text) - start > _BLOCK:
        stop = text.rfind(" ", start, start + _BLOCK) + 1 or start + _BLOCK  # a word stays whole
        parts = segment(language, text[start:stop])
        parts = parts[:-1] or parts  # the last one may go on in the next block
        start += sum(map(len, parts))
        yield from parts
    yield from segment(language, text[start:])


def joined_sentences(texts: Sequence[str], spaces: Sequence[str]) -> str:
    """The texts with `spaces` before, between and after them: one more than there are texts.

    Where there is none between two texts, there is a space after all, except in scripts that have none between words.
    """
    line = spaces[0]
    for (text, following), space in zip(pairwise([*texts, ""]), spaces[1:], strict=True):
        line += text + (space or _needed(text, following))
    return line


def _needed(text: str, following: str) -> str:
    """The space between two sentences whose sources have none between them."""
    if not text or not following:
        return ""
    last = next(filter(str.isalnum, reversed(text)), "")
    first = next(filter(str.isalnum, following), "")
    return " " if in_word(last) or in_word(first) else ""
