"""The loss of a model on a corpus, without touching the model or any random state.

The validation corpus is not filtered. Pairs too long to compute all steps at once get their own batches, and are scored
step by step.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch

from nmt.config.schema import TrainingConfig
from nmt.data.batch import Batch, Indices
from nmt.data.planning import plan_batches
from nmt.data.store import PairedIds
from nmt.evaluation.measurements import perplexity
from nmt.models.seq2seq import Seq2Seq
from nmt.models.stepwise import LARGEST_AREA, stepwise_log_probability
from nmt.processes import ALONE, Processes
from nmt.training.divergence import Diverged
from nmt.training.objective import batch_loss
from nmt.training.samples import Sample


class Validation(NamedTuple):
    """What a validation says of a model."""

    metrics: dict[str, float]  # loss, perplexity, bleu
    samples: Sequence[Sample] = ()  # the same sentences at every validation; in the first process only
    translations: Sequence[str] = ()  # of all sentences


Validate = Callable[[Seq2Seq], Validation]
"""Scores a model on the validation corpus. It must leave all random states alone."""


def plan_validation(valid: PairedIds, *, batch_tokens: int) -> list[Indices]:
    """The rows of each batch for `corpus_loss`: by tokens, so that one huge line does not pad its neighbors."""
    sources, targets = valid.source_lengths, valid.target_lengths
    is_long = (sources.astype(np.int64) + 1) * (targets.astype(np.int64) + 1) > LARGEST_AREA
    plan: list[Indices] = []
    settings = TrainingConfig(batch_size=batch_tokens, batch_by="tokens")
    for rows in plan_batches(sources, targets, settings, seed=0, epoch=0):
        together = rows[~is_long[rows]]
        plan += [together] if len(together) else []
        plan += list(rows[is_long[rows]][:, np.newaxis])
    return plan


def corpus_loss(model: Seq2Seq, batches: Iterable[Batch], processes: Processes = ALONE) -> dict[str, float]:
    """`loss` in nats per target token (END counted, no smoothing, no dropout), and `perplexity`, its exponential; of a
    corpus with alignments also `guided_loss`, which leaves out pairs that are scored step by step.

    `batches` are this process's; the result is that of all.

    Raises Diverged when the loss is not finite.
    """
    device, was_training = model.output_weight.device, model.training
    model.eval()
    total, tokens = 0.0, 0.0
    guided, aligned_tokens = 0.0, 0.0  # of the batches that have alignments
    with torch.no_grad():
        for batch in batches:
            if len(batch.indices) == 1 and batch.source.numel() * batch.target_output.numel() > LARGEST_AREA:
                nll = -stepwise_log_probability(model, batch.source, batch.target)
            else:
                losses = batch_loss(model, batch.to(device), smoothing=0.0)
                nll = float(losses.nll)
                if losses.guided is not None:
                    guided, aligned_tokens = guided + float(losses.guided), aligned_tokens + batch.target_tokens
            total, tokens = total + nll, tokens + batch.target_tokens
    model.train(was_training)
    total, tokens, guided, aligned_tokens = processes.sums(total, tokens, guided, aligned_tokens)
    if not math.isfinite(total):
        raise Diverged(f"validation loss {total / tokens:.4g}")
    metrics = {"loss": total / tokens, "perplexity": perplexity(total / tokens)}
    return {**metrics, "guided_loss": guided / aligned_tokens} if aligned_tokens else metrics
