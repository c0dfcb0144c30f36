"""How much of the phrases that a translation must contain has been written, and how much is left to write.

A translation contains a phrase if its tokens stand there one after another; a token may serve several phrases. The
progress of a phrase is how many of its first tokens are the last ones written, and its length once it has been written
in full. A table, built before the search, says what one more token makes of that: it is the automaton of Knuth, Morris
& Pratt (1977), so that no occurrence is overlooked, such as "a a b" in "a a a b". It sees token ids, never text.

What is left to write is the number of tokens that are certainly enough to bring in all that is missing: the phrase with
the most progress is completed, then the others are written in full.

    left = Σ_missing length - max_missing progress

There is always a token that makes it smaller: the next one of that phrase.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from nmt.symbols import PAD

Ids = Sequence[int]


class Phrases:
    """The phrases of a batch's sentences.

    `tokens` (sentences, distinct) are the different tokens of a sentence's phrases, filled up with PAD. A place among
    them stands for a token; the place `other`, after the last, stands for any other token.
    """

    def __init__(self, phrases: Sequence[Sequence[Ids]], device: torch.device | str) -> None:
        """`phrases`: those of each sentence, as token ids; none is empty."""
        distinct = [sorted({token for phrase in of_sentence for token in phrase}) for of_sentence in phrases]
        self.tokens = padded(distinct, PAD).to(device)
        self.other = self.tokens.size(1)
        self.lengths = padded([list(map(len, of_sentence)) for of_sentence in phrases], 0).to(device)
        longest = max((len(phrase) for of_sentence in phrases for phrase in of_sentence), default=0)
        table = torch.zeros(*self.lengths.shape, longest + 1, self.other + 1, dtype=torch.long)
        for sentence, of_sentence in enumerate(phrases):
            for number, phrase in enumerate(of_sentence):
                rows = _automaton(phrase, distinct[sentence])
                table[sentence, number, : len(phrase) + 1, : len(distinct[sentence])] = torch.tensor(rows)
                table[sentence, number, len(phrase)] = len(phrase)
        self.table = table.to(device)  # (sentences, phrases, progress, place) → progress

    def following(self, progress: Tensor, sentences: Tensor) -> Tensor:
        """The progress (rows, phrases, places) after one more token, for each place that it may have.

        `progress` (rows, phrases) is that before it, `sentences` (rows,) the sentence of each row.
        """
        numbers = torch.arange(self.lengths.size(1), device=progress.device)
        return self.table[sentences.unsqueeze(1), numbers, progress]

    def left(self, progress: Tensor, sentences: Tensor) -> Tensor:
        """How many tokens are left to write: (rows, …) for `progress` (rows, phrases, …)."""
        if progress.size(1) == 0:
            return progress.sum(dim=1)
        lengths = self.lengths[sentences].view(*progress.shape[:2], *[1] * (progress.dim() - 2))
        missing = progress < lengths
        return (lengths * missing).sum(dim=1) - (progress * missing).amax(dim=1)


def padded(rows: Sequence[Sequence[int]], filling: int) -> Tensor:
    """At least one row as a tensor (rows, longest)."""
    return pad_sequence([torch.tensor(row, dtype=torch.long) for row in rows], batch_first=True, padding_value=filling)


def _automaton(phrase: Ids, alphabet: Ids) -> list[list[int]]:
    """The progress after one more token, for each progress before it and each token of the alphabet."""
    back = 0  # the progress after the phrase so far, without its first token
    rows = [[int(token == phrase[0]) for token in alphabet]]
    for place, token in enumerate(phrase[1:], 1):
        rows.append([place + 1 if token == other else rows[back][column] for column, other in enumerate(alphabet)])
        back = rows[back][alphabet.index(token)]
    return [*rows, [len(phrase)] * len(alphabet)]


def left_after(phrases: Sequence[Ids], written: Ids) -> int:
    """How many tokens are left to write of `phrases` when a translation begins with `written`."""
    together = Phrases([phrases], "cpu")
    progress, first = torch.zeros_like(together.lengths), torch.zeros(1, dtype=torch.long)
    places = {token: place for place, token in enumerate(together.tokens[0].tolist())}
    for token in written:
        progress = together.following(progress, first)[:, :, places.get(token, together.other)]
    return int(together.left(progress, first))
