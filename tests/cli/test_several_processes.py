"""Commands that torchrun has started as several processes: what all would say is said once; some are one process."""

import time
from collections.abc import Callable, Sequence
from types import ModuleType

import pytest

from nmt.cli import evaluate, score, shortlist, train, translate
from nmt.cli.common import TELLING

Main = Callable[[Sequence[str]], int]


@pytest.fixture
def second(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Makes this process the second of two on its machine; what it is given are its pauses, in seconds."""
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    for name, value in {"WORLD_SIZE": "2", "RANK": "3", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    return pauses


@pytest.mark.parametrize("main", [train.main, translate.main])
def test_wrong_options_are_told_once(
    main: Main, second: list[float], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On every machine, by its first process, for which the others leave time."""
    assert main(["--nonsense"]) == 2
    assert (capsys.readouterr(), second) == (("", ""), [TELLING])
    monkeypatch.setenv("LOCAL_RANK", "0")
    assert main(["--nonsense"]) == 2
    assert "--nonsense: unknown; " in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["--list-configs"]])
def test_so_is_what_training_says_before_it_reads_a_configuration(
    arguments: list[str], second: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    train.main(arguments)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("arguments", [[], ["--nonsense"]])
@pytest.mark.parametrize("command", [score, evaluate, shortlist])
def test_other_commands_are_one_process(
    command: ModuleType,
    arguments: list[str],
    second: list[float],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command.main(arguments) == 2
    assert (capsys.readouterr(), second) == (("", ""), [TELLING])
    monkeypatch.setenv("LOCAL_RANK", "0")
    assert command.main(arguments) == 2
    program = command.PROGRAM
    assert capsys.readouterr().err == (
        f"{program}: error: WORLD_SIZE is 2, but {program} is one process; start it without torchrun, or unset "
        "WORLD_SIZE\n"
    )
