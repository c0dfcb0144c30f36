"""What is particular to each decoder, by hand: what enters the cells, the attention and the readout."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmt.models.decoders import DECODERS
from nmt.models.seq2seq import Seq2Seq

MakeModel = Callable[..., Seq2Seq]
Batch = tuple[Tensor, Tensor, Tensor]
Changes = dict[str, Any]


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


@torch.no_grad()
def test_bahdanau_weights_of_a_word_do_not_know_the_word_before_it(make_model: MakeModel, batch: Batch) -> None:
    """y_{i-1} enters s_i, and the query of word i is s_{i-1}. In the other decoders, and in the authors' order, the
    default, it has been read before."""
    source, lengths, target_input = batch
    other = target_input.clone()
    other[:, 3] = 18
    first_changes = {"luong": 3, "conditional_gru": 3, "bahdanau paper": 4, "bahdanau": 3}
    for decoder, first_change in first_changes.items():
        model = make_model(decoder=dict(zip(("type", "order"), decoder.split(), strict=False)))
        weights, changed = (model(source, lengths, tokens).weights[:2] for tokens in (target_input, other))
        differs = (weights != changed).flatten(2).any(2).all(0)
        assert differs.tolist() == [position >= first_change for position in range(8)], decoder


@torch.no_grad()
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_bahdanau_in_the_authors_order(make_model: MakeModel, batch: Batch, cell: str) -> None:
    """s_i = RNN([E y_{i-1}; c_{i-1}], s_{i-1}) with c_0 = 0, then c_i = attention(s_i), with s_i of the top layer."""
    model = make_model(decoder={"type": "bahdanau", "order": "authors", "layers": 2, "cell": cell})
    decoder: Any = model.decoder
    queries, states = queries_of(model, batch)
    before = model.start(batch[0], batch[1]).decoder
    assert before.fed is not None
    assert before.fed.shape == (3, 20)
    assert not before.fed.any()
    for position, (query, state) in enumerate(zip(queries, states, strict=True)):
        assert torch.equal(query, state.layers[1][0])
        read = decoder.cells[0].project(model.target_embedding(batch[2][:, position]))
        bottom = decoder.cells[0](read + before.fed @ decoder.context_layer.weight.T, before.layers[0])
        top = decoder.cells[1](decoder.cells[1].project(bottom[0]), before.layers[1])
        for layer, expected in zip(state.layers, (bottom, top), strict=True):
            torch.testing.assert_close(layer, expected, rtol=0, atol=1e-12)
        before = state


@torch.no_grad()
def test_both_orders_of_bahdanau_have_the_same_weights(make_model: MakeModel, batch: Batch) -> None:
    """But do not compute the same."""
    paper, authors = (make_model(decoder={"type": "bahdanau", "order": order}) for order in ("paper", "authors"))
    authors.load_state_dict(paper.state_dict())
    assert not torch.allclose(paper(*batch).vectors, authors(*batch).vectors)


@torch.no_grad()
def test_conditional_gru_asks_between_its_cells(make_model: MakeModel, batch: Batch) -> None:
    """s'_j = GRU_1(E y_{j-1}, s_{j-1}) is the query, s_j = GRU_2(c_j, s'_j) the state of the bottom layer."""
    model = make_model(decoder={"type": "conditional_gru", "layers": 2})
    decoder: Any = model.decoder
    queries, states = queries_of(model, batch)
    before = model.start(batch[0], batch[1]).decoder
    for position, (query, state) in enumerate(zip(queries, states, strict=True)):
        embedded = model.target_embedding(batch[2][:, position])
        (expected,) = decoder.cells[0](decoder.cells[0].project(embedded), before.layers[0])
        torch.testing.assert_close(query, expected, rtol=0, atol=1e-12)
        assert not torch.allclose(state.layers[0][0], expected)
        before = state


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


def test_maxout_sends_the_gradient_to_the_larger_one(make_model: MakeModel, batch: Batch) -> None:
    model = make_model(decoder={"type": "bahdanau", "output_size": 3})
    readout: Any = model.decoder.readout
    zero(readout)
    with torch.no_grad():
        readout.bias.copy_(torch.tensor([1.0, 5, 7, 2, -3, -4]))
    model(*batch).vectors.sum().backward()
    assert readout.bias.grad.tolist() == [0, 24, 24, 0, 24, 0]  # 3 sentences of 8 steps


@torch.no_grad()
@pytest.mark.parametrize("decoder", ["bahdanau", "bahdanau paper", "conditional_gru"])
def test_readout_reads_state_word_and_context_in_this_order(make_model: MakeModel, batch: Batch, decoder: str) -> None:
    """One column of the readout's weights at a time: the first unit of s_i, of E y_{i-1}, of c_i."""
    source, lengths, target_input = batch
    model = make_model(decoder=dict(zip(("type", "order"), decoder.split(), strict=False)))
    readout: Any = model.decoder.readout
    contexts: list[Tensor] = []
    model.decoder.attention.register_forward_hook(lambda module, inputs, result: contexts.append(result[0][:, 0]))
    _, state = model.step(target_input[:, 0], model.start(source, lengths))
    expected = [state.decoder.layers[-1][0], model.target_embedding(target_input[:, 0]), contexts[0]]
    for column, part in zip([0, 7, 7 + 2], expected, strict=True):
        zero(readout)
        readout.weight[:, column] = 1.0
        vector = model(*batch).vectors[:, 0, 0]
        value = part[:, 0]
        torch.testing.assert_close(vector, value if "bahdanau" in decoder else torch.tanh(value), rtol=0, atol=1e-12)


