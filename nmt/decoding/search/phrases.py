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

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from nmt.symbols import PAD

Ids = Sequence[int]


class Phrases:
    """The phrases of a batch's sentences.

    `tokens` (sentences, distinct) are the different tokens of a sentence's phrases, filled up with PAD; `lengthening`
    says which of them make a word longer. A place among them stands for a token; behind them, the place `other` stands
    for any other token that begins a word or ends one, and the last for any other that makes a word longer.
    """

    def __init__(
        self, phrases: Sequence[Sequence[Ids]], complete: Sequence[Sequence[bool]], continuing: Tensor
    ) -> None:
        """`phrases`: those of each sentence, as token ids, none of them empty; `complete`: whether their last word is.

        `continuing` (vocabulary,): which tokens make a word longer.
        """
        distinct = [sorted({token for phrase in of_sentence for token in phrase}) for of_sentence in phrases]
        first = [{phrase[0] for phrase in of_sentence} for of_sentence in phrases]
        begins = [[token in some for token in tokens] for tokens, some in zip(distinct, first, strict=True)]
        device, self.continuing = continuing.device, continuing
        self.tokens = padded(distinct, PAD).to(device)
        self.other = self.tokens.size(1)
        self.lengthening = continuing[self.tokens] & ~padded(begins, True).bool().to(device)
        self.lengths = padded([list(map(len, of_sentence)) for of_sentence in phrases], 0).to(device)
        longest = max((len(phrase) for of_sentence in phrases for phrase in of_sentence), default=0)
        table = torch.zeros(*self.lengths.shape, longest + 2, self.other + 2, dtype=torch.long)
        goes_on = torch.zeros(*self.lengths.shape, longest + 2, dtype=torch.bool)
        for sentence, (of_sentence, lengthening) in enumerate(zip(phrases, self.lengthening.cpu(), strict=True)):
            alphabet = distinct[sentence]
            for number, phrase in enumerate(of_sentence):
                size, rows = len(phrase), table[sentence, number]
                rows[: size + 1, : len(alphabet)] = torch.tensor(_automaton(phrase, alphabet))
                if complete[sentence][number]:
                    rows[size, : self.other][~lengthening] = size + 1
                    rows[size, self.other] = size + 1
                else:
                    rows[rows == size] = size + 1
                rows[size + 1] = size + 1
                goes_on[sentence, number, :size] = lengthening[[alphabet.index(token) for token in phrase]]
        self.table = table.to(device)  # (sentences, phrases, progress, place) → progress
        self.goes_on = goes_on.to(device)  # (sentences, phrases, progress), whether the next token makes a word longer

    def places(self, tokens: Tensor) -> Tensor:
        """The places of `tokens` that are of no phrase."""
        return self.other + self.continuing[tokens].long()

    def following(self, progress: Tensor, sentences: Tensor) -> Tensor:
        """The progress (rows, phrases, places) after one more token, for each place that it may have.

        `progress` (rows, phrases) is that before it, `sentences` (rows,) the sentence of each row.
        """
        return self.table[sentences.unsqueeze(1), self._numbers(), progress]

    def left(self, progress: Tensor, sentences: Tensor, closed: Tensor | None = None) -> Tensor:
        """How many tokens are left to write: (rows, …) for `progress` (rows, phrases, …).

        `closed` (rows, …): where the last word must not be made longer.
        """
        if progress.size(1) == 0:
            return progress.sum(dim=1)
        beside = [1] * (progress.dim() - 2)
        lengths = self.lengths[sentences].view(*progress.shape[:2], *beside)
        goes_on = self.goes_on[sentences.view(-1, 1, *beside), self._numbers().view(1, -1, *beside), progress]
        missing, is_open = progress < lengths, progress == lengths
        apart = (lengths * missing).sum(dim=1) - (progress * (missing & ~goes_on)).amax(dim=1)
        longer = (lengths * (missing | is_open)).sum(dim=1) - (progress * (missing & goes_on)).amax(dim=1)
        left = torch.minimum(apart, longer)
        return left if closed is None else torch.where(closed, apart, left)

    def _numbers(self) -> Tensor:
        return torch.arange(self.lengths.size(1), device=self.lengths.device)


def padded(rows: Sequence[Sequence[int]], filling: int) -> Tensor:
    """At least one row as a tensor (rows, longest)."""
    return pad_sequence([torch.tensor(row, dtype=torch.long) for row in rows], batch_first=True, padding_value=filling)


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
