"""What is particular to each decoder, by hand: with what it asks, and what it reads out.

The equations of all of them are in tests/oracle.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmt.models.decoders import DECODERS
from nmt.models.seq2seq import Seq2Seq

MakeModel = Callable[..., Seq2Seq]
Batch = tuple[Tensor, Tensor, Tensor]


def zero(*modules: nn.Module | None) -> None:
    for module in modules:
        assert module is not None
        for parameter in module.parameters():
            nn.init.zeros_(parameter)


def queries_of(model: Seq2Seq, batch: Batch) -> tuple[list[Tensor], list[Any]]:
    """For each step the query (batch, size) that attention was given, and the decoder's state after it."""
    queries: list[Tensor] = []
    handle = model.decoder.attention.register_forward_pre_hook(lambda module, inputs: queries.append(inputs[0][:, 0]))
    state, states = model.start(batch[0], batch[1]), []
    for tokens in batch[2].unbind(1):
        _, state = model.step(tokens, state)
        states.append(state.decoder)
    handle.remove()
    return queries, states


# ------------------------------------------------------------------------------------------------------------- queries


@torch.no_grad()
def test_luong_asks_with_the_new_state(make_model: MakeModel, batch: Batch) -> None:
    """c_t = attention(h_t), h_t of the top layer."""
    queries, states = queries_of(make_model(decoder={"layers": 2}), batch)
    for query, state in zip(queries, states, strict=True):
        assert torch.equal(query, state.layers[1][0])


@torch.no_grad()
def test_bahdanau_asks_with_the_old_state(make_model: MakeModel, batch: Batch) -> None:
    """c_i = attention(s_{i-1}), s_{i-1} of the top layer; s_0 for the first word."""
    model = make_model(decoder={"type": "bahdanau", "order": "paper", "layers": 2, "cell": "lstm"})
    queries, states = queries_of(model, batch)
    first = model.start(batch[0], batch[1]).decoder
    for query, state in zip(queries, [first, *states[:-1]], strict=True):
        assert torch.equal(query, state.layers[1][0])


# ------------------------------------------------------------------------------------------------------------ readouts


@torch.no_grad()
def test_maxout_takes_the_larger_of_each_pair(make_model: MakeModel, batch: Batch) -> None:
    """Neighbors (1, 5), (7, 2), (-3, -4) become 5, 7, -3; without weights the readout is its bias."""
    model = make_model(decoder={"type": "bahdanau", "output_size": 3})
    readout: Any = model.decoder.readout
    assert readout.weight.shape == (6, 7 + 2 + 20)
    zero(readout)
    readout.bias.copy_(torch.tensor([1.0, 5, 7, 2, -3, -4]))
    vectors = model(*batch).vectors
    assert vectors.shape == (3, 8, 3)
    assert (vectors == torch.tensor([5.0, 7, -3])).all()


# ------------------------------------------------------------------------------------------------------- fixed context


@torch.no_grad()
@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("reverse_source", [False, True])
@pytest.mark.parametrize("end_mark", [True, False])
def test_a_fixed_context_is_the_last_state_of_the_encoder(
    make_model: MakeModel, batch: Batch, decoder: str, reverse_source: bool, end_mark: bool
) -> None:
    """Of one direction, whatever the order of reading: `</s>` comes last in both, and the whole sentence before it;
    where it is not read, the last word does, or the first one of a reversed source."""
    encoder = {"bidirectional": False, "reverse_source": reverse_source, "end_mark": end_mark, "layers": 2}
    model = make_model(attention={"score": "fixed"}, encoder=encoder, decoder={"type": decoder})
    contexts: list[Tensor] = []
    model.decoder.attention.register_forward_hook(lambda module, inputs, result: contexts.append(result[0][:, 0]))
    state = model.start(batch[0], batch[1])
    for tokens in batch[2].unbind(1):
        _, state = model.step(tokens, state)
    summary = model.encoder(model.source_embedding(batch[0]), model.encoder.tokens_read(batch[1])).summary
    assert len(contexts) == batch[2].size(1)
    assert all(torch.equal(context, summary) for context in contexts)


@pytest.mark.parametrize("decoder", DECODERS)
def test_no_dropout_outside_training(make_model: MakeModel, batch: Batch, decoder: str) -> None:
    rates = {"dropout": 0.5, "output_dropout": 0.5, "word_dropout": 0.5}
    model = make_model(encoder={**rates, "layers": 2}, decoder={**rates, "layers": 2, "type": decoder})
    assert torch.equal(model(*batch).vectors, model(*batch).vectors)
