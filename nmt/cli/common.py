"""What all commands share: how errors and a lack of memory end a program, and the choice of a device."""

import errno
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nmt.cli.outputs import abandon_standard_output
from nmt.errors import ToldElsewhere, UserError
from nmt.jobs import stopping

if TYPE_CHECKING:
    import torch

DEVICES = ("auto", "cpu", "cuda")
TELLING = 5.0  # seconds that another process gets to tell a mistake
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")  # characters, except line ends


def run(program: str, body: Callable[[], int | None], *, several: bool = False) -> int:
    """Call `body` and return the exit code: its own, 2 for a mistake of the user, 128 + N for a signal N, such as
    141 for SIGPIPE, if the reader of standard output is gone.

    Only with `several` may torchrun have started the command as several processes.
    A UserError is printed without a traceback; any other exception is our failure and keeps its traceback (code 1).
    """
    if sys.stderr is None:  # closed; `print` would write errors to standard output
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the end of the process
    stopping.forget()
    try:
        with stopping.handled(stopping.raising(program)):
            if not several and (size := os.environ.get("WORLD_SIZE", "1")) != "1":
                told = UserError if stopping.is_heard() else ToldElsewhere
                way_out = "start it without torchrun, or unset WORLD_SIZE"
                raise told(f"WORLD_SIZE is {size}, but {program} is one process; {way_out}")
            code = body() or 0
            if sys.stdout is not None:
                sys.stdout.flush()  # here rather than at exit, so that a missing reader is handled below
            return code
    except ToldElsewhere:
        time.sleep(TELLING)  # once one process has ended, torchrun ends the others: the one that tells has to be first
        return 2
    except UserError as error:
        print(describe(program, error), file=sys.stderr)
        return 2
    except BrokenPipeError:  # as in `nmt-translate … | head -1`
        abandon_standard_output()
        return 128 + signal.SIGPIPE
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG or error.filename is None:
            raise
        # No file can have this name, so not even its existence can be checked.
        print(f"{program}: error: {error.filename}: {error.strerror}; give a shorter name", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        return stopping.tell(program, stop)


def describe(program: str, error: UserError) -> str:
    """The report of `error`: one line, or a headline and one line per problem; control characters are escaped."""
    messages = [_CONTROL.sub(lambda character: repr(character[0])[1:-1], message) for message in error.messages]
    if len(messages) == 1:
        return f"{program}: error: {messages[0]}"
    lines = "\n".join(f"  - {message}" for message in messages)
    return f"{program}: {len(messages)} problems:\n{lines}"


@contextmanager
def enough_memory(advice: str, *, what: str = ", even for one sentence by itself") -> Iterator[None]:
    """Turn a failed allocation in the block, or in the decorated function, into a UserError with advice."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        from nmt.ops.memory import out_of_memory  # only here: a command that fails otherwise does not need PyTorch

        if not out_of_memory(error):
            raise
        raise UserError(f"not enough memory{what}: {advice}") from error


def choose_device(name: str) -> "torch.device":
    """The device for "auto", "cpu" or "cuda". Raises UserError if there is none."""
    if name not in DEVICES:
        raise UserError(f"--device {name}: unknown; choose one of {', '.join(DEVICES)}")
    import torch  # only here: it takes a second, and scoring a file does not need it

    if name == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: no CUDA device can be used on this machine; give --device cpu, or auto")
    if name == "cuda" or (name == "auto" and torch.cuda.is_available()):
        return torch.device("cuda")
    return torch.device("cpu")
