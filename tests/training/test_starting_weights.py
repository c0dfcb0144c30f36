"""What a configuration inherits from a model, key by key, the parts that can be frozen, and other vocabularies."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nmt.config.contradictions import contradictions
from nmt.config.loading import dump_config, parse_config
from nmt.config.schema import Config, ModelConfig
from nmt.data.segmentation import read_model
from nmt.data.subwords import Subwords, Vocabularies
from nmt.data.vocabulary import word_model
from nmt.errors import UserError
from nmt.models.model_file import ModelFile, save_model
from nmt.models.seq2seq import Seq2Seq, build_model
from nmt.training.starting_weights import (
    Origin,
    freeze,
    inherited,
    load_origin,
    parts,
    read_pretrained,
    starting_model,
    vocabulary_report,
    why_not_alike,
    with_vocabularies,
)

MODEL: dict[str, Any] = {
    "embedding_size": 5,
    "encoder": {"hidden_size": 3, "dropout": 0.2},
    "decoder": {"hidden_size": 7, "dropout": 0.3, "initial_state": "mean"},
}
NEW = {"training": {"max_epochs": 1, "vocabulary": "new"}}


def config(**sections: Any) -> Config:
    pair = {"source": "a", "target": "b"}
    data = {"source_language": "en", "target_language": "de", "train": [pair], "valid": {"source": "c", "target": "d"}}
    return Config.model_validate({"name": "new", "data": data, **sections})


@pytest.fixture(scope="module")
def vocabularies() -> list[Subwords]:
    """Two models of 16 pieces."""
    settings = config().subwords.model_copy(update={"size": 16})
    return [Subwords.train([text] * 9, settings=settings) for text in ("abc abd cab dab", "abc abe cab bab")]


def origin(path: Path, pieces: list[Subwords], **sections: Any) -> Origin:
    """A model file as `load_origin` reads it; one vocabulary, or two."""
    first = config(**{"model": MODEL, **sections})
    sizes = (pieces[0].size, pieces[-1].size)
    network = build_model(first.model, source_size=sizes[0], target_size=sizes[1])
    save_model(path, ModelFile(first, network.state_dict(), pieces[0].model, pieces[-1].model, sizes, {}))
    return load_origin(path)


def completed(new: Config, first: Origin) -> Config:
    """What `new` inherits, when it contradicts nothing."""
    result, problems = inherited(new, first)
    assert problems == []
    return result


def refusals(new: Config, first: Origin) -> list[str]:
    """What is refused, without the ending that says there is no way."""
    _, problems = inherited(new, first)
    ending = f"; --init-from {first.path} cannot change it"
    assert all(problem.message.endswith(ending) for problem in problems)
    return [f"{'.'.join(map(str, problem.path))}: {problem.message.removesuffix(ending)}" for problem in problems]


def test_a_model_without_a_subword_model(tmp_path: Path, vocabularies: list[Subwords]) -> None:
    file = origin(tmp_path / "model", vocabularies).model
    save_model(tmp_path / "damaged", file._replace(source_subwords=b"pieces"))
    with pytest.raises(UserError, match=r"damaged: damaged: its subword model is not a sentencepiece model"):
        load_origin(tmp_path / "damaged")


def test_everything_is_inherited_but_sampling(tmp_path: Path, vocabularies: list[Subwords]) -> None:
    """Subword sampling is a way to train: the new configuration alone decides about it."""
    subwords = {"type": "unigram", "size": 16, "lowercase": True, "sampling": {"alpha": 0.1}}
    first = origin(tmp_path / "model", vocabularies[:1], subwords=subwords)
    result = completed(config(), first)
    assert result.model == first.model.config.model
    assert result.subwords == first.model.config.subwords.model_copy(update={"sampling": None})
    assert completed(config(subwords={"sampling": {"alpha": 0.4}}), first).subwords.sampling.alpha == 0.4  # type: ignore[union-attr]


def test_dropout_may_change_and_nothing_else(tmp_path: Path, vocabularies: list[Subwords]) -> None:
    """Every difference is a problem of its own."""
    first = origin(tmp_path / "model", vocabularies[:1])
    rates = {"encoder": {"dropout": 0.4, "word_dropout": 0.2}, "decoder": {"output_dropout": 0.3}}
    model = completed(config(model=rates), first).model
    assert (model.encoder.dropout, model.encoder.word_dropout, model.decoder.output_dropout) == (0.4, 0.2, 0.3)
    assert (model.encoder.hidden_size, model.decoder.dropout) == (3, 0.3)
    others = {"embedding_size": 9, "encoder": {"layers": 2, "dropout": 0.5}, "decoder": {"cell": "lstm"}}
    assert refusals(config(model=others, subwords={"lowercase": True}), first) == [
        "subwords.lowercase: false in the model, true here",
        "model.embedding_size: 5 in the model, 9 here",
        "model.encoder.layers: 1 in the model, 2 here",
        "model.decoder.cell: 'gru' in the model, 'lstm' here",
    ]


def test_the_result_is_inherited_unchanged_again(tmp_path: Path, vocabularies: list[Subwords]) -> None:
    """A saved configuration gives every key explicitly, and each agrees with the model."""
    first = origin(tmp_path / "model", vocabularies[:1], subwords={"size": 16})
    result = completed(config(model={"decoder": {"dropout": 0.5}}), first)
    assert completed(parse_config(dump_config(result)), first) == result


def test_a_null_that_differs(tmp_path: Path, vocabularies: list[Subwords]) -> None:
    first = origin(tmp_path / "model", vocabularies[:1])
    assert refusals(config(model={"decoder": {"output_size": 11}, "attention": {"size": 13}}), first) == [
        "model.attention.size: null in the model, 13 here",
        "model.decoder.output_size: null in the model, 11 here",
    ]
    size = first.model.config.model.decoder.hidden_size  # what null stands for
    assert not refusals(config(model={"decoder": {"output_size": size}, "attention": {"size": size}}), first)


def test_initialization_is_compared_within_its_variant(tmp_path: Path, vocabularies: list[Subwords]) -> None:
    """It has no effect on weights that are loaded, so another one is refused as any key that would change nothing."""
    first = origin(tmp_path / "model", vocabularies[:1])
    for initialization in ({"name": "uniform"}, None):
        assert completed(config(model={"initialization": initialization} if initialization else {}), first).model == (
            first.model.config.model
        )
    assert refusals(config(model={"initialization": {"name": "xavier"}}), first) == [
        "model.initialization.name: 'uniform' in the model, 'xavier' here"
    ]


def test_files_of_subwords_are_those_of_the_model(tmp_path: Path, vocabularies: list[Subwords]) -> None:
    """Their paths: a configuration may be repeated for fine-tuning, also where the files are gone."""
    files = {"joint": False, "source_model": "source", "target_model": "target"}
    two = origin(tmp_path / "two", vocabularies, subwords=files)
    assert completed(config(subwords=files), two).subwords == completed(config(), two).subwords
    assert refusals(config(subwords={**files, "source_model": "target"}), two) == [
        "subwords.source_model: 'source' in the model, 'target' here"
    ]
    assert refusals(config(subwords={"vocabulary": "words", "joiner": "+"}), two) == [
        "subwords.vocabulary: null in the model, 'words' here",
        "subwords.joiner: null in the model, '+' here",
    ]
    assert inherited(config(subwords={"model": "other"}, **NEW), two)[1] == []


def test_one_vocabulary_is_not_two(tmp_path: Path, vocabularies: list[Subwords]) -> None:
    joint = origin(tmp_path / "joint", vocabularies[:1])
    assert joint.vocabularies.source is joint.vocabularies.target
    two = origin(tmp_path / "two", vocabularies, subwords={"joint": False})
    assert two.vocabularies.source.model != two.vocabularies.target.model
    assert refusals(config(subwords={"joint": False}), joint) == ["subwords.joint: true in the model, false here"]
    assert refusals(config(subwords={"joint": True}), two) == ["subwords.joint: false in the model, true here"]


def test_two_vocabularies_for_a_model_that_ties_all_embeddings(tmp_path: Path, vocabularies: list[Subwords]) -> None:
    tied = {**MODEL, "tie_embeddings": "all", "decoder": {**MODEL["decoder"], "output_size": 5}}
    first = origin(tmp_path / "model", vocabularies[:1], model=tied)
    (problem,) = contradictions(completed(config(**NEW, subwords={"joint": False}), first))
    assert problem.message.endswith(": set subwords.joint: true, or tie_embeddings: target")
    assert list(contradictions(completed(config(**NEW, subwords={"joint": True}), first))) == []
    assert refusals(config(**NEW, subwords={"joint": False}, model={"tie_embeddings": "target"}), first) == [
        "model.tie_embeddings: 'all' in the model, 'target' here"
    ]


def test_keys_that_only_one_of_two_models_has() -> None:
    """As where one file is of an older version; whichever is given first."""
    older, newer = (
        ModelFile(config(model={**MODEL, **more}), {}, b"s", b"t", (5, 5), {})
        for more in ({}, {"attention": {"half_width": 3}})
    )
    assert why_not_alike(older, newer, name="other") == ["model.attention.half_width: 3 in other, 10 here"]
    assert why_not_alike(newer, older, name="other") == ["model.attention.half_width: 10 in other, 3 here"]


def build(tied: str) -> Seq2Seq:
    settings = {**MODEL, "decoder": {"hidden_size": 7, "output_size": 5}, "tie_embeddings": tied}
    return build_model(ModelConfig.model_validate(settings), source_size=16, target_size=16)


@pytest.mark.parametrize("tied", ["none", "target", "all"])
def test_the_parts_make_up_the_model(tied: str) -> None:
    """Every weight belongs to exactly one part."""
    model = build(tied)
    of_parts = [id(weight) for modules in parts(model).values() for module in modules for weight in module.parameters()]
    assert sorted(of_parts) == sorted(id(weight) for weight in model.parameters())


@pytest.mark.parametrize("tied", ["target", "all"])
def test_frozen_embeddings_freeze_the_output_layer_that_shares_them(tied: str) -> None:
    model = build(tied)
    freeze(model, ["embeddings"])
    assert not model.output_weight.requires_grad
    assert all(weight.requires_grad for name, weight in model.named_parameters() if "embedding" not in name)


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
    assert vocabulary_report(Vocabularies(old, old), Vocabularies(new, new)) == [
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
    assert vocabulary_report(Vocabularies(words("a b"), words("x")), Vocabularies(joint, joint)) == [
        "source vocabulary: 2 of 4 pieces are known to the model, 2 start at the mean",
        "target vocabulary: 1 of 4 pieces are known to the model, 3 start at the mean",
    ]


@pytest.mark.parametrize("tied", ["none", "target", "all"])
def test_each_table_has_the_vocabulary_of_its_side(tied: str) -> None:
    """Against the same in NumPy; a model of the new sizes takes the weights."""
    sizes = {"embedding_size": 3, "encoder": {"hidden_size": 2}, "decoder": {"hidden_size": 5, "output_size": 3}}
    model = ModelConfig.model_validate({**sizes, "tie_embeddings": tied})
    source, target = words("a b c"), words("x y")
    new_source, new_target = words("c z a q"), words("y u v x w")
    old = Vocabularies(source, source if tied == "all" else target)
    new = Vocabularies(new_source, new_source if tied == "all" else new_target)
    torch.manual_seed(1)
    weights = build_model(model, source_size=old.source.size, target_size=old.target.size).state_dict()
    changed = with_vocabularies(weights, old, new)
    build_model(model, source_size=new.source.size, target_size=new.target.size).load_state_dict(changed)
    for name, weight in weights.items():
        if name not in ("source_embedding.weight", "own_target_embedding.weight", "output_layer.weight"):
            assert torch.equal(changed[name], weight)
            continue
        side = 0 if name == "source_embedding.weight" else 1
        before, after = ((one.pieces(range(one.size))) for one in (old[side], new[side]))
        table = weight.numpy().astype(np.float64)
        expected = [table[before.index(piece)] if piece in before else table[4:].mean(0) for piece in after]
        np.testing.assert_allclose(changed[name].numpy(), expected, rtol=1e-6)
    assert len(vocabulary_report(old, new)) == (1 if tied == "all" else 2)


# ----------------------------------------------------------------------------------------------------- files of vectors


def vectors(path: Path, **rows: list[float]) -> str:
    lines = [f"{word} {' '.join(map(str, numbers))}" for word, numbers in rows.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("tied", ["none", "target", "all"])
def test_rows_that_start_from_files(tmp_path: Path, tied: str) -> None:
    """Of both sides, of one, and of the table that both share, which is named by either; all others are drawn."""
    source, target = words("a b c"), words("x y a")
    both = Vocabularies(source, source if tied == "all" else target)
    one, two = vectors(tmp_path / "one", a=[1, 2], z=[5, 6]), vectors(tmp_path / "two", a=[3, 4], x=[7, 8])
    files = {"target": two} if tied == "all" else {"source": one, "target": two, "freeze": True}
    sizes = {"embedding_size": 2, "encoder": {"hidden_size": 3}, "decoder": {"hidden_size": 5, "output_size": 2}}
    plain = starting_model(config(model={**sizes, "tie_embeddings": tied}), both, None, [])
    whole = config(model={**sizes, "tie_embeddings": tied, "embeddings": files})
    pretrained = read_pretrained(whole.model, both)
    model = starting_model(whole, both, None, pretrained)
    if tied == "all":
        expected = {"source_embedding.weight": {4: [3.0, 4.0]}}
        (line,) = [table.report for table in pretrained]
        assert line == f"source and target embeddings: 1 of 3 pieces (33.3%) from {two}"
    else:
        expected = {
            "source_embedding.weight": {4: [1.0, 2.0]},
            "own_target_embedding.weight": {4: [7.0, 8.0], 6: [3.0, 4.0]},
        }
    for name, weight in plain.state_dict().items():
        for row, numbers in expected.get(name, {}).items():
            weight[row] = torch.tensor(numbers)
        assert torch.equal(model.state_dict()[name], weight), name
    frozen = {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
    assert frozen == (set() if tied == "all" else set(expected))


def test_every_mistake_in_both_files(tmp_path: Path) -> None:
    source = vectors(tmp_path / "one", a=[1, float("nan")])
    target = vectors(tmp_path / "two", z=[3, 4])
    both = Vocabularies(words("a b c"), words("x y a"))
    model = ModelConfig.model_validate({"embedding_size": 2, "embeddings": {"source": source, "target": target}})
    with pytest.raises(UserError) as error:
        read_pretrained(model, both)
    first, second = error.value.messages
    assert first.startswith(f"model.embeddings.source: {source}, line 1: a vector has a number that is not from ")
    assert second.startswith(f"model.embeddings.target: {target}: has none of the vocabulary's pieces")
