"""The benchmark of translation: batches of so many sentences, the same results, and what its line says."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import train_speed, translate_speed
from benchmarks.translate_speed import translate_in_batches
from nmt.data.corpus import read_lines
from nmt.decoding.translator import Translator

pytestmark = pytest.mark.usefixtures("threads")


@pytest.fixture(scope="module")
def model(tiny_config: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    assert train_speed.main(["--config", str(tiny_config), "--updates", "1", "--save", str(path)]) == 0
    return path


@pytest.fixture
def files(tiny_corpus: Path) -> list[str]:
    return ["--source", str(tiny_corpus / "test.en"), "--reference", str(tiny_corpus / "test.de")]


@pytest.mark.parametrize(("batch", "sizes"), [(1, [1] * 6), (4, [4, 2]), (100, [6])])
def test_batches_are_sentences(
    model: Path, tiny_corpus: Path, batch: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = list(read_lines(tiny_corpus / "test.en"))
    translator = Translator.load(model)
    translator.models[0].double()
    plain = [best[0].text for best in translator.translate(lines, beam_size=3)]
    batch_sizes = []
    start = translator.models[0].start

    def counted(source: Any, *rest: Any, **options: Any) -> Any:
        batch_sizes.append(len(source))
        return start(source, *rest, **options)

    monkeypatch.setattr(translator.models[0], "start", counted)
    assert translate_in_batches(translator, lines, beam=3, batch=batch) == plain
    assert batch_sizes == sizes


def test_the_line(model: Path, files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--model", str(model), "--beam", "2", "--batch", "4", "--precision", "float32", "--threads", "1"]
    assert translate_speed.main([*arguments, *files]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert (figures["beam"], figures["batch"], figures["precision"], figures["threads"]) == (2, 4, "float32", 1)
    assert figures["sentences"] == 6
    assert figures["sentences_per_second"] == pytest.approx(6 / figures["seconds"], rel=0.05)
    assert 0 <= figures["bleu"] <= 100
    assert figures["signature"].startswith("nrefs:1|")
    assert figures["peak_resident_mib"] > 50
