"""What decides about the outputs of a translation in chunks: by it two translations are told apart, or the same."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from nmt import __version__
from nmt.cli.alignments import FILES
from nmt.cli.options import option_name
from nmt.data.corpus import digests
from nmt.jobs.chunks import MAIN
from nmt.jobs.description import Facts

OUTPUTS = ("output", *FILES, "plot_alignments")
# What changes no more than the rounding of float32
UNIMPORTANT = {"resume", "chunk_lines", "device", "batch_tokens", "batch_sentences"}
USUAL = {"precision": "float32"}  # the same as not to give the option
BY_CONTENT = {"input", "model"}  # told apart from the options' own values


def facts_of(given: argparse.Namespace, models: Sequence[Path]) -> Facts:
    """All that decides about the outputs, by the options' names; of files, what is in them."""
    paths = {name: paths_of(name, value) for name, value in vars(given).items()}
    paths |= {"input": [Path(given.input)], "model": list(models)}
    known = digests(path for each in paths.values() for path in each)
    facts = {
        option_name(name): " and ".join(f"content {known[path]}" for path in each)
        for name, each in paths.items()
        if each
    }
    for name, value in vars(given).items():
        if name in OUTPUTS:
            if name == "plot_alignments" and value is not None:  # pictures are not joined: all go to one folder
                facts[option_name(name)] = str(value.resolve())
            elif name != MAIN and value is not None:
                facts[option_name(name)] = "wanted"
        elif not paths[name] and name not in UNIMPORTANT and not _is_usual(name, value):
            facts[option_name(name)] = str(value)
    return {"version": __version__, **facts}


def _is_usual(name: str, value: object) -> bool:
    """Whether an option has no effect with this value."""
    return value is None or value is False or value == USUAL.get(name)


def paths_of(name: str, value: object) -> list[Path]:
    """The files to read among the values of an option."""
    if name in OUTPUTS or name in BY_CONTENT:
        return []
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, Path)]
