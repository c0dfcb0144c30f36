import torch
from torch import nn

from nmt.decoding.inference import inference


def test_every_part_is_evaluated_and_has_its_own_mode_again() -> None:
    """Also where the whole is in evaluation and a part of it in training."""
    model = nn.Sequential(nn.Linear(1, 1), nn.Dropout(), nn.Dropout()).eval()
    model[1].train()
    with inference(model):
        assert not any(module.training for module in model.modules())
        assert torch.is_inference_mode_enabled()
    assert [module.training for module in model] == [False, True, False]
    assert not model.training
