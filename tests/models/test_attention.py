"""Scores against hand-set weights, and the contract that every score in SCORES must keep."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.config import load_config
from nmt.config.schema import ModelConfig
from nmt.errors import UserError
from nmt.models import attention as attention_module
from nmt.models.attention import SCORES, AdditiveScore, Attention, Score
from nmt.models.checks import model_problems
from nmt.models.seq2seq import Seq2Seq, build_attention

BATCH, QUERIES, LENGTH, QUERY, MEMORY = 3, 2, 5, 7, 11
LENGTHS = torch.tensor([5, 2, 1])
FILE = """
name: toy
data: {source_language: en, target_language: de, train: [{source: a, target: b}], valid: {source: c, target: d}}
training: {max_updates: 1}
"""


def attention_of(score: str) -> Attention:
    torch.manual_seed(2)
    config = ModelConfig.model_validate({"attention": {"score": score}, "decoder": {"hidden_size": QUERY}})
    attention = build_attention(config, memory_size=MEMORY).double()
    for parameter in attention.parameters():
        torch.nn.init.normal_(parameter)
    return attention


def test_additive_score_by_hand() -> None:
    """One unit: e = 2 · tanh(0.5 · 4 + 1 · h + 0.25)."""
    score = AdditiveScore(1, 1, size=1, bias=True)
    with torch.no_grad():
        for parameter, value in zip(
            [score.query_layer.weight, score.memory_layer.weight, score.memory_layer.bias, score.vector],
            [0.5, 1.0, 0.25, 2.0],
            strict=True,
        ):
            parameter.fill_(value)
    found = score(torch.tensor([[[4.0]]]), score.project(torch.tensor([[[1.0], [-3.0]]])))
    assert found.tolist() == [[pytest.approx([2 * math.tanh(3.25), 2 * math.tanh(-0.75)])]]


@pytest.mark.parametrize("score", SCORES)
def test_contract(score: str) -> None:
    """Weights sum to 1 over the real positions and are exactly 0 elsewhere; the context is their weighted sum."""
    attention = attention_of(score)
    values = torch.randn(BATCH, LENGTH, MEMORY, dtype=torch.float64)
    query = torch.randn(BATCH, QUERIES, QUERY, dtype=torch.float64, requires_grad=True)
    memory = attention.remember(values, LENGTHS)
    context, weights = attention(query, memory)
    assert context.shape == (BATCH, QUERIES, MEMORY)
    torch.testing.assert_close(weights.sum(-1), torch.ones(BATCH, QUERIES, dtype=torch.float64))
    for row, length in enumerate(LENGTHS.tolist()):
        assert (weights[row, :, length:] == 0).all()
        assert (weights[row, :, :length] > 0).all()
        alone = attention(
            query[row : row + 1], attention.remember(values[row : row + 1, :length], LENGTHS[row : row + 1])
        )
        torch.testing.assert_close(context[row], alone[0][0], rtol=0, atol=1e-12)
    torch.testing.assert_close(context, torch.einsum("bqs,bsm->bqm", weights, values))
    context.square().sum().backward()
    assert query.grad is not None
    assert query.grad[0].any()
    assert not query.grad[2].any()  # one position: its weight is 1 whatever the query is


@pytest.mark.parametrize("score", SCORES)
def test_padding_content_is_never_read(score: str) -> None:
    attention = attention_of(score)
    values = torch.randn(BATCH, LENGTH, MEMORY, dtype=torch.float64)
    query = torch.randn(BATCH, QUERIES, QUERY, dtype=torch.float64)
    other = values.clone()
    other[1, 2:] = 1e6
    first, second = (attention(query, attention.remember(each, LENGTHS)) for each in (values, other))
    assert torch.equal(first[0], second[0])
    assert torch.equal(first[1], second[1])


class ToyScore(Score):
    """e = the sum of the query times the sum of the annotation: all that a new score has to write."""

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__()

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return query.sum(-1, keepdim=True) * keys.sum(-1).unsqueeze(1)


def test_a_new_score_touches_one_source_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, make_model: Callable[..., Seq2Seq], batch: Any
) -> None:
    """A class and a line in SCORES: the configuration loads, and the model trains and searches with it."""
    path = tmp_path / "toy.yaml"
    path.write_text(FILE + "model: {attention: {score: toy}}\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"attention.score.*given 'toy'.*allowed: additive"):
        load_config(path, checks=[model_problems])
    monkeypatch.setitem(SCORES, "toy", ToyScore)
    assert load_config(path, checks=[model_problems]).model.attention.score == "toy"
    model = make_model(attention={"score": "toy"})
    outputs = model(*batch)
    outputs.vectors.sum().backward()
    log_probabilities, _ = model.step(batch[2][:, 0], model.start(batch[0], batch[1]))
    torch.testing.assert_close(log_probabilities.exp().sum(-1), torch.ones(3, dtype=torch.float64))


def test_the_example_in_the_readme(monkeypatch: pytest.MonkeyPatch) -> None:
    """The code that the README shows keeps the contract, with query and memory of different sizes."""
    text = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(class GeneralScore.*?)\n\n\nSCORES", text, re.DOTALL)
    namespace = dict(vars(attention_module))
    exec(example, namespace)
    monkeypatch.setitem(SCORES, "general", namespace["GeneralScore"])
    test_contract("general")
    test_padding_content_is_never_read("general")


def test_options_of_another_score_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(SCORES, "toy", ToyScore)
    path = tmp_path / "toy.yaml"
    path.write_text(FILE + "model: {attention: {score: toy, size: 9, bias: true}}\n", encoding="utf-8")
    with pytest.raises(UserError) as caught:
        load_config(path, checks=[model_problems])
    assert len(caught.value.messages) == 2
    assert all("no effect with score: toy" in message and "additive" in message for message in caught.value.messages)
