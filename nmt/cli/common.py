"""What all commands share: how errors end a program, and a bar that shows how far it is."""

import errno
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from nmt import signals
from nmt.cli.outputs import abandon_standard_output
from nmt.errors import InputWarning, ToldElsewhere, UserError, needing_toolkit

Item = TypeVar("Item")

TELLING = 5.0  # seconds that another process gets to tell a mistake
_OPTION = re.compile(r"`(?:\w+\.)?(\w+)`")  # as `nmt.decoding.options` names it
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")  # characters, except line ends


def run(program: str, body: Callable[[], int | None], *, several: bool = False) -> int:
    """Call `body` and return the exit code: its own, 2 for a mistake of the user, 128 + N for a signal N, such as
    141 for SIGPIPE, if the reader of standard output is gone.

    Only with `several` may torchrun have started the command as several processes.
    A UserError is printed without a traceback; any other exception is our failure and keeps its traceback (code 1).
    """
    if sys.stderr is None:  # closed; `print` would write errors to standard output
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the end of the process
    signals.begin()
    try:
        with signals.raised(program), _warning(program), needing_toolkit():
            if not several and (size := os.environ.get("WORLD_SIZE", "1")) != "1":
                told = UserError if signals.reports() else ToldElsewhere
                way_out = "start it without torchrun, or unset WORLD_SIZE"
                raise told(f"WORLD_SIZE is {size}, but {program} is one process; {way_out}")
            code = body() or 0
            if sys.stdout is not None:
                sys.stdout.flush()  # here rather than at exit, so that a missing reader is handled below
            return code
    except SystemExit as end:  # of the parser, which has answered --help, or said what is wrong
        return end.code if isinstance(end.code, int) else 0
    except ToldElsewhere:
        time.sleep(TELLING)  # once one process has ended, torchrun ends the others: the one that tells has to be first
        return 2
    except UserError as error:
        print(describe(program, error), file=sys.stderr)
        return 2
    except BrokenPipeError:  # as in `nmt-translate … | head -1`
        abandon_standard_output()
        return 128 + 13  # SIGPIPE, which Windows does not name
    except OSError as error:
        # No file can have such a name, or links lead to themselves: not even the existence of a file can be checked.
        if error.errno not in (errno.ENAMETOOLONG, errno.ELOOP) or not error.filename:
            raise
        print(f"{program}: error: {error.filename}: {error.strerror}; give another name", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        return signals.report(program, stop)


def watched(items: Iterable[Item], unit: str, *, total: int | None = None, label: str | None = None) -> Iterable[Item]:
    """The items; on a terminal a bar says how many of them, in `unit`, are done."""
    if not sys.stderr.isatty():
        return items
    from tqdm import tqdm  # only here, as it takes long

    bar: Iterable[Item] = tqdm(items, total=total, desc=label, unit=f" {unit}")
    return bar


def describe(program: str, error: UserError) -> str:
    """The report of `error`: one line, or a headline and one line per problem; control characters are escaped.

    An option of a translation, such as `n_best`, has the name that it has here.
    """
    messages = [_said_here(message) for message in error.messages]
    if len(messages) == 1:
        return f"{program}: error: {messages[0]}"
    lines = "\n".join(f"  - {message}" for message in messages)
    return f"{program}: {len(messages)} problems:\n{lines}"


@contextmanager
def _warning(program: str) -> Iterator[None]:
    """Print each InputWarning of the block as the program's; of several processes on a machine, the first does."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if not issubclass(category, InputWarning):
                usual(message, category, *place, **more)
            elif signals.reports():
                print(f"{program}: warning: {_said_here(str(message))}", file=sys.stderr, flush=True)

        warnings.showwarning = show
        warnings.simplefilter("always", InputWarning)
        yield


def installed() -> list[str]:
    """Which distributions of this package are installed, which should be one."""
    from importlib.metadata import distributions

    return [name for name in ("nmt-toolkit", "nmt-runtime") if any(distributions(name=name))]


def _said_here(message: str) -> str:
    if "nmt-toolkit[" in message and installed() == ["nmt-runtime"]:  # an extra, which both have
        message = message.replace("nmt-toolkit[", "nmt-runtime[")
    if _OPTION.search(message):
        from nmt.cli.options import OTHER_NAMES, translation_names
        from nmt.cli.parser import option_name

        ours = {name: option_name(OTHER_NAMES.get(name, name)) for name in translation_names()}
        message = _OPTION.sub(lambda option: ours.get(option[1], option[0]), message)
    return _CONTROL.sub(lambda character: repr(character[0])[1:-1], message)
