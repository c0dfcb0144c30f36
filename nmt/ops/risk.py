"""The expected risk of a model over candidate translations. It knows no model and no text.

Shen, Cheng, He, He, Wu, Sun & Liu (2016), "Minimum Risk Training for Neural Machine Translation", arXiv 1512.02433,
equations 11 to 13.
"""

import torch
from torch import Tensor


def expected_risk(log_probabilities: Tensor, costs: Tensor, mask: Tensor, *, sharpness: float) -> Tensor:
    """R (batch,) of each source x, over its set S of candidates, with P of the model, costs Δ and α = `sharpness`:

        R = Σ_{y ∈ S} Q(y) Δ(y)        Q(y) = P(y)^α / Σ_{y' ∈ S} P(y')^α

    so that ∂R / ∂log P(y) = α Q(y) (Δ(y) - R): what costs more than is expected becomes less probable.

    `log_probabilities` log P, in nats, `costs` Δ and `mask`, True at candidates, are (batch, candidates); each row has
    a candidate at least.
    """
    shares = torch.softmax((sharpness * log_probabilities).masked_fill(~mask, float("-inf")), dim=1)
    return (shares * costs).sum(dim=1)
