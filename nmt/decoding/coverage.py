"""The coverage penalty of Wu et al. (2016), arXiv 1609.08144, equation 14: translations lose that leave words out.

    cp(X; Y) = β Σ_j log(min(Σ_i a_ij, 1))

a_ij is the attention of target token i to source token j, END counted on both sides. The sums over i, the coverage of
each source token, are accumulated in the state of the search. cp is at most 0, and it only grows while a translation
does, so that 0 bounds it for every hypothesis that is not finished. The attention of an ensemble is the mean of its
members'.
"""

from typing import TypeVar

from torch import Tensor

from nmt.decoding.ensemble import EnsembleState, mean
from nmt.models.seq2seq import SearchState

Searched = TypeVar("Searched", SearchState, EnsembleState)

LEAST = 1e-10  # the least coverage that is told from none: with local attention a token may have none, and log(0) is -∞


def with_coverage(state: Searched) -> Searched:
    """The state before the first step, remembering the sum of the weights of all steps whatever the score needs."""
    if isinstance(state, EnsembleState):
        return EnsembleState(tuple(with_coverage(member) for member in state.members))
    nothing = state.memory.values.new_zeros(state.memory.values.shape[:2])
    past = state.decoder.past._replace(coverage=nothing)
    return state._replace(decoder=state.decoder._replace(past=past))


def coverage_penalty(state: SearchState | EnsembleState, beta: float) -> Tensor:
    """cp (rows,) of hypotheses that end with the step after which `state` is; in float64."""
    members = state.members if isinstance(state, EnsembleState) else (state,)
    coverage = mean([_coverage(member) for member in members])
    each, mask = coverage.double().clamp(LEAST, 1.0).log(), members[0].memory.mask
    if mask is not None:
        each = each.masked_fill(~mask.repeat_interleave(len(each) // len(mask), dim=0), 0.0)
    return beta * each.sum(dim=1)


def _coverage(state: SearchState) -> Tensor:
    coverage = state.decoder.past.coverage
    assert coverage is not None
    return coverage
