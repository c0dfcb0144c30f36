"""The output layer together with the label-smoothed cross-entropy, plain and in chunks that stay in the cache.

With logits x = W h over V words, target y and smoothing ε (Szegedy et al. 2016, the target mass ε spread over all V):

    nll  = log Σ_v exp(x_v) - x_y
    loss = (1 - ε) · nll + ε · (log Σ_v exp(x_v) - mean_v x_v)

Both functions take `vectors` (tokens, size), `weight` (vocabulary, size) and `targets` (tokens,), and return two sums
over the tokens, in nats: the smoothed loss, to be minimized, and the plain negative log-likelihood, to be reported
(without gradient).
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from nmt.ops.computing import fused, rounded
from nmt.ops.products import add_product, fast_products

CHUNK = 128  # tokens; the logits of a chunk are then 4 MB for 8,000 words, about what a processor's cache holds
GROUP = 1 << 24  # tokens × vocabulary; the weight's gradient is written once for so many, and takes them of all chunks


def smoothed_cross_entropy_plain(
    vectors: Tensor, weight: Tensor, targets: Tensor, *, smoothing: float
) -> tuple[Tensor, Tensor]:
    """The reference: all logits at once, gradients by autograd."""
    logits = functional.linear(vectors, weight)
    loss = functional.cross_entropy(logits, targets, label_smoothing=smoothing, reduction="sum")
    nll = functional.cross_entropy(logits.detach(), targets, reduction="sum")
    return loss, nll


def smoothed_cross_entropy(
    vectors: Tensor, weight: Tensor, targets: Tensor, *, smoothing: float
) -> tuple[Tensor, Tensor]:
    """The same sums, chunk by chunk with their gradient in one pass; of it at most GROUP values are held at a time."""
    if not fused():
        return smoothed_cross_entropy_plain(vectors, weight, targets, smoothing=smoothing)
    # Asked here, because inside an autograd function gradients are always off, and its inputs always seem to need them.
    wanted_gradients = tuple(torch.is_grad_enabled() and tensor.requires_grad for tensor in (vectors, weight))
    loss, nll = _ChunkedCrossEntropy.apply(vectors, weight, targets, smoothing, wanted_gradients)
    return loss, nll


def _sums_and_gradient(logits: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor, Tensor]:
    """The two sums over some tokens, and the gradient of the smoothed one with respect to the logits."""
    values, right = logits.log_softmax(dim=1), targets.unsqueeze(1)
    nll = -values.gather(1, right).sum()
    loss = nll
    if smoothing:
        loss = (1.0 - smoothing) * nll - smoothing * values.sum() / logits.size(1)
    gradient = values.exp_()
    if smoothing:
        gradient.sub_(smoothing / logits.size(1))
    gradient.scatter_add_(1, right, gradient.new_full(right.shape, smoothing - 1.0))
    return loss, nll, gradient


class _ChunkedCrossEntropy(torch.autograd.Function):
    """dloss/dx = softmax(x) - (1 - ε) · onehot(y) - ε / V, so dloss/dh = Wᵀ dx and dloss/dW = Σ_tokens dx hᵀ."""

    @staticmethod
    def forward(
        ctx: Any,
        vectors: Tensor,
        weight: Tensor,
        targets: Tensor,
        smoothing: float,
        wanted_gradients: tuple[bool, bool],
    ) -> tuple[Tensor, Tensor]:
        matrix, count = rounded(weight), len(vectors)
        # The last chunk is filled up with zeros, so that products have few shapes.
        filled = functional.pad(rounded(vectors), (0, 0, 0, -count % CHUNK))
        vectors_gradient = torch.empty_like(vectors) if wanted_gradients[0] else None
        weight_gradient = torch.zeros_like(weight) if wanted_gradients[1] else None
        loss, nll = vectors.new_zeros(()), vectors.new_zeros(())
        group = CHUNK * max(1, GROUP // (CHUNK * len(weight)))
        with fast_products():
            for first in range(0, count, group):
                rows = filled[first : first + group]
                gradients = rows.new_empty(len(rows), len(weight)) if any(wanted_gradients) else None
                for begin in range(0, len(rows), CHUNK):
                    here = slice(first + begin, min(first + begin + CHUNK, count))
                    real = here.stop - here.start
                    logits = (rows[begin : begin + CHUNK] @ matrix.t()).to(vectors.dtype)
                    some_loss, some_nll, for_logits = _sums_and_gradient(logits[:real], targets[here], smoothing)
                    loss += some_loss
                    nll += some_nll
                    if gradients is None:
                        continue
                    gradient = gradients[begin : begin + CHUNK]
                    gradient[:real] = for_logits
                    gradient[real:] = 0.0
                    if vectors_gradient is not None:
                        vectors_gradient[here] = (gradient @ matrix)[:real]
                if weight_gradient is not None and gradients is not None:
                    add_product(weight_gradient, gradients.t(), rows)
        ctx.save_for_backward(vectors_gradient, weight_gradient)
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, loss_gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        gradients = (None if saved is None else saved * loss_gradient for saved in ctx.saved_tensors)
        return (*gradients, None, None, None)


def perplexity(loss: float) -> float:
    """exp of the loss in nats per token; infinite where a float cannot hold it."""
    return math.exp(loss) if loss < 700 else math.inf
