"""Hard-wrapped text: the lines of a paragraph are one text, and its translation is wrapped as they were.

A paragraph ends at a line without letters and digits, before an item of a list, and where the indentation or the quotes
of mail (`> `) change, but for its second line. It knows lines and columns; it knows no sentences.
"""

import re
from collections.abc import Sequence

from nmt.data.words import ALONE
from nmt.decoding.writing import Translation
from nmt.documents.cutting import columns, unbroken

Row = re.Match[str]
_ROW = re.compile(  # any line
    r"(?P<quotes>(?:[ \t]*>)*)(?P<indent>\s*)(?P<item>(?:[-*+•]|\d{1,2}[.)])[ \t]+(?=\S)|)"
    r"(?P<text>.*\S|)(?P<end>\s*)",
    re.DOTALL,
)
# A line end that is no space: in scripts without them, and within a word with a hyphen
_NO_SPACE = re.compile(rf"(?<=[{ALONE}])\n(?=[{ALONE}])|(?<=[^\W\d_]-)\n(?=[^\W\d_])")


class WrappedText:
    """Text whose paragraphs are wrapped: each is one of the `lines`."""

    is_marked, language = False, None

    def __init__(self, text: str) -> None:
        self._paragraphs: list[list[Row]] = []
        for row in filter(None, map(_ROW.fullmatch, text.split("\n"))):
            if self._paragraphs and _goes_on(self._paragraphs[-1], row):
                self._paragraphs[-1].append(row)
            else:
                self._paragraphs.append([row])
        self.lines = []
        for first, *others in (rows for rows in self._paragraphs if _has_text(rows[0])):
            texts = [first["text"], *(f"{row['item']}{row['text']}" for row in others)]  # within it an item is text
            self.lines.append(_NO_SPACE.sub("", "\n".join(texts)).replace("\n", " "))

    def written(self, translations: Sequence[Translation]) -> str:
        texts = (translation.text.strip() for translation in translations)
        lines = [_wrapped(next(texts), rows) if _has_text(rows[0]) else rows[0][0] for rows in self._paragraphs]
        return "\n".join(lines)


def _has_text(row: Row) -> bool:
    return any(map(str.isalnum, row["text"]))


def _goes_on(rows: Sequence[Row], row: Row) -> bool:
    """Whether a row goes on with the paragraph that these rows begin."""
    first, item = rows[0], row["item"]
    if not (_has_text(first) and _has_text(row)) or row["quotes"].count(">") != first["quotes"].count(">"):
        return False
    if item and (first["item"] or not item[0].isdigit() or item[:2] in ("1.", "1)")):  # other numbers may be of a text
        return False
    if len(rows) > 1:
        return row["indent"] == rows[1]["indent"]
    return first["item"] != "" or len(row["indent"].expandtabs()) <= len(first["indent"].expandtabs())


def _wrapped(text: str, rows: Sequence[Row]) -> str:
    """The text in lines as wide as the widest of these rows; of a single row, in one."""
    prefix, end = rows[0][0][: rows[0].start("text")], "\r\n" if rows[0]["end"].endswith("\r") else "\n"
    width = max(columns(row[0].rstrip().expandtabs()) for row in rows)
    used, lines, begin, placed = columns(prefix.expandtabs()), "", 0, 0
    for start, stop in unbroken(text) if len(rows) > 1 else ():
        used += columns(text[placed:stop])
        if begin < start and used > width:
            lines += f"{prefix}{text[begin:start].rstrip()}{end}"
            prefix, begin = f"{rows[-1]['quotes']}{rows[-1]['indent']}", start
            used = columns(prefix.expandtabs()) + columns(text[start:stop])
        placed = stop
    return f"{lines}{prefix}{text[begin:]}{rows[-1]['end']}"
