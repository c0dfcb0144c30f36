"""What a diverging training is told by: where it was, which tensors, and how far from guessing."""

import math

import pytest
import torch

from nmt.config.schema import Divergence, TrainingConfig
from nmt.training.divergence import beyond_start, bound, not_finite
from nmt.training.optim import Adam
from nmt.training.progress import Progress, Scored


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_tensors_that_are_not_finite(value: float) -> None:
    """A weight, and a moment of the optimizer, by themselves; large numbers are numbers."""
    model = torch.nn.Linear(2, 3)
    optimizer = Adam(model.parameters())
    assert not_finite(model, optimizer) is None
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    model.weight.data[1, 1] = 3e38
    assert not_finite(model, optimizer) is None
    optimizer.state[model.bias]["exp_avg_sq"][2] = value
    assert not_finite(model, optimizer) == "1 of 8 tensors of weights and optimizer are not finite"
    model.weight.data[1, 1] = value
    assert not_finite(model, optimizer) == "2 of 8 tensors of weights and optimizer are not finite"


def test_the_bound_is_a_multiple_of_the_loss_of_guessing() -> None:
    assert bound(Divergence(loss_factor=1.5), 100) == pytest.approx(1.5 * 4.605170)
    assert bound(None, 100) == math.inf


def test_how_many_validations_it_takes() -> None:
    config = TrainingConfig.model_validate({"divergence": {"patience": 2}})
    progress = Progress(best=[Scored(3.25, 40)], validation_loss=1e8)
    reasons = []
    for progress.beyond in (0, 1, 2):
        reasons.append([beyond_start(progress, config, 8000, is_over=is_over) for is_over in (False, True)])
    assert reasons[0] == [None, None]
    assert reasons[1][0] is None
    assert reasons[1][1] is not None
    assert (
        reasons[2][0]
        == reasons[2][1]
        == (
            "validation loss 1e+08, 2 in a row above 2 × ln(8,000) = 17.97, where a model that knows nothing has "
            "ln(8,000) (training.divergence); the best model so far is that of update 40, bleu 3.25"
        )
    )
    off = TrainingConfig.model_validate({"divergence": None})
    assert beyond_start(progress, off, 8000, is_over=True) is None
