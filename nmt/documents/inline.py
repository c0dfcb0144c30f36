"""Marks inside a line, such as the tags of HTML and of subtitles: taken out before it is translated.

`nmt.decoding.text.marks` puts them back. It knows lines; it knows nothing of what the marks mean.
"""

from dataclasses import dataclass, field

from nmt.data.words import CLOSING
from nmt.decoding.text.marks import ROOT, Mark


@dataclass
class Line:
    """A line with its marks, as it is read from left to right. White space between words becomes one space."""

    text: str = ""
    marks: list[Mark] = field(default_factory=list)
    _parts: list[str] = field(default_factory=list)
    _length: int = 0
    _open: list[int] = field(default_factory=list)
    _space: bool = False  # whether a space belongs before the next word
    _gap: bool = False  # whether there was white space since the last word or mark
    _glued: bool = False  # whether the last was a mark that stands for words

    def write(self, text: str) -> None:
        """Add a text of the line."""
        words = text.split()
        if text[:1].isspace():
            self._space = self._gap = True
        if not words:
            return
        self._settle()
        if self._glued and text[0] in CLOSING:  # also behind a mark
            self._space = False
        for word in words:
            if self._space and self._length:
                self._parts.append(" ")
                self._length += 1
            self._parts.append(word)
            self._length += len(word)
            self._space = True
        self._space = self._gap = text[-1].isspace()
        self._glued = False

    def open(self) -> None:
        """Begin a mark that encloses words."""
        self._settle()
        self._open.append(len(self.marks))
        self.marks.append(Mark(self._length, self._length, self._open[-2] if len(self._open) > 1 else ROOT))

    def close(self) -> None:
        """End the mark that was begun last."""
        self._settle()
        index = self._open.pop()
        self.marks[index] = self.marks[index]._replace(stop=self._length)

    def put(self, *, separates: bool = False, breaks: bool = False) -> None:
        """Add a mark that encloses no words. `separates`: words before and after it are two."""
        gap = self._gap
        self._settle()
        parent = self._open[-1] if self._open else ROOT
        self.marks.append(Mark(self._length, self._length, parent, before=gap, breaks=breaks))
        self._space = self._space or separates
        self._glued = separates

    def end(self) -> None:
        """After the last text and mark."""
        self._settle()
        self.text = "".join(self._parts)

    def _settle(self) -> None:
        """Tell the last mark whether there was white space after it."""
        if self._gap and self.marks:
            last = self.marks[-1]
            if last.start == last.stop == self._length and (len(self.marks) - 1) not in self._open[-1:]:
                self.marks[-1] = last._replace(after=True)
        if self._gap:
            self._glued = False
        self._gap = False
