"""How sure a model is of each word: log-probabilities of pieces, which the search has anyway, summed up by words.

A word is what stands between white space. It knows words; it knows no models.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from nmt.data.words import PieceWords
from nmt.decoding.text.alignment import DECIMALS


class WordScores(NamedTuple):
    """The log-probability of each word of a translation, in nats; with that of its ends they sum up to its own.

    What the model wrote and the text does not have, as the period of a title, counts nowhere.
    """

    words: list[str]
    scores: list[float]
    end: float  # of the end mark, or those of all sentences

    def rounded(self) -> dict[str, Any]:
        """What JSON has of them."""
        scores = [round(score, DECIMALS) for score in self.scores]
        return {"words": self.words, "scores": scores, "end": round(self.end, DECIMALS)}


def word_scores(totals: Sequence[float], log_probability: float, words: PieceWords) -> WordScores:
    """`totals` are the sums up to each piece, and `log_probability` is that with the end mark.

    Of a piece that stands for several words the first has it all; a word without pieces has 0, as an address may.
    """
    scores = [0.0] * len(words.words)
    for place, (before, total) in zip(words.places, pairwise([0.0, *totals]), strict=True):
        if scores:
            scores[place] += total - before
    return WordScores(words.words, scores, log_probability - sum(scores))


def joined_scores(parts: Sequence[WordScores]) -> WordScores:
    """Those of a translation from those of its parts."""
    words = [word for part in parts for word in part.words]
    return WordScores(words, [score for part in parts for score in part.scores], sum(part.end for part in parts))
