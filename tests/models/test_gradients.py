"""Autograd against finite differences in float64: every score and scope by itself, and whole models."""

from collections.abc import Callable
from itertools import product
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
DECODER_VARIANTS: dict[str, Changes] = {
    "one layer": {},
    "layers": {"layers": 2},
    "reset first": {"cell": "gru_reset_first"},
    "normalised": {"layer_normalisation": True},
    "lstm": {"cell": "lstm"},
    "normalised lstm layers": {"cell": "lstm", "layers": 2, "layer_normalisation": True},
    "residual": {"layers": 3, "residual": True},
}


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


def with_everything(score: str) -> Changes:
    """The score with its switches on, and local-p where that is allowed: every way that a gradient may take."""
    switches: Changes = {name: True for name in ("bias", "coverage") if name in SCORES[score].options}
    return {"score": score, **switches, **({} if SCORES[score].positional else {"scope": "local-p", "half_width": 2})}


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


@pytest.mark.parametrize(
    ("decoder", "score"), [pair for pair in product(DECODERS, SCORES) if pair != ("conditional_gru", "none")]
)
def test_whole_models(make_model: MakeModel, decoder: str, score: str) -> None:
    """Every parameter, from the source embedding on, through all steps, with every score in every decoder."""
    check_model(make_model, {"type": decoder}, with_everything(score))


@pytest.mark.parametrize(
    ("decoder", "variant"),
    [pair for pair in product(DECODERS, DECODER_VARIANTS) if pair[0] != "conditional_gru" or "lstm" not in pair[1]],
)
def test_decoders(make_model: MakeModel, decoder: str, variant: str) -> None:
    check_model(make_model, {"type": decoder, **DECODER_VARIANTS[variant]}, with_everything("location_sensitive"))


@pytest.mark.parametrize("variant", DECODER_VARIANTS)
@pytest.mark.parametrize("score", ["additive", "location_sensitive"])
def test_the_order_of_the_paper(make_model: MakeModel, score: str, variant: str) -> None:
    decoder = {"type": "bahdanau", "order": "paper", **DECODER_VARIANTS[variant]}
    check_model(make_model, decoder, with_everything(score))


@pytest.mark.parametrize(
    "attention",
    [
        {"score": "general", "scope": "local-p", "half_width": 2, "position_scale": "length"},
        {"score": "general", "scope": "local-p", "half_width": 2, "position_logit": "unscaled"},
        {"score": "general", "scope": "local-m", "half_width": 2, "gaussian": True},
        {"score": "cosine", "temperature": 3.0},
    ],
    ids=["position of the length", "unscaled logit", "gaussian", "temperature"],
)
def test_options(make_model: MakeModel, attention: Changes) -> None:
    check_model(make_model, {}, attention)


@pytest.mark.parametrize("score", ["additive", "location_sensitive"])
def test_without_input_feeding(make_model: MakeModel, score: str) -> None:
    check_model(make_model, {"input_feeding": False}, {"score": score, "scope": "local-p", "half_width": 2})


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("input_feeding", [True, False])
def test_residual_layers_of_both_sides(make_model: MakeModel, cell: str, input_feeding: bool) -> None:
    deep = {"layers": 2, "residual": True, "cell": cell}
    check_model(make_model, {**deep, "input_feeding": input_feeding}, {"score": "additive"}, encoder=deep)


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


def check_model(make_model: MakeModel, decoder: Changes, attention: Changes, encoder: Changes | None = None) -> None:
    size = 6 if SCORES[attention["score"]].same_size else 5
    model = make_model(
        embedding_size=2,
        encoder={"hidden_size": 3, "layer_normalisation": True, "reverse_source": True, **(encoder or {})},
        decoder={"hidden_size": size, "output_size": 4, **decoder},
        attention={"size": 7, **attention},
    )
    margins = note_margins(model.decoder.attention.scope)
    source = torch.tensor([[4, 5, 6, 7, 3], [8, 3, 0, 0, 0]])
    check(model, [source, LENGTHS, torch.tensor([[2, 10, 11], [2, 13, 14]])], fast=True)
    assert min(margins, default=1.0) > 1e-3


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
