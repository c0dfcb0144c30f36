"""The processes that torchrun started a command in: which one this is, and what they tell each other before they work.

They meet in torchrun's store, by short texts; no tensor is exchanged, so a process never waits in a collective
operation for one that is gone: torchrun ends the others. It knows no files and no models.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

import torch

from nmt.errors import UserError, caught, checked
from nmt.jobs import torchrun

if TYPE_CHECKING:
    from torch.distributed.distributed_c10d import PrefixStore

Result = TypeVar("Result")
PATIENCE = timedelta(minutes=10)  # to find the store
PAUSE = 0.05  # seconds between two looks at the store


class ToldElsewhere(UserError):
    """A mistake that another process tells the user about."""


class Team:
    """The processes of a command, seen from one of them. A process by itself is a team of one."""

    def __init__(self, rank: int = 0, size: int = 1, store: "PrefixStore | None" = None) -> None:
        self.rank, self.size = rank, size
        self._store = store

    @classmethod
    def of_torchrun(cls, program: str) -> "Team":
        """The team that torchrun started this process of `program` in; one of one without torchrun."""
        if torchrun.processes() == 1:
            return cls()
        store, rank, size = torchrun.meet(__name__, program=program, patience=PATIENCE)
        return cls(rank, size, store)

    @property
    def is_first(self) -> bool:
        """Whether this one tells the user, and puts together what all have made."""
        return self.rank == 0

    def device(self, device: torch.device) -> torch.device:
        """`device`, or this process's own among the machine's GPUs. Raises UserError when there are too few."""
        return device if self.size == 1 or device.type != "cuda" else torchrun.own_gpu()

    def together(self, stage: str, body: Callable[[], Result]) -> Result:
        """The result of `body`, once it has one in all processes.

        If it raises in any, UserError with the problems of all is raised in the first process, which tells them once,
        and ToldElsewhere in the others. A process that never comes is torchrun's business, which then ends all.
        """
        problems: Sequence[str] = ()
        try:
            result = checked(caught(body, None))
        except UserError as error:
            if self._store is None:
                raise
            result, problems = None, error.messages
        if self._store is not None:
            self._store.set(f"{stage} {self.rank}", json.dumps(list(problems)))
            if self.is_first:
                ranks = range(self.size)
                problems = list(dict.fromkeys(problem for rank in ranks for problem in self._read(f"{stage} {rank}")))
                self._store.set(stage, json.dumps(problems))
                if problems:
                    raise UserError(*problems)
            elif problems := self._read(stage):
                raise ToldElsewhere(*problems)
        return result  # type: ignore[return-value]  # None only where that is what body returned

    def once(self, error: UserError) -> UserError:
        """The error to end with: `error` itself in the process that is the first to fail, ToldElsewhere in others."""
        if self._store is not None:
            with suppress(RuntimeError):  # torchrun is gone
                if self._store.add("failed", 1) > 1:
                    return ToldElsewhere(*error.messages)
        return error

    def _read(self, key: str) -> list[str]:
        """What is in the store, once it is; waited for in Python, so that a signal ends the waiting."""
        assert self._store is not None
        while not self._store.check([key]):
            time.sleep(PAUSE)
        return list(json.loads(self._store.get(key)))


@contextmanager
def told_by_the_first() -> Iterator[None]:
    """Inside the block only the first process of a team is heard: for what all say alike, as about wrong options."""
    with ExitStack() as stack:
        if os.environ.get("WORLD_SIZE", "1") != "1" and os.environ.get("RANK", "0") != "0":
            nowhere = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
            stack.enter_context(redirect_stdout(nowhere))
            stack.enter_context(redirect_stderr(nowhere))
        yield


def silently(body: Callable[[], int | None]) -> int | None:
    """The exit code of `body`, which is 2 where another process tells why."""
    try:
        return body()
    except ToldElsewhere:
        return 2
