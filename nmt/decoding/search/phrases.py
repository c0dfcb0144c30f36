"""How much of the phrases that a translation must contain has been written, and how much is left to write.

A translation contains a phrase if its tokens stand there one after another, and nothing makes its last word longer
where that is complete: what follows is a token that is not `continuing`, or END. A token may serve several phrases. The
progress of a phrase is how many of its first tokens are the last ones written; that is its length while the end of its
last word is open, and one more once the translation contains it. A table, built before the search, says what one more
token makes of that: it is the automaton of Knuth, Morris & Pratt (1977), so that no occurrence is overlooked, such as
"a a b" in "a a a b". It sees token ids, never text.

What is left to write is the number of tokens that are certainly enough to bring in all that is missing. One way is to
end the word: that brings in the open phrases, and the missing phrase with the most progress is completed, of those that
go on with a new word; the other is to make the word longer: then open phrases are missing, too, and it is a phrase that
goes on in this word. Then the others are written in full.

    left = min(Σ_missing length - max_missing progress, Σ_missing,open length - max_missing progress)

There is always a token that makes it smaller: the next one of that phrase. The first token of a phrase begins a word.
"""

from collections.abc import Sequence

import numpy as np

from nmt.decoding.search.hypotheses import Array
from nmt.symbols import PAD

Ids = Sequence[int]


class Phrases:
    """The phrases of a batch's sentences.

    `tokens` (sentences, distinct) are the different tokens of a sentence's phrases, filled up with PAD; `lengthening`
    says which of them make a word longer. A place among them stands for a token; behind them, the place `other` stands
    for any other token that begins a word or ends one, and the last for any other that makes a word longer.
    """

    def __init__(self, phrases: Sequence[Sequence[Ids]], complete: Sequence[Sequence[bool]], continuing: Array) -> None:
        """`phrases`: those of each sentence, as token ids, none of them empty; `complete`: whether their last word is.

        `continuing` (vocabulary,): which tokens make a word longer.
        """
        distinct = [sorted({token for phrase in of_sentence for token in phrase}) for of_sentence in phrases]
        first = [{phrase[0] for phrase in of_sentence} for of_sentence in phrases]
        begins = [[token in some for token in tokens] for tokens, some in zip(distinct, first, strict=True)]
        self.continuing = continuing
        self.tokens = padded(distinct, PAD)
        self.other = self.tokens.shape[1]
        self.lengthening = continuing[self.tokens] & (padded(begins, True) == 0)
        self.lengths = padded([list(map(len, of_sentence)) for of_sentence in phrases], 0)
        longest = max((len(phrase) for of_sentence in phrases for phrase in of_sentence), default=0)
        table = np.zeros((*self.lengths.shape, longest + 2, self.other + 2), dtype=np.int64)
        goes_on = np.zeros((*self.lengths.shape, longest + 2), dtype=bool)
        for sentence, (of_sentence, lengthening) in enumerate(zip(phrases, self.lengthening, strict=True)):
            alphabet = distinct[sentence]
            for number, phrase in enumerate(of_sentence):
                size, rows = len(phrase), table[sentence, number]
                rows[: size + 1, : len(alphabet)] = _automaton(phrase, alphabet)
                if complete[sentence][number]:
                    rows[size, : self.other][~lengthening] = size + 1
                    rows[size, self.other] = size + 1
                else:
                    rows[rows == size] = size + 1
                rows[size + 1] = size + 1
                goes_on[sentence, number, :size] = lengthening[[alphabet.index(token) for token in phrase]]
        self.table = table  # (sentences, phrases, progress, place) → progress
        self.goes_on = goes_on  # (sentences, phrases, progress), whether the next token makes a word longer

    def places(self, tokens: Array) -> Array:
        """The places of `tokens` that are of no phrase."""
        places: Array = self.other + self.continuing[tokens].astype(np.int64)
        return places

    def following(self, progress: Array, sentences: Array) -> Array:
        """The progress (rows, phrases, places) after one more token, for each place that it may have.

        `progress` (rows, phrases) is that before it, `sentences` (rows,) the sentence of each row.
        """
        following: Array = self.table[sentences[:, None], np.arange(self.lengths.shape[1]), progress]
        return following

    def left(self, progress: Array, sentences: Array, closed: Array | None = None) -> Array:
        """How many tokens are left to write: (rows, …) for `progress` (rows, phrases, …).

        `closed` (rows, …): where the last word must not be made longer.
        """
        if progress.shape[1] == 0:
            nothing: Array = progress.sum(axis=1)
            return nothing
        beside = [1] * (progress.ndim - 2)
        lengths = self.lengths[sentences].reshape(*progress.shape[:2], *beside)
        numbers = np.arange(self.lengths.shape[1]).reshape(-1, *beside)
        goes_on = self.goes_on[sentences.reshape(-1, 1, *beside), numbers, progress]
        missing, is_open = progress < lengths, progress == lengths
        apart = (lengths * missing).sum(axis=1) - (progress * (missing & ~goes_on)).max(axis=1)
        longer = (lengths * (missing | is_open)).sum(axis=1) - (progress * (missing & goes_on)).max(axis=1)
        left: Array = np.minimum(apart, longer)
        return left if closed is None else np.where(closed, apart, left)


def padded(rows: Sequence[Sequence[int]], filling: int) -> Array:
    """At least one row as an array (rows, longest)."""
    filled = np.full((len(rows), max(map(len, rows))), filling)
    for number, row in enumerate(rows):
        filled[number, : len(row)] = row
    return filled


def _automaton(phrase: Ids, alphabet: Ids) -> list[list[int]]:
    """The progress after one more token, for each progress before it and each token of the alphabet.

    The last row is that after the whole phrase, of which another occurrence may have begun.
    """
    back = 0  # the progress after the phrase so far, without its first token
    rows = [[int(token == phrase[0]) for token in alphabet]]
    for place, token in enumerate(phrase[1:], 1):
        rows.append([place + 1 if token == other else rows[back][column] for column, other in enumerate(alphabet)])
        back = rows[back][alphabet.index(token)]
    return [*rows, list(rows[back])]
