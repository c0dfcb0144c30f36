"""How nmt-translate cuts a long translation: --resume, --chunk-lines, --shard, --merge, and the processes of torchrun.

`nmt.decoding.chunks` knows how chunks are kept, shared, and joined.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt import __version__
from nmt.cli.alignment_outputs import FILES
from nmt.cli.outputs import STANDARD, check_outputs, is_device, is_in_place
from nmt.cli.parser import option_name
from nmt.data.corpus import digests
from nmt.decoding.chunks import Facts, folders_of
from nmt.errors import refuse

MAIN = "output"  # the kind of a chunk's file that has the translations; the others are FILES
# These change no more than rounding does
UNIMPORTANT = {MAIN, "resume", "shard", "merge", "device", "batch_tokens", "batch_sentences"}
Options = Mapping[str, Any]  # everything that the command was given, by argparse's names


def is_cut(options: Options, problems: list[str], *, processes: int) -> bool:
    """Read whether the text is to be cut; where it is not, no chunks may be there to continue with."""
    output = options["output"]
    reasons = {
        f"several processes (torchrun starts {processes})": processes > 1,
        "--shard": options["shard"] is not None,
        "--resume": options["resume"],
        "--chunk-lines": options["chunk_lines"] is not None,
    }
    why = next((reason for reason, holds in reasons.items() if holds), None)
    if why is None:
        for folder in [] if is_in_place(output) else folders_of(output):
            problems.append(
                f"{folder}: holds finished chunks of a translation to this output, which was stopped; continue with "
                "--resume, or delete the folder to start over"
            )
        return False
    for option, path in files_read(options):
        if str(path) == STANDARD or is_device(path):
            problems.append(
                f"{option} {path} can be read only once, and {why} needs it several times; give a file that stays"
            )
    for name in (MAIN, *FILES):
        if options[name] is not None and is_in_place(options[name]):
            problems.append(f"{option_name(name)} {options[name]}: {why} needs a file, beside which chunks are kept")
    return True


def read_merge(
    options: argparse.Namespace, problems: list[str], parser: argparse.ArgumentParser, *, processes: int
) -> dict[str, str]:
    """Read the files to make, by kind, from options of the `parser`. Raises UserError with all that is wrong.

    `processes`: those that torchrun has started.
    """
    values = vars(options)
    if processes > 1:
        problems.append(f"--merge is the work of one process, and torchrun starts {processes}; start it without")
    for name, value in values.items():
        if value != parser.get_default(name) and name not in (MAIN, *FILES, "merge"):
            problems.append(f"{option_name(name)} has no effect with --merge, which translates nothing; leave it out")
    outputs = {name: values[name] for name in (MAIN, *FILES) if values[name] is not None}
    for name, output in outputs.items():
        if is_in_place(output):
            problems.append(
                f"{option_name(name)} {output}: --merge needs the name of the file that shards were translated for"
            )
    named = {option_name(name): output for name, output in outputs.items()}
    check_outputs(named, problems, others=[])
    refuse(problems)
    return outputs


def facts_of(options: Options, models: Sequence[Path], *, batch_tokens: int) -> Facts:
    """Everything that determines the outputs, by option; the contents of files, not their names.

    `batch_tokens` decides where chunks end whose number of lines is not given.
    """
    files = [*files_read(options), *(("--model", path) for path in models)]
    contents = digests(path for _, path in files)
    facts = {"version": __version__}
    for name, value in options.items():
        if found := [f"content {contents[path]}" for option, path in files if option == option_name(name)]:
            fact = " and ".join(found)
        elif name in UNIMPORTANT or value is None or value is False:
            continue
        elif name == "plot_alignments":  # pictures are not joined: they all go to one folder
            fact = str(value.resolve())
        else:
            fact = "given" if value is True or name in FILES else str(value)
        facts[option_name(name)] = fact
    if options["chunk_lines"] is None:
        facts[option_name("batch_tokens")] = str(batch_tokens)
    return facts


def files_read(options: Options) -> list[tuple[str, Path]]:
    """The files to read, with their options, except the models."""
    read = [("--input", Path(options["input"]))]
    for name, value in options.items():
        if name not in ("model", "plot_alignments"):
            several = value if isinstance(value, list) else [value]
            read += [(option_name(name), path) for path in several if isinstance(path, Path)]
    return read
