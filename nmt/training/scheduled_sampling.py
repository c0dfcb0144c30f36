"""Scheduled sampling: the decoder reads some words of its own in training, more and more of them, as it does in search.

Bengio, Vinyals, Jaitly & Shazeer (2015), "Scheduled Sampling for Sequence Prediction with Recurrent Neural Networks",
arXiv 1506.03099, draw word after word, from the model that has read the words drawn so far. That takes all steps one by
one, output layer and all. Here they are drawn in two passes, as Mihaylova & Martins (2019, arXiv 1906.07651) do for a
model that computes all steps at once: a first pass reads the true words, with the dropout of training and without
gradient, and gives at each step a distribution; in the second pass, which learns, the decoder reads

    ỹ_t = y_t with probability 1 - s, and otherwise a word drawn from p(· | y_<t, x) of the first pass

for each position t by itself, where p is over the words that search may write, which PAD and BEGIN are not:

    p(w | y_<t, x) = exp l_w / Σ_{v ∉ {PAD, BEGIN}} exp l_v        l: the logits of the first pass

The end mark may be drawn. After u updates, with U = `updates` and P = `probability`,

    linear            s = P min(1, u / U)
    inverse_sigmoid   s = P (1 - U / (U + exp(u / U)))
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from nmt.config.schema import ScheduledSampling
from nmt.data.batch import Batch
from nmt.models.seq2seq import Seq2Seq
from nmt.ops.chunks import CHUNK
from nmt.ops.linear import linear
from nmt.ops.masks import length_mask
from nmt.ops.memory import in_halves
from nmt.symbols import BEGIN, PAD


def probability(config: ScheduledSampling, updates: int) -> float:
    """s after that many updates."""
    if config.schedule == "linear":
        return config.probability * min(1.0, updates / config.updates)
    return config.probability / (1.0 + config.updates * math.exp(-updates / config.updates))


def with_own_words(model: Seq2Seq, batch: Batch, chance: float) -> Batch:
    """The batch, on the device of the model, with words of the model in what the decoder reads; s is `chance`.

    All draws are from PyTorch's generator of that device. What the memory does not hold is computed in halves.
    """
    replaced = torch.rand(batch.target_input.shape, device=batch.target.device) < chance
    replaced &= length_mask(batch.target_lengths, replaced.size(1))
    replaced[:, 0] = False  # what comes before the first word
    if not replaced.any():
        return batch

    def words(rows: Sequence[int]) -> list[Tensor]:
        """Those of some rows, in the order of `replaced`."""
        part = slice(rows[0], rows[-1] + 1)
        places, steps = replaced[part].nonzero(as_tuple=True)
        outputs = model(batch.source[part], batch.source_lengths[part], batch.target_input[part])
        vectors = outputs.vectors[places, steps - 1]
        return [drawn(linear(some, model.output_weight)) for some in vectors.split(CHUNK) if len(some)]

    fed = batch.target_input.clone()
    with torch.no_grad():
        fed[replaced] = torch.cat(in_halves(words, range(len(fed))))
    return batch._replace(fed=fed)


def drawn(logits: Tensor) -> Tensor:
    """A word of each row (rows,), drawn from p, with the logits (rows, vocabulary): the first with Σ_{v ≤ w} p_v > u.

    PAD and BEGIN have p = 0, as they have in search.
    """
    allowed = logits.clone()
    allowed[:, PAD] = allowed[:, BEGIN] = float("-inf")
    sums = allowed.softmax(dim=1).cumsum(dim=1)
    chosen = torch.rand(len(sums), 1, dtype=sums.dtype, device=sums.device) * sums[:, -1:]
    return torch.searchsorted(sums, chosen, right=True).squeeze(1).clamp(max=logits.size(1) - 1)
