"""The output layer together with the label-smoothed cross-entropy, plain and in chunks that stay in the cache.

With logits x = W h over V words, target y and smoothing ε (Szegedy et al. 2016, the target mass ε spread over all V):

    nll  = log Σ_v exp(x_v) - x_y
    loss = (1 - ε) · nll + ε · (log Σ_v exp(x_v) - mean_v x_v)

Both functions take `vectors` (tokens, size), `weight` (vocabulary, size) and `targets` (tokens,), and return two sums
over the tokens, in nats: the smoothed loss, to be minimised, and the plain negative log-likelihood, to be reported
(without gradient).
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from nmt.ops.products import fast_products

CHUNK = 128  # tokens; the logits of a chunk are then 4 MB for 8,000 words, about what a processor's cache holds


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
    """The same sums, chunk by chunk with their gradient in one pass; no (tokens, vocabulary) tensor is kept."""
    loss, nll = _ChunkedCrossEntropy.apply(vectors, weight, targets, smoothing)
    return loss, nll


class _ChunkedCrossEntropy(torch.autograd.Function):
    """dloss/dx = softmax(x) - (1 - ε) · onehot(y) - ε / V, so dloss/dh = Wᵀ dx and dloss/dW = Σ_tokens dx hᵀ."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, weight: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        vocabulary = weight.size(0)
        with_gradient = ctx.needs_input_grad[0] or ctx.needs_input_grad[1]
        vectors_gradient = torch.empty_like(vectors) if with_gradient else None
        weight_gradient = torch.zeros_like(weight) if with_gradient else None
        loss, nll = vectors.new_zeros(()), vectors.new_zeros(())
        with fast_products():
            for start in range(0, vectors.size(0), CHUNK):
                wanted = targets[start : start + CHUNK].unsqueeze(1)
                real = wanted.size(0)
                # The last chunk is filled up with zeros, so that every product has one of three shapes.
                chunk = functional.pad(vectors[start : start + CHUNK], (0, 0, 0, CHUNK - real))
                all_logits = chunk @ weight.t()
                logits = all_logits[:real]
                normaliser = torch.logsumexp(logits, dim=1, keepdim=True)
                chunk_nll = (normaliser - logits.gather(1, wanted)).sum()
                nll += chunk_nll
                loss += (1.0 - smoothing) * chunk_nll
                if smoothing:
                    loss += smoothing * (normaliser.sum() - logits.sum() / vocabulary)
                if vectors_gradient is not None and weight_gradient is not None:
                    logits.sub_(normaliser).exp_()
                    if smoothing:
                        logits.sub_(smoothing / vocabulary)
                    logits.scatter_add_(1, wanted, logits.new_full(wanted.shape, smoothing - 1.0))
                    all_logits[real:] = 0.0
                    vectors_gradient[start : start + CHUNK] = (all_logits @ weight)[:real]
                    weight_gradient.addmm_(all_logits.t(), chunk)
        ctx.save_for_backward(vectors_gradient, weight_gradient)
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, loss_gradient: Tensor, _: Tensor) -> tuple[Tensor, Tensor, None, None]:
        vectors_gradient, weight_gradient = ctx.saved_tensors
        return vectors_gradient * loss_gradient, weight_gradient * loss_gradient, None, None
