"""Which of the phrases that a translation must contain are in what has been written, and what is left to write.

A phrase is in a translation where its tokens stand in it one after another; one place may serve several phrases. For
each phrase it is remembered how many of its first tokens the last tokens written are, and all of them once it was in.
What one more token makes of that is looked up in a table, built before the search: the automaton of Knuth, Morris &
Pratt (1977), so that no occurrence is overlooked, as of "a a b" in "a a a b". It sees token ids, never text.

What is left of a hypothesis is how many tokens are certainly enough to bring in all that is missing: the phrase with
most of its tokens there is finished, then the others are written in full.

    left = Σ_missing length - max_missing progress

There is always a token that makes it smaller: the next one of that phrase.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from nmt.symbols import PAD

Ids = Sequence[int]


class Phrases:
    """The phrases of a batch's sentences.

    `tokens` (sentences, distinct) are those of a sentence's phrases, each once, filled up with PAD. A place among them
    stands for a token; the place `other`, behind the last, for any other token.
    """

    def __init__(self, phrases: Sequence[Sequence[Ids]], device: torch.device | str) -> None:
        """`phrases`: those of each sentence, as token ids; none is empty."""
        distinct = [sorted({token for phrase in each for token in phrase}) for each in phrases]
        self.other = max(map(len, distinct), default=0)
        self.tokens = _padded(distinct, self.other, PAD).to(device)
        most = max(map(len, phrases), default=0)
        self.lengths = _padded([[len(phrase) for phrase in each] for each in phrases], most, 0).to(device)
        longest = max((len(phrase) for each in phrases for phrase in each), default=0)
        table = torch.zeros(len(phrases), most, longest + 1, self.other + 1, dtype=torch.long)
        for sentence, each in enumerate(phrases):
            for number, phrase in enumerate(each):
                rows = _automaton(phrase, distinct[sentence])
                table[sentence, number, : len(phrase) + 1, : len(distinct[sentence])] = torch.tensor(rows)
                table[sentence, number, len(phrase)] = len(phrase)
        self.table = table.to(device)  # (sentences, phrases, progress, place) → progress

    def start(self) -> Tensor:
        """The progress (sentences, phrases) before anything is written."""
        return torch.zeros_like(self.lengths)

    def following(self, progress: Tensor, sentences: Tensor) -> Tensor:
        """The progress (rows, phrases, places) after one more token, for each place; `progress` is (rows, phrases).

        `sentences` (rows,): the sentence of each row.
        """
        numbers = torch.arange(self.lengths.size(1), device=progress.device)
        return self.table[sentences.unsqueeze(1), numbers, progress]

    def left(self, progress: Tensor, sentences: Tensor) -> Tensor:
        """How many tokens are enough to bring in what is missing: (rows, …) for `progress` (rows, phrases, …)."""
        if progress.size(1) == 0:
            return progress.sum(dim=1)
        lengths = self.lengths[sentences].view(*progress.shape[:2], *[1] * (progress.dim() - 2))
        missing = progress < lengths
        return (lengths * missing).sum(dim=1) - (progress * missing).amax(dim=1)


def _padded(rows: Sequence[Sequence[int]], width: int, filling: int) -> Tensor:
    padded = [[*row, *[filling] * (width - len(row))] for row in rows]
    return torch.tensor(padded, dtype=torch.long).view(len(rows), width)


def _automaton(phrase: Ids, alphabet: Ids) -> list[list[int]]:
    """For each number of tokens that are there, and each token of the alphabet, how many are there after it."""
    back = 0  # the state after the phrase so far without its first token
    rows = [[int(token == phrase[0]) for token in alphabet]]
    for place, token in enumerate(phrase[1:], 1):
        rows.append([place + 1 if each == token else rows[back][column] for column, each in enumerate(alphabet)])
        back = rows[back][alphabet.index(token)]
    return [*rows, [len(phrase)] * len(alphabet)]


def left_after(phrases: Sequence[Ids], written: Ids) -> int:
    """How many tokens are enough to bring in the phrases that are not in `written`, as a beginning."""
    together = Phrases([phrases], "cpu")
    progress, first = together.start(), torch.zeros(1, dtype=torch.long)
    places = {token: place for place, token in enumerate(together.tokens[0].tolist())}
    for token in written:
        progress = together.following(progress, first)[:, :, places.get(token, together.other)]
    return int(together.left(progress, first))
