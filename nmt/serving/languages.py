"""The pairs of languages that a server translates, by their codes."""

from collections.abc import Iterable
from typing import NamedTuple


class Pair(NamedTuple):
    """A source and a target language."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source} → {self.target}"

    def among(self, pairs: Iterable["Pair"]) -> "Pair | None":
        """The first of the pairs with these codes in either case: LibreTranslate's clients write en, DeepL's EN."""
        mine = (self.source.lower(), self.target.lower())
        return next((pair for pair in pairs if (pair.source.lower(), pair.target.lower()) == mine), None)
