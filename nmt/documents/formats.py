"""The formats of documents: for each how it is read, and what it looks like. A new one is a line in FORMATS.

A reader is imported when a document is read, so that this module, which parsers of commands need, imports nothing else
of the package.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from nmt.decoding.writing import Translation


class Document(Protocol):
    """A document that has been read."""

    lines: list[str]  # what is to be translated, without markup
    is_marked: bool  # whether word alignments are needed to write it again

    def written(self, translations: Sequence["Translation"]) -> str:
        """The document with a translation for each of the lines; without alignments words are aligned in proportion."""


class PlainText:
    """Text with one sentence a line; a line feed, or a carriage return and a line feed, ends a line."""

    is_marked = False

    def __init__(self, text: str) -> None:
        self._rows = text.split("\n")
        self.lines = [row.removesuffix("\r") for row in self._rows]

    def written(self, translations: Sequence["Translation"]) -> str:
        ends = ["\r" if row.endswith("\r") else "" for row in self._rows]
        return "\n".join(f"{translation.text}{end}" for translation, end in zip(translations, ends, strict=True))


def _html(text: str, name: str) -> Document:
    from nmt.documents.html import HtmlDocument

    return HtmlDocument(text)


def _srt(text: str, name: str) -> Document:
    from nmt.documents.subtitles import Subtitles

    return Subtitles(text, name=name)


def _vtt(text: str, name: str) -> Document:
    from nmt.documents.subtitles import Subtitles

    return Subtitles(text, name=name, form="vtt")


def _paragraphs(text: str, name: str) -> Document:
    from nmt.documents.paragraphs import WrappedText

    return WrappedText(text)


class Kind(NamedTuple):
    """How documents of a format are read, and what they look like."""

    read: Callable[[str, str], Document]  # of the text, and what messages call it
    extensions: tuple[str, ...] = ()  # in lowercase
    first_line: str | None = None  # a regular expression that the beginning of the first line matches
    any_line: str | None = None  # one that the beginning of some of the first lines matches


Format = Literal["text", "paragraphs", "html", "srt", "vtt"]
FORMATS: dict[Format, Kind] = {
    "text": Kind(lambda text, name: PlainText(text)),
    "paragraphs": Kind(_paragraphs),
    "html": Kind(_html, (".html", ".htm"), any_line=r"(?i)\s*<(!doctype\s+html|html)\b"),
    "srt": Kind(_srt, (".srt",), any_line=r"\s*\d+:\d\d:\d\d[,.]\d{3}\s*-->\s*\d+:\d\d:\d\d[,.]\d{3}"),
    "vtt": Kind(_vtt, (".vtt",), first_line=r"\ufeff?WEBVTT(?:[ \t]|$)"),
}


def likely_format(path: PurePath, first_lines: Iterable[str]) -> Format:
    """The format that a file probably has, by its extension (before a .gz), or by its first lines."""
    for name, kind in FORMATS.items():
        if _extension(path) in kind.extensions:
            return name
    for number, line in enumerate(first_lines):
        for name, kind in FORMATS.items():
            if any(re.match(form, line) for form in (kind.any_line, None if number else kind.first_line) if form):
                return name
    return "text"


def is_markdown(path: PurePath) -> bool:
    """Whether a file is probably Markdown, which is none of the formats."""
    return _extension(path) in (".md", ".markdown")


def _extension(path: PurePath) -> str:
    """The extension in lowercase, before a .gz."""
    name = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return name.suffix.lower()
