"""Markdown: CommonMark with GitHub's tables, as markdown-it-py reads it, which also judges what is written.

Paragraphs, headings, items of lists and cells of tables are texts; emphasis and links are marks in them (see `tagged`).
All else stays as it is, character by character: code, HTML, targets of links, images, front matter. A paragraph of
several lines is broken again at its width. What would be markup in a translation gets backslashes.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from html import unescape
from itertools import pairwise
from textwrap import TextWrapper
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it import rules_inline as rules
from markdown_it.rules_inline import StateInline

from nmt.decoding.text.marks import Mark
from nmt.decoding.writing import Translation
from nmt.documents.cutting import Cut, uncut
from nmt.documents.tagged import BREAK, CODE, Notation, Piece, piece_of
from nmt.documents.tags import END, OTHER, START, Token, partners, with_texts

Rule = Callable[[StateInline, bool], bool]

_FRONT_MATTER = re.compile(r"\ufeff?(?:---[ \t]*\r?\n.*?^(?:---|\.\.\.)[ \t]*$\n?)?", re.DOTALL | re.MULTILINE)
_ROW = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
_KEPT = re.compile(r"\[\^[^\]\s]+\]:?|\[[ xX]\](?=\s)|\[![A-Z]+\]|(?<!\w):[a-z][a-z0-9_+-]*:(?!\w)")  # notes, boxes
_HTML_TAG = re.compile(r"<(/?)([A-Za-z][\w-]*)[^<>]*>")
_CHARACTER = re.compile(r"\\([!-/:-@\[-`{-~])|&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_MARKUP = re.compile(r"[\\`*_\[\]<>&~#]")
_ROW_MARKUP = re.compile(r"^(\d*)(?=[-+=.)])", re.MULTILINE)  # of lists and headings
_OPENED, _CLOSED = "\ufdd2", "\ufdd3"  # no characters, beside tags
_EMPTY = re.compile(rf"(\*\*|\*|__|_|~~){_OPENED}{_CLOSED}\1")
_BREAK = "\ufdd1"
_GLUE, _UNGLUE = str.maketrans(" \n\t", "\ufdd0\ufdd1\ufdd4"), str.maketrans("\ufdd0\ufdd1\ufdd4", " \n\t")  # in tags


class _Text(NamedTuple):
    """A text in its place."""

    piece: Piece
    source: str  # as the parser gives it, without what stands before its rows
    original: str
    row_end: str  # with what the next row begins with, such as "> "
    is_cell: bool


class Markdown:
    """Markdown with its texts: `lines` are to be translated."""

    language = None

    def __init__(self, text: str) -> None:
        self.lines: list[str] = []
        self._parts: list[str | _Text] = []
        self._references: dict[str, Any] = {}
        read = partial(_CHARACTER.sub, lambda match: match[1] or unescape(match[0]))
        self._notation = Notation(partial(_tokens, references=self._references), read, keeps_rows=False)
        front = _FRONT_MATTER.match(text)
        place = front.end() if front else 0
        self._parts.append(text[:place])
        rows = [match.span() for match in _ROW.finditer(text, place)]
        for before, token in pairwise(_PARSER.parse(text[place:], self._references)):
            if token.type != "inline" or token.map is None:
                continue
            is_cell = before.type in ("th_open", "td_open")
            spans = _located(text, token.content, rows[slice(*token.map)], place, is_cell=is_cell)
            source = _with_full_references(token.content, self._references)
            piece = piece_of(source, self._notation) if spans else None
            if piece is not None:
                row_end = text[spans[0][1] : spans[1][0]].lstrip(" \t") if len(spans) > 1 else "\n"
                self.lines.append(piece.text)
                start, stop = spans[0][0], spans[-1][1]
                self._parts += [text[place:start], _Text(piece, source, text[start:stop], row_end, is_cell)]
                place = stop
        self._parts.append(text[place:])
        self.is_marked = any(isinstance(part, _Text) and part.piece.marks for part in self._parts)

    def written(self, translations: Sequence[Translation]) -> str:
        """The Markdown with a translation for each of the lines."""
        cuts = uncut(self.lines, translations)
        return "".join(part if isinstance(part, str) else self._written(part, next(cuts)) for part in self._parts)

    def _written(self, text: _Text, cut: Cut) -> str:
        """A text with its translation, whose characters get backslashes if it would have other elements without.

        If it would even so, emphasis is left out; and a text stays as it is that would be something else.
        """
        line, _ = cut
        if line == text.piece.text:
            return text.original
        rows = text.source.split("\n")
        width = max(map(len, rows)) if len(rows) > 1 else 0
        blocks, elements, _ = self._elements(text.source)
        written, blocks_now, elements_now = "", blocks, elements
        for write, row_start, left_away in _WAYS:
            piece = text.piece._replace(marks=[_unbroken(mark, left_away) for mark in text.piece.marks])
            inside, left_out = _without_empty(piece.inside(cut, self._notation._replace(write=write)))
            if width:
                wrap = TextWrapper(width, break_long_words=False, break_on_hyphens=False).wrap
                wrapped = map(wrap, inside.split(_BREAK))
                inside = _BREAK.join(map("\n".join, wrapped))
            inside = inside.translate(_UNGLUE)
            written = _ROW_MARKUP.sub(row_start, f"{piece.before}{inside}{piece.after}")
            blocks_now, elements_now, text_now = self._elements(written)
            lost = (elements - elements_now).total()
            words = "".join(self._notation.words(inside).split())
            is_read = write is _escaped or (
                words == line.replace(" ", "") and len(_letters(text_now)) >= len(_letters(line))
            )
            if blocks_now == blocks and not elements_now - elements and lost == 2 * left_out and is_read:
                break
        else:
            written = written if blocks_now == blocks and not elements_now - elements else text.source
        return written.replace("|", r"\|") if text.is_cell else written.replace("\n", text.row_end)

    def _elements(self, source: str) -> tuple[list[str], Counter[str], str]:
        """The blocks of a text, the elements in it, and what there is besides."""
        blocks = _PARSER.parse(source, self._references)
        inside = [child for block in blocks for child in block.children or ()]
        elements = Counter(child.type for child in inside if not _is_text(child.type))
        return [block.type for block in blocks], elements, "".join(one.content for one in inside if _is_text(one.type))


def _unbroken(mark: Mark, left_away: str) -> Mark:
    """The mark with tags that no line is broken in; without, if they are of the characters `left_away`."""
    before, after = mark.tags
    if not before.strip(left_away):
        return mark._replace(tags=("", ""))
    end = f"{_CLOSED}{after}" if after else ""
    return mark._replace(tags=(f"{before}{_OPENED}".translate(_GLUE), end.translate(_GLUE)))


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def _without_empty(text: str) -> tuple[str, int]:
    """The text without emphasis around nothing, which would be asterisks, and how many of them there were."""
    left_out, found = 0, 1
    while found:
        text, found = _EMPTY.subn("", text)
        left_out += found
    return text.replace(_OPENED, "").replace(_CLOSED, ""), left_out


def _located(
    text: str, content: str, rows: Sequence[tuple[int, int]], place: int, *, is_cell: bool
) -> list[tuple[int, int]]:
    """Where the rows of what the parser read are in the text, from a place on; none where one cannot be found."""
    spans: list[tuple[int, int]] = []
    for part, (start, stop) in zip(content.split("\n"), rows, strict=False):
        part = part.strip().replace("|", r"\|") if is_cell else part.strip()
        find = text.find if is_cell else text.rfind
        start = find(part, max(start, place), stop)
        if start < 0:
            return []
        spans.append((start, start + len(part)))
    return spans if content.count("\n") < len(rows) else []


def _escaped(text: str) -> str:
    return _MARKUP.sub(r"\\\g<0>", text)


def _is_text(kind: str) -> bool:
    return kind.startswith("text") or kind == "softbreak"


def _tokens(source: str, references: dict[str, Any]) -> list[Token]:
    """The elements in a text and what is between them, without a gap."""
    found: list[Token] = []
    for child in _PARSER.parseInline(source, references)[0].children or ():
        if _is_text(child.type) or "span" not in child.meta:
            continue
        start, stop = child.meta["span"]
        kind, name = {1: START, -1: END, 0: OTHER}[child.nesting], child.tag
        if child.type == "strong_open":
            start -= 1
        elif child.type == "strong_close":
            stop += 1
        elif child.type == "hardbreak":
            start = len(source[:start].rstrip(" \t"))
        elif child.type == "image" or child.info == "auto":
            kind, name = OTHER, CODE
        elif child.type == "html_inline" and (tag := _HTML_TAG.fullmatch(source, start, stop)):
            name = tag[2].lower()
            kind = OTHER if name == BREAK or tag[0].endswith("/>") else END if tag[1] else START
        found.append(Token(kind, start, stop, name))
    if len(partners(found)) < sum(token.kind in (START, END) for token in found):  # tags of HTML without theirs
        found = [token._replace(kind=OTHER) if source[token.start] == "<" else token for token in found]
    return with_texts(found, source)


def _with_full_references(source: str, references: dict[str, Any]) -> str:
    """The text with [word] and [word][] as [word][word], whose target does not change with the word."""
    opened: list[Token] = []
    pieces, place = [], 0
    for token in _tokens(source, references):
        if token.name == "a" and token.kind == START:
            opened.append(token)
        elif token.name == "a" and token.kind == END and source[token.start : token.stop] in ("]", "][]"):
            pieces += [source[place : token.start], f"][{source[opened[-1].stop : token.start]}]"]
            place = token.stop
    return "".join([*pieces, source[place:]])


def _spanned(rule: Rule, *, is_run: bool = False) -> Rule:
    """A rule of the parser whose tokens know where they are in the text; of a run of delimiters each character."""

    def spanned(state: StateInline, silent: bool) -> bool:
        start, known = state.pos, len(state.tokens)
        if not rule(state, silent):
            return False
        stop = state.pos
        for token in reversed(state.tokens[known:]):
            if is_run and stop > start:
                token.meta["span"] = (stop - len(token.content), stop)
                stop -= len(token.content)
            elif not is_run and token.type == "link_close" and token.info != "auto" and "span" not in token.meta:
                token.meta["span"] = (state.md.helpers.parseLinkLabel(state, start, True), stop)
            elif not is_run and token.nesting >= 0 and "span" not in token.meta:
                token.meta["span"] = (start, start + 1 if token.type == "link_open" and not token.info else stop)
        return True

    return spanned


def _kept(state: StateInline, silent: bool) -> bool:
    """The rule for what other readers of Markdown know: references to footnotes, check boxes, names of emoji."""
    match = _KEPT.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        state.push("kept", "", 0)
    state.pos = match.end()
    return True


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    elements = {"newline": rules.newline, "escape": rules.escape, "backticks": rules.backtick, "link": rules.link}
    elements |= {"image": rules.image, "autolink": rules.autolink, "html_inline": rules.html_inline}
    for name, rule in elements.items():
        parser.inline.ruler.at(name, _spanned(rule))
    parser.inline.ruler.at("strikethrough", _spanned(rules.strikethrough.tokenize, is_run=True))
    parser.inline.ruler.at("emphasis", _spanned(rules.emphasis.tokenize, is_run=True))
    parser.inline.ruler.before("link", "kept", _spanned(_kept))
    return parser


_PARSER = _parser()

# How a text may be written, of which the first counts that is read as it is meant: its characters, of which none stands
# for another one, the beginnings of rows like those of lists, and the tags that are left out
_WAYS = ((partial(_CHARACTER.sub, r"\\\g<0>"), r"\1", ""), (_escaped, r"\1\\", ""), (_escaped, r"\1\\", "*_~"))