@torch.no_grad()
def test_luong_combines_context_and_state_in_this_order(make_model: MakeModel, batch: Batch) -> None:
    """h̃ = tanh(W_c [c; h]): with only the column of h's first unit, h̃ is tanh of that unit; there is no bias."""
    source, lengths, target_input = batch
    model = make_model()
    combine: Any = model.decoder.combine
    assert combine.bias is None
    for column, name in ((0, "context"), (20, "state")):
        zero(combine)
        combine.weight[:, column] = 1.0
        contexts: list[Tensor] = []
        handle = model.decoder.attention.register_forward_hook(
            lambda module, inputs, result, contexts=contexts: contexts.append(result[0][:, 0])
        )
        _, state = model.step(target_input[:, 0], model.start(source, lengths))
        handle.remove()
        value = (contexts[0] if name == "context" else state.decoder.layers[-1][0])[:, :1]
        torch.testing.assert_close(state.decoder.fed, torch.tanh(value).expand(-1, 16), rtol=0, atol=1e-12)


# ------------------------------------------------------------------------------------------------ what enters the cells


@pytest.mark.parametrize(
    ("changes", "layer"),
    [
        ({}, "feed"),
        ({"type": "bahdanau"}, "context_layer"),
        ({"type": "bahdanau", "order": "paper"}, "context_layer"),
        ({"type": "conditional_gru"}, "context_cell.input_layer"),
    ],
    ids=["luong", "bahdanau", "bahdanau, paper", "conditional_gru"],
)
def test_what_was_attended_to_enters_the_cells(
    make_model: MakeModel, batch: Batch, changes: Changes, layer: str
) -> None:
    """The last state depends on the contexts before it, forwards and backwards."""
    model = make_model(decoder=changes)
    entering = model.decoder.get_submodule(layer)
    model(*batch).vectors[:, -1].sum().backward()
    gradient: Any = entering.weight.grad
    assert gradient.any()
    with_it = model(*batch).vectors
    zero(entering)
    assert not torch.allclose(model(*batch).vectors, with_it)


def test_without_input_feeding_nothing_is_fed(make_model: MakeModel, batch: Batch) -> None:
    """The states of the decoder then do not depend on attention at all."""
    model = make_model(decoder={"input_feeding": False})
    assert model.decoder.feed is None
    _, states = queries_of(model, batch)
    zero(model.decoder.attention.score)
    _, again = queries_of(model, batch)
    assert all(torch.equal(one.layers[0][0], other.layers[0][0]) for one, other in zip(states, again, strict=True))


@torch.no_grad()
@pytest.mark.parametrize("decoder", ["luong", "bahdanau"])
def test_without_attention_only_the_first_state_knows_the_source(
    make_model: MakeModel, batch: Batch, decoder: str
) -> None:
    """From one first state the same words come over any memory; the layers have no weights for a context."""
    model = make_model(attention={"score": "none"}, decoder={"type": decoder})
    names = {name: value.shape for name, value in model.decoder.state_dict().items()}
    assert not any("attention" in name or "context" in name for name in names)
    assert names.get("combine.weight", (16, 7)) == (16, 7)
    assert names.get("readout.weight", (32, 9)) == (32, 7 + 2)
    one, other = model.start(batch[0], batch[1]), model.start(batch[0].flip(0), batch[1].flip(0))
    other = other._replace(decoder=one.decoder)
    for tokens in batch[2].unbind(1):
        (expected, one), (log_probabilities, other) = model.step(tokens, one), model.step(tokens, other)
        assert torch.equal(log_probabilities, expected)


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


@torch.no_grad()
@pytest.mark.parametrize("decoder", DECODERS)
def test_a_residual_layer_adds_what_it_reads(make_model: MakeModel, batch: Batch, decoder: str) -> None:
    """Without weights it gives what the layer below gives: the same words come as from that layer alone."""
    start = {"initial_state": "zeros", "type": decoder}
    one, two = (make_model(decoder={"layers": layers, "residual": layers > 1, **start}) for layers in (1, 2))
    two.load_state_dict(one.state_dict(), strict=False)
    zero(two.decoder.cells[1])  # type: ignore[index]
    torch.testing.assert_close(two(*batch).vectors, one(*batch).vectors, rtol=0, atol=1e-12)
    assert not queries_of(two, batch)[1][-1].layers[1][0].any()


# ------------------------------------------------------------------------------------------------------------- dropout


@pytest.mark.parametrize("decoder", DECODERS)
def test_no_dropout_outside_training(make_model: MakeModel, batch: Batch, decoder: str) -> None:
    rates = {"dropout": 0.5, "output_dropout": 0.5, "word_dropout": 0.5}
    model = make_model(encoder={**rates, "layers": 2}, decoder={**rates, "layers": 2, "type": decoder})
    assert torch.equal(model(*batch).vectors, model(*batch).vectors)
