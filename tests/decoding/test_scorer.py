"""Models behind one interface: modes, and lists of tokens. More is in test_ensemble, test_coverage, test_shortlist."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nmt.decoding.scorer import Scorer
from nmt.symbols import BEGIN, END, PAD
from tests.decoding.conftest import network


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


class Said(nn.Module):
    """Gives these log-probabilities (rows, vocabulary), whatever comes before."""

    def __init__(self, values: list[list[float]]) -> None:
        super().__init__()
        self.values = torch.tensor(values)

    def start(self, source: Tensor, source_lengths: Tensor) -> None:
        return None

    def step(self, tokens: Tensor, state: None) -> tuple[Tensor, None]:
        return self.values.clone(), None


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([[-3.0, -1.0, -2.0, -4.0], [-1.0, -2.0, -4.0, -3.0]], [[1, 2], [0, 1]]),
        ([[-1.0, -2.0, -3.0, -3.0], [-1.0, -2.0, -4.0, -3.0]], [[0, 1], [0, 1]]),  # equal, but not listed
        ([[-2.0, -1.0, -1.0, -4.0], [-1.0, -2.0, -4.0, -3.0]], None),  # equal in the list
        ([[-1.0, -2.0, -2.0, -4.0], [-1.0, -2.0, -4.0, -3.0]], None),  # and at its end
    ],
)
def test_the_best_tokens_are_listed_where_no_two_are_equal(
    values: list[list[float]], expected: list[list[int]] | None
) -> None:
    scorer = Scorer([Said(values)])  # type: ignore[list-item]
    (found, ids), _ = scorer.step(np.zeros(2, dtype=np.int64), scorer.start(torch.zeros(2, 1), torch.ones(2)), 2)
    assert (None if ids is None else ids.tolist()) == expected
    assert found.tolist() == (values if ids is None else np.take_along_axis(np.array(values), ids, axis=1).tolist())


def test_in_bfloat16_log_probabilities_are_near() -> None:
    model, found = network("conditional_gru", source_size=11, target_size=13).float(), []
    for precision in (torch.float32, torch.bfloat16):
        scorer = Scorer([model], precision=precision)
        with scorer.inference():
            state = scorer.start(torch.tensor([[4, 7, END], [5, END, PAD]]), torch.tensor([3, 2]))
            found.append(scorer.step(np.array([BEGIN, 4]), state)[0].values)
    assert 1e-5 < np.abs(found[1] - found[0]).max() < 0.05
