#!/usr/bin/env python3
"""What several sentences on a line cost, and that cutting them gives it back: BLEU of joined lines, both ways.

    python benchmarks/joined_lines.py --model runs/demo --source test.en --reference test.de

joins the sentences of a test set, which has one on each line, `--sentences` by `--sentences` with a space, translates
the lines as they are and with `split_sentences`, and prints one JSON line for each number: BLEU by sacreBLEU against
the references, joined likewise, and how many lines nmt-translate warns of.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run as a file, too, it finds its neighbors

from benchmarks.reference_task import positive
from nmt.data.corpus import read_lines
from nmt.decoding.doubts import Doubts
from nmt.decoding.translator import TranslationOptions, Translator
from nmt.evaluation.metrics import corpus_scores


def joined(lines: Sequence[str], sentences: int) -> list[str]:
    """So many lines on each; the last may have fewer."""
    return [" ".join(lines[start : start + sentences]) for start in range(0, len(lines), sentences)]


def bleu(
    translator: Translator, lines: Sequence[str], references: Sequence[str], doubts: Doubts, *, split: bool | None
) -> float:
    """BLEU of the best translations; `doubts` counts what is warned of."""
    translations = translator.translate(lines, TranslationOptions(split_sentences=split), doubts=doubts)
    scores = corpus_scores([best.text for best, *_ in translations], references, metrics=["bleu"])
    return round(scores["bleu"].score, 2)


def measure(
    translator: Translator, sources: Sequence[str], references: Sequence[str], *, sentences: int
) -> dict[str, Any]:
    """The figures for so many sentences a line."""
    lines, references = joined(sources, sentences), joined(references, sentences)
    doubts = Doubts()
    whole = bleu(translator, lines, references, doubts, split=None)
    split = bleu(translator, lines, references, Doubts(), split=True)
    return {"sentences": sentences, "lines": len(lines), "warned of": doubts.long, "whole": whole, "split": split}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True, metavar="PATH", help="model file or run folder")
    parser.add_argument("--source", type=Path, required=True, metavar="FILE", help="one sentence a line")
    parser.add_argument("--reference", type=Path, required=True, metavar="FILE", help="their translations")
    parser.add_argument(
        "--sentences", type=positive, nargs="+", default=[1, 2, 3, 5], metavar="N", help="a line (default: 1 2 3 5)"
    )
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    translator = Translator.load(options.model)
    sources, references = list(read_lines(options.source)), list(read_lines(options.reference))
    for sentences in options.sentences:
        print(json.dumps(measure(translator, sources, references, sentences=sentences)), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
