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
from nmt.models.model_file import KIND, load_model, save_model
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
    files = [model.with_name(f"export{number}") for number, model in enumerate([*models, models[0]])]
    for model, file, precision in zip([*models, models[0]], files, ("float32", "float32", "int8"), strict=True):
        assert export.main(["--model", str(model), "--output", str(file), "--precision", precision]) == 0
    return files


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
        told.append(capsys.readouterr().out.partition('"name"'))
    assert told[0][2] == told[1][2] != ""
    assert '"export": "int8"' in told[1][0]


def test_what_an_export_cannot_do(models: list[Path], exports: list[Path], capsys: Capture) -> None:
    Path("lines").write_text("a dog\n", encoding="utf-8")
    one = ["--model", str(exports[2])]
    shortlist, _ = train_shortlist(zip(SENTENCES, SENTENCES, strict=True), Translator.load(models[0]).vocabularies)
    save_shortlist(Path("shortlist"), shortlist)
    for options in (["--precision", "float32"], ["--shortlist", "shortlist"]):
        assert translate.main([*one, "--input", "lines", *options]) == 2
    assert average.main([*one, "--model", str(models[0]), "--output", "average"]) == 2
    told = capsys.readouterr().err.splitlines()
    why = f"{exports[2]}: an export, which only translates, on a CPU, in int8, and without a shortlist; for"
    assert [why in line for line in told] == [True] * 3
    translator = Translator.load(exports[0])
    with pytest.raises(UserError, match="an export, which only translates"):
        _ = translator.models
    assert len(list(translator.translate(["a dog"]))) == 1


def flipped(path: Path, content: bytes) -> None:
    """One bit of a part of the file that ends so."""
    whole = bytearray(path.read_bytes())
    whole[whole.index(content) + len(content) - 1] ^= 1
    path.write_bytes(whole)


def with_graphs(path: Path, change: Callable[[dict[str, bytes]], object]) -> None:
    """Somebody's own graphs, with a checksum that agrees."""
    model = load_model(path, export=True)
    assert model.exported is not None
    graphs = dict(model.exported.graphs)
    change(graphs)
    save_model(path, model._replace(exported=model.exported.model_copy(update={"graphs": graphs})))


def naming_a_file(graphs: dict[str, bytes], place: Path, long: bool = False) -> None:
    """A weight is somebody's file."""
    graph = onnx.load_from_string(graphs["step"])
    weight = max(graph.graph.initializer, key=lambda one: len(one.raw_data))
    Path("secret").write_bytes(weight.raw_data)
    onnx.external_data_helper.set_external_data(weight, str(place))
    weight.ClearField("raw_data")
    content = graph.SerializeToString()
    graphs["step"] = content.replace(b"\x0a\x08location", b"\x0a\x88\x00location") if long else content


def told_of(**changes: str) -> Change:
    return lambda path, _: rewrite(path, KIND, lambda _, texts: texts.update(changes))


OTHERS = "x: damaged: its graphs are not those that nmt-export writes"
BROKEN: dict[str, tuple[Change, str]] = {
    "damaged graph": (
        lambda path, _: flipped(path, load_graphs(path)["encoder"][-50:]),
        "x: damaged: its content is not what was written",
    ),
    "damaged vocabulary": (
        lambda path, _: path.write_bytes(
            path.read_bytes().replace(load_model(path, export=True).source_subwords[:99], bytes(99))
        ),
        "x: damaged: its content is not what was written",
    ),
    "missing graph": (lambda path, _: with_graphs(path, lambda graphs: graphs.pop("step")), OTHERS),
    "graph that reads": (
        lambda path, _: with_graphs(path, lambda graphs: naming_a_file(graphs, Path("secret"))),
        OTHERS,
    ),
    "graph that reads from anywhere": (
        lambda path, _: with_graphs(path, lambda graphs: naming_a_file(graphs, Path("secret").absolute(), long=True)),
        OTHERS,
    ),
    "foreign graph": (
        lambda path, other: with_graphs(path, lambda graphs: graphs.update(step=load_graphs(other)["encoder"])),
        r"x: its graphs cannot be computed with the ONNX Runtime here \(",
    ),
    "other configuration": (told_of(config="a: 1"), "x: its configuration cannot be read: .*line 1: a"),
    "other precision": (
        told_of(exported='{"precision": "../..", "parameters": 1}'),
        "x: damaged: its parts do not fit together",
    ),
    "newer": (told_of(version="2"), "x: written by a newer version of the toolkit"),
}


def load_graphs(path: Path) -> dict[str, bytes]:
    exported = load_model(path, export=True).exported
    assert exported is not None
    return exported.graphs


@pytest.mark.parametrize("kind", BROKEN)
def test_nothing_of_a_broken_export_is_computed(kind: str, exports: list[Path], cache: Path) -> None:
    change, told = BROKEN[kind]
    shutil.copy(exports[0], "x")
    change(Path("x"), exports[1])
    with pytest.raises(UserError, match=told):
        Translator.load("x")
    assert not cache.exists()


def test_what_is_written(models: list[Path], exports: list[Path], capsys: Capture) -> None:
    shutil.copy(exports[0], "x")
    assert export.main(["--model", str(models[1]), "--output", "x"]) == 0
    assert best([Path("x")]) == best(exports[1:2])
    assert [path.name for path in Path().iterdir() if path.is_file()] == ["x"]
    capsys.readouterr()
    assert export.main(["--model", str(models[0]), "--output", str(models[0])]) == 2
    assert f"--output {models[0]}: " in capsys.readouterr().err
    assert export.main(["--output", "x"]) == 2
    assert "--model PATH is missing" in capsys.readouterr().err
