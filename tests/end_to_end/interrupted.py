"""What strikes a training from within, in the process that is forked for it: for `before` of forked.Forked."""

import os
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from nmt.experiment import validation
from nmt.training import trainer
from tests.torture.operations import Operation, Operations

DIED = 137  # as by kill -9


def die_at(number: int | None, counted: Path) -> None:
    """Die before that file operation, as by kill -9: what is not flushed is lost, and of a write half is done.

    Their number so far stands in the file `counted`. What a file operation is, tests/torture/operations.py says.
    """
    descriptor = os.open(counted, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def strike(operations: int, operation: Operation) -> None:
        os.pwrite(descriptor, str(operations).encode(), 0)
        if operations == number and operation.kind != "write":  # of which half is done
            os._exit(DIED)

    Operations(strike, dies_halfway=lambda operations: operations == number).install()


def wait_in_validation(number: int, telling: Connection) -> None:
    """Within the `number`-th validation say so, and wait for what comes."""
    original, calls = validation.corpus_loss, []

    def waiting(*arguments: Any) -> dict[str, float]:
        calls.append(1)
        if len(calls) == number:
            telling.send_bytes(b"here")
            for _ in range(6000):  # no single sleep: a signal just before it would not end it
                time.sleep(0.01)
        return original(*arguments)

    validation.corpus_loss = waiting


def signal_in_update(number: int, sent: signal.Signals) -> None:
    """Within the `number`-th update of this process, get that signal."""
    original, calls = trainer.update, []

    def struck(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == number:
            os.kill(os.getpid(), sent)
        return original(*arguments, **options)

    trainer.update = struck
