"""Scores against hand-set weights, what all of them leave unread, and what a new one has to write."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmt.config.schema import ModelConfig
from nmt.errors import UserError
from nmt.models.attention import Attention
from nmt.models.memory import Past, all_steps
from nmt.models.scopes import GlobalScope
from nmt.models.scores import (
    SCORES,
    AdditiveScore,
    ConcatScore,
    CosineScore,
    DotScore,
    GeneralScore,
    LocationScore,
    LocationSensitiveScore,
    ScaledDotScore,
    ScaledGeneralScore,
    Score,
)
from nmt.models.seq2seq import Seq2Seq, build_attention
from tests.conftest import checked_config
from tests.models.conftest import FILE

LN2, LN3 = math.log(2), math.log(3)
FIRST = Past(torch.zeros(1, dtype=torch.long))


def set_weights(module: nn.Module, **values: Any) -> None:
    """Every parameter of `module` by its name, dots as double underscores."""
    parameters = {name.replace(".", "__"): parameter for name, parameter in module.named_parameters()}
    assert parameters.keys() == values.keys()
    with torch.no_grad():
        for name, value in values.items():
            parameters[name].copy_(torch.as_tensor(value, dtype=parameters[name].dtype).reshape(parameters[name].shape))


def scored(score: Score, query: list[float], memory: list[list[float]], past: Past = FIRST) -> list[float]:
    """The scores of one query against the positions of one sentence."""
    keys = score.project(torch.tensor([memory]))
    values: list[float] = score(torch.tensor([[query]]), keys, past)[0, 0].tolist()
    return values


# ----------------------------------------------------------------------------------------------- one score at a time


def test_additive_by_hand() -> None:
    """One unit: e = 2 · tanh(0.5 · 4 + 1 · h + 0.25)."""
    score = AdditiveScore(1, 1, size=1, bias=True, coverage=False)
    set_weights(score, query_layer__weight=0.5, memory_layer__weight=1.0, memory_layer__bias=0.25, vector=2.0)
    assert scored(score, [4.0], [[1.0], [-3.0]]) == pytest.approx([2 * math.tanh(3.25), 2 * math.tanh(-0.75)])


def test_additive_with_coverage_by_hand() -> None:
    """One unit: e = 2 · tanh(0.5 · 4 + 1 · h - 3 · C), for positions that had 0.25 and 1.5 so far."""
    score = AdditiveScore(1, 1, size=1, bias=False, coverage=True)
    set_weights(score, query_layer__weight=0.5, memory_layer__weight=1.0, vector=2.0, coverage_vector=-3.0)
    past = Past(torch.tensor([2]), coverage=torch.tensor([[[0.25, 1.5]]]))
    expected = [2 * math.tanh(2 + 1 - 0.75), 2 * math.tanh(2 - 3 - 4.5)]
    assert scored(score, [4.0], [[1.0], [-3.0]], past) == pytest.approx(expected)


def test_concat_by_hand() -> None:
    """One unit, W_a = [0.5, -1, 2] over [h_t; h̄_s], the query first: e = 2 · tanh(0.5 · 4 - 1 · h̄_1 + 2 · h̄_2)."""
    score = ConcatScore(1, 2, size=1, coverage=False)
    set_weights(score, layer__weight=[0.5, -1.0, 2.0], vector=2.0)
    expected = [2 * math.tanh(2 - 1 + 0), 2 * math.tanh(2 - 3 + 0.5)]
    assert scored(score, [4.0], [[1.0, 0.0], [3.0, 0.25]]) == pytest.approx(expected)


def test_dot_by_hand() -> None:
    """(1, 2) · (3, 4) = 11."""
    assert scored(DotScore(2, 2), [1.0, 2.0], [[3.0, 4.0], [0.0, -1.0]]) == [11.0, -2.0]


def test_scaled_dot_by_hand() -> None:
    """Four units: the dot products 10 and 4, divided by √4."""
    scores = scored(ScaledDotScore(4, 4), [1.0, 2.0, 3.0, 4.0], [[1.0, 1.0, 1.0, 1.0], [4.0, 0.0, 0.0, 0.0]])
    assert scores == [5.0, 2.0]


def test_general_by_hand() -> None:
    """(1, 10) W_a = (1, 30, 2), to be multiplied with the memory's three units."""
    score = GeneralScore(2, 3)
    set_weights(score, layer__weight=[[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    assert scored(score, [1.0, 10.0], [[1.0, 1.0, 1.0], [0.0, 0.0, 1.0]]) == [33.0, 2.0]


def test_scaled_general_by_hand() -> None:
    """(1, 2, 3, 4) W_a = (1, 6), with the memory's two units 7 and -2, divided by √4, the size of the query."""
    score = ScaledGeneralScore(4, 2)
    set_weights(score, layer__weight=[[1.0, 0.0], [0.0, 3.0], [0.0, 0.0], [0.0, 0.0]])
    assert scored(score, [1.0, 2.0, 3.0, 4.0], [[1.0, 1.0], [4.0, -1.0]]) == [3.5, -1.0]


def test_cosine_by_hand() -> None:
    """τ starts at 10; (3, 4) and (4, 3) have the cosine 24/25, whatever their lengths; a vector of length 0 has 0."""
    memory = [[4.0, 3.0], [60.0, 80.0], [-0.3, -0.4], [0.0, 0.0]]
    score = CosineScore(2, 2, temperature="learned")
    assert scored(score, [3.0, 4.0], memory) == pytest.approx([9.6, 10.0, -10.0, 0.0])
    set_weights(score, temperature=5.0)
    assert scored(score, [3.0, 4.0], memory) == pytest.approx([4.8, 5.0, -5.0, 0.0])


@pytest.mark.parametrize("length", [1e-20, 1e-7])
def test_so_has_a_vector_of_hardly_any_length(length: float) -> None:
    score = CosineScore(2, 2, temperature=1.0)
    query = torch.tensor([[[0.0, length]]], requires_grad=True)
    score(query, score.project(torch.tensor([[[3.0, 4.0]]])), FIRST).sum().backward()
    torch.testing.assert_close(query.grad, torch.tensor([[[0.6, 0.8]]]))


def test_a_vector_of_length_0_has_an_ordinary_gradient_for_the_cosine() -> None:
    """As where the first word is dropped while all biases are 0; ε would have made it 10¹² times as large."""
    score = CosineScore(2, 2, temperature=1.0)
    query, keys = torch.zeros(1, 1, 2, requires_grad=True), torch.tensor([[[0.0, 0.0], [3.0, 4.0]]], requires_grad=True)
    score(query, score.project(keys), FIRST).sum().backward()
    torch.testing.assert_close(query.grad, torch.tensor([[[0.6, 0.8]]]))
    assert torch.equal(keys.grad, torch.zeros(1, 2, 2))
    query = torch.tensor([[[5.0, 0.0]]])
    score(query, score.project(keys), FIRST)[..., 0].sum().backward()
    torch.testing.assert_close(keys.grad[0, 0], torch.tensor([1.0, 0.0]))


def test_plain_cosine() -> None:
    """With τ = 1 the score is the cosine, and there is nothing to learn."""
    score = CosineScore(2, 2, temperature=1.0)
    assert scored(score, [3.0, 4.0], [[4.0, 3.0], [60.0, 80.0]]) == pytest.approx([0.96, 1.0])
    assert list(score.parameters()) == []


@pytest.mark.parametrize("offset", [0.0, -1e5, 1e5])
def test_location_by_hand(offset: float) -> None:
    """W_a h = (0, ln 2, ln 3): thirds and sixths; in a sentence of five, positions 3 and 4 have no row of W_a. Scores
    that are all as low, or as high, change nothing."""
    score = LocationScore(1, 1, positions=3).double()
    set_weights(score, layer__weight=[offset, offset + LN2, offset + LN3])
    attention = Attention(score, GlobalScope(1), memory_size=1)
    memory = attention.remember(torch.ones(4, 5, 1, dtype=torch.float64), torch.tensor([2, 3, 5, 1]))
    _, weights = attention(torch.ones(4, 1, 1, dtype=torch.float64), memory, FIRST)
    expected = [[1 / 3, 2 / 3, 0, 0, 0], [1 / 6, 2 / 6, 3 / 6, 0, 0], [1 / 6, 2 / 6, 3 / 6, 0, 0], [1, 0, 0, 0, 0]]
    torch.testing.assert_close(weights[:, 0], torch.tensor(expected, dtype=torch.float64))
    assert (weights[:, 0] == 0).tolist() == [[value == 0 for value in row] for row in expected]


def test_location_sensitive_by_hand() -> None:
    """A filter (1, 10, 100) over the last weights (0.2, 0.3, 0.5): position j sees what is left of it once, itself ten
    times, what is right of it a hundred times; beyond the sentence there is nothing."""
    score = LocationSensitiveScore(1, 1, size=1, bias=False, coverage=False, filters=1, filter_width=3)
    set_weights(
        score,
        query_layer__weight=0.5,
        memory_layer__weight=1.0,
        convolution__weight=[1.0, 10.0, 100.0],
        filter_layer__weight=0.01,
        vector=2.0,
    )
    past = Past(torch.tensor([1]), weights=torch.tensor([[[0.2, 0.3, 0.5]]]))
    filtered = [2.0 + 30.0, 0.2 + 3.0 + 50.0, 0.3 + 5.0]
    expected = [2 * math.tanh(0.5 + h + 0.01 * f) for h, f in zip([0.0, -1.0, 0.25], filtered, strict=True)]
    assert scored(score, [1.0], [[0.0], [-1.0], [0.25]], past) == pytest.approx(expected)


# ---------------------------------------------------------------------------------------------------------- all scores


@pytest.mark.parametrize("score", SCORES)
def test_content_of_padding_is_never_read(score: str) -> None:
    """Annotations of any size at padding change no bit of contexts and weights, and get no gradient."""
    torch.manual_seed(2)
    size = 11 if SCORES[score].same_size else 7
    config = ModelConfig.model_validate({"attention": {"score": score}, "decoder": {"hidden_size": size}})
    attention = build_attention(config, memory_size=11).double()
    for parameter in attention.parameters():
        nn.init.normal_(parameter)
    values = torch.randn(3, 5, 11, dtype=torch.float64)
    other = values.clone()
    other[1, 2:] = 1e6
    other.requires_grad_()
    query, lengths = torch.randn(3, size, dtype=torch.float64), torch.tensor([5, 2, 1])
    results = []
    for annotations in (values, other):
        memory = attention.remember(annotations, lengths)
        results.append(attention.step(query, memory, attention.start(memory)))
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])
    if SCORES[score].context:
        results[1][0].square().sum().backward()
        assert other.grad is not None
        assert other.grad[1, :2].any()
        assert not other.grad[1, 2:].any()


class ToyScore(Score):
    """e = the sum of the query times the sum of the annotation: all that a new score has to write."""

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__()

    def forward(self, query: Tensor, keys: Tensor, past: Past) -> Tensor:
        return query.sum(-1, keepdim=True) * keys.sum(-1).unsqueeze(1)


@pytest.mark.parametrize("scope", ["global", "local-m", "local-p"])
@pytest.mark.parametrize("decoder", ["luong", "bahdanau", "conditional_gru"])
def test_a_new_score_touches_one_source_file(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    make_model: Callable[..., Seq2Seq],
    batch: Any,
    decoder: str,
    scope: str,
) -> None:
    """A class and a line in SCORES: the configuration loads, and any model trains and searches with it."""
    path = tmp_path / "toy.yaml"
    model_section = f"{{decoder: {{type: {decoder}}}, attention: {{score: toy, scope: {scope}}}}}"
    path.write_text(FILE + f"model: {model_section}\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"attention.score.*given 'toy'.*allowed: additive"):
        checked_config(path)
    monkeypatch.setitem(SCORES, "toy", ToyScore)
    assert checked_config(path).model.attention.score == "toy"
    model = make_model(attention={"score": "toy", "scope": scope}, decoder={"type": decoder})
    outputs = model(*batch)
    outputs.vectors.sum().backward()
    log_probabilities, _ = model.step(batch[2][:, 0], model.start(batch[0], batch[1]))
    torch.testing.assert_close(log_probabilities.exp().sum(-1), torch.ones(3, dtype=torch.float64))


@pytest.mark.parametrize("wrong", [lambda e: e.transpose(1, 2), lambda e: e[:, :1], lambda e: e.unsqueeze(3)])
def test_scores_of_another_shape_are_refused(wrong: Callable[[Tensor], Tensor]) -> None:
    """Also those that would broadcast, as where all queries of a sentence get the scores of the first."""

    class Wrong(ToyScore):
        def forward(self, query: Tensor, keys: Tensor, past: Past) -> Tensor:
            return wrong(super().forward(query, keys, past))

    attention = Attention(Wrong(2, 3), GlobalScope(2), memory_size=3)
    memory = attention.remember(torch.ones(5, 7, 3), torch.full((5,), 7))
    query = torch.ones(5, 11, 2)
    given = re.escape(f"Wrong gives scores of shape {tuple(wrong(torch.ones(5, 11, 7)).shape)}")
    with pytest.raises(ValueError, match=rf"^{given}; here \(batch, queries, source_length\) is \(5, 11, 7\)$"):
        attention(query, memory, all_steps(11, device=query.device))


def test_a_constant_of_a_score_is_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tempered(ToyScore):
        def __init__(self, query_size: int, memory_size: int, *, sharpness: float = 3.0) -> None:
            super().__init__(query_size, memory_size)
            self.sharpness = sharpness

    monkeypatch.setitem(SCORES, "toy", Tempered)
    attention = build_attention(ModelConfig.model_validate({"attention": {"score": "toy"}}), memory_size=11)
    assert isinstance(attention.score, Tempered)
    assert attention.score.sharpness == 3
