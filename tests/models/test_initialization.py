"""How weights start: their ranges, what keeps a start of its own, and that a seed means what it always meant."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmt.config.schema import ModelConfig
from nmt.models.decoders import DECODERS
from nmt.models.initialization import STARTS, Role, Weight, initialize
from nmt.models.seq2seq import Seq2Seq, build_model

UNIFORM = {"name": "uniform", "range": 0.1}
XAVIER = {"name": "xavier"}
NORMALIZED = {"hidden_size": 40, "layer_normalization": True}


def everything(decoder: str) -> dict[str, Any]:
    """Settings with every kind of parameter that a decoder may have, in sizes that fill a range."""
    return {
        "encoder": NORMALIZED,
        "decoder": {"type": decoder, "hidden_size": 50, "layers": 2, "layer_normalization": True},
        "attention": {
            "score": "location_sensitive",
            "scope": "local-p",
            "coverage": True,
            "bias": True,
            "filters": 20,
            "filter_width": 11,
        },
    }


def is_norm(name: str) -> bool:
    return "norm" in name.split(".")[-2]


def model(**settings: object) -> Seq2Seq:
    torch.manual_seed(0)
    sizes = {
        "initialization": XAVIER,
        "embedding_size": 30,
        "encoder": {"hidden_size": 40},
        "decoder": {"type": "luong", "hidden_size": 50},
    }
    return build_model(ModelConfig.model_validate({**sizes, **settings}), source_size=70, target_size=80)


class Misnamed(nn.Module):
    """A matrix that is named like a bias, and a bias that is not."""

    def __init__(self) -> None:
        super().__init__()
        self.bias_of_places = nn.Parameter(torch.zeros(40, 50))
        self.shift = nn.Parameter(torch.ones(7))
        self.layer, self.convolution = nn.Linear(3, 5), nn.Conv1d(1, 3, 3)

    def declared(self) -> Iterator[tuple[Tensor, Weight]]:
        yield self.shift, Weight(Role.BIAS)


@pytest.mark.parametrize("name", STARTS)
def test_a_bias_is_what_a_layer_declares_whatever_its_name(name: str) -> None:
    layer = Misnamed()
    initialize(layer, ModelConfig.model_validate({"initialization": {"name": name}}))
    biases = (layer.shift, layer.layer.bias, layer.convolution.bias)
    assert [bias.tolist() for bias in biases] == [[0.0] * len(bias) for bias in biases]
    assert layer.bias_of_places.all()


def test_lecun() -> None:
    """N(0, 1/inputs), of an embedding N(0, 1/words); orthogonal where recurrent or square, biases 0."""
    built = model(initialization={"name": "lecun"}, attention={"score": "additive", "size": 80})
    cell = built.decoder.cells[0]
    deviations = {
        built.source_embedding.weight: 70**-0.5,
        cell.input_layer.weight: 30**-0.5,
        built.decoder.combine.weight: 130**-0.5,  # [c_t; h_t]: 80 + 50 units
        built.decoder.attention.score.vector: 80**-0.5,
    }
    for weight, deviation in deviations.items():
        few = 3 * deviation * (2 * weight.numel()) ** -0.5  # 3 standard errors of a standard deviation
        assert weight.std().item() == pytest.approx(deviation, abs=few)
    square = built.decoder.attention.score.memory_layer.weight
    for matrix in (square, *cell.recurrent_layer.weight.split(50)):
        torch.testing.assert_close(matrix @ matrix.T, torch.eye(len(matrix)), rtol=0, atol=1e-5)
    assert not cell.input_layer.bias.any()


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_reset_gate_that_comes_first_has_blocks_of_its_own(decoder: str) -> None:
    """U_r, U_z and U_g of every cell are orthogonal; W, feed and context are drawn gate by gate."""
    settings = {"type": decoder, "cell": "gru_reset_first", "hidden_size": 50, "layers": 2}
    drawn = model(decoder=settings, encoder={"cell": "gru_reset_first", "hidden_size": 40})
    blocks = 0
    for name, weight in drawn.named_parameters():
        if any(part in name for part in ("recurrent_layer", "candidate_layer", "weight_hh")):
            for block in weight.split(weight.size(1)):
                torch.testing.assert_close(block @ block.T, torch.eye(len(block)), rtol=0, atol=1e-5)
                blocks += 1
        elif any(part in name for part in ("input_layer.weight", "weight_ih", "feed", "context_layer")):
            limit = (6 / (weight.size(0) / 3 + weight.size(1))) ** 0.5
            assert 0.9 * limit < weight.abs().max() <= limit, name
    assert blocks == 2 * 3 + 3 * (3 if decoder == "conditional_gru" else 2)


@pytest.mark.parametrize("name", STARTS)
def test_forget_gates_start_at_their_bias(name: str) -> None:
    """The second quarter of b, in both directions and both sides; the encoder's second bias adds nothing to it."""
    lstm = {"cell": "lstm", "layers": 2}
    start = {"name": name, "forget_bias": 1.5}
    built = model(
        initialization=start, encoder={**lstm, "hidden_size": 40}, decoder={**lstm, "hidden_size": 50, "type": "luong"}
    )
    biases = {name: bias.tolist() for name, bias in built.named_parameters() if "bias" in name}
    expected = {
        key: [0.0] * size + [1.5 if "bias_ih" in key or "input_layer" in key else 0.0] * size + [0.0] * 2 * size
        for key, size in ((key, len(bias) // 4) for key, bias in biases.items())
    }
    assert biases == expected
    assert len(biases) == 2 * 2 * 2 + 2 + 1  # of the encoder, of the decoder's cells, of s_0


@pytest.mark.parametrize("name", STARTS)
def test_forget_gates_start_at_their_bias_behind_a_normalization_too(name: str) -> None:
    """What the gates are computed from is larger by the forget bias at f, and the same at i, g and o, for any input;
    no other weight starts elsewhere, in both decoders that may have such cells."""
    for decoder in (decoder for decoder, kind in DECODERS.items() if "lstm" in kind.cell_names):
        settings = {"type": decoder, "cell": "lstm", "hidden_size": 50, "layers": 2, "layer_normalization": True}
        plain, shifted = (
            model(initialization={"name": name, "forget_bias": bias}, encoder=NORMALIZED, decoder=settings)
            for bias in (0.0, 1.5)
        )
        for before, after in zip(plain.decoder.cells, shifted.decoder.cells, strict=True):
            values = torch.randn(3, before.input_layer.in_features)
            gates = [cell.input_norm(cell.project(values)) for cell in (before, after)]
            expected = torch.tensor([0.0, 1.5, 0.0, 0.0]).repeat_interleave(50).expand(3, 200)
            torch.testing.assert_close(gates[1] - gates[0], expected, rtol=0, atol=1e-6)
        first, second = plain.state_dict(), shifted.state_dict()
        changed = {key for key in first if not torch.equal(first[key], second[key])}
        assert changed == {f"decoder.cells.{layer}.input_norm.bias" for layer in range(2)}


def test_xavier_as_in_joeynmt() -> None:
    """Recurrent matrices like all others, gate by gate, and small embeddings."""
    built = model(initialization={**XAVIER, "recurrent": "xavier", "embedding_deviation": 0.01})
    for matrix in (built.encoder.network.weight_hh_l0, built.decoder.cells[0].recurrent_layer.weight):
        limit = (6 / (2 * matrix.size(1))) ** 0.5
        assert 0.9 * limit < matrix.abs().max() <= limit
    for embedding in (built.source_embedding, built.target_embedding):
        assert abs(embedding.weight.std().item() - 0.01) < 0.001


def test_embeddings_have_unit_size_unless_the_output_shares_them() -> None:
    built = model()
    assert abs(built.source_embedding.weight.std().item() - 1.0) < 0.05
    assert abs(built.target_embedding.weight.std().item() - 1.0) < 0.05
    tied = model(tie_embeddings="target", decoder={"hidden_size": 50, "output_size": 30})
    assert abs(tied.source_embedding.weight.std().item() - 1.0) < 0.05
    assert abs(tied.output_weight.std().item() - 30**-0.5) < 0.01


@pytest.mark.parametrize("decoder", DECODERS)
def test_uniform_stays_in_its_range_and_fills_it(decoder: str) -> None:
    for name, weight in model(initialization=UNIFORM, **everything(decoder)).named_parameters():
        if is_norm(name):
            continue
        if "bias" in name.split(".")[-1]:
            assert not weight.any(), name
        else:
            assert -0.1 <= weight.min() < -0.07, name
            assert 0.07 < weight.max() <= 0.1, name


@pytest.mark.parametrize(("units", "limit"), [(1000, 0.1), (512, 0.1), (400, 0.128), (256, 0.2), (32, 0.2)])
def test_the_usual_range_of_as_many_units_as_there_are(units: int, limit: float) -> None:
    """From few units with small weights, attention sees nothing; with many, large weights learn worse."""
    built = model(initialization={"name": "uniform"}, decoder={"hidden_size": units})
    largest = max(parameter.detach().abs().max().item() for parameter in built.parameters())
    assert 0.999 * limit < largest <= limit


@pytest.mark.parametrize("decoder", DECODERS)
def test_xavier_of_the_new_parameters(decoder: str) -> None:
    """Recurrent blocks orthogonal, one a gate; what feeds the gates is drawn gate by gate; vectors as one row."""
    blocks_of = {"input_layer": 3, "feed": 3, "context_layer": 3}
    for name, weight in model(**everything(decoder)).decoder.named_parameters():
        layer = name.split(".")[-2]
        if is_norm(name) or "bias" in name.split(".")[-1]:
            continue
        if layer == "recurrent_layer":
            for block in weight.chunk(3):
                torch.testing.assert_close(block @ block.T, torch.eye(50), rtol=0, atol=1e-5)
        elif layer != "convolution":
            rows, columns = (
                (1, len(weight)) if weight.dim() == 1 else (len(weight) // blocks_of.get(layer, 1), weight.size(1))
            )
            limit = (6 / (rows + columns)) ** 0.5
            assert 0.9 * limit < weight.abs().max() <= limit, name


def test_bahdanau() -> None:
    """B.1 of the paper: the score has a vector of 0 and N(0, 0.001²), recurrence is orthogonal, others N(0, 0.01²)."""
    built = model(initialization={"name": "bahdanau"}, decoder={"hidden_size": 50, "type": "bahdanau"})
    attention, cell = built.decoder.attention.score, built.decoder.cells[0]
    assert not attention.vector.any()
    for weight in (attention.query_layer.weight, attention.memory_layer.weight):
        assert abs(weight.std().item() - 0.001) < 1e-4
    for block in cell.recurrent_layer.weight.split(50):
        torch.testing.assert_close(block @ block.T, torch.eye(50), rtol=0, atol=1e-5)
    for weight in (built.source_embedding.weight, built.output_weight, cell.input_layer.weight):
        assert abs(weight.std().item() - 0.01) < 1e-3
    for name, parameter in built.named_parameters():
        assert "bias" not in name or not parameter.any(), name


@pytest.mark.parametrize(("name", "expected"), [*zip(STARTS, (-4.957, 34.499, -7.297, -17.356), strict=True)])
def test_a_seed_gives_the_weights_of_earlier_versions(name: str, expected: float) -> None:
    """Σ_i cos(i) w_i of all weights, by their names, and of the next number, on every machine but for rounding."""
    drawn = model(
        embedding_size=6,
        tie_embeddings="target",
        initialization=UNIFORM if name == "uniform" else {"name": name},
        encoder={**NORMALIZED, "cell": "lstm", "hidden_size": 5, "layers": 2},
        attention={"score": "additive", "scope": "local-p", "bias": True, "coverage": True},
        decoder={**everything("bahdanau")["decoder"], "cell": "gru", "hidden_size": 10, "output_size": 6},
    )
    values = [weight.detach().flatten() for _, weight in sorted(drawn.named_parameters())]
    whole = torch.cat([*values, torch.rand(1)]).double()
    assert float(whole @ torch.cos(torch.arange(len(whole), dtype=torch.float64))) == pytest.approx(expected, abs=0.002)
