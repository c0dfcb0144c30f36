"""What lines have that a model may translate badly: counted while they are read, and warned of at the end of a text.

It knows numbers and characters; it knows no models.
"""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from unicodedata import combining

from nmt.decoding.text.sentences import INSTALL, is_installed
from nmt.errors import InputWarning, counted

_MOST_SHOWN = 5  # characters


@dataclass
class Doubts:
    """How many lines were read, and how many of them may not be translated as they are meant."""

    lines: int = 0
    long: int = 0  # with several sentences, or more pieces than the models were trained on
    unknown: int = 0  # with characters that the vocabulary lacks
    characters: dict[str, None] = field(default_factory=dict)  # the first of these

    def note(self, *, is_long: bool, unknown: Iterable[str]) -> None:
        """Count a line, which has these `unknown` characters."""
        characters = dict.fromkeys(unknown)
        self.add(Doubts(1, int(is_long), int(bool(characters)), characters))

    def add(self, other: "Doubts") -> None:
        """Count the lines of another part of the text."""
        self.lines += other.lines
        self.long += other.long
        self.unknown += other.unknown
        if len(self.characters) <= _MOST_SHOWN:
            self.characters |= other.characters

    def warn(self) -> None:
        """Warn of what was counted, with an InputWarning for each kind."""
        if self.long:
            install = "" if is_installed() else f" ({INSTALL})"
            self._warn(
                self.long,
                "several sentences or more pieces than the model was trained on, and may lose parts in translation; "
                f"`split_sentences` translates a line sentence by sentence{install}",
            )
        if self.unknown:
            examples = " ".join(map(_visible, islice(self.characters, _MOST_SHOWN)))
            more = " …" if len(self.characters) > _MOST_SHOWN else ""
            self._warn(self.unknown, f"characters that the model does not know ({examples}{more})")

    def _warn(self, number: int, what: str) -> None:
        have = "has" if number == 1 else "have"
        warnings.warn(f"{number:,} of {counted(self.lines, 'line')} {have} {what}", InputWarning, stacklevel=4)


def _visible(character: str) -> str:
    return character if character.isprintable() and not combining(character) else f"U+{ord(character):04X}"
