"""What lines have that a model may translate badly: counted while they are read, and warned of at the end of a text.

It knows numbers and characters; it knows no models.
"""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from nmt.decoding.text.sentences import INSTALL, is_installed
from nmt.errors import InputWarning, counted, visible
from nmt.text_form import TextForm, disagreements, together

_MOST_SHOWN = 5  # characters


@dataclass
class Doubts:
    """How many lines were read, and how many of them may not be translated as they are meant."""

    long: int = 0  # with several sentences, or more pieces than the models were trained on
    unknown: int = 0  # with characters that the vocabulary lacks
    characters: dict[str, None] = field(default_factory=dict)  # the first of these
    form: TextForm = field(default_factory=TextForm)

    @property
    def lines(self) -> int:
        return self.form.counts["lines"]

    def note(self, line: str, *, is_long: bool, unknown: Iterable[str]) -> None:
        """Count a line, which has these `unknown` characters."""
        self.form.add(line)
        self.long += is_long
        if characters := dict.fromkeys(unknown):
            self.unknown += 1
            self._keep(characters)

    def add(self, other: "Doubts") -> None:
        """Count the lines of another part of the text."""
        self.form = together([self.form, other.form], name=self.form.name)
        self.long += other.long
        self.unknown += other.unknown
        self._keep(other.characters)

    def _keep(self, characters: dict[str, None]) -> None:
        if len(self.characters) <= _MOST_SHOWN:
            self.characters |= characters

    def warn(self, trained: TextForm | None = None) -> None:
        """Warn of what was counted, with an InputWarning for each kind; `trained`: the form that the text should have,
        which is that of the text on which the model was trained."""
        if trained is not None:
            for message in disagreements(self.form, trained).values():
                warnings.warn(message, InputWarning, stacklevel=3)
        if self.long:
            install = "" if is_installed() else f" ({INSTALL})"
            self._warn(
                self.long,
                "several sentences or more pieces than the model was trained on, and may lose parts in translation; "
                f"`split_sentences` translates a line sentence by sentence{install}",
            )
        if self.unknown:
            examples = " ".join(map(visible, islice(self.characters, _MOST_SHOWN)))
            more = " …" if len(self.characters) > _MOST_SHOWN else ""
            self._warn(self.unknown, f"characters that the model does not know ({examples}{more})")

    def _warn(self, number: int, what: str) -> None:
        have = "has" if number == 1 else "have"
        warnings.warn(f"{number:,} of {counted(self.lines, 'line')} {have} {what}", InputWarning, stacklevel=4)
