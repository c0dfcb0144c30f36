"""What strikes a process, and when: before its n-th file operation, before the n-th call of a function, or later."""

import errno
import importlib
import os
import resource
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.torture.operations import Operation, Operations

DAY = 86_400.0
ERRORS = {"disk full": errno.ENOSPC, "quota": errno.EDQUOT, "read-only": errno.EROFS}


@dataclass(frozen=True)
class Fault:
    """One action, and its moment.

    `action`: "kill" (of a write half is done), "terminate" (SIGTERM), "interrupt" (SIGINT), "interrupt twice", a key of
    ERRORS (every operation from then on fails that needs space, of a read-only disk every one), "pause" (say so, and
    wait to be told to go on), "clock" (the time of day goes back by a day), or "none".
    """

    action: str = "none"
    operation: int = 0  # before this one
    call: tuple[str, int] = ("", 0)  # before the n-th call of "module:name" or "module:Class.name"
    delay: float = 0.0  # seconds that each file operation takes longer
    largest_file: int = 0  # bytes, where it is limited


class Striker:
    """Carries out a fault in the process that it is to hit."""

    def __init__(self, fault: Fault, *, paused: int, go_on: int) -> None:
        """`paused`, `go_on`: descriptors to say that the process waits, and to read from what ends the waiting."""
        self._fault, self._paused, self._go_on = fault, paused, go_on
        self._failing = 0  # the error that operations end with
        self._again = False
        self._own = os.getpid()  # processes that this one starts are not hit

    def install(self) -> Operations:
        """Replace Python's functions in this process for good."""
        if self._fault.largest_file:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self._fault.largest_file, resource.RLIM_INFINITY))
        operations = Operations(self._before, self._dies_halfway)
        operations.install()
        target, number = self._fault.call
        if number:
            _before_call(target, number, self._act)
        return operations

    def _before(self, number: int, operation: Operation) -> None:
        if self._fault.delay:
            time.sleep(self._fault.delay)
        if self._again:
            self._again = False
            os.kill(self._own, signal.SIGINT)
        if number == self._fault.operation and not (self._fault.action == "kill" and operation.kind == "write"):
            self._act()
        refused = operation.needs_space or (self._failing == errno.EROFS and operation.kind != "close")
        if self._failing and refused:
            raise OSError(self._failing, os.strerror(self._failing), operation.path)

    def _dies_halfway(self, number: int) -> bool:
        return self._fault.action == "kill" and number == self._fault.operation

    def _act(self) -> None:
        action = self._fault.action
        if action == "kill":
            os._exit(137)
        elif action == "terminate":
            os.kill(self._own, signal.SIGTERM)
        elif action in ("interrupt", "interrupt twice"):
            self._again = action == "interrupt twice"  # the second comes before the next file operation
            os.kill(self._own, signal.SIGINT)
        elif action == "pause":
            os.write(self._paused, b"paused")
            os.read(self._go_on, 1)
        elif action == "clock":
            time.time = partial(_earlier, time.time)
        elif action in ERRORS:
            self._failing = ERRORS[action]
        else:
            raise ValueError(action)


def _earlier(now: Callable[[], float]) -> float:
    return now() - DAY


def _before_call(target: str, number: int, act: Callable[[], None]) -> None:
    """Call `act` before the `number`-th call of a function."""
    module, _, name = target.partition(":")
    owner: Any = importlib.import_module(module)
    *classes, name = name.split(".")
    for class_name in classes:
        owner = getattr(owner, class_name)
    original, calls = getattr(owner, name), []

    def counting(*arguments: Any, **keywords: Any) -> Any:
        calls.append(1)
        if len(calls) == number:
            act()
        return original(*arguments, **keywords)

    setattr(owner, name, counting)
