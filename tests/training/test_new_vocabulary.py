"""The weights of a model for another vocabulary, on tables that a person can read."""

import numpy as np
import pytest
import torch

from nmt.config.schema import Config
from nmt.data.segmentation import read_model
from nmt.data.subwords import Subwords, Vocabularies
from nmt.data.vocabulary import word_model
from nmt.models.seq2seq import build_model
from nmt.training.new_vocabulary import vocabulary_report, with_vocabularies


def words(text: str) -> Subwords:
    return Subwords(word_model(text.split(), ""))


def test_known_rows_move_and_new_ones_are_the_mean() -> None:
    """Special symbols in rows 0 to 3; a b c in 4 to 6, of which the mean is (2, 20)."""
    old, new = words("a b c"), words("d c a e f")
    table = torch.tensor([[9.0, 9.0], [8.0, 8.0], [7.0, 7.0], [6.0, 6.0], [1.0, 10.0], [2.0, 30.0], [3.0, 20.0]])
    weights = {"source_embedding.weight": table, "encoder.weight": torch.ones(3)}
    changed = with_vocabularies(weights, Vocabularies(old, old), Vocabularies(new, new))
    mean = [2.0, 20.0]
    expected = [*table[:4].tolist(), mean, [3.0, 20.0], [1.0, 10.0], mean, mean]
    assert changed["source_embedding.weight"].tolist() == expected
    assert changed["encoder.weight"] is weights["encoder.weight"]
    assert list(vocabulary_report(Vocabularies(old, old), Vocabularies(new, new))) == [
        "joint vocabulary: 2 of 5 pieces are known to the model, 3 start at the mean"
    ]


def test_special_symbols_keep_their_weights_whatever_they_are_called() -> None:
    """Models of spm_train may call them otherwise; their ids are the same."""
    old = words("a b")
    model = read_model(old.model)
    for piece, name in zip(model.pieces[:4], ("pad", "unk", "bos", "eos"), strict=False):
        piece.piece = f"[{name}]"
        setattr(model.trainer_spec, f"{name}_piece", piece.piece)
    renamed = Subwords(model.SerializeToString())
    assert renamed.pieces(range(6)) == ["[pad]", "[unk]", "[bos]", "[eos]", "▁a", "▁b"]
    table = torch.arange(12.0).view(6, 2)
    changed = with_vocabularies({"source_embedding.weight": table}, Vocabularies(old, old), Vocabularies(renamed, old))
    assert torch.equal(changed["source_embedding.weight"], table)


def test_both_sides_of_a_joint_vocabulary_are_told_for_a_model_that_had_two() -> None:
    joint = words("a b x y")
    assert list(vocabulary_report(Vocabularies(words("a b"), words("x")), Vocabularies(joint, joint))) == [
        "source vocabulary: 2 of 4 pieces are known to the model, 2 start at the mean",
        "target vocabulary: 1 of 4 pieces are known to the model, 3 start at the mean",
    ]


@pytest.mark.parametrize("tied", ["none", "target", "all"])
def test_each_table_has_the_vocabulary_of_its_side(tied: str) -> None:
    """Against the same in NumPy; a model of the new sizes takes the weights."""
    pair = {"source": "a", "target": "b"}
    config = Config.model_validate(
        {
            "name": "run",
            "data": {"source_language": "en", "target_language": "de", "train": [pair], "valid": pair},
            "model": {
                "embedding_size": 3,
                "tie_embeddings": tied,
                "encoder": {"hidden_size": 2},
                "decoder": {"hidden_size": 5, "output_size": 3},
            },
        }
    )
    source, target = words("a b c"), words("x y")
    new_source, new_target = words("c z a q"), words("y u v x w")
    old = Vocabularies(source, source if tied == "all" else target)
    new = Vocabularies(new_source, new_source if tied == "all" else new_target)
    torch.manual_seed(1)
    weights = build_model(config.model, source_size=old.source.size, target_size=old.target.size).state_dict()
    changed = with_vocabularies(weights, old, new)
    build_model(config.model, source_size=new.source.size, target_size=new.target.size).load_state_dict(changed)
    for name, weight in weights.items():
        if name not in ("source_embedding.weight", "own_target_embedding.weight", "output_layer.weight"):
            assert torch.equal(changed[name], weight)
            continue
        side = 0 if name == "source_embedding.weight" else 1
        before, after = ((one.pieces(range(one.size))) for one in (old[side], new[side]))
        table = weight.numpy().astype(np.float64)
        expected = [table[before.index(piece)] if piece in before else table[4:].mean(0) for piece in after]
        np.testing.assert_allclose(changed[name].numpy(), expected, rtol=1e-6)
    assert len(list(vocabulary_report(old, new))) == (1 if tied == "all" else 2)
