"""nmt-translate --shard I/N, and --merge: what these cannot be combined with, and the names of files.

`nmt.jobs.shards` knows how shards are recorded and merged.
"""

import argparse
import re
import shlex
from collections.abc import Mapping
from typing import Any

from nmt.cli.alignment_outputs import FILES
from nmt.cli.outputs import STANDARD, check_outputs, is_device, is_in_place
from nmt.cli.parsers.parser import option_name
from nmt.cli.parts_request import MAIN, files_read
from nmt.errors import Checking
from nmt.jobs.shards import MOST, Shard

MERGED = (MAIN, *FILES)  # the options whose files are made of those of shards


def read_shard(options: Mapping[str, Any]) -> Checking[Shard | None]:
    """Read which shard to translate; None for the whole text, or if it is wrong."""
    if options["shard"] is None:
        return None
    match = re.fullmatch("([0-9]{1,6})/([0-9]{1,6})", options["shard"])
    number, of = map(int, match.groups()) if match else (0, 0)
    if not 1 <= number <= of <= MOST:
        yield (
            f"--shard {shlex.quote(options['shard'])}: allowed: I/N, such as 1/8 to 8/8, N at most {MOST:,}; shards "
            "are counted from 1"
        )
        return None
    for name, paths in files_read(options).items():
        for path in paths:
            if str(path) == STANDARD or is_device(path):
                yield (
                    f"{option_name(name)} {path} can be read only once, and --shard needs all of it to find its "
                    "lines; give a file that stays"
                )
    if is_in_place(options[MAIN]):
        yield f"--output {options[MAIN]}: --shard needs a file, beside which the shard and its record are kept"
    return Shard(number, of)


def with_names_of(shard: Shard, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with the names of the shard's own outputs."""
    names = {name: shard.name(options[name]) for name in MERGED if options[name] not in (None, STANDARD)}
    return {**options, **names}


def read_merge(
    options: argparse.Namespace, parser: argparse.ArgumentParser, *, processes: int
) -> Checking[dict[str, str]]:
    """Read the files to make, by kind, from options of the `parser`. `processes`: those that torchrun has started."""
    values = vars(options)
    if processes > 1:
        yield f"--merge is the work of one process, and torchrun starts {processes}; start it without torchrun"
    for name, value in values.items():
        if value != parser.get_default(name) and name not in (*MERGED, "merge"):
            yield f"{option_name(name)} has no effect with --merge, which translates nothing; leave it out"
    outputs = {name: values[name] for name in MERGED if values[name] is not None}
    for name, output in outputs.items():
        if is_in_place(output):
            yield f"{option_name(name)} {output}: --merge needs the name of the file that shards were translated for"
    yield from check_outputs({option_name(name): output for name, output in outputs.items()}, others=[])
    return outputs
