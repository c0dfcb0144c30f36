"""Texts with tags in them, as in HTML, subtitles, messages of programs, and Markdown: what of a text is translated.

White space, tags around everything, and other characters at the edges stay where they are; tags inside become marks,
which `nmt.decoding.text.marks` puts back. It knows a format by how it writes tags and characters, and nothing of files.
"""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple
from unicodedata import normalize

import regex

from nmt.data.words import CLOSING, are_apart
from nmt.decoding.text.marks import ROOT, Mark, written
from nmt.documents.cutting import Cut, columns, in_rows
from nmt.documents.tags import END, OTHER, START, TEXT, Token, partners, with_texts

SPACES = "".join(character for character in map(chr, range(0x3001)) if character.isspace())
BREAK, CODE = "br", "code"  # names of tags: of one that ends a row, of one that stands for a word
_CHARACTER = re.compile(r"&#?[0-9A-Za-z]{1,32};|.", re.DOTALL)  # as a reference, or itself
_BRACKETS = re.compile(r"\[[^\[\]]+\]|\([^()]+\)", re.DOTALL)


class Notation(NamedTuple):
    """How a format writes texts."""

    tokens: Callable[[str], list[Token]]  # the tags and what is between them, without a gap
    read: Callable[[str], str] = str  # the text that is written so
    write: Callable[[str], str] = str
    before: str = SPACES  # characters that stay where a text begins
    behind: str = SPACES  # or ends
    label: re.Pattern[str] | None = None  # stays where a text begins; with one, so do brackets around everything
    separating: Container[str] = (BREAK, CODE)  # names of tags between two words
    keeps_rows: bool = True  # whether a translation is broken into as many rows as its source
    in_order: re.Pattern[str] | None = None  # tags that stay in their order, as times do

    def words(self, source: str) -> str:
        """The text without its tags."""
        return self.read(
            "".join(source[token.start : token.stop] for token in self.tokens(source) if token.kind == TEXT)
        )


class Piece(NamedTuple):
    """A text, or the part of one that is translated by itself."""

    before: str  # what stays around it: white space, a dash, tags
    text: str  # on one line
    marks: list[Mark]
    source: str  # of text and tags
    after: str
    is_whole: bool  # whether its tags have their partners

    def written(self, cut: Cut, notation: Notation) -> str:
        """The translation with what stays around it."""
        return f"{self.before}{self.inside(cut, notation)}{self.after}"

    def inside(self, cut: Cut, notation: Notation) -> str:
        """The translation with its tags, in no more rows than the text had; as it was where it is the same."""
        translation, links = cut
        if translation == self.text:
            return self.source
        in_marks = sum(mark.tags[0].count("\n") for mark in self.marks)
        if notation.keeps_rows and (line_ends := self.source.count("\n") - in_marks):
            rows = f"{self.before}{self.source}{self.after}".split("\n")
            longest = max(columns(notation.words(row).strip()) for row in rows)
            line_end = "\r\n" if "\r\n" in self.source else "\n"
            translation = line_end.join(in_rows(translation, most=line_ends + 1, longest=longest))
        links = links if self.is_whole else []
        text = written(self.text, self.marks, translation, links, escape=notation.write)
        if notation.in_order is None:
            return text
        tags = (tag for mark in self.marks for tag in notation.in_order.findall(mark.tags[0]))
        return notation.in_order.sub(lambda tag: next(tags, tag[0]), text)


Part = str | Piece
"""What stays, or a piece that is translated."""


def part_of(source: str, notation: Notation, lines: list[str], tokens: Sequence[Token] | None = None) -> Part:
    """A part of a document: its piece, whose text is added to the `lines`; what has nothing to translate stays."""
    piece = piece_of(source, notation, tokens)
    if piece is None:
        return source if tokens is None else source[tokens[0].start : tokens[-1].stop]
    lines.append(piece.text)
    return piece


def have_marks(parts: Iterable[Part]) -> bool:
    """Whether some piece has marks, for which word alignments are needed."""
    return any(part.marks for part in parts if not isinstance(part, str))


