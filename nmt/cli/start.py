"""Where commands start: signals are handled from here on, before any other import."""

import gc
import sys
from collections.abc import Callable

from nmt import signals


def main(program: str | None = None) -> int:
    """Run the `program`, such as nmt-train, by default the one that has the executable's name; else `nmt COMMAND …`."""
    gc.set_threshold(100_000)  # objects; by default 700, and a start would look for garbage a hundred times
    name = program or sys.argv[0].replace("\\", "/").rpartition("/")[2]

    def load() -> Callable[[], int]:
        from nmt.cli.commands import loaded

        return loaded(name, sys.argv[1:])

    return signals.started(name if name.startswith("nmt-") else "nmt", load)
