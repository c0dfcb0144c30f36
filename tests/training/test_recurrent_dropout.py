"""Dropout on recurrent weights: which they are, what their gradients are, and that nothing else is touched."""

import copy
from typing import Any

import numpy as np
import pytest
import torch

from nmt.config.schema import ModelConfig, TrainingConfig
from nmt.data.batch import make_batch
from nmt.models.seq2seq import Seq2Seq, build_model
from nmt.processes import ALONE
from nmt.training.objective import training_loss
from nmt.training.optim import SGD
from nmt.training.recurrent_dropout import dropped_recurrent, masks
from nmt.training.update import update

BATCHES = [
    make_batch([[4, 5, 6], [6]], [[7, 8, 9], [10]], np.array([0, 1])),
    make_batch([[7, 4]], [[12, 11, 4]], np.array([2])),
]
RECURRENT = {
    "bahdanau": ["decoder.cells.0.recurrent_layer.weight"],
    "conditional_gru": ["decoder.cells.0.recurrent_layer.weight", "decoder.context_cell.recurrent_layer.weight"],
}


def built(cell: str = "gru", *, decoder: str = "bahdanau", layers: int = 1) -> Seq2Seq:
    """A model in float64 whose weights are large enough that a mask makes a difference."""
    torch.manual_seed(0)
    part = {"cell": cell, "layers": layers}
    sizes = {
        "embedding_size": 3,
        "encoder": {"hidden_size": 4, **part},
        "decoder": {"hidden_size": 5, "type": decoder, **part},
    }
    model = build_model(ModelConfig.model_validate(sizes), source_size=11, target_size=13).double().train()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    return model


def objective(model: Seq2Seq, config: TrainingConfig) -> float:
    return sum(float(training_loss(model, batch, config).objective) for batch in BATCHES)


@pytest.mark.parametrize(
    ("cell", "decoder", "layers"),
    [
        ("gru", "bahdanau", 2),
        ("lstm", "luong", 1),
        ("gru_reset_first", "bahdanau", 1),
        ("gru", "conditional_gru", 1),
    ],
)
def test_an_update_is_that_of_the_dropped_model(cell: str, decoder: str, layers: int) -> None:
    """Its loss is that of a model whose U are m ∘ U; its gradient, the slope of that loss where U itself moves."""
    model, config = built(cell, decoder=decoder, layers=layers), TrainingConfig(recurrent_dropout=0.4, max_updates=1)
    plain = copy.deepcopy(model)
    torch.manual_seed(5)
    of_plain = named(plain, masks(plain, 0.4, processes=ALONE))
    torch.manual_seed(5)
    result = update(model, SGD(model.parameters()), BATCHES, rate=0.0, config=config)

    def loss_at(step: float) -> float:
        """The plain model's loss with every weight moved by `step` in its direction, U before its mask."""
        moved, by_weight = copy.deepcopy(plain), dict(of_plain)
        with torch.no_grad():
            for name, parameter in moved.named_parameters():
                parameter.add_(step * directions[name]).mul_(by_weight.get(name, 1.0))
            return objective(moved, config)

    torch.manual_seed(6)
    directions = {name: torch.randn_like(parameter) for name, parameter in plain.named_parameters()}
    slope = (loss_at(1e-5) - loss_at(-1e-5)) / 2e-5
    assert result.loss == pytest.approx(loss_at(0.0), rel=1e-12)
    along = sum(float((parameter.grad * directions[name]).sum()) for name, parameter in model.named_parameters())
    assert along * result.tokens == pytest.approx(slope, rel=1e-6)


def named(model: Seq2Seq, of: list[tuple[torch.Tensor, torch.Tensor]]) -> list[tuple[str, torch.Tensor]]:
    """The masks with the names of their weights."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return [(names[id(weight)], mask) for weight, mask in of]


@pytest.mark.parametrize("decoder", RECURRENT)
def test_which_weights_and_how_many_of_them(decoder: str) -> None:
    """Of both directions of the encoder and every cell of the decoder; 30%, and the others are larger."""
    torch.manual_seed(0)
    model = build_model(ModelConfig.model_validate({"decoder": {"type": decoder}}), source_size=11, target_size=13)
    of = dict(named(model, masks(model, 0.3, processes=ALONE)))
    assert set(of) == {f"encoder.network.weight_hh_l0{way}" for way in ("", "_reverse")} | set(RECURRENT[decoder])
    for mask in of.values():
        assert mask.unique().tolist() == [0.0, pytest.approx(1 / 0.7)]
        assert float((mask == 0).double().mean()) == pytest.approx(0.3, abs=4 * (0.21 / mask.numel()) ** 0.5)
    again = dict(named(model, masks(model, 0.3, processes=ALONE)))
    assert not any(torch.equal(mask, again[name]) for name, mask in of.items())


def test_weights_are_what_they_were_even_after_an_error() -> None:
    model = built()
    before = copy.deepcopy(model.state_dict())

    def interrupted() -> None:
        with dropped_recurrent(model, 0.5, processes=ALONE):
            different = {name for name, weight in model.state_dict().items() if not torch.equal(weight, before[name])}
            assert different == {name for name, _ in named(model, masks(model, 0.5, processes=ALONE))}
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)


@pytest.mark.parametrize(("rate", "draws"), [(0.0, False), (0.5, True)])
def test_without_a_rate_nothing_is_drawn(rate: float, draws: bool) -> None:
    """So that a training without it is the one it was."""
    model: Any = built()
    state = torch.get_rng_state()
    with dropped_recurrent(model, rate, processes=ALONE):
        pass
    assert torch.equal(state, torch.get_rng_state()) is not draws
