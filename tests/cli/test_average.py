"""nmt-average: the weighted mean of models, and why some have none."""

import re
import weakref
from pathlib import Path

import pytest
import torch

from nmt.cli import average
from nmt.decoding.translator import Translator
from nmt.errors import UserError
from nmt.models import model_file
from nmt.models.model_file import ModelFile, load_model, longest_trained, save_model
from nmt.protected import LEARNED
from nmt.text_form import source_form
from nmt.training import averaging

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def models(trained: Path) -> list[Path]:
    """Two checkpoints of a run."""
    return sorted((trained / "checkpoints").glob("*.safetensors"))[:2]


def run(models: list[Path], output: Path, *more: str) -> int:
    named = [text for path in models for text in ("--model", str(path))]
    return average.main([*named, "--output", str(output), *more])


@pytest.mark.parametrize(
    ("weights", "shares"), [((), (0.5, 0.5)), (("0.7", "0.3"), (0.7, 0.3)), (("3", "1"), (0.75, 0.25))]
)
def test_every_weight_is_averaged(
    tmp_path: Path, models: list[Path], weights: tuple[str, ...], shares: tuple[float, float], capsys: Capture
) -> None:
    options = ["--weights", *weights] if weights else []
    assert run(models, tmp_path / "both", *options) == 0
    first, second = map(load_model, models)
    both = load_model(tmp_path / "both")
    assert both.weights.keys() == first.weights.keys()
    for name, weight in both.weights.items():
        expected = shares[0] * first.weights[name].double() + shares[1] * second.weights[name].double()
        torch.testing.assert_close(weight.double(), expected, rtol=1e-6, atol=1e-8)
    assert (both.config, both.source_subwords, both.sizes) == (first.config, first.source_subwords, first.sizes)
    assert longest_trained(both) == longest_trained(first)
    assert source_form(both.training) == source_form(first.training) != None  # noqa: E711
    assert both.training["average_of"] == [
        {"digest": model.digest, "share": share} for model, share in zip((first, second), shares, strict=True)
    ]
    assert capsys.readouterr().err == "".join(
        f"nmt-average: {share:g} of {path}\n" for path, share in zip(models, shares, strict=True)
    )


def test_models_stand_after_one_option_as_a_shell_writes_them(tmp_path: Path, models: list[Path]) -> None:
    """As in --model runs/mine/checkpoints/*."""
    assert average.main(["--model", *map(str, models), "--output", str(tmp_path / "both")]) == 0
    assert run(models, tmp_path / "same") == 0
    both, same = (load_model(tmp_path / name).weights for name in ("both", "same"))
    assert all(torch.equal(both[name], same[name]) for name in same)


def test_what_any_has_learned(tmp_path: Path, models: list[Path]) -> None:
    """An average and an ensemble are shown what any of the models has learned of what is no words."""
    having = [tmp_path / "first.safetensors", tmp_path / "second.safetensors"]
    known = {"<es>": False, "<de>": False, "%s": True}, {"<fr>": False, "<de>": True}
    both = {"%s": True, "<de>": False, "<es>": False, "<fr>": False}
    for path, model, learned in zip(having, map(load_model, models), known, strict=True):
        save_model(path, model._replace(training={**model.training, LEARNED: learned}))
    assert run(having, tmp_path / "both") == 0
    assert load_model(tmp_path / "both").training[LEARNED] == both
    for paths in (tmp_path / "both", having):
        assert Translator.load(paths).learned == both


def test_models_that_began_apart(tmp_path: Path, models: list[Path], capsys: Capture) -> None:
    """Of other random weights nothing is left in the average; two checkpoints of a run are no reason to warn."""
    first = load_model(models[0])
    draw = torch.Generator().manual_seed(7)
    drawn = {name: torch.randn(weight.shape, generator=draw) for name, weight in first.weights.items()}
    other = changed(first, tmp_path / "other", weights=drawn)
    assert run([models[0], other], tmp_path / "both") == 0
    assert re.fullmatch(
        rf"nmt-average: warning: {other}: its weights have little in common with those before it \(the cosine is "
        r"-?0\.\d\d\), as if they began apart; the average of such models is of no use",
        capsys.readouterr().err.splitlines()[0],
    )


