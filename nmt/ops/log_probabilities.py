"""The output layer together with the log-probability of one word a token, plain and in chunks.

With logits x = W h over V words and the word y:

    log p(y) = x_y - log Σ_v exp(x_v)

Both functions take `vectors` (tokens, size), `weight` (vocabulary, size) and `targets` (tokens,), and return (tokens,),
in nats. Unlike the sums of `nmt.ops.loss`, these may each have a gradient of their own, which is only known when all
have been computed. So the logits are computed twice, in the forward and in the backward pass, and never all kept.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from nmt.ops.chunks import chunks_of, groups_of_chunks
from nmt.ops.computing import computing, fused, now, rounded
from nmt.ops.products import add_product, fast_products


def log_probabilities_plain(vectors: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
    """The reference: all logits at once, gradients by autograd."""
    every = functional.linear(vectors, weight).log_softmax(dim=1)
    return every.gather(1, targets.unsqueeze(1)).squeeze(1)


def log_probabilities(vectors: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
    """The same, of which at most GROUP logits are held at a time."""
    if not fused():
        return log_probabilities_plain(vectors, weight, targets)
    values: Tensor = _Chunked.apply(vectors, weight, targets)
    return values


class _Chunked(torch.autograd.Function):
    """dlog p(y) / dx = onehot(y) - softmax(x), and from dx follow dh = Wᵀ dx and dW = Σ_tokens dx hᵀ."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
        ctx.save_for_backward(vectors, weight, targets)
        ctx.computing = now()
        matrix, count, values = rounded(weight), len(vectors), vectors.new_empty(len(vectors))
        with fast_products():
            for rows, first in groups_of_chunks(rounded(vectors), len(weight)):
                for chunk, here in chunks_of(rows, first, count):
                    every = _every(chunk, matrix, here, vectors.dtype)
                    values[here] = every.gather(1, targets[here].unsqueeze(1)).squeeze(1)
        return values

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        vectors, weight, targets = ctx.saved_tensors
        count, of_vectors, of_weight = len(vectors), None, None
        if ctx.needs_input_grad[0]:
            of_vectors = torch.empty_like(vectors)
        if ctx.needs_input_grad[1]:
            of_weight = torch.zeros_like(weight)
        with computing(*ctx.computing), fast_products():
            matrix = rounded(weight)
            for rows, first in groups_of_chunks(rounded(vectors), len(weight)):
                of_logits = rows.new_zeros(len(rows), len(weight))
                for chunk, here in chunks_of(rows, first, count):
                    real = slice(here.start - first, here.stop - first)
                    every = _every(chunk, matrix, here, vectors.dtype).exp_().neg_()
                    every.scatter_add_(1, targets[here].unsqueeze(1), every.new_ones(len(every), 1))
                    torch.mul(every, gradient[here].unsqueeze(1), out=of_logits[real])
                    if of_vectors is not None:
                        whole = of_logits[real.start : real.start + len(chunk)]
                        of_vectors[here] = (whole @ matrix)[: len(every)].to(vectors.dtype)
                if of_weight is not None:
                    add_product(of_weight, of_logits.t(), rows)
        return of_vectors, of_weight, None


def _every(chunk: Tensor, matrix: Tensor, here: slice, kind: torch.dtype) -> Tensor:
    """The log-probabilities (real rows, vocabulary) of all words at the real rows of a chunk."""
    return (chunk @ matrix.t()).to(kind)[: here.stop - here.start].log_softmax(dim=1)
