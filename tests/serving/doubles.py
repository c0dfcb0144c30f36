"""What stands in for models in tests of the server: it writes each word backwards, which a person can check.

It computes nothing; see tests/serving/test_models.py for what it stands in for.
"""

from collections.abc import Callable, Sequence
from threading import Event
from typing import Any, NamedTuple

import numpy as np

from nmt.decoding.options import TranslationOptions
from nmt.decoding.text.alignment import Block, SoftAlignment, WordScores
from nmt.errors import UserError
from nmt.serving.limits import Pair
from nmt.serving.requests import Kind

MOST = 3  # translations of a line


class Written(NamedTuple):
    text: str
    alignment: list[tuple[int, int]] | None = None
    soft_alignment: SoftAlignment | None = None
    finer_alignment: None = None
    word_scores: WordScores | None = None


class Backwards:
    """Translates pairs; the n-th best ends with n - 1 exclamation marks. "NaN" and "crash" fail; it waits for `go`.

    A word has read its word to three quarters, and "." the end; the rest is spread evenly. Its log-probability is -0.5.
    """

    workers = 1

    def __init__(self, *pairs: tuple[str, str]) -> None:
        self.pairs = [Pair(*pair) for pair in pairs or [("en", "de")]]
        self.batches: list[list[str]] = []
        self.kinds: list[Kind] = []
        self.begun, self.go = Event(), Event()
        self.go.set()

    def most(self, pair: Pair) -> int:
        return MOST if pair in self.pairs else 0

    def kind(self, pair: Pair, *, weights: bool, **wishes: Any) -> Kind:
        return Kind(pair, TranslationOptions(**wishes), weights)

    def has_alignments(self, pair: Pair) -> bool:
        return pair == self.pairs[0]

    def translate(
        self, lines: Sequence[str], kind: Kind, *, alone: bool, unwanted: Callable[[], bool]
    ) -> list[list[Written]]:
        del alone, unwanted
        self.batches.append(list(lines))
        self.kinds.append(kind)
        self.begun.set()
        assert self.go.wait(20)
        if "NaN" in lines:
            raise UserError("the model computes NaN")
        if "crash" in lines:
            raise ZeroDivisionError("a secret text")
        return [[self._written(line, kind, number) for number in range(kind.options.n_best)] for line in lines]

    def _written(self, line: str, kind: Kind, number: int) -> Written:
        words = line.split()
        text = " ".join(word[::-1] for word in words) + "!" * number
        scores = WordScores(text.split(), [-0.5 for _ in words], -0.25) if kind.options.word_scores else None
        if not kind.options.alignments:
            return Written(text, word_scores=scores)
        places = range(len(words))
        read = [len(words) if word == "." else place for place, word in enumerate(words)]
        rows = [[0.75 if place == chosen else 0.25 / len(words) for place in range(len(words) + 1)] for chosen in read]
        links = [(place, place) for place in places]
        weights = np.array(rows).reshape(len(words), len(words) + 1)
        soft = SoftAlignment(words, text.split(), [Block(weights)], links)
        return Written(text, links, soft, word_scores=scores)
