"""The formats of documents: for each how it is read, and what its files are called. A new one is a line in FORMATS.

A reader is imported when a document is read, so that this module, which parsers of commands need, imports nothing else
of the package.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    import regex

    from nmt.decoding.writing import Translation


class Language(NamedTuple):
    """How documents of a format say in which language they are."""

    code: "regex.Pattern[str]"  # the code of the language
    direction: Callable[[str, str], str] = lambda text, direction: text  # the document, to be read "ltr" or "rtl"


class Document(Protocol):
    """A document that has been read."""

    lines: list[str]  # what is to be translated, without markup
    is_marked: bool  # whether word alignments are needed to write it again

    @property
    def language(self) -> Language | None:
        """How it says in which language it is, where it may."""

    def written(self, translations: Sequence["Translation"]) -> str:
        """The document with a translation for each of the lines; without alignments words are aligned in proportion."""


class PlainText:
    """Text with one sentence a line; a line feed, or a carriage return and a line feed, ends a line."""

    is_marked, language = False, None

    def __init__(self, text: str) -> None:
        self._rows = re.findall(r"[^\n]*\n|[^\n]+", text) or [""]
        self.lines = [row.removesuffix("\n").removesuffix("\r") for row in self._rows]

    def written(self, translations: Sequence["Translation"]) -> str:
        ends = (row[len(line) :] for row, line in zip(self._rows, self.lines, strict=True))
        return "".join(f"{translation.text}{end}" for translation, end in zip(translations, ends, strict=True))


Reader = Callable[[str, str], Document]  # of the text, and what messages call it


def _html(text: str, name: str) -> Document:
    from nmt.documents.html import HtmlDocument

    return HtmlDocument(text)


def _markdown(text: str, name: str) -> Document:
    from nmt.documents.markdown import Markdown

    return Markdown(text)


def _subtitles(text: str, name: str, *, form: str) -> Document:
    from nmt.documents.subtitles import Subtitles

    return Subtitles(text, name=name, form=form)


def _messages(text: str, name: str, *, form: str) -> Document:
    from nmt.documents.messages import Messages

    return Messages(text, name=name, form=form)


def _paragraphs(text: str, name: str) -> Document:
    from nmt.documents.paragraphs import WrappedText

    return WrappedText(text)


class Kind(NamedTuple):
    """How documents of a format are read, and what their files are called."""

    read: Reader
    extensions: tuple[str, ...] = ()  # in lowercase


FORMATS: dict[str, Kind] = {
    "text": Kind(lambda text, name: PlainText(text), (".txt",)),
    "paragraphs": Kind(_paragraphs),
    "html": Kind(_html, (".html", ".htm", ".xhtml")),
    "markdown": Kind(_markdown, (".md", ".markdown")),
    "srt": Kind(partial(_subtitles, form="srt"), (".srt",)),
    "vtt": Kind(partial(_subtitles, form="vtt"), (".vtt",)),
    "ass": Kind(partial(_subtitles, form="ass"), (".ass", ".ssa")),
    "sbv": Kind(partial(_subtitles, form="sbv"), (".sbv",)),
    "ttml": Kind(partial(_subtitles, form="ttml"), (".ttml", ".dfxp")),
    "po": Kind(partial(_messages, form="po"), (".po", ".pot")),
    "xliff": Kind(partial(_messages, form="xliff"), (".xlf", ".xliff")),
    "ts": Kind(partial(_messages, form="ts"), (".ts",)),
    "properties": Kind(partial(_messages, form="properties"), (".properties",)),
    "json": Kind(partial(_messages, form="json"), (".json", ".arb")),
}
_COLUMN = "save the column of texts as a file with one text a line"
OTHERS = {  # extensions of what is not read, and what to do with it
    **dict.fromkeys((".doc", ".docx", ".odp", ".odt", ".ppt", ".pptx", ".rtf"), "save it as HTML"),
    **dict.fromkeys((".adoc", ".epub", ".ipynb", ".rst", ".tex"), "convert it, as pandoc does, to HTML or Markdown"),
    **dict.fromkeys((".csv", ".ods", ".tsv", ".xls", ".xlsx"), _COLUMN),
    **dict.fromkeys((".resx", ".strings", ".xml", ".yaml", ".yml"), "convert its texts to PO or XLIFF, and back again"),
    **dict.fromkeys((".7z", ".rar", ".tar", ".tgz", ".zip"), "unpack it, and give the files in it"),
    **dict.fromkeys((".bz2", ".xz", ".zst"), "unpack it, or pack it with gzip"),
    ".pdf": "save its text, as pdftotext does",
}
_CHARSET = re.compile(r"(?i)(?<=charset=)([\"']?)(?!utf-?8\b)[\w-]+|(?<=encoding=)([\"'])[\w-]+")


def format_by_extension(path: PurePath) -> str | None:
    """The format of the files with this extension, which may stand before a .gz."""
    return next((name for name, kind in FORMATS.items() if extension(path) in kind.extensions), None)


def extension(path: PurePath) -> str:
    """The extension in lowercase, before a .gz."""
    name = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return name.suffix.lower()


def declared_as_utf8(text: str) -> str:
    """A document that was in another encoding with UTF-8 where it says in which one it is, for so it is written."""
    return _CHARSET.sub(r"\1\2UTF-8", text, count=1)
