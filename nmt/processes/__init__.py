"""One process or several, as torchrun starts them: how they meet, which is first, and what they tell one another.

They tell one another numbers, and texts as JSON, in tensors: nothing is ever unpickled. If a process ends, or does not
answer for `patience`, those that wait for it end, too. One process says what all would say. Here is one by itself, for
which PyTorch is not imported; several are in `several`.

In a training every process has the whole model and computes its share of each batch, the rows that `batches` gives it.
Losses are divided by what all shares together have of `normalize_by` before the gradients are added up (see
`update`), so N processes make the update that one would make, apart from rounding and from what is drawn in it: the
masks of dropout, the pieces of word replacement, and the words of scheduled sampling, which each process draws for
itself. The order of the data, sampled segmentations, and sampled candidates do not depend on the number of processes.
By one or two processes a resumed run ends bit for bit like an uninterrupted one; among more, gradients are summed in
another order after the first update of each start.

In a translation every process translates its share of the chunks, and waits for no other meanwhile.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from textwrap import shorten
from typing import TypeVar

from nmt.errors import ToldElsewhere, UserError, collected, environment_number
from nmt.signals import PATIENCE

Value = TypeVar("Value")


class LostProcess(UserError):
    """Another process is gone, perhaps without being able to say why."""


class Processes:
    """The processes of a command, seen from one of them. This is a command by itself: one of one."""

    rank, size = 0, 1

    @property
    def is_first(self) -> bool:
        """Whether this one writes files and the log, and reports to the user."""
        return self.rank == 0

    def own_device(self, device: str) -> str:
        """`device`, or the GPU of this process if there are several. Raises UserError if there are too few."""
        return device

    def wait(self) -> None:
        """Return when all processes have come here."""

    def tell_prepared(self) -> None:
        """Let the other processes go on: the first one holds the run folder and has prepared the data."""

    def wait_until_prepared(self) -> None:
        """Return when the first process has called `tell_prepared`, however long that takes; a signal ends the wait."""

    def sums(self, *numbers: float) -> list[float]:
        """Each of the numbers summed over the processes."""
        return list(numbers)

    def largest(self, number: int) -> int:
        """The largest of the processes' numbers."""
        return number

    def gather(self, value: Value) -> list[Value]:
        """The values of all processes, in the order of their ranks: what JSON can hold, such as numbers and texts."""
        return [value]

    def check_same(self, what: str, value: str) -> None:
        """Raise UserError unless all processes have the same value."""
        values = self.gather(value)
        if len(set(values)) > 1:
            different = next(rank for rank, of_rank in enumerate(values) if of_rank != values[0])
            raise UserError(
                f"process {different} of {self.size} has another {what} than process 0: all must see the same files, "
                f"with the same options ({shorten(values[different], 200)}; process 0: {shorten(values[0], 200)})"
            )

    def together(self, body: Callable[[], Value]) -> Value:
        """Call `body` in every process and return its result once all of them have one.

        If it raises in any of them, the first process raises UserError with the problems of all, each once, and the
        others raise ToldElsewhere.
        """
        if self.size == 1:
            return body()
        problems: list[str] = []
        with collected(problems):
            result = body()
        if problems := list(dict.fromkeys(problem for of_rank in self.gather(problems) for problem in of_rank)):
            raise (UserError if self.is_first else ToldElsewhere)(*problems)
        return result

    def once(self, error: UserError) -> UserError:
        """The error to end with: `error` in the process that fails first, ToldElsewhere in the others."""
        return error


ALONE = Processes()


@contextmanager
def joined(
    device: str = "cpu", *, program: str, patience: timedelta = timedelta(minutes=PATIENCE)
) -> Iterator[tuple[Processes, str]]:
    """The processes that torchrun started this one among, and the device of this one; by itself without torchrun.

    On a CPU they tell one another numbers by gloo, on GPUs by NCCL. When another process dies, or does not answer for
    `patience`, what waits for it ends with a UserError.
    """
    if processes_started() == 1:
        yield ALONE, device
        return
    from nmt.processes.several import meeting

    with meeting(device, program, patience) as (processes, own):
        yield processes, own


def processes_started() -> int:
    """How many processes the command has; 1 without torchrun."""
    return environment_number("WORLD_SIZE", "1")


def is_restarted() -> bool:
    """Whether torchrun starts the processes again, after one of them failed."""
    return (os.environ.get("TORCHELASTIC_RESTART_COUNT") or "0") != "0"
