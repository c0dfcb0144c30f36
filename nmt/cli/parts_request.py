"""nmt-translate in parts: what its options cannot be combined with, and the facts that tell translations apart.

`nmt.jobs` knows how parts are translated and kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt import __version__
from nmt.cli.alignment_outputs import FILES
from nmt.cli.options import read_count
from nmt.cli.outputs import STANDARD, is_device, is_in_place
from nmt.cli.parsers.parser import option_name
from nmt.cli.parsers.shared import END_LINKS, PRECISIONS
from nmt.data.corpus import digests
from nmt.errors import Checking
from nmt.jobs.records import Facts
from nmt.jobs.resuming import unfinished

MAIN = "output"  # the kind of part that has the translations; the others are FILES
OUTPUTS = (MAIN, *FILES, "plot_alignments")
# These change no more than rounding does
UNIMPORTANT = {MAIN, "resume", "chunk_lines", "device", "batch_tokens", "batch_sentences"}
# The same as leaving the option out
USUAL = {
    "precision": PRECISIONS[0],
    "alignment_step": "this",
    "end_links": END_LINKS,
    "ensemble": "log-probabilities",
    "format": "text",
}

Options = Mapping[str, Any]  # everything that the command was given, by argparse's names


@dataclass(frozen=True)
class PartsRequest:
    """A translation that is to be done in parts."""

    chunk_lines: int | None
    resume: bool


def facts_of(options: Options, models: Sequence[Path]) -> Facts:
    """Everything that determines the outputs, by option; the contents of files, not their names."""
    files = {**files_read(options), "model": models}
    contents = digests(path for paths in files.values() for path in paths)
    facts = {"version": __version__}
    for name, value in options.items():
        if name in files:
            fact = " and ".join(f"content {contents[path]}" for path in files[name])
        elif name in UNIMPORTANT or value is None or value is False or value == USUAL.get(name):
            continue
        elif name == "plot_alignments":  # pictures are not joined: they all go to one folder
            fact = str(value.resolve())
        else:
            fact = "wanted" if name in FILES else str(value)
        facts[option_name(name)] = fact
    return facts


def read_parts(options: Options, *, processes: int) -> Checking[PartsRequest | None]:
    """Read whether the input is to be translated in parts; None if it is not.

    Yields what cannot be combined with that; without parts, that there are unfinished ones of this output.
    """
    output, chunk_lines = options["output"], options["chunk_lines"]
    folder, once = parts_folder(output), is_in_place(output)
    if processes > 1:
        why = f"several processes (torchrun starts {processes})"
    elif options["resume"] or chunk_lines is not None:
        why = "--resume" if options["resume"] else "--chunk-lines"
    else:
        if not once and (reason := unfinished(folder)):
            yield reason
        return None
    for name, paths in files_read(options).items():
        for path in paths:
            if str(path) == STANDARD or is_device(path):
                option = option_name(name)
                yield f"{option} {path} can be read only once, and {why} needs it several times; give a file that stays"
    if once:
        yield f"--output {output}: {why} needs a file, beside which finished parts are kept"
    for inside in outputs_inside(folder, options):
        yield f"{inside}: is in {folder}, which is removed in the end; choose another place"
    count = yield from read_count("--chunk-lines", chunk_lines, least=1)
    return PartsRequest(count, options["resume"])


def parts_folder(output: str) -> Path:
    """The folder for the parts of an output."""
    return Path(f"{output}.parts")


def outputs_inside(folder: Path, options: Options) -> list[str]:
    """The outputs in the folder, or equal to it, with their options."""
    outputs = [(name, options[name]) for name in OUTPUTS if options[name] is not None]
    inside = folder.resolve()
    return [f"{option_name(name)} {path}" for name, path in outputs if Path(path).resolve().is_relative_to(inside)]


def files_read(options: Options) -> dict[str, Sequence[Path]]:
    """The files to read, by the names of their options, except the models."""
    files: dict[str, Sequence[Path]] = {"input": [Path(options["input"])]}
    for name, value in options.items():
        paths = [path for path in (value if isinstance(value, list) else [value]) if isinstance(path, Path)]
        if paths and name not in (*OUTPUTS, "model"):
            files[name] = paths
    return files
