"""nmt-train in forked children of one process, each killed at one file operation, or sent a signal in one validation.

    python -m tests.end_to_end.interrupted < tasks

A task is a line of JSON: {"arguments": [...]}, with "die_at": n to die at the n-th file operation, or "signals": [...]
and "validation": n to be sent these within the n-th validation, "pause" seconds apart. Each is answered by a line
{"code", "operations", "errors"}. Forking spares every child the seconds of importing PyTorch.

The process dies before the operation, as by kill -9: what it has not flushed is lost, and of a write half is done. What
a file operation is, tests/torture/operations.py says. It is no module for tests to import: the children replace
functions of Python's own.
"""

import json
import os
import signal
import sys
import tempfile
import time
from functools import partial
from typing import Any, NoReturn

import matplotlib.font_manager  # these two are imported where pictures and optimizers are made, which takes a second
import torch._dynamo

from nmt.cli import train, validation_metrics
from nmt.jobs import stopping
from tests.torture.operations import Operation, Operations

assert matplotlib.font_manager
assert torch._dynamo


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
    die_at, code = task.get("die_at"), 1

    def strike(number: int, operation: Operation) -> None:
        if number == die_at and operation.kind != "write":  # of which half is done
            os._exit(137)

    operations = Operations(strike, dies_halfway=lambda number: number == die_at)
    try:
        if "validation" in task:
            wait_in_validation(task["validation"], descriptor)
        operations.install()
        code = stopping.started("nmt-train", lambda: partial(train.main, task["arguments"]))  # as the command does
    except BaseException as error:
        print(repr(error), file=sys.stderr)
    finally:
        sys.stderr.flush()
        os.write(descriptor, f"{len(operations.seen):8}".encode())
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
