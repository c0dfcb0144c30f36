"""The warning about lines that a model may translate badly as a whole: of several sentences, or longer than any it saw.

It knows translators and lines; it knows no files.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress

from nmt.decoding.text.sentences import INSTALL, checked_language, is_installed, sentences_of
from nmt.decoding.translator import Translator
from nmt.errors import UserError, counted


class LongLines:
    """Counts such lines while they are read, from the moment that it watches a translator."""

    def __init__(self) -> None:
        self.lines = self.long = 0
        self._translator: Translator | None = None
        self._language: str | None = None

    def watch(self, translator: Translator) -> None:
        """Count the lines that are too long for this translator."""
        self._translator = translator
        with suppress(UserError):  # then there is only the length
            self._language = checked_language(translator.languages.source or "")

    def among(self, lines: Iterable[str]) -> Iterator[str]:
        """The lines, counted as they are taken."""
        for line in lines:
            self.lines += 1
            self.long += self._is_long(line)
            yield line

    def _is_long(self, line: str) -> bool:
        if self._translator is None:
            return False
        if self._language is not None and len(sentences_of(line, self._language)) > 1:
            return True
        longest = self._translator.longest_trained
        if longest is None or len(line.encode()) <= longest:  # a piece has at least a byte
            return False
        return len(self._translator.vocabularies.source.encode(line)) > longest

    def tell(self, program: str) -> None:
        """Warn of the lines that were long, if there were any."""
        if self._translator is None or not self.long:
            return
        marks = [] if self._language is None else ["several sentences"]
        if (longest := self._translator.longest_trained) is not None:
            marks.append(f"more pieces than the model was trained on ({longest:,})")
        install = "" if is_installed() else f" ({INSTALL})"
        print(
            f"{program}: warning: {self.long:,} of {counted(self.lines, 'line')} {'has' if self.long == 1 else 'have'} "
            f"{' or '.join(marks)}, and may lose parts in "
            f"translation; --split-sentences translates a line sentence by sentence{install}",
            file=sys.stderr,
        )
