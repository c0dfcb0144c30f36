"""The loss of a model on a corpus, without touching the model or any random state."""

import math
from collections.abc import Iterable

import torch

from nmt.data.batching import Batch
from nmt.models.seq2seq import Seq2Seq
from nmt.ops.loss import perplexity
from nmt.training.distributed import ALONE, Processes
from nmt.training.objective import batch_loss
from nmt.training.update import diverged


def corpus_loss(model: Seq2Seq, batches: Iterable[Batch], processes: Processes = ALONE) -> dict[str, float]:
    """`loss` in nats per target token (END counted, no smoothing, no dropout), and `perplexity`, its exponential.

    `batches` are this process's; the result is that of all.

    Raises UserError when the loss is no finite number.
    """
    device, was_training = model.output_weight.device, model.training
    model.eval()
    total, tokens = 0.0, 0.0
    with torch.no_grad():
        for batch in batches:
            _, nll = batch_loss(model, batch.to(device), smoothing=0.0)
            total, tokens = total + float(nll), tokens + batch.target_tokens
    model.train(was_training)
    total, tokens = processes.sums(total, tokens)
    if not math.isfinite(total):
        raise diverged(f"validation loss {total / tokens:.4g}")
    return {"loss": total / tokens, "perplexity": perplexity(total / tokens)}
