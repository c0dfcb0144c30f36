"""The names of the formats of documents, and what they look like; importing it imports nothing else of the package."""

import re
from collections.abc import Iterable
from pathlib import PurePath
from typing import Literal, get_args

Format = Literal["text", "html", "srt", "vtt"]
FORMATS: tuple[Format, ...] = get_args(Format)
_EXTENSIONS: dict[str, Format] = {".html": "html", ".htm": "html", ".srt": "srt", ".vtt": "vtt"}
_HTML = re.compile(r"\s*<(!doctype\s+html|html)\b", re.IGNORECASE)
_WEBVTT = re.compile(r"\ufeff?WEBVTT(?:[ \t]|$)")
_TIMES = re.compile(r"\s*\d+:\d\d:\d\d[,.]\d{3}\s*-->\s*\d+:\d\d:\d\d[,.]\d{3}")


def likely_format(path: PurePath, first_lines: Iterable[str]) -> Format:
    """The format that a file probably has, by its extension (before a .gz), or by its first lines."""
    if (known := _EXTENSIONS.get(_extension(path))) is not None:
        return known
    for number, line in enumerate(first_lines):
        if not number and _WEBVTT.match(line):
            return "vtt"
        if _HTML.match(line):
            return "html"
        if _TIMES.match(line):
            return "srt"
    return "text"


def is_markdown(path: PurePath) -> bool:
    """Whether a file is probably Markdown, which is none of the formats."""
    return _extension(path) in (".md", ".markdown")


def _extension(path: PurePath) -> str:
    """The extension in lowercase, before a .gz."""
    name = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return name.suffix.lower()
