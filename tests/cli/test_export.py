"""nmt-export: an export translates as its model does, on its own, and nothing of a broken one is computed."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import onnx
import pytest

from nmt.cli import average, export, info, translate
from nmt.decoding.shortlist import save_shortlist, train_shortlist
from nmt.decoding.translator import Translator
from nmt.errors import UserError
from nmt.files import file_digest
from nmt.models.model_file import EXPORT, KIND
from tests.hostile_files import rewrite
from tests.random_model import SENTENCES, save_random_model, text

Capture = pytest.CaptureFixture[str]
Change = Callable[[Path, Path], object]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("models")
    return [save_random_model(folder / f"{seed}.safetensors", seed=seed) for seed in (1, 2)]


@pytest.fixture(scope="module")
def exports(models: list[Path]) -> list[Path]:
    """Of both in float32, and of the first in int8."""
    folders = [model.with_name(f"export{number}") for number, model in enumerate([*models, models[0]])]
    for model, folder, precision in zip([*models, models[0]], folders, ("float32", "float32", "int8"), strict=True):
        assert export.main(["--model", str(model), "--output", str(folder), "--precision", precision]) == 0
    return folders


def best(paths: Sequence[Path], **options: str) -> list[tuple[str, float]]:
    translations = Translator.load(paths, **options).translate(text(20).splitlines())
    return [(one.text, round(one.score, 4)) for one, *_ in translations]


def test_exports_translate_as_models_do(models: list[Path], exports: list[Path]) -> None:
    assert best(exports[:1]) == best(models[:1])
    assert best(exports[2:]) == best(models[:1], precision="int8") != best(exports[:1])
    assert best([exports[0], models[1]], ensemble="logits") == best(exports[:2], ensemble="logits")
    assert best(exports[:2], ensemble="logits") == best(models, ensemble="logits")


def test_what_an_export_is(models: list[Path], exports: list[Path], capsys: Capture) -> None:
    told = []
    for path in (models[0], exports[2]):
        assert info.main(["--model", str(path), "--json"]) == 0
        told.append(capsys.readouterr().out.partition('"name"')[2])
    assert told[0] == told[1] != ""


def test_what_an_export_cannot_do(models: list[Path], exports: list[Path], capsys: Capture) -> None:
    Path("lines").write_text("a dog\n", encoding="utf-8")
    one = ["--model", str(exports[2])]
    shortlist = train_shortlist(zip(SENTENCES, SENTENCES, strict=True), Translator.load(models[0]).vocabularies)
    save_shortlist(Path("shortlist"), shortlist.shortlist)
    for options in (["--precision", "float32"], ["--shortlist", "shortlist"]):
        assert translate.main([*one, "--input", "lines", *options]) == 2
    assert average.main([*one, "--model", str(models[0]), "--output", "average"]) == 2
    told = capsys.readouterr().err.splitlines()
    why = f"{exports[2] / EXPORT}: an export, which only translates, on a CPU, in int8, and without a shortlist; for"
    assert [why in line for line in told] == [True] * 3
    translator = Translator.load(exports[0])
    with pytest.raises(UserError, match="an export, which only translates"):
        _ = translator.models
    assert len(list(translator.translate(["a dog"]))) == 1


def flipped(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-100] ^= 1
    file.write_bytes(content)


def foreign(folder: Path, other: Path) -> None:
    """A graph that computes something else, with a checksum that agrees."""
    shutil.copyfile(other / "encoder.onnx", folder / "step.onnx")
    agree(folder)


def naming_a_file(folder: Path, _: Path) -> None:
    """A weight is somebody's file."""
    graph = onnx.load(folder / "step.onnx")
    weight = max(graph.graph.initializer, key=lambda one: len(one.raw_data))
    Path("secret").write_bytes(weight.raw_data)
    onnx.external_data_helper.set_external_data(weight, "secret")
    weight.ClearField("raw_data")
    onnx.save(graph, folder / "step.onnx")
    agree(folder)


def agree(folder: Path) -> None:
    digests = {file.name: file_digest(file) for file in folder.glob("*.onnx")}
    exported = f'{{"precision": "float32", "parameters": 1, "digests": {digests}}}'.replace("'", '"')
    rewrite(folder / EXPORT, KIND, lambda _, texts: texts.update(exported=exported))


BROKEN: dict[str, tuple[Change, str]] = {
    "another's": (lambda folder, other: shutil.copy(other / "step.onnx", folder), r"x/step\.onnx: damaged, or of an"),
    "damaged graph": (lambda folder, _: flipped(folder / "encoder.onnx"), r"x/encoder\.onnx: damaged, or of another"),
    "missing graph": (lambda folder, _: (folder / "step.onnx").unlink(), r"x/step\.onnx: cannot be read \(No such fi"),
    "damaged subwords": (lambda folder, _: flipped(folder / EXPORT), r"x/export\.safetensors: damaged: its content is"),
    "no export": (lambda folder, _: (folder / EXPORT).unlink(), r"x: holds no best\.safetensors; give a model"),
    "graph that reads": (naming_a_file, r"x/export\.safetensors: its graphs cannot be computed .*External data path d"),
    "foreign graph": (foreign, r"x/export\.safetensors: its graphs cannot be computed with the ONNX Runtime here \("),
    "other configuration": (
        lambda folder, _: rewrite(folder / EXPORT, KIND, lambda _, texts: texts.update(config="a: 1")),
        r"x/export\.safetensors: its configuration cannot be read: .*line 1: a",
    ),
    "newer": (
        lambda folder, _: rewrite(folder / EXPORT, KIND, lambda _, texts: texts.update(version="2")),
        r"x/export\.safetensors: written by a newer version of the toolkit",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_nothing_of_a_broken_export_is_computed(kind: str, exports: list[Path], cache: Path) -> None:
    change, told = BROKEN[kind]
    shutil.copytree(exports[0], "x")
    change(Path("x"), exports[1])
    with pytest.raises(UserError, match=told):
        Translator.load("x")
    assert not cache.exists()


def test_only_an_export_is_replaced(models: list[Path], exports: list[Path], capsys: Capture) -> None:
    shutil.copytree(exports[0], "x")
    assert export.main(["--model", str(models[1]), "--output", "x"]) == 0
    assert best([Path("x")]) == best(exports[1:2])
    Path("x", EXPORT).unlink()
    capsys.readouterr()
    assert export.main(["--output", "x"]) == 2
    assert "--model PATH is missing" in (told := capsys.readouterr().err)
    assert "--output x: holds other files, and no export; give a new folder" in told
