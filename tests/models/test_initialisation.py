import torch

from nmt.config.schema import ModelConfig
from nmt.models.seq2seq import Seq2Seq, build_model


def model(**settings: object) -> Seq2Seq:
    torch.manual_seed(0)
    sizes = {"embedding_size": 30, "encoder": {"hidden_size": 40}, "decoder": {"hidden_size": 50}}
    return build_model(ModelConfig.model_validate({**sizes, **settings}), source_size=70, target_size=80)


def test_uniform_stays_in_its_range_and_fills_it() -> None:
    weights = [
        (name, weight) for name, weight in model(initialisation={"name": "uniform", "range": 0.1}).named_parameters()
    ]
    for name, weight in weights:
        if "bias" in name.split(".")[-1]:
            assert not weight.any(), name
        else:
            assert 0.08 < weight.abs().max() <= 0.1, name


def test_xavier_has_orthogonal_recurrent_blocks() -> None:
    built = model()
    recurrent = [built.encoder.network.weight_hh_l0, built.encoder.network.weight_hh_l0_reverse]
    for matrix in [*recurrent, built.decoder.cells[0].recurrent_layer.weight]:
        for block in matrix.split(matrix.size(1)):
            torch.testing.assert_close(block @ block.T, torch.eye(len(block)), rtol=0, atol=1e-5)


def test_xavier_limits() -> None:
    """|w| ≤ sqrt(6 / (rows + columns)), the rows of each gate by themselves: 3 blocks of 50 × 30 in the decoder."""
    built = model()
    for matrix, blocks in ((built.decoder.combine.weight, 1), (built.decoder.cells[0].input_layer.weight, 3)):
        rows, columns = matrix.size(0) // blocks, matrix.size(1)
        limit = (6 / (rows + columns)) ** 0.5
        assert 0.9 * limit < matrix.abs().max() <= limit


def test_embeddings_have_unit_size_unless_the_output_shares_them() -> None:
    built = model()
    assert abs(built.source_embedding.weight.std().item() - 1.0) < 0.05
    assert abs(built.target_embedding.weight.std().item() - 1.0) < 0.05
    tied = model(tie_embeddings="target", decoder={"hidden_size": 50, "output_size": 30})
    assert abs(tied.source_embedding.weight.std().item() - 1.0) < 0.05
    assert abs(tied.output_weight.std().item() - 30**-0.5) < 0.01


def test_a_seed_gives_one_model() -> None:
    first, second = model().state_dict(), model().state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
