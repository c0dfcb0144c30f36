"""The names of the formats of documents, and what they look like; importing it imports nothing else of the package."""

import re
from collections.abc import Iterable
from pathlib import PurePath
from typing import Literal, get_args

Format = Literal["text", "html", "srt"]
FORMATS: tuple[Format, ...] = get_args(Format)
_EXTENSIONS: dict[str, Format] = {".html": "html", ".htm": "html", ".srt": "srt"}
_HTML = re.compile(r"\s*<(!doctype\s+html|html)\b", re.IGNORECASE)
_TIMES = re.compile(r"\s*\d+:\d\d:\d\d[,.]\d{3}\s*-->\s*\d+:\d\d:\d\d[,.]\d{3}")


def likely_format(path: PurePath, first_lines: Iterable[str]) -> Format:
    """The format that a file probably has, by its extension (before a .gz), or by its first lines."""
    name = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    if (known := _EXTENSIONS.get(name.suffix.lower())) is not None:
        return known
    for line in first_lines:
        if _HTML.match(line):
            return "html"
        if _TIMES.match(line):
            return "srt"
    return "text"
