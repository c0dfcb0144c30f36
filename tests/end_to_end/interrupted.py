"""nmt-train in forked children of one process, each killed at one file operation, or sent a signal in one validation.

    python tests/end_to_end/interrupted.py < tasks

A task is a line of JSON: {"arguments": [...]}, with "die_at": n to die at the n-th file operation, or "signals": [...]
and "validation": n to be sent these within the n-th validation, "pause" seconds apart. Each is answered by a line
{"code", "operations", "errors"}. Forking spares every child the seconds of importing PyTorch.

A file operation is whatever changes something on the disk: making, linking, renaming, removing, cutting, syncing, and
opening, writing to or closing a file; writes without a flush between them are one. The process dies before the
operation, as by kill -9: what it has not flushed is lost, and of a write half is done. It is no module for tests to
import: the children replace functions of Python's own.
"""

import builtins
import io
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NoReturn

import matplotlib.font_manager  # these two are imported where pictures and optimizers are made, which takes a second
import torch._dynamo

from nmt.cli import train, validation_metrics
from nmt.jobs import stopping

assert matplotlib.font_manager
assert torch._dynamo
CHANGING = ("link", "replace", "rename", "unlink", "remove", "rmdir", "mkdir", "fsync", "ftruncate")


class Operations:
    """Counts file operations; the `die_at`-th is the end."""

    def __init__(self, die_at: int | None) -> None:
        self.count, self.die_at = 0, die_at
        self._open = builtins.open

    def install(self) -> None:
        for name in CHANGING:
            setattr(os, name, self._counted(getattr(os, name)))
        builtins.open = io.open = self.open

    def is_next_the_last(self) -> bool:
        self.count += 1
        return self.count == self.die_at

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            if self.is_next_the_last():
                os._exit(137)
            return function(*arguments, **keywords)

        return call

    def open(self, file: Any, mode: str = "r", *arguments: Any, **keywords: Any) -> Any:
        if not set(mode) & set("wax+"):
            return self._open(file, mode, *arguments, **keywords)
        if self.is_next_the_last():
            os._exit(137)
        return CountedFile(self, self._open(file, mode, *arguments, **keywords))


class CountedFile:
    """An open file whose writes and whose end are operations."""

    def __init__(self, operations: Operations, file: Any) -> None:
        self._operations, self._file = operations, file
        self._flushed = True

    def flush(self) -> None:
        self._flushed = True
        self._file.flush()

    def write(self, content: Any) -> Any:
        is_first, self._flushed = self._flushed, False
        if is_first and self._operations.is_next_the_last():
            self._file.write(content[: len(content) // 2])
            self._file.flush()
            os._exit(137)
        return self._file.write(content)

    def truncate(self, *size: int) -> Any:
        if self._operations.is_next_the_last():
            os._exit(137)
        return self._file.truncate(*size)

    def close(self) -> None:
        if not self._file.closed and self._operations.is_next_the_last():
            os._exit(137)
        self._file.close()

    def __enter__(self) -> "CountedFile":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._file)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def wait_in_validation(number: int, descriptor: int) -> None:
    """Within the `number`-th validation tell the other end of the pipe, and wait for what comes."""
    original, calls = validation_metrics.corpus_loss, []

    def waiting(*arguments: Any) -> dict[str, float]:
        calls.append(1)
        if len(calls) == number:
            os.write(descriptor, b"here")
            for _ in range(6000):  # no single sleep: a signal just before it would not end it
                time.sleep(0.01)
        return original(*arguments)

    validation_metrics.corpus_loss = waiting


def child(task: dict[str, Any], descriptor: int) -> NoReturn:
    operations = Operations(task.get("die_at"))
    code = 1
    try:
        if "validation" in task:
            wait_in_validation(task["validation"], descriptor)
        operations.install()
        code = stopping.started("nmt-train", lambda: partial(train.main, task["arguments"]))  # as the command does
    except BaseException as error:
        print(repr(error), file=sys.stderr)
    finally:
        sys.stderr.flush()
        os.write(descriptor, f"{operations.count:8}".encode())
        os._exit(code)


def main() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts commands in the background without it
    for line in sys.stdin:
        task = json.loads(line)
        reading, writing = os.pipe()
        with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
            process = os.fork()
            if process == 0:
                os.dup2(errors.fileno(), 2)
                child(task, writing)
            os.close(writing)
            if "validation" in task and os.read(reading, 4):
                for number in task["signals"]:
                    os.kill(process, number)
                    time.sleep(task.get("pause", 0))
            _, status = os.waitpid(process, 0)
            said = os.read(reading, 8)
            os.close(reading)
            errors.seek(0)
            answer = {"code": os.waitstatus_to_exitcode(status), "operations": int(said or 0), "errors": errors.read()}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
