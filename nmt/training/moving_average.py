"""The moving average of the weights over the updates of a run, which is validated and kept in their place.

With the weights θ_t after update t, and decay d (TensorFlow's ExponentialMovingAverage with `num_updates`, after Polyak
& Juditsky 1992, "Acceleration of Stochastic Approximation by Averaging"):

    θ'_0 = θ_0
    θ'_t = d_t θ'_{t-1} + (1 - d_t) θ_t        d_t = min(d, (1 + t) / (10 + t))

While d_t grows, the average is over about the last ninth of the updates; d = 0.999 is reached at t = 8,990, and the
average is over about the last 1 / (1 - d) = 1,000 updates from then on. It knows a model and no run.

In float32 θ' stands still where its step is less than half its last bit: where |θ - θ'| is about 6e-8 |θ'| / (1 - d).
In a training that is less than a hundredth of |θ - θ'| for d = 0.999, and a tenth for d = 0.9999. Averages longer than
LONGEST_IN_FLOAT32 are therefore in float64.
"""

from contextlib import AbstractContextManager

import torch
from torch import nn

from nmt.training.averaging import with_weights

LONGEST_IN_FLOAT32 = 0.999
"""The largest d whose average has the type of the weights; float64 takes twice the memory and four times as long."""


class MovingAverage:
    """θ' of a model, by the names of its weights; at first the weights themselves."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.model, self.decay = model, decay
        is_long = decay > LONGEST_IN_FLOAT32
        self.weights = {
            name: weight.to(torch.float64 if is_long else weight.dtype, copy=True)
            for name, weight in model.state_dict().items()
        }

    def follow(self, update: int) -> None:
        """Take in the weights after update t, counted from 1 among those that changed them."""
        share = 1.0 - min(self.decay, (1 + update) / (10 + update))
        for name, weight in self.model.state_dict().items():
            average = self.weights[name]
            average.lerp_(weight.to(average.dtype), share)

    def in_model(self) -> AbstractContextManager[None]:
        """Run the block with the average in the model; then it has its last weights again, bit for bit."""
        return with_weights(self.model, self.weights)
