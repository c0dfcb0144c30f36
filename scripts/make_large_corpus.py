#!/usr/bin/env python3
"""Build an English-German corpus of any size, to try out corpora that are larger than memory.

    python scripts/get_multi30k.py --output data/multi30k
    python scripts/make_large_corpus.py --pairs 10000000 --output data/large

A line joins two or three sentences, and its translation joins their translations in the same order. A sentence is a
caption of Multi30k's training set or a sentence of the grammar in synthetic_grammar.py, with equal probability;
there are billions of combinations, so nearly all lines are distinct. Pairs are written as they are drawn, so memory
does not grow with their number; the same options give the same bytes. A model learns little from it beyond Multi30k.

The package never imports the script.
"""

import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # to find the package when run as a file

from nmt.cli.parser import Parser
from nmt.errors import counted
from nmt.files import written_atomically
from scripts.synthetic_grammar import make_pairs

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


def write_pairs(pairs: Iterator[Pair], count: int, paths: Sequence[Path]) -> None:
    """Write the next `count` pairs, chunk by chunk; the files get their names when they are complete."""
    with ExitStack() as stack:
        files = [stack.enter_context(written_atomically(path)) for path in paths]
        for start in range(0, count, CHUNK):
            chunk = zip(*islice(pairs, min(CHUNK, count - start)), strict=True)
            for file, lines in zip(files, chunk, strict=True):
                file.write("".join(f"{line}\n" for line in lines))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = Parser(
        PROGRAM,
        description="Write a large English-German corpus: {train,valid}.{en,de}, one pair per line.",
        epilog="The same options give the same bytes. Existing files are not replaced.",
    )
    parser.add_argument("--pairs", type=int, required=True, metavar="N", help="training pairs; required")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="where to write; required")
    parser.add_argument("--seed", type=int, default=1, help="another seed gives other pairs (default: %(default)s)")
    parser.add_argument("--valid", type=int, default=1000, metavar="N", help="validation pairs (default: 1000)")
    parser.add_argument(
        "--captions",
        type=Path,
        default=CAPTIONS,
        metavar="DIR",
        help="folder with Multi30k's train.en and train.de from scripts/get_multi30k.py (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    files = {name: [options.output / f"{name}.{side}" for side in ("en", "de")] for name in ("valid", "train")}
    there = [path.name for paths in files.values() for path in paths if path.exists()]
    if there:
        parser.error(f"--output {options.output}: has {', '.join(there)}; give another folder")
    try:
        parts = captions(options.captions) + grammar_sentences(SENTENCES)
    except (OSError, ValueError) as problem:
        parser.error(f"no captions in --captions ({problem}); fetch them with scripts/get_multi30k.py")
    pairs = joined(parts, options.seed)
    options.output.mkdir(parents=True, exist_ok=True)
    for name, count in (("valid", options.valid), ("train", options.pairs)):
        write_pairs(pairs, count, files[name])
    print(f"{options.output}: train {options.pairs}, valid {options.valid} pairs, joined from {len(parts)} sentences")
    return 0


if __name__ == "__main__":
    sys.exit(main())
