"""nmt-translate in parts: its options, what they cannot be combined with, and the facts that tell translations apart.

`nmt.jobs` knows how parts are translated and kept.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt import __version__
from nmt.cli.alignment_outputs import FILES
from nmt.cli.options import option_name
from nmt.cli.outputs import STANDARD, is_device
from nmt.data.corpus import digests
from nmt.errors import Checking
from nmt.jobs.in_parts import CHUNKS, MOST_LINES
from nmt.jobs.parts import MAIN
from nmt.jobs.records import Facts
from nmt.jobs.resuming import unfinished

DIGITS = 18  # a number with that many digits is no number of lines
OUTPUTS = (MAIN, *FILES, "plot_alignments")
# These change no more than the rounding of float32
UNIMPORTANT = {"resume", "chunk_lines", "device", "batch_tokens", "batch_sentences"}
USUAL = {"precision": "float32"}  # the same as leaving the option out
BY_CONTENT = {"input", "model"}  # files whose names are no facts

Options = Mapping[str, object]  # everything that the command was given, by argparse's names


@dataclass(frozen=True)
class PartsRequest:
    """A translation that is to be done in parts."""

    chunk_lines: int | None
    resume: bool
    options: Options

    def facts(self, models: Sequence[Path]) -> Facts:
        """Everything that determines the outputs, by option; the contents of files, not their names."""
        files = {name: _files_read(name, value) for name, value in self.options.items()}
        files |= {"input": [Path(str(self.options["input"]))], "model": list(models)}
        contents = digests(path for paths in files.values() for path in paths)
        facts = {
            option_name(name): " and ".join(f"content {contents[path]}" for path in paths)
            for name, paths in files.items()
            if paths
        }
        for name, value in self.options.items():
            if value is None or value is False or value == USUAL.get(name) or name == MAIN:
                continue
            if name == "plot_alignments":  # pictures are not joined: they all go to one folder
                facts[option_name(name)] = str(Path(str(value)).resolve())
            elif name in FILES:
                facts[option_name(name)] = "wanted"
            elif not files[name] and name not in UNIMPORTANT:
                facts[option_name(name)] = str(value)
        return {"version": __version__, **facts}


def add_parts_options(group: argparse._ActionsContainer) -> None:
    """Add the options for translating in chunks."""
    group.add_argument(
        "--resume",
        action="store_true",
        help="keep finished chunks of the input in the folder OUTPUT.parts until all are done, and go on from those "
        "that are there; begin if there are none",
    )
    group.add_argument(
        "--chunk-lines",
        metavar="N",
        help="lines of a chunk, which is translated by one process and kept when it is finished (default: at most "
        f"{MOST_LINES}, and at least {CHUNKS} chunks for each process). Like --resume it makes a translation by one "
        "process one that can be resumed",
    )


def read_parts(options: Options, *, processes: int) -> Checking[PartsRequest | None]:
    """Read whether the input is to be translated in parts; None if it is not.

    Yields what cannot be combined with that; without parts, that there are unfinished ones of this output.
    """
    output, chunk_lines = str(options["output"]), options["chunk_lines"]
    folder, once = parts_folder(output), output == STANDARD or is_device(Path(output))
    if processes > 1:
        why = f"several processes (torchrun starts {processes})"
    elif options["resume"] or chunk_lines is not None:
        why = "--resume" if options["resume"] else "--chunk-lines"
    else:
        if not once and (reason := unfinished(folder)):
            yield reason
        return None
    files = [("input", Path(str(options["input"])))]
    files += [(name, path) for name, value in options.items() for path in _files_read(name, value)]
    for name, path in files:
        if str(path) == STANDARD or is_device(path):
            option = option_name(name)
            yield f"{option} {path} can be read only once, and {why} needs it several times; give a file that stays"
    if once:
        yield f"--output {output}: {why} needs a file, beside which finished parts are kept"
    for inside in outputs_inside(folder, options):
        yield f"{inside}: is in {folder}, which is removed in the end; choose another place"
    text = "1" if chunk_lines is None else str(chunk_lines)
    if not (text.isascii() and text.isdecimal() and len(text) < DIGITS and int(text) > 0):
        yield f"--chunk-lines {text}: allowed: a whole number, at least 1"
        return None
    return PartsRequest(None if chunk_lines is None else int(text), bool(options["resume"]), options)


def parts_folder(output: str) -> Path:
    """The folder for the parts of an output."""
    return Path(f"{output}.parts")


def outputs_inside(folder: Path, options: Options) -> list[str]:
    """The outputs in the folder, or equal to it, with their options."""
    outputs = [(name, str(options[name])) for name in OUTPUTS if options[name] is not None]
    inside = folder.resolve()
    return [f"{option_name(name)} {path}" for name, path in outputs if Path(path).resolve().is_relative_to(inside)]


def _files_read(name: str, value: object) -> list[Path]:
    """The files to read that an option names."""
    if name in OUTPUTS or name in BY_CONTENT:
        return []
    return [path for path in (value if isinstance(value, list) else [value]) if isinstance(path, Path)]
