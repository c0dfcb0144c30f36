"""The benchmark of both engines: what it counts, and which models it refuses."""

import json
from pathlib import Path

import pytest

from benchmarks import engine_parity, train_speed
from nmt.decoding import translator

pytestmark = pytest.mark.usefixtures("threads")


@pytest.mark.slow
def test_its_lines(
    tiny_config: Path,
    tiny_corpus: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = tmp_path / "model.safetensors"
    assert train_speed.main(["--config", str(tiny_config), "--updates", "1", "--save", str(model)]) == 0
    files = ["--source", str(tiny_corpus / "test.en"), "--reference", str(tiny_corpus / "test.de")]
    arguments = ["--model", str(model), str(model), *files, "--beam", "2", "--alone", "2"]
    capsys.readouterr()
    assert engine_parity.main(arguments) == 2
    assert "ONNX Runtime does not compute this model" in capsys.readouterr().err
    monkeypatch.setattr(translator, "WORTH_EXPORTING", 1)
    assert engine_parity.main(arguments) == 0
    *both, mean = map(json.loads, capsys.readouterr().out.splitlines())
    assert both[0] == both[1] | {"model": str(model)}
    assert (both[0]["lines"], both[0]["alone"]) == (6, 2)
    assert (both[0]["other_than_pytorch"], both[0]["other_alignments"]) == (0, 0)
    assert both[0]["other_alone"] == {"float32": 0, "int8": 0}
    assert mean == {"int8_minus_float32": both[0]["int8_minus_float32"], "deviation": 0.0}
    monkeypatch.setattr(engine_parity, "alone", lambda *_: [engine_parity.Translation("other", 0.0, [])] * 2)
    assert engine_parity.main(arguments) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0])["other_alone"] == {"float32": 2, "int8": 2}
