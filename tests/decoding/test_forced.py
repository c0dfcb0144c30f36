"""Forced decoding against the model's own loss, beam search, and the chain rule written out."""

import random
import threading

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.data.batch import make_batch
from nmt.decoding import forced as forced_module
from nmt.decoding import scorer as scorer_module
from nmt.decoding.forced import forced_decoding
from nmt.decoding.scorer import Scorer
from nmt.models.encoder import Encoded, Encoder
from tests.decoding.conftest import DECODERS, network

SOURCES = [[4, 5, 6, 7], [8], [9, 10, 11, 12, 4, 5, 6], [], [7, 7]]
TARGETS = [[8, 9, 10], [4, 5, 6, 7, 8, 9, 10, 11], [], [5], [16]]
PAIRS = list(zip(SOURCES, TARGETS, strict=True))


@pytest.mark.parametrize("attention_score", ["additive", "location_sensitive"])
@pytest.mark.parametrize("decoder", DECODERS)
def test_step_by_step_is_the_same(decoder: str, attention_score: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = network(decoder, score=attention_score)
    pairs = [PAIRS[index] for index in (0, 1, 4)]
    at_once = forced_decoding(Scorer([model]), pairs, batch_tokens=1, attention=True)
    monkeypatch.setattr(forced_module, "LARGEST_AREA", 0)
    monkeypatch.setattr(scorer_module, "_at_once", None)
    stepwise = forced_decoding(Scorer([model]), pairs, batch_tokens=1000, attention=True)
    for left, right, (source, target) in zip(at_once, stepwise, pairs, strict=True):
        assert left.log_probability == pytest.approx(right.log_probability, abs=1e-9)
        assert left.weights is not None
        assert left.weights.shape == (len(target), len(source) + 1)
        np.testing.assert_allclose(left.weights, right.weights, rtol=1e-6)


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_source_is_encoded_once_however_many_targets_it_has(decoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sources have five targets between them, of all lengths; the first source stands at both ends."""
    scorer = Scorer([network(decoder)])
    sources = [SOURCES[0], SOURCES[2], SOURCES[2], [*SOURCES[0]], SOURCES[0]]
    pairs = list(zip(sources, [[8, 9, 10], [5], [*range(4, 16)], [16, 4], []], strict=True))
    apart = [forced_decoding(scorer, [pair], batch_tokens=1000, attention=True)[0] for pair in pairs]
    encoded, forward = list[int](), Encoder.forward

    def counting(encoder: Encoder, embedded: Tensor, lengths: Tensor) -> Encoded:
        encoded.append(len(lengths))
        return forward(encoder, embedded, lengths)

    monkeypatch.setattr(Encoder, "forward", counting)
    together = forced_decoding(scorer, pairs, batch_tokens=1000, attention=True)
    assert encoded == [2]
    for one, other in zip(apart, together, strict=True):
        assert other.log_probability == pytest.approx(one.log_probability, abs=1e-9)
        np.testing.assert_allclose(other.weights, one.weights, rtol=1e-6)


def test_another_thread_may_decode_with_the_same_model_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forced_module, "LARGEST_AREA", 0)
    scorer = Scorer([model := network()])
    (alone,) = forced_decoding(scorer, PAIRS[:1], batch_tokens=100, attention=True)
    here, others = threading.current_thread(), []

    def let_another_decode(*_: object) -> None:
        if threading.current_thread() is here:
            other = threading.Thread(
                target=lambda: others.extend(forced_decoding(scorer, PAIRS[2:3], batch_tokens=100))
            )
            other.start()
            other.join()

    model.target_embedding.register_forward_hook(let_another_decode)
    (beside,) = forced_decoding(scorer, PAIRS[:1], batch_tokens=100, attention=True)
    assert len(others) == len(TARGETS[0]) + 1
    assert beside.log_probability == alone.log_probability
    assert beside.weights is not None
    assert np.array_equal(beside.weights, alone.weights)


@pytest.mark.parametrize("largest_area", [10_000, 0], ids=["at once", "step by step"])
@pytest.mark.parametrize("decoder", DECODERS)
def test_or_to_the_step_after_it_which_of_the_last_piece_writes_the_end(
    decoder: str, largest_area: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forced_module, "LARGEST_AREA", largest_area)
    model, pairs = network(decoder), [([4, 5, 6, 7, 8], [8, 9, 10]), ([4, 5], []), ([9], [11])]
    later = forced_decoding(Scorer([model]), pairs, batch_tokens=1000, attention=True, alignment_step="next")
    for forced, (source, target) in zip(later, pairs, strict=True):
        pair = make_batch([source], [target], torch.zeros(1).long().numpy())
        full = model.eval()(pair.source, pair.source_lengths, pair.target_input).weights[0].detach()
        assert full.shape == (len(target) + 1, len(source) + 1)  # with END on both sides
        assert forced.weights is not None
        np.testing.assert_allclose(forced.weights, full[1:], rtol=1e-6)
    now = forced_decoding(Scorer([model]), pairs, batch_tokens=1000)
    assert [scored.log_probability for scored in later] == pytest.approx(
        [scored.log_probability for scored in now], abs=1e-9
    )


def test_neither_batches_nor_order_change_a_score() -> None:
    generator = random.Random(4)
    pairs = [
        (generator.choices(range(4, 13), k=generator.randrange(20)), generator.choices(range(4, 17), k=length % 20))
        for length in range(40)
    ]
    model = network()
    alone = forced_decoding(Scorer([model]), pairs, batch_tokens=1, attention=True)
    for batch_tokens in (40, 10_000):
        together = forced_decoding(Scorer([model]), pairs[::-1], batch_tokens=batch_tokens, attention=True)
        for left, right in zip(alone, reversed(together), strict=True):
            assert left.log_probability == pytest.approx(right.log_probability, abs=1e-9)
            np.testing.assert_allclose(left.weights, right.weights, rtol=1e-6)


def test_batches_are_bounded_with_their_padding() -> None:
    lengths = [(99, 0), (0, 99), (3, 3), (9, 9), (0, 0), (50, 50)]
    batches = list(forced_module._batches([([4] * source, [4] * target) for source, target in lengths], 5000))
    assert sorted(index for batch in batches for index in batch) == list(range(6))
    for batch in batches:
        longest = [max(lengths[index][side] + 1 for index in batch) for side in (0, 1)]
        assert len(batch) * longest[0] * longest[1] <= 5000 or len(batch) == 1
    assert any(len(batch) > 1 for batch in batches)
