"""A target that is given, step by step, as search would come by it: for pairs too long for all steps at once.

log p(y | x) = Σ_t log p(y_t | y_1 … y_{t-1}, x). The source is encoded once, and the memory grows with the length of
the source, where that of all steps at once grows with source × target, and for some scores × size. Training's
validation and forced decoding both score such pairs here; it knows tensors, and no corpus.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from nmt.models.seq2seq import Seq2Seq

LARGEST_AREA = 500**2
"""Source × target tokens of one pair, both with their ends, beyond which it is done step by step: no segment that is
translated is longer than 500 pieces."""


def given_steps(model: "Seq2Seq", source: "Tensor", target: "Tensor") -> "Iterator[tuple[Tensor, Tensor]]":
    """For each token of `target` (1, target_length + 1) after BEGIN, what the model says before it is shown.

    That is the log-probabilities (vocabulary,) of what may stand there, and the weights (source_length,) of the step.
    `source` (1, source_length) has END and no padding. For a model in evaluation, without gradients.
    """
    device = model.output_weight.device
    source, target = source.to(device), target.to(device)
    state = model.start(source, source.new_tensor([source.size(1)]))
    for token in target[0, :-1].split(1):
        vectors, weights, state = model.advance(token, state)
        yield model.log_probabilities(vectors)[0], weights[0]


def stepwise_log_probability(model: "Seq2Seq", source: "Tensor", target: "Tensor") -> float:
    """Nats of `target`, BEGIN to END, under the conditions of `given_steps`."""
    steps = given_steps(model, source, target)
    return sum(float(step[token]) for token, (step, _) in zip(target[0, 1:].tolist(), steps, strict=True))
