"""One model or several behind one interface: modes. The rest is in test_ensemble, test_coverage and test_shortlist."""

import torch
from torch import nn

from nmt.decoding.scorer import Scorer


def test_every_part_is_evaluated_and_has_its_own_mode_again() -> None:
    """Also where the whole is in evaluation and a part of it in training."""
    model, other = (nn.Sequential(nn.Linear(1, 1), nn.Dropout(), nn.Dropout()).eval() for _ in range(2))
    model[1].train()
    other.train()
    with Scorer([model, other]).inference():  # type: ignore[list-item]
        assert not any(module.training for whole in (model, other) for module in whole.modules())
        assert torch.is_inference_mode_enabled()
    assert [module.training for module in model] == [False, True, False]
    assert not model.training
    assert all(module.training for module in other.modules())