def written_parts(parts: Iterable[Part], cuts: Iterator[Cut], notation: Notation) -> str:
    """The parts with what each piece, in order, gets of a translation."""
    return "".join(part if isinstance(part, str) else part.written(next(cuts), notation) for part in parts)


def tags_by(tag: "re.Pattern[str] | regex.Pattern[str]") -> Callable[[str], list[Token]]:
    """Tags that a pattern finds; its groups are the slash of an end tag, and the name, of which others have none."""

    def tokens(source: str) -> list[Token]:
        found = []
        for match in tag.finditer(source):
            name = BREAK if match[0].startswith("\\") else (match[2] or "").lower()
            is_alone = name in ("", BREAK) or match[0].endswith(("/>", "/&gt;"))
            kind = OTHER if is_alone else END if match[1] else START
            found.append(Token(kind, match.start(), match.end(), name))
        return with_texts(found, source)

    return tokens


def piece_of(source: str, notation: Notation, tokens: Sequence[Token] | None = None) -> Piece | None:
    """The text of `source`, or of some of its tokens; None where there is nothing to translate."""
    tokens = notation.tokens(source) if tokens is None else tokens
    begin, end = (tokens[0].start, tokens[-1].stop) if tokens else (0, 0)
    together = partners(tokens)
    texts = (token.kind == TEXT and notation.read(source[token.start : token.stop]).strip() != "" for token in tokens)
    words = [*accumulate(texts, initial=0)]  # how many of the tokens before each one have words
    before, after, start, stop = _inner(source, tokens, together, words, notation)
    line, is_whole = _Line(), True
    while start < stop:
        token, index = tokens[start], start
        while start < stop and tokens[start].kind != TEXT:  # without words, with others right behind, in their order
            partner = together.get(start, start)
            if partner < start or words[partner] > words[start]:
                break
            start = partner + 1
        if start > index:
            alone = tokens[index:start]
            is_whole = is_whole and all(tokens[at].kind == OTHER or at in together for at in range(index, start))
            is_spaced = any(other.kind == TEXT for other in alone)
            separates = is_spaced or any(other.name in notation.separating for other in alone)
            breaks = is_spaced or any(other.name == BREAK for other in alone)
            line.put(source[token.start : alone[-1].stop], separates=separates, breaks=breaks)
            continue
        start += 1
        text = source[max(token.start, before) : min(token.stop, after)]
        if token.kind == TEXT:
            line.write(normalize("NFC", notation.read(text)))  # as a model reads it
        elif token.kind == START:
            line.open(text)
        else:
            line.close(text)
    text = "".join(line.parts)
    if not any(map(str.isalpha, text)):
        return None
    head, inside, tail = source[begin:before], source[before:after], source[after:end]
    return Piece(head, text, line.marks, inside, tail, is_whole)


