"""Which of the languages of a server a text is in, told by lingua (https://github.com/pemistahl/lingua-py)."""

from collections.abc import Iterable
from typing import Any, NamedTuple

PACKAGE = "nmt-toolkit[detect]"
MOST_CHARACTERS = 2_000  # of a text that are looked at


class Detected(NamedTuple):
    """A language and how likely it is, in percent."""

    language: str
    confidence: float


class Detector:
    """Tells the languages with these codes apart, as far as lingua knows them.

    Raises ModuleNotFoundError where lingua is not installed, and LookupError where it knows fewer than two of them.
    """

    def __init__(self, codes: Iterable[str]) -> None:
        from lingua import Language, LanguageDetectorBuilder

        known: dict[str, Any] = {language.iso_code_639_1.name.lower(): language for language in Language.all()}
        known["no"] = known["nb"]
        self._languages = {code: known[primary] for code in codes if (primary := code.lower().split("-")[0]) in known}
        if len(set(self._languages.values())) < 2:
            raise LookupError
        builder = LanguageDetectorBuilder.from_languages(*self._languages.values())
        self._lingua = builder.with_preloaded_language_models().build()

    def languages(self, lines: Iterable[str]) -> list[Detected]:
        """All of them, the most likely first. Where nothing tells them apart, each has 0 percent."""
        text = "\n".join(lines)[:MOST_CHARACTERS]
        values = {value.language: value.value for value in self._lingua.compute_language_confidence_values(text)}
        found = [Detected(code, round(100 * values[language])) for code, language in self._languages.items()]
        return sorted(found, key=lambda one: -one.confidence)
