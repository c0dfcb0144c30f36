"""Local scopes that score their windows alone, against those that score every position and mask what is outside."""

from collections.abc import Callable
from itertools import cycle
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.models.decoders import DECODERS
from nmt.models.seq2seq import SearchState, Seq2Seq
from nmt.ops import windows
from nmt.ops.computing import computing
from tests.models.conftest import ATTENTIONS

MakeModel = Callable[..., Seq2Seq]
Batch = tuple[Tensor, Tensor, Tensor]
Changes = dict[str, Any]

LOCAL = {name: settings for name, settings in ATTENTIONS.items() if settings["scope"] != "global"}
SAME_SIZE = ("dot", "scaled_dot", "cosine")
# Five, so that they do not keep step with switches of two values when each attention is given the next of them.
DECODER_VARIANTS: dict[str, Changes] = {
    **{name: {"type": name} for name in DECODERS},
    "luong without input feeding": {"type": "luong", "input_feeding": False},
    "bahdanau paper": {"type": "bahdanau", "order": "paper"},
}


@pytest.fixture
def used(window_kind: str, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The parts of sentences that are taken out: gathered ones always, slices where one does for all queries."""
    made: list[Any] = []
    kind = getattr(windows, window_kind)
    take = kind.take

    def noted(part: Any, values: Tensor) -> Tensor:
        made.append(part)
        result: Tensor = take(part, values)
        return result

    monkeypatch.setattr(kind, "take", noted)
    return made


def model_of(make_model: MakeModel, attention: Changes, **decoder: Any) -> Seq2Seq:
    size = 20 if attention["score"] in SAME_SIZE else 7
    return make_model(attention=attention, decoder={"hidden_size": size, **decoder})


def computed(model: Seq2Seq, batch: Batch, *, fused: bool) -> dict[str, Tensor]:
    """Vectors, weights, and the gradient of every parameter."""
    model.zero_grad()
    with computing(fused=fused):
        outputs = model(*batch)
        torch.manual_seed(3)
        loss = (outputs.vectors * torch.randn_like(outputs.vectors)).sum() + outputs.weights.square().sum()
        loss.backward()
    values = {"vectors": outputs.vectors.detach(), "weights": outputs.weights.detach()}
    return values | {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "decoder"), list(zip(LOCAL, cycle(DECODER_VARIANTS))))
def test_training(
    make_model: MakeModel, batch: Batch, window_kind: str, used: list[Any], name: str, decoder: str
) -> None:
    """All steps with their gradients, one by one or as queries of one call; another decoder for each name in turn."""
    model = model_of(make_model, LOCAL[name], **DECODER_VARIANTS[decoder])
    expected = computed(model, batch, fused=False)
    assert not used
    windowed = computed(model, batch, fused=True)
    assert used or window_kind == "Slice"
    assert windowed.keys() == expected.keys()
    for key, values in expected.items():
        torch.testing.assert_close(windowed[key], values, rtol=1e-10, atol=1e-10, msg=key)


@torch.inference_mode()
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("sentences", [[0, 1, 2], [0]])
@pytest.mark.parametrize("name", LOCAL)
def test_search(
    make_model: MakeModel,
    batch: Batch,
    window_kind: str,
    used: list[Any],
    name: str,
    sentences: list[int],
    packed: bool,
) -> None:
    """Two hypotheses of a sentence, past the end of its windows, of a batch and of one sentence."""
    model = model_of(make_model, LOCAL[name])
    states: list[SearchState] = []
    if packed:
        model.pack_weights("float32")
    beam = torch.tensor([[row, row] for row in range(len(sentences))])
    for _ in range(2):
        states.append(model.start(batch[0][sentences], batch[1][sentences]).select(beam))
    for step in range(16):
        tokens = (torch.arange(2 * len(sentences)) * 5 + step) % 19
        with computing(fused=False):
            expected, states[0] = model.step(tokens, states[0])
        log_probabilities, states[1] = model.step(tokens, states[1])
        torch.testing.assert_close(log_probabilities, expected, rtol=0, atol=1e-10)
    several = len(sentences) > 1 and LOCAL[name]["scope"] == "local-p"
    assert bool(used) == (window_kind == "Windows" or not several)


@torch.inference_mode()
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_diverged_are_seen_in_the_results(
    make_model: MakeModel, batch: Batch, window_kind: str, used: list[Any], value: float
) -> None:
    """The predicted position is no number then, and there is no window around it; it is no failure of the program."""
    model = model_of(make_model, {"score": "additive", "scope": "local-p", "half_width": 1})
    model.target_embedding.weight.fill_(value)
    assert not model(*batch).vectors.isfinite().any()
    assert used


@torch.inference_mode()
def test_nothing_is_taken_out_of_short_sentences(make_model: MakeModel, batch: Batch, used: list[Any]) -> None:
    """Of a window that is as wide as the longest sentence."""
    model = make_model(attention={"scope": "local-p", "half_width": 7})
    model(*batch)
    model.step(batch[2][:, 0], model.start(batch[0], batch[1]))
    assert not used


def test_a_score_that_needs_all_keys_gets_them(
    make_model: MakeModel, batch: Batch, used: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a new score does that says nothing about it."""
    model = make_model(attention={"scope": "local-p", "half_width": 2})
    monkeypatch.setattr(model.decoder.attention.score, "cost", lambda queries: None)
    model(*batch)
    assert not used


@torch.inference_mode()
@pytest.mark.parametrize(
    ("scope", "length", "kind"),
    [("local-m", 12, None), ("local-m", 1000, "Slice"), ("local-p", 12, None), ("local-p", 1000, "Windows")],
)
def test_long_sentences_are_not_scored_as_a_whole(
    make_model: MakeModel, monkeypatch: pytest.MonkeyPatch, scope: str, length: int, kind: str | None
) -> None:
    """And short ones are, with the default D = 10: nothing is to be saved."""
    model = make_model(attention={"scope": scope, "half_width": 10})
    taken = []
    for name in ("Slice", "Windows"):
        monkeypatch.setattr(getattr(windows, name), "take", lambda part, values, name=name: taken.append(name))
    source = torch.full((8, length), 5)
    state = model.start(source, torch.full((8,), length)).select(torch.arange(8).unsqueeze(1).expand(8, 5))
    if kind is None:
        model.step(torch.arange(40) % 19, state)
    else:
        with pytest.raises(AttributeError):
            model.step(torch.arange(40) % 19, state)
    assert set(taken) == ({kind} if kind else set())
