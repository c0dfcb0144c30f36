#!/usr/bin/env python3
"""Translate a text with several processes of one machine, by Python's multiprocessing.

    python examples/processes.py --model MODEL --input test.en --output test.de --workers 4

The translator is pickled as the path of its model, and each worker loads that file for itself. `nmt-translate` does the
same with torchrun, and can be stopped and resumed; this is for programs that have a pool anyway.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import TextIO

from nmt import Translator
from nmt.cli.common import run
from nmt.cli.outputs import opened_for_writing

LINES = 2000  # in a task

_translator: Translator  # of a worker


def begin(translator: Translator) -> None:
    global _translator
    _translator = translator


def translate(lines: list[str]) -> list[str]:
    return [best.text for best, *_ in _translator.translate(lines)]


def tasks(file: TextIO) -> Iterator[list[str]]:
    while lines := [line.removesuffix("\n") for line in islice(file, LINES)]:
        yield lines


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, kind in (("--model", Path), ("--input", Path), ("--output", str)):
        parser.add_argument(name, type=kind, required=True)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"  # or each worker would start a thread for every core
    translator = Translator.load(options.model)
    with (
        options.input.open(encoding="utf-8", newline="\n") as source,
        get_context("spawn").Pool(options.workers, initializer=begin, initargs=(translator,)) as pool,
        opened_for_writing(options.output) as file,  # complete or not at all
    ):
        for translations in pool.imap(translate, tasks(source)):  # in order
            file.writelines(f"{text}\n".encode() for text in translations)


if __name__ == "__main__":  # which the workers import too
    sys.exit(run("processes.py", main))
