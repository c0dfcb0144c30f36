#!/usr/bin/env python3
"""Build an English-German corpus of any size, to try out corpora that are larger than memory.

    python scripts/get_multi30k.py --output data/multi30k
    python scripts/make_large_corpus.py --pairs 10000000 --output data/large

A line joins two or three sentences, and its translation joins their translations in the same order. A sentence is a
caption of Multi30k's training set or a sentence of the grammar in nmt/data/synthetic.py, with equal probability;
there are billions of combinations, so nearly all lines are distinct. Pairs are written as they are drawn, so memory
does not grow with their number; the same options give the same bytes. A model learns little from it beyond Multi30k.

The package never imports the script.
"""

import argparse
import gzip
import random
import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import IO

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # to find the package when run as a file

from nmt.cli.parsers.parser import Parser
from nmt.data.synthetic import make_pairs
from nmt.errors import counted

PROGRAM = "make_large_corpus.py"
CAPTIONS = Path(__file__).resolve().parent.parent / "data" / "multi30k"
SENTENCES = 30_000  # of the grammar: about as many as there are captions
GRAMMAR_SEED = 1
THREE = 0.2  # share of lines that join three sentences; the others join two
CHUNK = 20_000  # pairs written at once

Pair = tuple[str, str]  # English, German


def joined(parts: Sequence[Pair], seed: int) -> Iterator[Pair]:
    """An endless stream of pairs, each joined from two or three of `parts`.

    Built on random(), the only method whose numbers Python promises to keep between versions.
    """
    number = random.Random(seed).random
    count = len(parts)
    while True:
        first, second = parts[int(number() * count)], parts[int(number() * count)]
        if number() < THREE:
            third = parts[int(number() * count)]
            yield f"{first[0]} {second[0]} {third[0]}", f"{first[1]} {second[1]} {third[1]}"
        else:
            yield f"{first[0]} {second[0]}", f"{first[1]} {second[1]}"


def captions(folder: Path) -> list[Pair]:
    """The training pairs of Multi30k. Raises OSError if they are missing, ValueError if they are not parallel."""
    texts = [(folder / f"train.{side}").read_text(encoding="utf-8") for side in ("en", "de")]
    sides = [text.removesuffix("\n").split("\n") for text in texts]
    if len(sides[0]) != len(sides[1]) or not any(sides[0]):
        raise ValueError(f"{folder}: train.en has {counted(len(sides[0]), 'line')} and train.de has {len(sides[1])}")
    return list(zip(*sides, strict=True))


def grammar_sentences(count: int) -> list[Pair]:
    """Distinct sentences of the grammar, with punctuation attached to the words, as in captions."""
    return [(_text(pair.english), _text(pair.german)) for pair in make_pairs(count, GRAMMAR_SEED)]


def _text(words: Sequence[str]) -> str:
    return " ".join(words).replace(" .", ".").replace(" ,", ",")


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def whole_number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, 0 or more")
    return int(text)


def files_of(folder: Path, name: str, *, packed: bool) -> list[Path]:
    return [folder / f"{name}.{side}{'.gz' if packed else ''}" for side in ("en", "de")]


def write_pairs(pairs: Iterator[Pair], count: int, paths: Sequence[Path], *, packed: bool) -> None:
    """Write the next `count` pairs; the files get their names only when both are complete."""
    partial = [path.with_name(f"{path.name}.{secrets.token_hex(16)}.partial") for path in paths]
    try:
        with ExitStack() as stack:
            files = [stack.enter_context(_opened(path, packed)) for path in partial]
            for start in range(0, count, CHUNK):
                chunk = zip(*islice(pairs, min(CHUNK, count - start)), strict=True)
                for file, lines in zip(files, chunk, strict=True):
                    file.write("".join(f"{line}\n" for line in lines).encode("utf-8"))
        for path, final in zip(partial, paths, strict=True):
            path.replace(final)
    finally:
        for path in partial:
            path.unlink(missing_ok=True)


@contextmanager
def _opened(path: Path, packed: bool) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """A file to write to, compressed without a name or a time, so that the same text gives the same bytes."""
    with open(path, "xb") as file:  # does not follow a link that somebody put there
        if packed:
            with gzip.GzipFile("", "wb", compresslevel=1, fileobj=file, mtime=0) as packing:
                yield packing
        else:
            yield file


def main(arguments: Sequence[str] | None = None) -> int:
    parser = Parser(
        PROGRAM,
        description="Write a large English-German corpus: {train,valid}.{en,de}, one pair per line.",
        epilog="The same options give the same bytes. Existing files are not replaced unless --overwrite says so.",
    )
    parser.add_argument("--pairs", type=positive, metavar="N", help="training pairs; required")
    parser.add_argument("--output", type=Path, metavar="DIR", help="where to write, created if missing; required")
    parser.add_argument(
        "--seed", type=whole_number, default=1, help="another seed gives other pairs (default: %(default)s)"
    )
    parser.add_argument("--valid", type=positive, default=1000, metavar="N", help="validation pairs (default: 1000)")
    parser.add_argument("--gzip", action="store_true", help="compress the files: {train,valid}.{en,de}.gz")
    parser.add_argument("--overwrite", action="store_true", help="replace files that are there")
    parser.add_argument(
        "--captions",
        type=Path,
        default=CAPTIONS,
        metavar="DIR",
        help="folder with Multi30k's train.en and train.de from scripts/get_multi30k.py (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    if options.pairs is None or options.output is None:
        parser.error("--pairs N and --output DIR are needed: how many training pairs to write, and where")
    try:
        parts = captions(options.captions)
    except (OSError, ValueError) as problem:
        parser.error(f"no captions in --captions ({problem}); fetch them with scripts/get_multi30k.py")
    files = {name: files_of(options.output, name, packed=options.gzip) for name in ("valid", "train")}
    try:
        there = [path for paths in files.values() for path in paths if path.exists()]
        if any(path.samefile(options.captions / f"train.{side}") for path in there for side in ("en", "de")):
            parser.error(f"--output {options.output}: would overwrite the captions; give another folder")
        if there and not options.overwrite:
            names = ", ".join(path.name for path in there)
            parser.error(f"--output {options.output}: has {names}; give another folder, or --overwrite to replace them")
        parts += grammar_sentences(SENTENCES)
        pairs = joined(parts, options.seed)
        options.output.mkdir(parents=True, exist_ok=True)
        for name, count in (("valid", options.valid), ("train", options.pairs)):
            write_pairs(pairs, count, files[name], packed=options.gzip)
    except OSError as problem:
        parser.error(f"cannot write to --output {options.output}: {problem}")
    print(f"{options.output}: train {options.pairs}, valid {options.valid} pairs, joined from {len(parts)} sentences")
    return 0


if __name__ == "__main__":
    sys.exit(main())
