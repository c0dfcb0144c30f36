#!/usr/bin/env python3
"""Translate a text with several processes of one machine, by Python's multiprocessing.

    python examples/processes.py --model MODEL --input test.en --output test.de --workers 4

The translator is loaded once, to find mistakes early, and pickled as the path of its model: each worker loads that
file for itself. `nmt-translate` does the same with torchrun, and can be stopped and resumed; this is for programs that
have a pool anyway.
"""

import argparse
from collections.abc import Iterator
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

import torch

from nmt import Translator, UserError
from nmt.files import written_atomically

LINES = 2000  # in a task

_translator: Translator  # of a worker


def begin(translator: Translator) -> None:
    global _translator
    _translator = translator
    torch.set_num_threads(1)  # or each worker would start a thread for every core


def translate(lines: list[str]) -> list[str]:
    return [best.text for best, *_ in _translator.translate(lines)]


def tasks(path: Path) -> Iterator[list[str]]:
    with path.open(encoding="utf-8", newline="\n") as file:
        while lines := [line.removesuffix("\n") for line in islice(file, LINES)]:
            yield lines


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("--model", "--input", "--output"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    try:
        if options.output.exists() and options.output.samefile(options.input):
            parser.error(f"--output {options.output}: would overwrite --input")
        translator = Translator.load(options.model)
        with (
            get_context("spawn").Pool(options.workers, initializer=begin, initargs=(translator,)) as pool,
            written_atomically(options.output) as file,  # when all is translated
        ):
            for translations in pool.imap(translate, tasks(options.input)):  # in order
                file.writelines(f"{text}\n" for text in translations)
    except (UserError, OSError) as problem:
        parser.error(str(problem))


if __name__ == "__main__":  # which the workers import too
    main()
