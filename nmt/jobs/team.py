"""The processes of one command that torchrun started, and what they tell each other before they begin.

They exchange short texts through torchrun's store, and no tensors, so that no process waits in a collective operation
for one that has died: torchrun ends the others. It knows no files and no models.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from datetime import timedelta
from io import StringIO
from typing import TYPE_CHECKING, TypeVar

import torch

from nmt.errors import ToldElsewhere, UserError, caught, checked
from nmt.jobs import torchrun
from nmt.jobs.stopping import is_heard

if TYPE_CHECKING:
    from torch.distributed.distributed_c10d import PrefixStore

Result = TypeVar("Result")
PATIENCE = timedelta(minutes=10)  # to find the store
PAUSE = 0.05  # seconds between two looks at the store


class Team:
    """The processes of a command as seen by one of them; a single process is a team of one."""

    def __init__(self, rank: int = 0, size: int = 1, store: "PrefixStore | None" = None) -> None:
        self.rank, self.size = rank, size
        self._store = store

    @classmethod
    def of_torchrun(cls, program: str) -> "Team":
        """The team in which torchrun started this process of `program`; a team of one without torchrun."""
        if torchrun.processes() == 1:
            return cls()
        store, rank, size = torchrun.meet(__name__, program=program, patience=PATIENCE)
        return cls(rank, size, store)

    @property
    def is_first(self) -> bool:
        """Whether this is the process that reports to the user and joins the results."""
        return self.rank == 0

    def device(self, device: torch.device) -> torch.device:
        """`device`, or the GPU of this process if there are several. Raises UserError if there are too few."""
        return device if self.size == 1 or device.type != "cuda" else torchrun.own_gpu()

    def together(self, stage: str, body: Callable[[], Result]) -> Result:
        """Call `body` in every process and return its result once all of them have one.

        If it raises in any of them, the first process raises UserError with the problems of all, each once, and the
        others raise ToldElsewhere. If a process never gets here, torchrun ends all of them.
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
        return result  # type: ignore[return-value]  # None only if body returned it

    def is_first_to(self, say: str) -> bool:
        """Whether this process is the first that asks about what it has to `say`; alone, it always is."""
        with suppress(RuntimeError):  # torchrun is gone
            return self._store is None or self._store.add(f"said {say}", 1) == 1
        return True

    def once(self, error: UserError) -> UserError:
        """The error to end with: `error` in the process that fails first, ToldElsewhere in the others."""
        return error if self.is_first_to("an error") else ToldElsewhere(*error.messages)

    def _read(self, key: str) -> list[str]:
        """Wait for a key of the store and read it; in Python, so that a signal ends the wait."""
        assert self._store is not None
        while not self._store.check([key]):
            time.sleep(PAUSE)
        return list(json.loads(self._store.get(key)))


@contextmanager
def told_by_the_first() -> Iterator[None]:
    """In the block only one process of a machine is heard, since all would say the same about wrong options.

    Raises ToldElsewhere in the others when they are wrong.
    """
    if is_heard():
        yield
        return
    try:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            yield
    except SystemExit as end:
        if end.code:
            raise ToldElsewhere("wrong options") from None
        raise
