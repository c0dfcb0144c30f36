"""The output layer together with the label-smoothed cross-entropy, plain and in chunks that stay in the cache.

With logits x = W h over V words, target y and smoothing ε (Szegedy et al. 2016, the target mass ε spread over all V):

    nll  = log Σ_v exp(x_v) - x_y
    loss = (1 - ε) · nll + ε · (log Σ_v exp(x_v) - mean_v x_v)

The functions take `vectors` (tokens, size), `weight` (vocabulary, size) and `targets` (tokens,), and return two sums
over the tokens, in nats: the smoothed loss, to be minimized, and the plain negative log-likelihood, to be reported
(without gradient).

R-Drop (Liang et al. 2021, arXiv 2106.14448) has two vectors for each token, of passes with different dropout masks,
and so two distributions p and q, which it pulls together; `vectors` is then (tokens, 2, size):

    nll  = (nll_p + nll_q) / 2
    loss = (loss_p + loss_q) / 2 + α/4 · (KL(p ‖ q) + KL(q ‖ p)),        KL(p ‖ q) = Σ_v p_v log(p_v / q_v)

That is half of their loss, with their α: they add the two passes up, and this is the mean.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from nmt.ops.chunks import chunks_of, groups_of_chunks
from nmt.ops.computing import fused, rounded
from nmt.ops.products import add_product, fast_products

_Sums = tuple[Tensor, Tensor]


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
    return _in_chunks(vectors, weight, targets, partial(_sums_and_gradient, smoothing=smoothing))


def r_drop_cross_entropy_plain(
    vectors: Tensor, weight: Tensor, targets: Tensor, *, smoothing: float, alpha: float
) -> tuple[Tensor, Tensor]:
    """The reference for R-Drop, `vectors` (tokens, 2, size)."""
    loss, nll = smoothed_cross_entropy_plain(
        vectors.flatten(0, 1), weight, targets.repeat_interleave(2), smoothing=smoothing
    )
    first, second = functional.linear(vectors, weight).log_softmax(dim=-1).unbind(dim=1)
    there = functional.kl_div(second, first, reduction="sum", log_target=True)
    back = functional.kl_div(first, second, reduction="sum", log_target=True)
    return loss / 2 + alpha / 4 * (there + back), nll / 2


def r_drop_cross_entropy(
    vectors: Tensor, weight: Tensor, targets: Tensor, *, smoothing: float, alpha: float
) -> tuple[Tensor, Tensor]:
    """The same sums chunk by chunk; the two rows of a token are in one chunk, next to each other."""
    if not fused():
        return r_drop_cross_entropy_plain(vectors, weight, targets, smoothing=smoothing, alpha=alpha)
    sums = partial(_r_drop_sums_and_gradient, smoothing=smoothing, alpha=alpha)
    return _in_chunks(vectors.flatten(0, 1), weight, targets.repeat_interleave(2), sums)


def _in_chunks(
    vectors: Tensor, weight: Tensor, targets: Tensor, sums: Callable[[Tensor, Tensor, Tensor | None], _Sums]
) -> _Sums:
    """The two sums of all the rows `vectors`; `sums` gives those of some logits and targets, and writes the gradient
    of the first where its third argument says, if anywhere."""
    # Asked here, because inside an autograd function gradients are always off, and its inputs always seem to need them.
    wanted_gradients = tuple(torch.is_grad_enabled() and tensor.requires_grad for tensor in (vectors, weight))
    loss, nll = _ChunkedCrossEntropy.apply(vectors, weight, targets, sums, wanted_gradients)
    return loss, nll


def _sums_and_gradient(logits: Tensor, targets: Tensor, gradient: Tensor | None, smoothing: float) -> _Sums:
    """The two sums over some tokens; the gradient of the smoothed one with respect to the logits goes to `gradient`."""
    values, right = logits.log_softmax(dim=1), targets.unsqueeze(1)
    nll = -values.gather(1, right).sum()
    loss = nll
    if smoothing:
        loss = (1.0 - smoothing) * nll - smoothing * values.sum() / logits.size(1)
    if gradient is not None:
        values.exp_().scatter_add_(1, right, values.new_full(right.shape, smoothing - 1.0))
        torch.sub(values, smoothing / logits.size(1), out=gradient)
    return loss, nll


def _r_drop_sums_and_gradient(
    logits: Tensor, targets: Tensor, gradient: Tensor | None, smoothing: float, alpha: float
) -> _Sums:
    """The same of R-Drop; rows 2i and 2i + 1 of `logits` and `targets` belong to token i.

    With r = log p - log q, the logits x of p have, besides half of what cross-entropy gives them, the gradient

        α/4 · (p · (r - KL(p ‖ q)) + p - q)
    """
    values, right, share = logits.log_softmax(dim=1), targets.unsqueeze(1), alpha / 4
    nll = -values.gather(1, right).sum() / 2
    loss = nll
    if smoothing:
        loss = (1.0 - smoothing) * nll - smoothing * values.sum() / (2 * logits.size(1))
    ratio = values[0::2] - values[1::2]
    probabilities, result = values.exp_(), torch.empty_like(values)
    first, second = probabilities[0::2], probabilities[1::2]
    sides = ((first, second, result[0::2], share), (second, first, result[1::2], -share))
    for mine, other, of_mine, signed in sides:
        divergence = signed * torch.mul(mine, ratio, out=of_mine).sum(dim=1, keepdim=True)
        loss = loss + divergence.sum()
        torch.add(0.5 + share - divergence, ratio, alpha=signed, out=of_mine).mul_(mine).sub_(other, alpha=share)
    if gradient is not None:
        result.scatter_add_(1, right, result.new_full(right.shape, (smoothing - 1.0) / 2))
        torch.sub(result, smoothing / (2 * logits.size(1)), out=gradient)
    return loss, nll


class _ChunkedCrossEntropy(torch.autograd.Function):
    """From a gradient dx of the logits x = W h follow dloss/dh = Wᵀ dx and dloss/dW = Σ_tokens dx hᵀ. That of the
    smoothed loss is dx = softmax(x) - (1 - ε) · onehot(y) - ε / V.
    """

    @staticmethod
    def forward(
        ctx: Any,
        vectors: Tensor,
        weight: Tensor,
        targets: Tensor,
        sums: Callable[[Tensor, Tensor, Tensor | None], _Sums],
        wanted_gradients: tuple[bool, bool],
    ) -> _Sums:
        matrix, count = rounded(weight), len(vectors)
        vectors_gradient = torch.empty_like(vectors) if wanted_gradients[0] else None
        weight_gradient = torch.zeros_like(weight) if wanted_gradients[1] else None
        loss, nll = vectors.new_zeros(()), vectors.new_zeros(())
        with fast_products():
            for rows, first in groups_of_chunks(rounded(vectors), len(weight)):
                gradients = rows.new_empty(len(rows), len(weight)) if any(wanted_gradients) else None
                for chunk, here in chunks_of(rows, first, count):
                    begin, real = here.start - first, here.stop - here.start
                    logits = (chunk @ matrix.t()).to(vectors.dtype)
                    gradient = None if gradients is None else gradients[begin : begin + len(chunk)]
                    some_loss, some_nll = sums(
                        logits[:real], targets[here], None if gradient is None else gradient[:real]
                    )
                    loss += some_loss
                    nll += some_nll
                    if gradient is None:
                        continue
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
