"""The demo's own parts; the whole demo is `make demo`."""

import subprocess
from pathlib import Path

import pytest

from scripts import demo


def test_commands_run_in_the_repository_and_are_shown(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(demo, "ROOT", tmp_path)
    demo.command(demo.sys.executable, "-c", "import os; print(os.getcwd())")
    name = Path(demo.sys.executable).name
    assert capfd.readouterr().out == f"$ {name} -c 'import os; print(os.getcwd())'\n{tmp_path}\n"


def test_a_failing_command_ends_the_demo_with_its_exit_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(program: str, *arguments: str) -> None:
        raise subprocess.CalledProcessError(2, [Path("bin") / program, *arguments])

    monkeypatch.setattr(demo, "make_corpus", lambda: fail("nmt-train"))
    assert demo.main() == 2
    assert capsys.readouterr().err == "demo: nmt-train failed with exit code 2\n"


def test_only_the_model_of_an_earlier_demo_is_replaced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for file in (tmp_path / "runs" / "demo" / "best.safetensors", tmp_path / "runs" / "other" / "best.safetensors"):
        file.parent.mkdir(parents=True)
        file.touch()
    monkeypatch.setattr(demo, "ROOT", tmp_path)
    monkeypatch.setattr(demo, "command", lambda *words: None)
    demo.train_translate_score()
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["other"]


def test_a_readable_alignment() -> None:
    described = demo.describe_alignment(["the", "house"], ["Haus", "da", "!"], [(1, 0), (0, 0), (1, 2)])
    assert described.splitlines() == ["Haus ← the house", "da   ←", "!    ← house"]