class _Line:
    """A text with its marks, as it is read from left to right. White space between words becomes one space."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.marks: list[Mark] = []
        self._length = 0
        self._open: list[int] = []
        self._space = False  # whether a space belongs before the next word
        self._gap = False  # whether there was white space since the last word or mark
        self._is_alone = False  # whether the last was a mark without words
        self._separated = False  # whether that stands for words, or separates them, and no white space follows

    def write(self, text: str) -> None:
        """Add words, and white space."""
        words = text.split()
        if text[:1].isspace():
            self._space, self._gap, self._separated = True, True, False
        stands_apart = self._separated and not self.marks[-1].breaks and are_apart("", text[:1])[1]
        if self._is_alone and (self._gap or stands_apart):
            self.marks[-1] = self.marks[-1]._replace(after=True)
        if not words:
            return
        if self._separated and text[0] in CLOSING:
            self._space = False
        for word in words:
            if self._space and self._length:
                self.parts.append(" ")
                self._length += 1
            self.parts.append(word)
            self._length += len(word)
            self._space = True
        self._space = self._gap = text[-1].isspace()
        self._is_alone = self._separated = False

    def open(self, tag: str) -> None:
        """Begin a mark that encloses words."""
        self._add(Mark(self._length, self._length, tags=(tag, "")))
        self._open.append(len(self.marks) - 1)

    def close(self, tag: str) -> None:
        """End the mark that was begun last."""
        index = self._open.pop()
        mark = self.marks[index]
        self.marks[index] = mark._replace(stop=self._length, tags=(mark.tags[0], tag))
        self._gap = False

    def put(self, tags: str, *, separates: bool, breaks: bool) -> None:
        """Add a mark that encloses no words. `separates`: words before and after it are two."""
        last = "" if self._is_alone else "".join(self.parts[-1:])[-1:]
        before = self._gap or (separates and not breaks and are_apart(last, "")[0])
        self._add(Mark(self._length, self._length, before=before, breaks=breaks, tags=(tags, "")))
        self._is_alone, self._separated = True, separates
        self._space = self._space or separates

    def _add(self, mark: Mark) -> None:
        self.marks.append(mark._replace(parent=self._open[-1] if self._open else ROOT))
        self._gap = self._is_alone = False


def _inner(
    source: str, tokens: Sequence[Token], together: Mapping[int, int], words: Sequence[int], notation: Notation
) -> tuple[int, int, int, int]:
    """What is left without all that is kept around the text: source[before:after], in tokens[start:stop].

    From outside to inside these are tags without a partner or without words, pairs of tags around everything, and the
    characters that `_begin` and `_end` pass over; but not what stands for a word beside one of a script without spaces,
    which is to have some in a translation. `together`: the places of tags by those of their partners.
    """

    def is_apart(edge: Sequence[Token], neighbor: int, *, behind: bool) -> bool:
        """Whether an edge stands for a word right beside such a text, which is behind it or before it."""
        if not start <= neighbor < stop or tokens[neighbor].kind != TEXT:
            return False
        text = notation.read(source[tokens[neighbor].start : tokens[neighbor].stop])
        touched = text[:1] if behind else text[-1:]
        stands_for_word = any(token.name != BREAK and token.name in notation.separating for token in edge)
        return stands_for_word and not touched.isspace() and are_apart(touched, touched)[behind]

    before, after, start, stop = tokens[0].start if tokens else 0, tokens[-1].stop if tokens else 0, 0, len(tokens)
    begun = ended = -1  # the texts whose beginning and whose end is known
    while start < stop:
        first, last = tokens[start], tokens[stop - 1]
        following, previous = together.get(start, start) + 1, together.get(stop - 1, stop - 1)
        if (
            first.kind != TEXT
            and words[start] == words[following]
            and not is_apart(tokens[start:following], following, behind=True)
        ):
            before, start = tokens[following - 1].stop, following
        elif (
            last.kind != TEXT
            and words[previous] == words[stop]
            and not is_apart(tokens[previous:stop], previous - 1, behind=False)
        ):
            after, stop = tokens[previous].start, previous
        elif first.kind == TEXT and start != begun:
            before, begun = _begin(source, before, first.stop, notation), start
            start += before == first.stop
        elif last.kind == TEXT and stop != ended:
            after, ended = _end(source, last.start, after, notation), stop
            stop -= after == last.start
        elif first.kind == START and together[start] == stop - 1:
            before, after, start, stop = first.stop, last.start, start + 1, stop - 1
        else:
            break
    if notation.label and _BRACKETS.fullmatch(source, before, after):
        before, after = before + 1, after - 1
    return before, after, start, stop


def _begin(source: str, start: int, stop: int, notation: Notation) -> int:
    """Where of the text source[start:stop] begins what is translated: after white space, dashes, signs, a label."""
    for character in _CHARACTER.finditer(source, start, stop):
        if notation.read(character[0]).strip(notation.before):
            label = notation.label and notation.label.match(source, character.start(), stop)
            return label.end() if label else character.start()
    return stop


def _end(source: str, start: int, stop: int, notation: Notation) -> int:
    """Where of the text source[start:stop] ends what is translated: before white space and signs."""
    for character in reversed([*_CHARACTER.finditer(source, start, stop)]):
        if notation.read(character[0]).strip(notation.behind):
            return character.end()
    return start
