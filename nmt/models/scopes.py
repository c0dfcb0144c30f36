"""Scopes of attention: which source positions a query may look at, and how much for their place alone.

Luong, Pham & Manning (2015), arXiv 1508.04025, sections 3.1 (global) and 3.2 (local). Positions are counted from 0 in
the order of the text; S is the number of a sentence's tokens, END counted if the encoder reads it. The paper clips a
window at the borders of the sentence, and so do these. Where the authors' code and the paper differ, this is the paper:
the window of local-p is centered on the real number p_t (their code: on its floor).
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.config.schema import PositionLogit, PositionScale
from nmt.ops.steps import StepLinear


class Window(NamedTuple):
    """Where each query may look, among the positions that are scored."""

    mask: Tensor | None  # (batch, queries or 1, positions), True inside; None: every position is
    factor: Tensor | None = None  # (batch, queries, positions), multiplies the weights after the softmax
    renormalize: bool = False  # whether the product is made to sum to 1 again


class Scope(nn.Module):
    """All scopes are functions of the query, the lengths of the sentences and the target position.

    The keyword arguments of the constructor are keys of the section `model.attention`, besides the query's size.
    A scope with a center p_t says nothing of positions farther than `half_width` from it: they need not be scored.
    """

    half_width: int | None = None
    """D; None: there is no center, and a query may look everywhere."""

    def center(self, query: Tensor, lengths: Tensor, steps: Tensor | int) -> Tensor:
        """p_t of each query (batch, queries, query_size) in sentences of `lengths` (batch,), `steps` as in `Past`:
        (batch, queries), or (batch, 1) where all queries of a sentence have the same."""
        raise NotImplementedError

    def forward(self, distance: Tensor | None, real: Tensor | None) -> Window:
        """The window, given s - p_t (batch, queries or 1, positions) for each position s that is scored, if there is a
        center, and which of the positions are in the sentence, (batch, 1 or queries, positions); None: all."""
        raise NotImplementedError


class GlobalScope(Scope):
    """Every position of the sentence."""

    def __init__(self, query_size: int) -> None:
        super().__init__()

    def forward(self, distance: Tensor | None, real: Tensor | None) -> Window:
        return Window(real)


class _LocalScope(Scope):
    """What the local scopes share: the positions s with |s - p_t| ≤ D, and a Gaussian of the distance, if there is one.

    It is exp(-(s - p_t)² / (2σ²)) with σ = D / 2, and multiplies the softmax over the window, so that the weights sum
    to less than 1, as in the paper; `renormalize` makes them sum to 1 again.
    """

    half_width: int

    def __init__(self, *, half_width: int, gaussian: bool, renormalize: bool) -> None:
        super().__init__()
        self.half_width, self.gaussian, self.renormalize = half_width, gaussian, renormalize

    def forward(self, distance: Tensor | None, real: Tensor | None) -> Window:
        assert distance is not None
        inside = distance.abs() <= self.half_width
        mask = inside if real is None else inside & real
        if not self.gaussian:
            return Window(mask)
        deviation = self.half_width / 2
        return Window(mask, torch.exp(distance.square() / (-2 * deviation**2)), self.renormalize)


class LocalMonotonicScope(_LocalScope):
    """local-m: p_t = min(t, S - 1) for the target position t; without a Gaussian, but for `gaussian`.

    The paper says p_t = t; the clamp, without which a target longer than its source would look at nothing, is from the
    authors' code. The Gaussian is an option of the local attention in Weweler's Tacotron, single-speaker-tts.
    """

    def __init__(self, query_size: int, *, half_width: int, gaussian: bool) -> None:
        super().__init__(half_width=half_width, gaussian=gaussian, renormalize=False)

    def center(self, query: Tensor, lengths: Tensor, steps: Tensor | int) -> Tensor:
        center = (lengths.unsqueeze(1) - 1).clamp(max=steps)
        return center.to(query.dtype) if self.gaussian else center


class LocalPredictiveScope(_LocalScope):
    """local-p: a window around a predicted position, with the Gaussian:

        p_t = (S - 1) · σ(v_pᵀ tanh(W_p h_t) / √d)      equation 9; in [0, S - 1], a real number
        a_t(s) = align(s) · exp(-(s - p_t)² / (2σ²))    equation 10, with σ = D / 2

    align is the softmax over the window, and d is query_size. Equation 9 has S instead of S - 1, as
    `position_scale: length` has here; the paper does not say from where it counts positions. Nor does it divide by √d,
    which `position_logit: unscaled` leaves out. That is the same family of functions, but not the same to an optimizer.
    A step of Adam changes every weight by about the learning rate r, and so the unscaled logit by up to r · d through
    v_p alone: with a few hundred units, some tens of steps in one direction can leave σ so flat that p_t stays at an
    end of the sentence. Scaled, the step is √d times smaller. A step of SGD becomes d times smaller, as the gradient is
    smaller, too.

    Gradients reach W_p (query_size, query_size) and v_p (query_size,) through the Gaussian alone.
    """

    def __init__(
        self,
        query_size: int,
        *,
        half_width: int,
        position_scale: PositionScale,
        position_logit: PositionLogit,
        renormalize: bool,
    ) -> None:
        super().__init__(half_width=half_width, gaussian=True, renormalize=renormalize)
        self.subtracted = {"last_position": 1, "length": 0}[position_scale]
        self.factor = {"scaled": query_size**-0.5, "unscaled": 1.0}[position_logit]
        self.layer = StepLinear(query_size, query_size, bias=False)
        self.vector = nn.Parameter(torch.empty(query_size))

    def center(self, query: Tensor, lengths: Tensor, steps: Tensor | int = 0) -> Tensor:
        share = torch.sigmoid(torch.tanh(self.layer(query)) @ self.vector * self.factor)
        return (lengths.unsqueeze(1) - self.subtracted) * share


SCOPES: dict[str, type[GlobalScope] | type[LocalMonotonicScope] | type[LocalPredictiveScope]] = {
    "global": GlobalScope,
    "local-m": LocalMonotonicScope,
    "local-p": LocalPredictiveScope,
}
