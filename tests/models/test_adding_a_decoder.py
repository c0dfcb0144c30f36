"""Adding a decoder touches one source file: a class and a line in DECODERS of nmt/models/decoders.py.

The example names its layers as no other decoder does. Everything else comes with the class: the configuration, how the
weights start, training, search and the model file.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.config.schema import Config
from nmt.errors import UserError
from nmt.models.attention import Attention
from nmt.models.combinations import FAMILIES
from nmt.models.decoder import DecoderShape, DecoderState, ReadoutDecoder
from nmt.models.decoders import DECODERS
from nmt.models.initialization import Role, Weight
from nmt.models.memory import Memory
from nmt.models.model_file import ModelFile, load_model, rebuild, save_model
from nmt.models.seq2seq import Seq2Seq, build_model
from nmt.ops.activations import tanh
from nmt.ops.linear import Linear
from nmt.ops.steps import StepLinear
from nmt.symbols import BEGIN
from scripts.make_configuration_reference import json_schema
from tests.conftest import checked_config
from tests.models.conftest import FILE

MODEL = "embedding_size: 30, encoder: {hidden_size: 40}"


class MixingDecoder(ReadoutDecoder):
    """q_t = tanh(M s_{t-1}), c_t = attention(q_t), s_t = RNN([E y_{t-1}; c_t], s_{t-1}), t_t = tanh(T [s_t; c_t])."""

    def __init__(self, attention: Attention, shape: DecoderShape) -> None:
        super().__init__(attention, shape)
        self.mixing = StepLinear(shape.size, shape.size, bias=False)
        self.bridge = StepLinear(attention.context_size, self._cell(0).kind.gates * shape.size, bias=False)
        self.telling = Linear(shape.size + attention.context_size, shape.output_size)

    def declared(self) -> Iterator[tuple[Tensor, Weight]]:
        yield self.mixing.weight, Weight(Role.RECURRENT)
        yield self.bridge.weight, Weight(gates=self._cell(0).kind.gates)

    def _recur(
        self, from_input: Tensor, state: DecoderState, memory: Memory, masks: Sequence[Tensor]
    ) -> tuple[Tensor, Tensor, DecoderState]:
        query = tanh(self.mixing(self._output(state.layers)))
        context, weights, past = self.attention.step(query, memory, state.past)
        layers = self._stack(self._cell(0)(from_input + self.bridge(context), state.layers[0]), state.layers, masks)
        return context, weights, DecoderState(layers, past)

    def _read_out(self, top: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        return tanh(self.telling(torch.cat((top, context), dim=-1)))


@pytest.fixture(autouse=True)
def _added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DECODERS, "mixing", MixingDecoder)


def configuration(folder: Path, decoder: str, initialization: str = "xavier") -> Config:
    """`decoder`: its type, and more keys if need be."""
    model = f"{MODEL}, decoder: {{hidden_size: 50, type: {decoder}}}, initialization: {{name: {initialization}}}"
    (folder / "toy.yaml").write_text(f"{FILE}model: {{{model}}}\n")
    return checked_config(folder / "toy.yaml")


def built(folder: Path, initialization: str = "xavier", decoder: str = "mixing") -> tuple[Config, Seq2Seq, Any]:
    config = configuration(folder, decoder, initialization)
    torch.manual_seed(0)
    model = build_model(config.model, source_size=70, target_size=80)
    return config, model, model.decoder


def test_its_name_is_allowed_and_offered(tmp_path: Path) -> None:
    assert configuration(tmp_path, "mixing").model.decoder.type == "mixing"
    schema = json_schema({**FAMILIES, "metric": []})["$defs"]["DecoderConfig"]["properties"]["type"]
    assert schema["enum"] == ["luong", "bahdanau", "conditional_gru", "mixing"]
    with pytest.raises(UserError, match=r"model\.decoder\.type: given 'mixin'; nearest: mixing; allowed: .*, mixing$"):
        configuration(tmp_path, "mixin")


def test_its_weights_start_as_it_declares(tmp_path: Path) -> None:
    _, _, decoder = built(tmp_path)
    torch.testing.assert_close(decoder.mixing.weight @ decoder.mixing.weight.T, torch.eye(50), rtol=0, atol=1e-5)
    for matrix, blocks in ((decoder.bridge.weight, 3), (decoder.telling.weight, 1)):
        limit = (6 / (matrix.size(0) // blocks + matrix.size(1))) ** 0.5
        assert 0.9 * limit < matrix.abs().max() <= limit
    assert not decoder.telling.bias.any()

    _, _, decoder = built(tmp_path, "bahdanau")
    torch.testing.assert_close(decoder.mixing.weight @ decoder.mixing.weight.T, torch.eye(50), rtol=0, atol=1e-5)
    assert all(abs(layer.weight.std() - 0.01) < 0.001 for layer in (decoder.bridge, decoder.telling))


@pytest.mark.parametrize("more", ["", ", layers: 3, residual: true"])
def test_it_trains_step_by_step_as_search_takes_it(tmp_path: Path, more: str) -> None:
    _, model, decoder = built(tmp_path, decoder=f"mixing{more}")
    source, lengths = torch.tensor([[4, 5, 3], [6, 3, 0]]), torch.tensor([3, 2])
    target = torch.tensor([[BEGIN, 7, 8], [BEGIN, 9, 4]])
    vectors = model(source, lengths, target).vectors
    vectors.sum().backward()
    assert all(layer.weight.grad.any() for layer in (decoder.mixing, decoder.bridge, decoder.telling))
    with torch.inference_mode():
        state = model.start(source, lengths)
        for step, tokens in enumerate(target.unbind(1)):
            vector, _, state = model.advance(tokens, state)
            torch.testing.assert_close(vector, vectors[:, step].detach(), rtol=0, atol=1e-5)


def test_it_is_saved_and_read(tmp_path: Path) -> None:
    config, model, _ = built(tmp_path)
    save_model(tmp_path / "model.safetensors", ModelFile(config, model.state_dict(), b"a", b"b", (70, 80), {}))
    again = rebuild(load_model(tmp_path / "model.safetensors")).state_dict()
    assert all(torch.equal(weight, again[name]) for name, weight in model.state_dict().items())
