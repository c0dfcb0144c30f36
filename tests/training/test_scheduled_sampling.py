"""Scheduled sampling: which words are the model's, how they are drawn, and how many as training goes on."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from nmt.config.schema import ModelConfig, ScheduledSampling
from nmt.data.batch import Batch, make_batch
from nmt.models.seq2seq import Seq2Seq, build_model
from nmt.training.scheduled_sampling import drawn, probability, with_own_words

SIZES = {"embedding_size": 3, "encoder": {"hidden_size": 4}, "decoder": {"hidden_size": 5}}


@pytest.fixture
def model() -> Seq2Seq:
    torch.manual_seed(0)
    built = build_model(ModelConfig.model_validate(SIZES), source_size=11, target_size=13).double().train()
    for parameter in built.parameters():
        torch.nn.init.normal_(parameter)
    return built


def batch() -> Batch:
    return make_batch([[4, 5], [6]], [[7, 8, 9], [10]], np.array([0, 1]))


def test_the_schedules() -> None:
    """k = 10 has its half where exp(u / k) = k, at 10 ln 10 = 23 updates; what has no number as exp(u) is no error."""
    linear = ScheduledSampling(probability=0.4, updates=8)
    assert [probability(linear, updates) for updates in (0, 2, 8, 99)] == pytest.approx([0.0, 0.1, 0.4, 0.4])
    sigmoid = ScheduledSampling(probability=0.5, schedule="inverse_sigmoid", updates=10)
    for updates in (0, 5, 23, 60):
        expected = 0.5 * (1 - 10 / (10 + math.exp(updates / 10)))
        assert probability(sigmoid, updates) == pytest.approx(expected, rel=1e-12)
    assert probability(sigmoid, 23) == pytest.approx(0.25, abs=0.001)
    assert probability(sigmoid, 10**9) == 0.5


def test_draws_are_those_of_the_equation() -> None:
    """In plain NumPy, from the same u; <pad> and <s>, ids 0 and 2, are the most probable, and are never drawn."""
    logits = np.random.default_rng(3).normal(size=(997, 11))
    logits[:, [0, 2]] = 60.0
    torch.manual_seed(4)
    numbers = torch.rand(997, 1, dtype=torch.float64).numpy()
    written = [word for word in range(11) if word not in (0, 2)]
    exponentials = np.exp(logits[:, written])
    sums = (exponentials / exponentials.sum(axis=1, keepdims=True)).cumsum(axis=1)
    expected = [written[place] for place in (sums <= numbers).sum(axis=1)]
    torch.manual_seed(4)
    assert drawn(torch.from_numpy(logits)).tolist() == expected
    assert set(expected) == set(written)


def test_all_words_but_the_first_and_padding_are_the_model_s(model: Seq2Seq) -> None:
    """Those that are all but sure, where each is drawn from what the model says after the true words."""
    model.output_weight.data.mul_(1e6)
    pairs = batch()
    outputs = model(pairs.source, pairs.source_lengths, pairs.target_input)
    logits = outputs.vectors @ model.output_weight.T
    logits[..., [0, 2]] = -math.inf  # <pad> and <s>
    said = logits.argmax(dim=-1)
    fed = with_own_words(model, pairs, 1.0).target_input
    assert fed[0].tolist() == [2, *said[0, :3].tolist()]
    assert fed[1].tolist() == [2, int(said[1, 0]), *pairs.target_input[1, 2:].tolist()]


def test_what_memory_does_not_hold_is_drawn_in_halves(model: Seq2Seq, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same words as at once, where the model is all but sure; the second row has none of its own."""
    model.output_weight.data.mul_(1e6)
    pairs = make_batch([[4, 5], [6], [7, 8]], [[7, 8, 9], [], [10, 11]], np.arange(3))
    at_once, forward = with_own_words(model, pairs, 1.0), model.forward
    rows: list[int] = []

    def short_of_memory(source: torch.Tensor, *others: torch.Tensor) -> Any:
        rows.append(len(source))
        if len(source) > 1:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 12345 bytes.")
        return forward(source, *others)

    monkeypatch.setattr(model, "forward", short_of_memory)
    assert torch.equal(with_own_words(model, pairs, 1.0).target_input, at_once.target_input)
    assert rows == [3, 1, 2, 1, 1]


def test_the_reference_stays_and_nothing_learns(model: Seq2Seq) -> None:
    pairs = batch()
    sampled = with_own_words(model, pairs, 1.0)
    assert torch.equal(sampled.target_output, pairs.target_output)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert with_own_words(model, pairs, 0.0) is pairs


def test_how_many_are_the_model_s(model: Seq2Seq) -> None:
    """30% of 6,000, of which one in 11 is the true one by chance; within 4 standard deviations."""
    torch.manual_seed(2)
    model.output_weight.data.zero_()
    pairs = make_batch([[4]] * 300, [[7] * 20] * 300, np.arange(300))
    fed = with_own_words(model, pairs, 0.3).target_input
    share = 0.3 * 10 / 11
    changed = int((fed != pairs.target_input).sum())
    assert changed == pytest.approx(6000 * share, abs=4 * (6000 * share * (1 - share)) ** 0.5)
