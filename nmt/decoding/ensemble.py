"""Several models that translate together, as one: each reads the source, and each step has the mean of what they say.

    log p(y_t | y_<t, x) = 1/M Σ_m log p_m(y_t | y_<t, x)

The mean is the arithmetic mean of log-probabilities, the geometric mean of probabilities: what one member holds for
impossible is not written because the others like it. It is not made to sum to 1 again, so the log-probability of a
translation is exactly the mean of those that the members give it, and it still only falls with every token. The members
need equal vocabularies, and nothing else in common. It knows models; it knows no files and no text.

Sutskever et al. (2014), arXiv 1409.3215, section 3.6, translate with an ensemble.
"""

from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from nmt.data.subwords import Subwords, Vocabularies
from nmt.decoding.forced import Forced, forced_decoding
from nmt.models.seq2seq import SearchState, Seq2Seq


class EnsembleState(NamedTuple):
    """Where a batch of hypotheses stands in each member."""

    members: tuple[SearchState, ...]

    def select(self, rows: Tensor) -> "EnsembleState":
        """The hypotheses `rows` (sentences, beam), as `SearchState.select`."""
        return EnsembleState(tuple(member.select(rows) for member in self.members))


class Ensemble(nn.Module):
    """Models with equal vocabularies, at least one, on one device; to search with, not to train."""

    def __init__(self, members: Sequence[Seq2Seq]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def start(self, source: Tensor, source_lengths: Tensor) -> EnsembleState:
        """Encode `source` (batch, source_length), ids with END, by every member."""
        return EnsembleState(tuple(member.start(source, source_lengths) for member in members(self)))

    def step(self, tokens: Tensor, state: EnsembleState) -> tuple[Tensor, EnsembleState]:
        """The mean log-probabilities (rows, vocabulary) of the words after `tokens` (rows,), and the next state."""
        steps = [member.step(tokens, own) for member, own in zip(members(self), state.members, strict=True)]
        return mean([log_probabilities for log_probabilities, _ in steps]), EnsembleState(
            tuple(following for _, following in steps)
        )


Model = Seq2Seq | Ensemble


def members(model: Model) -> tuple[Seq2Seq, ...]:
    """The models of an ensemble, or the one model."""
    return tuple(cast(Seq2Seq, each) for each in model.members) if isinstance(model, Ensemble) else (model,)


def without_attention(model: Model) -> str | None:
    """What to call the first model that has no attention; None where all have it."""
    every = members(model)
    for number, each in enumerate(every, 1):
        if not each.decoder.attention.score.context:
            return "the model" if len(every) == 1 else f"model {number} of the ensemble's {len(every)}"
    return None


def forced_by_all(
    model: Model,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    *,
    batch_tokens: int,
    attention: bool = False,
) -> list[Forced]:
    """`forced_decoding` of a model; of an ensemble the mean of its members' log-probabilities, and of their weights."""
    found = [
        forced_decoding(each, sources, targets, batch_tokens=batch_tokens, attention=attention)
        for each in members(model)
    ]
    return [_together(pair) for pair in zip(*found, strict=True)]


def _together(pair: Sequence[Forced]) -> Forced:
    weights = [forced.weights for forced in pair if forced.weights is not None]
    return Forced(
        sum(forced.log_probability for forced in pair) / len(pair), pair[0].tokens, mean(weights) if weights else None
    )


def mean(parts: Sequence[Tensor]) -> Tensor:
    """The mean of tensors of one shape. Of two equal ones it is exactly the one."""
    return parts[0] if len(parts) == 1 else torch.stack(tuple(parts)).sum(dim=0) / len(parts)


def difference(one: Vocabularies, other: Vocabularies) -> str | None:
    """What is different between the vocabularies of two models; None where they are the same."""
    for side, ours, theirs in zip(("source", "target"), one, other, strict=True):
        if ours.model != theirs.model:
            return f"their {side} vocabularies differ: {_of_subwords(ours, theirs)}"
    return None


def _of_subwords(one: Subwords, other: Subwords) -> str:
    if one.size != other.size:
        return f"{one.size} and {other.size} pieces"
    pairs = zip(one.pieces(range(one.size)), other.pieces(range(other.size)), strict=True)
    for number, (ours, theirs) in enumerate(pairs):
        if ours != theirs:
            return f"piece {number} is {ours!r} in the one and {theirs!r} in the other"
    return "they have the same pieces, but cut text differently (other scores or normalisation)"
