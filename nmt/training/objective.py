"""What training minimises: the smoothed loss of a batch."""

from torch import Tensor

from nmt.data.batching import Batch
from nmt.models.seq2seq import Seq2Seq
from nmt.ops.loss import smoothed_cross_entropy
from nmt.ops.masks import length_mask


def batch_loss(model: Seq2Seq, batch: Batch, *, smoothing: float) -> tuple[Tensor, Tensor]:
    """The smoothed loss and the negative log-likelihood of a batch, each summed over its target tokens, in nats."""
    outputs = model(batch.source, batch.source_lengths, batch.target_input)
    mask = length_mask(batch.target_lengths, batch.target_output.size(1))
    return smoothed_cross_entropy(
        outputs.vectors[mask], model.output_weight, batch.target_output[mask], smoothing=smoothing
    )
