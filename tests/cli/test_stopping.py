"""Signals that end a command, also before it has begun: one line, the exit code of the signal, no traceback."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from nmt import signals
from nmt.cli.common import run
from tests.conftest import ROOT

COMMANDS = ("train", "translate", "eval", "score", "shortlist")
CODES = {
    signal.SIGINT: (130, "interrupted"),
    signal.SIGTERM: (143, "terminated"),
    signal.SIGHUP: (129, "hung up"),
}


def catches(process: int, number: int) -> bool:
    """Whether the process has a handler for the signal."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    match = re.search(r"SigCgt:\t([0-9a-f]+)", status)
    assert match is not None
    return bool(int(match[1], 16) >> (number - 1) & 1)


def stopped(command: Sequence[str], signals: Sequence[int], *, after: float) -> tuple[int, str]:
    """The exit code and the errors of a command that is sent signals so long after it begins to handle them."""
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            while not catches(process.pid, signal.SIGTERM):  # Python itself has one for SIGINT
                assert process.poll() is None
                time.sleep(0.002)
            time.sleep(after)
            for number in signals:
                os.kill(process.pid, number)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    return process.returncode, errors


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux says which signals a process handles")
@pytest.mark.parametrize(("command", "after"), list(zip(COMMANDS, (0.0, 0.05, 0.2, 0.5, 0.1), strict=True)))
def test_a_signal_during_imports(command: str, after: float) -> None:
    signals = [signal.SIGTERM, signal.SIGINT, signal.SIGINT]
    code, errors = stopped([sys.executable, "-m", "nmt", command], signals, after=after)
    programs = ("nmt", f"nmt-{command}")  # before it is known that the command is one, and then
    said = {(number, f"{program}: {word}\n") for number, word in CODES.values() for program in programs}
    assert code == 2 or (code, errors) in said  # 2: over before the signals came, as it was given nothing to do


@pytest.mark.parametrize("number", CODES)
def test_a_signal_while_a_command_works(number: signal.Signals, capsys: pytest.CaptureFixture[str]) -> None:
    """What is open is closed; and the former handlers are there again."""
    closed = []

    def body() -> None:
        try:
            signal.raise_signal(number)
        finally:
            closed.append(True)

    def before(*_: object) -> None:
        pytest.fail("the handler of outside")

    former = {handled: signal.signal(handled, before) for handled in CODES}
    try:
        code, word = CODES[number]
        assert run("nmt-any", body) == code
        assert capsys.readouterr().err == f"nmt-any: {word}\n"
        assert closed == [True]
        assert {signal.getsignal(handled) for handled in CODES} == {before}
    finally:
        for handled, handler in former.items():
            signal.signal(handled, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_is_ignored_stays_so(number: signal.Signals) -> None:
    """As a shell asks of what it starts in the background, and nohup of what is to outlive the terminal."""
    former = signal.signal(number, signal.SIG_IGN)
    try:
        assert run("nmt-any", lambda: signal.raise_signal(number)) == 0
    finally:
        signal.signal(number, former)


def test_a_closed_terminal(tmp_path: Path) -> None:
    """It sends SIGHUP and takes no messages; an output that has begun is removed."""
    program = f"""
import os, signal
from nmt.cli.common import run
from nmt.cli.outputs import opened_for_writing
from nmt.signals import started

def body():
    with opened_for_writing({str(tmp_path / "out")!r}) as file:
        file.write(b"begun")
        file.flush()
        os.write(1, b".")
        signal.pause()

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # these tests may be in the background
raise SystemExit(started("nmt-any", lambda: lambda: run("nmt-any", body)))
"""
    screen, terminal = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, stderr=terminal
    ) as process:
        os.close(terminal)
        assert process.stdout is not None
        assert process.stdout.read(1) == b"."
        os.close(screen)
        process.send_signal(signal.SIGHUP)
        assert process.wait(60) == 129
    assert list(tmp_path.iterdir()) == []


def test_nothing_heavy_is_imported_before_signals_are_handled() -> None:
    program = "import sys, nmt.cli.start; sys.exit(bool({'torch', 'numpy', 'argparse', 'pathlib'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-S", "-c", program], cwd=ROOT).returncode == 0


def test_only_the_first_process_of_a_machine_tells(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    signals.begin()
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert signals.report("nmt-any", signals.Stopped(signal.SIGTERM)) == 143
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("LOCAL_RANK", "0")
    assert signals.report("nmt-any", KeyboardInterrupt()) == 130
    assert signals.report("nmt-any", KeyboardInterrupt()) == 130
    assert capsys.readouterr().err == "nmt-any: interrupted\n"


@pytest.mark.parametrize("handled", [signals.raised, lambda program: signals.handled(signals.leaving(program))])
def test_a_signal_while_the_end_is_told(handled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not keep the line from being written, whichever thread the system gives it to."""
    signals.begin()
    monkeypatch.setattr(os, "_exit", lambda _: pytest.fail("ended before the line was written"))
    told = Event()
    thread = Thread(target=lambda: told.wait() and [signal.raise_signal(number) for number in CODES])
    thread.start()
    with handled("nmt-any"), signals.reporting():
        told.set()
        thread.join()
    assert signals.report("nmt-any", KeyboardInterrupt()) == 130  # and nothing is told a second time


@pytest.mark.parametrize(
    ("raised", "code", "errors"), [("Stopped(2)", 130, "nmt-any: interrupted\n"), ("Interrupted(15)", 7, "")]
)
def test_a_signal_while_python_calls_what_may_not_raise(raised: str, code: int, errors: str) -> None:
    """As a finalizer; there Python would show a traceback, and go on as if nothing had come."""
    program = f"""
from nmt.signals import Stopped, started
from nmt.signals import Interrupted

class Finalized:
    def __del__(self):
        raise {raised}

def work():
    Finalized()
    return 7

raise SystemExit(started("nmt-any", lambda: work))
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (code, errors)
