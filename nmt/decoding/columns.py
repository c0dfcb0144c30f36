"""The search over a shortlist: its tokens are columns, the places of target pieces among those of a batch.

The columns of a batch are all pieces that one of its sentences may be translated with, in the order of their ids, the
four special symbols therefore at their own. Each sentence has its own of them: the others have the log-probability
-inf, and the softmax is over its own alone, so that its translations do not depend on its batch. The rows of the output
layer are gathered once a batch, and no tensor of hypotheses × vocabulary is ever formed.

To the search, columns are a small vocabulary. What it is given in ids, such as prefixes, is turned into columns before
it (`places`), and what it finds into ids after it (`ids`). It knows models and ids; it knows no search and no text.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.decoding.ensemble import EnsembleState, Model, mean, members
from nmt.decoding.search.choices import NEVER
from nmt.decoding.search.hypotheses import Step
from nmt.decoding.shortlist import Shortlist
from nmt.symbols import BEGIN, END, PAD, UNKNOWN

MULTIPLE = 64  # columns are filled up to a multiple of this: a library keeps a kernel for each size of a product


class Columns(NamedTuple):
    """The target pieces of a batch, and which of them each sentence has."""

    ids: Tensor  # (columns,), of which the first `used` ascend; behind them PAD fills up
    barred: Tensor  # (sentences, columns), True where a sentence does not have the piece
    used: int

    @staticmethod
    def of(shortlist: Shortlist, source: Tensor, wanted: Sequence[list[int]], device: torch.device | str) -> "Columns":
        """Those of sentences `source` (sentences, length), ids with END and PAD, with the ids `wanted` by each."""
        allowed = torch.zeros(len(source), shortlist.target_size, dtype=torch.bool)
        allowed[:, [PAD, UNKNOWN, BEGIN, END]] = True
        allowed[:, shortlist.frequent] = True
        allowed.scatter_(1, shortlist.translations[source].flatten(1), True)
        for row, own in enumerate(wanted):
            if own:
                allowed[row, own] = True
        used = allowed.any(dim=0).nonzero().squeeze(1)
        ids = torch.nn.functional.pad(used, (0, -len(used) % MULTIPLE), value=PAD)
        barred = ~allowed[:, ids]
        barred[:, len(used) :] = True
        return Columns(ids.to(device), barred.to(device), len(used))

    def places(self, ids: Sequence[int]) -> list[int]:
        """The columns of `ids`, which are among them."""
        used = self.ids[: self.used]
        found: list[int] = torch.searchsorted(used, torch.tensor(ids, dtype=torch.long, device=used.device)).tolist()
        return found


class ColumnState(NamedTuple):
    """Where a batch of hypotheses stands."""

    inner: EnsembleState  # of one model too
    barred: Tensor  # (sentences, columns)
    width: int  # hypotheses of a sentence

    def select(self, rows: Tensor) -> "ColumnState":
        """The hypotheses `rows` (sentences, beam), as `SearchState.select`."""
        barred = self.barred
        if len(rows) != len(barred):
            barred = barred[torch.div(rows[:, 0], self.width, rounding_mode="floor")]
        return ColumnState(self.inner.select(rows), barred, rows.size(1))


def column_step(model: Model, columns: Columns) -> Step[ColumnState]:
    """A step from columns (rows,) to log-probabilities (rows, columns), as that of `model` from ids to the vocabulary.

        log p(c | y_<t, x) = z_c - log Σ_{c' of the sentence} exp(z_c'),   -inf for what the sentence does not have

    z are the model's logits; of an ensemble it is the mean over its members.
    """
    every = [(member, member.output_for(columns.ids)) for member in members(model)]

    def step(tokens: Tensor, state: ColumnState) -> tuple[Tensor, ColumnState]:
        words, barred = columns.ids[tokens], state.barred.unsqueeze(1)
        parts, following = [], []
        for (member, output), own in zip(every, state.inner.members, strict=True):
            vectors, after = member.advance(words, own)
            logits = output(vectors).view(len(barred), -1, barred.size(2))
            parts.append(logits.masked_fill_(barred, NEVER).flatten(0, 1).log_softmax(dim=1))
            following.append(after)
        return mean(parts), state._replace(inner=EnsembleState(tuple(following)))

    return step
