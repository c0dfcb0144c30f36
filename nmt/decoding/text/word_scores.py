"""How sure a model is of each word: log-probabilities of pieces, which the search has anyway, summed up by words.

A word is what stands between white space. It knows words; it knows no models.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from nmt.data.words import PieceWords
from nmt.decoding.text.alignment import DECIMALS, places_of
from nmt.decoding.text.marks import Piece


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

    Of a piece that stands for several words the first has it all.
    """
    scores = [0.0] * len(words.words)
    for place, (before, total) in zip(words.places, pairwise([0.0, *totals]), strict=True):
        if scores:
            scores[place] += total - before
    return WordScores(words.words, scores, log_probability - sum(scores))


def scores_with_pieces(scores: WordScores, text: str, parts: Sequence[Piece]) -> WordScores:
    """The scores of a `text` as those of the text with marks, whose `parts` these are.

    What a mark has put there scores 0, what it has instead of words as they did.
    """
    if all(part.mark is None for part in parts):
        return scores
    whole, bounds = "".join(part.text for part in parts), [*accumulate((len(part.text) for part in parts), initial=0)]
    words, starts = whole.split(), [start for start, _ in places_of(whole.split(), whole)]
    own = [(part.start, number) for number, part in enumerate(parts) if part.start is not None]
    totals = [0.0] * len(words)
    for (start, _), score in zip(places_of(text.split(), text), scores.scores, strict=False):
        begin, number = own[max(bisect_right(own, (start, len(parts))) - 1, 0)]
        place = bounds[number] + min(start - begin, len(parts[number].text))
        totals[bisect_right(starts, place) - 1] += score
    return WordScores(words, totals, scores.end)


def joined_scores(parts: Sequence[WordScores]) -> WordScores:
    """Those of a translation from those of its parts."""
    words = [word for part in parts for word in part.words]
    return WordScores(words, [score for part in parts for score in part.scores], sum(part.end for part in parts))