def test_each_model_is_read_once_and_the_weights_of_one_are_in_memory_at_a_time(
    tmp_path: Path, models: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    former: list[weakref.ref[torch.Tensor]] = []

    def loading(path: Path) -> ModelFile:
        assert not any(weight() is not None for weight in former)
        model = load_model(path)
        former.append(weakref.ref(next(iter(model.weights.values()))))
        return model

    for module in (model_file, averaging):
        monkeypatch.setattr(module, "load_model", loading)
    assert run(models, tmp_path / "both") == 0
    assert len(former) == len(models)


def changed(model: ModelFile, path: Path, **changes: object) -> Path:
    save_model(path, model._replace(**changes))
    return path


def test_models_that_are_not_alike(tmp_path: Path, models: list[Path], capsys: Capture) -> None:
    """Every difference is told; dropout and how the weights were drawn are none."""
    model = load_model(models[0])
    attention = model.config.model.attention.model_copy(update={"renormalize": True, "half_width": 3})
    encoder = model.config.model.encoder.model_copy(update={"dropout": 0.7})
    other = model.config.model.model_copy(update={"attention": attention, "encoder": encoder})
    config = model.config.model_copy(update={"model": other})
    pieces = model.source_subwords.replace("▁the".encode(), "▁thx".encode())
    assert pieces != model.source_subwords
    path = changed(model, tmp_path / "other", config=config, source_subwords=pieces)
    assert run([models[0], path], tmp_path / "both") == 2
    headline, *problems = capsys.readouterr().err.splitlines()
    assert headline == "nmt-average: 3 problems:"
    assert problems == [
        f"  - {path}: model.attention.half_width: 10 in {models[0]}, 3 here",
        f"  - {path}: model.attention.renormalize: false in {models[0]}, true here",
        f"  - {path}: another source vocabulary than that of {models[0]}",
    ]
    assert not (tmp_path / "both").exists()


def test_models_of_opposite_directions(tmp_path: Path, models: list[Path], capsys: Capture) -> None:
    """Both may have the same vocabulary, as those of two languages together."""
    model = load_model(models[0])
    data = model.config.data
    languages = {"source_language": data.target_language, "target_language": data.source_language}
    config = model.config.model_copy(update={"data": data.model_copy(update=languages)})
    path = changed(model, tmp_path / "other", config=config)
    here, there = data.source_language, data.target_language
    assert run([models[0], path], tmp_path / "both") == 2
    assert capsys.readouterr().err.splitlines()[1:] == [
        f"  - {path}: data.source_language: {here!r} in {models[0]}, {there!r} here",
        f"  - {path}: data.target_language: {there!r} in {models[0]}, {here!r} here",
    ]
    with pytest.raises(UserError) as refused:
        Translator.load([models[0], path])
    together = f"{models[0]} and {path} cannot translate together: their"
    assert refused.value.messages == (
        f"{together} source languages differ ({here} and {there})",
        f"{together} target languages differ ({there} and {here})",
    )


def test_options_that_are_wrong(tmp_path: Path, models: list[Path], capsys: Capture) -> None:
    assert average.main([]) == 2
    said = capsys.readouterr().err
    assert "--model PATH is missing" in said
    assert "--output FILE is missing" in said
    assert run(models[:1], tmp_path / "both") == 2
    assert "--model was given once; an average takes at least two models" in capsys.readouterr().err
    assert run(models, tmp_path / "both", "--weights", "1", "-2", "often") == 2
    said = capsys.readouterr().err
    assert "--weights -2: allowed: a number, at least 0.001 and at most 1,000,000" in said
    assert "--weights often: allowed" in said
    assert run(models, tmp_path / "both", "--weights", "1", "2", "3") == 2
    said = capsys.readouterr().err
    assert "--weights has 3 numbers and --model 2 models: each model needs one" in said
    assert run(models, models[0]) == 2
    assert f"--output {models[0]}: would overwrite --model {models[0]}" in capsys.readouterr().err
    assert run([*models, tmp_path / "nowhere"], tmp_path / "both") == 2
    assert f"{tmp_path / 'nowhere'}: no such model file or run folder" in capsys.readouterr().err
    assert not (tmp_path / "both").exists()
