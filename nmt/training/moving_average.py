"""The moving average of the weights over the updates of a run, which is validated and kept in their place.

With the weights θ_t after update t, and decay d (TensorFlow's ExponentialMovingAverage with `num_updates`, after Polyak
& Juditsky 1992, "Acceleration of Stochastic Approximation by Averaging"):

    θ'_0 = θ_0
    θ'_t = d_t θ'_{t-1} + (1 - d_t) θ_t        d_t = min(d, (1 + t) / (10 + t))

While d_t grows, the average is over about the last ninth of the updates; d = 0.999 is reached at t = 8,990, and the
average is over about the last 1 / (1 - d) = 1,000 updates from then on. It knows a model and no run.
"""

from contextlib import AbstractContextManager

from torch import nn

from nmt.training.averaging import with_weights


class MovingAverage:
    """θ' of a model, by the names of its weights; at first the weights themselves."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.model, self.decay = model, decay
        self.weights = {name: weight.clone() for name, weight in model.state_dict().items()}

    def follow(self, update: int) -> None:
        """Take in the weights after update t, counted from 1 among those that changed them."""
        share = 1.0 - min(self.decay, (1 + update) / (10 + update))
        for name, weight in self.model.state_dict().items():
            self.weights[name].lerp_(weight, share)

    def in_model(self) -> AbstractContextManager[None]:
        """Run the block with the average in the model; then it has its last weights again, bit for bit."""
        return with_weights(self.model, self.weights)
