"""Autograd against finite differences in float64: every score and scope by itself; and several passes over one graph.

The gradients of whole models are those of the oracle: tests/oracle/test_models.py, and of guided alignment, which goes
through attention alone, test_training.py there.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmt.config.schema import ModelConfig
from nmt.models.attention import Attention
from nmt.models.decoders import DECODERS
from nmt.models.memory import Past
from nmt.models.scopes import LocalPredictiveScope
from nmt.models.scores import SCORES
from nmt.models.seq2seq import Seq2Seq, build_attention

pytestmark = pytest.mark.slow

MakeModel = Callable[..., Seq2Seq]
Batch = tuple[Tensor, Tensor, Tensor]
Changes = dict[str, Any]

LENGTHS = torch.tensor([5, 2])
QUERIES, QUERY, MEMORY = 3, 4, 6


class Whole(nn.Module):
    """Projecting the annotations and attending to them, as one function of everything that is differentiable."""

    def __init__(self, attention: Attention) -> None:
        super().__init__()
        self.attention = attention

    def forward(self, query: Tensor, values: Tensor, *remembered: Tensor) -> tuple[Tensor, Tensor]:
        past = dict(zip(sorted(self.attention.score.remembers), remembered, strict=True))
        memory = self.attention.remember(values, LENGTHS)
        result: tuple[Tensor, Tensor] = self.attention(query, memory, Past(torch.arange(QUERIES), **past))
        return result


def note_margins(scope: nn.Module) -> list[float]:
    """Filled while the scope works: how near a position comes to the border of a window. There weights jump, and
    finite differences mean nothing."""
    margins: list[float] = []

    def note(distance: Tensor, real: Tensor | None) -> None:
        borders = (distance.detach().abs() - scope.half_width).abs()
        margins.append(float((borders if real is None else borders[real.expand_as(borders)]).min()))

    if isinstance(scope, LocalPredictiveScope):
        scope.register_forward_pre_hook(lambda module, inputs: note(*inputs))
    return margins


def test_scores_and_scopes(attention_settings: Changes) -> None:
    """With respect to queries, annotations, what is remembered, and every parameter; with more than one switch
    on, only along a random direction for each (the fast mode of gradcheck), in a tenth of the time."""
    torch.manual_seed(5)
    taken = {"positions": 3, "filters": 2, "filter_width": 3, "half_width": 1}
    settings = {**attention_settings, **{key: taken[key] for key in taken if key in attention_settings}, "size": 7}
    memory_size = QUERY if SCORES[settings["score"]].same_size else MEMORY
    config = ModelConfig.model_validate({"attention": settings, "decoder": {"hidden_size": QUERY}})
    module = Whole(build_attention(config, memory_size=memory_size)).double()
    remembered = len(module.attention.score.remembers)
    inputs = [torch.randn(2, QUERIES, QUERY), torch.randn(2, 5, memory_size), *torch.rand(remembered, 2, QUERIES, 5)]
    margins = note_margins(module.attention.scope)
    if SCORES[settings["score"]].context:
        switches_on = sum(value is True for value in attention_settings.values())
        check(module, [tensor.double() for tensor in inputs], fast=switches_on > 1)
    assert min(margins, default=1.0) > 0.01
    assert bool(margins) == (settings["scope"] == "local-p")


@pytest.mark.parametrize("decoder", [*DECODERS, "bahdanau paper"])
def test_backward_passes_over_one_graph_add_up(make_model: MakeModel, batch: Batch, decoder: str) -> None:
    """Several passes over one graph, whole, for some outputs or for one parameter, as the layers of a loop must bear,
    whose weight gradients are formed once for all steps."""
    model = make_model(decoder=dict(zip(("type", "order"), decoder.split(), strict=False)))
    names, parameters = zip(*model.named_parameters(), strict=True)
    vectors = model(*batch).vectors
    expected = torch.autograd.grad(vectors.square().sum(), parameters, retain_graph=True, allow_unused=True)
    parts = [
        torch.autograd.grad(part.square().sum(), parameters, retain_graph=True, allow_unused=True)
        for part in (vectors[:, :3], vectors[:, 3:])
    ]
    torch.autograd.grad(vectors.sum(), model.source_embedding.weight, retain_graph=True)
    again = torch.autograd.grad(vectors.square().sum(), parameters, allow_unused=True)
    for name, whole, first, second, last in zip(names, expected, *parts, again, strict=True):
        if whole is None:
            assert name == "output_layer.weight"
            continue
        torch.testing.assert_close(first + second, whole, msg=f"{name}, by parts")
        torch.testing.assert_close(last, whole, msg=f"{name}, after a pass for the source embedding alone")


def check(module: nn.Module, inputs: list[Tensor], *, fast: bool = False) -> None:
    """gradcheck of `module(*inputs)` with respect to its parameters, drawn anew, and to the real-valued inputs."""
    torch.manual_seed(9)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.7)
    names = [name for name, _ in module.named_parameters()]

    def outputs(*values: Tensor) -> tuple[Tensor, ...]:
        arguments, parameters = values[: len(inputs)], dict(zip(names, values[len(inputs) :], strict=True))
        return tuple(torch.func.functional_call(module, parameters, arguments))

    values = [*inputs, *(parameter.detach() for parameter in module.parameters())]
    for value in values:
        value.requires_grad_(value.is_floating_point())
    assert torch.autograd.gradcheck(outputs, values, fast_mode=fast)
