"""Which languages a server translates and tells apart, who may ask, how much, and how often. It knows no HTTP.

The language of a text is told by lingua (https://github.com/pemistahl/lingua-py).
"""

import hmac
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

MOST_CHARACTERS = 2_000  # of a text whose language is told
CLIENTS = 10_000  # whose requests are counted; of more, the one that was quiet for longest is forgotten


class Pair(NamedTuple):
    """A source and a target language, by their codes."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source} → {self.target}"


def distance(asked: str, served: str) -> int | None:
    """How many subtags one code of a language has more than the other, as 1 for "en-US" and "en".

    None where neither is the beginning of the other; capitals make no difference.
    """
    one, other = (code.lower().replace("_", "-").split("-") for code in (asked, served))
    common = min(len(one), len(other))
    return abs(len(one) - len(other)) if one[:common] == other[:common] else None


def matching(source: str | None, target: str, pairs: Iterable[Pair]) -> list[Pair]:
    """The pairs that these codes may mean, the nearest first; None: any source."""
    distances = {}
    for pair in pairs:
        apart = [distance(target, pair.target), 0 if source is None else distance(source, pair.source)]
        if None not in apart:
            distances[pair] = sum(filter(None, apart))
    return sorted(distances, key=lambda pair: distances[pair])


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


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one server accepts."""

    characters: int = 5000
    """Characters of a text."""

    texts: int = 50
    """Texts of a request."""

    body: int = 1 << 20
    """Bytes of a request's body."""

    waiting: int = 200
    """Requests with lines in the queue."""

    seconds: float = 60.0
    """Seconds until a request is answered, or refused."""

    per_minute: int | None = None
    """Translation requests a minute from one client, after as many at once; None: any number."""


class Rates:
    """Counts the requests of clients: at most `per_minute`, after as many at once. None: any number."""

    def __init__(self, per_minute: int | None) -> None:
        self._per_minute = per_minute
        self._spent: OrderedDict[str, tuple[float, float]] = OrderedDict()  # requests, less those a time has paid for

    def seconds_until_allowed(self, client: str) -> float:
        """0 where the client may make a request, which is counted, and otherwise the seconds until it may."""
        if self._per_minute is None:
            return 0.0
        now, rate = time.monotonic(), self._per_minute / 60
        spent, then = self._spent.get(client, (0.0, now))
        spent = max(0.0, spent - (now - then) * rate)
        if spent + 1 > self._per_minute:
            return (spent + 1 - self._per_minute) / rate
        self._spent[client] = (spent + 1, now)
        self._spent.move_to_end(client)
        if len(self._spent) > CLIENTS:
            self._spent.popitem(last=False)
        return 0.0


def is_allowed(key: str, keys: Sequence[str]) -> bool:
    """Whether `key` is one of `keys`; the time that it takes does not tell how much of it is right."""
    tried = key.encode("utf-8", "surrogatepass")
    return sum(hmac.compare_digest(tried, allowed.encode()) for allowed in keys) > 0  # all are compared
