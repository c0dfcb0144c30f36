#!/usr/bin/env python3
"""Whether ONNX Runtime translates as PyTorch does, and what int8 costs.

    python benchmarks/engine_parity.py --model runs/a runs/b --source test.en --reference test.de --tokenize none

Translates the source with each model by both engines, and prints a JSON line for each: how many translations, and how
many alignments of equal ones, differ from PyTorch's in float32; how many lines differ when they are translated alone
rather than together, in float32 and in int8; BLEU of both, and their differences' mean and deviation in the last line.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # to find its neighbors when run as a file

from benchmarks.reference_task import positive
from nmt.cli.common import run
from nmt.data.corpus import read_lines
from nmt.decoding.options import TranslationOptions
from nmt.decoding.runtime import RuntimeScorer
from nmt.decoding.translator import Translator
from nmt.decoding.writing import Translation
from nmt.errors import UserError
from nmt.evaluation.metrics import check_tokenizer, corpus_scores


def engine(model: Path, precision: str) -> Translator:
    """The model in ONNX Runtime. Raises UserError where that does not compute it."""
    translator = Translator.load(model, precision=precision)
    if not isinstance(translator.scorer, RuntimeScorer):
        raise UserError(f"{model}: ONNX Runtime does not compute this model")
    return translator


def together(translator: Translator, lines: Sequence[str], options: TranslationOptions) -> list[Translation]:
    """The best translation of each line."""
    return [best for best, *_ in translator.translate(lines, options)]


def alone(translator: Translator, lines: Sequence[str], options: TranslationOptions) -> list[Translation]:
    """The same, one line after the other."""
    return [best for line in lines for best, *_ in translator.translate([line], options)]


def _differing(ours: Sequence[Translation], theirs: Sequence[Translation]) -> int:
    return sum(one.text != other.text for one, other in zip(ours, theirs, strict=True))


def measure(
    model: Path, lines: Sequence[str], references: Sequence[str], options: argparse.Namespace
) -> dict[str, Any]:
    """One model's figures."""
    asked = TranslationOptions(beam_size=options.beam, alignments=True)
    engines = {precision: engine(model, precision) for precision in ("float32", "int8")}
    runtime = {precision: together(one, lines, asked) for precision, one in engines.items()}
    some = lines[: options.alone]
    apart = {
        precision: _differing(alone(one, some, asked), runtime[precision][: len(some)])
        for precision, one in engines.items()
    }
    _ = engines["float32"].models  # from here on PyTorch computes
    plain = together(engines["float32"], lines, asked)
    bleu = {
        precision: corpus_scores([one.text for one in ours], references, tokenize=options.tokenize)["bleu"].score
        for precision, ours in runtime.items()
    }
    same = [pair for pair in zip(runtime["float32"], plain, strict=True) if pair[0].text == pair[1].text]
    return {
        "model": str(model),
        "lines": len(lines),
        "beam": options.beam,
        "other_than_pytorch": _differing(runtime["float32"], plain),
        "other_alignments": sum(ours.alignment != theirs.alignment for ours, theirs in same),
        "alone": len(some),
        "other_alone": apart,
        "bleu": {precision: round(score, 2) for precision, score in bleu.items()},
        "int8_minus_float32": round(bleu["int8"] - bleu["float32"], 3),
        "other_in_int8": _differing(runtime["int8"], runtime["float32"]),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--model", type=Path, nargs="+", required=True, metavar="PATH", help="model files")
    parser.add_argument("--source", type=Path, required=True, metavar="FILE", help="text to translate")
    parser.add_argument("--reference", type=Path, required=True, metavar="FILE", help="its translation")
    parser.add_argument("--tokenize", default="13a", help="what BLEU takes for words (default: 13a)")
    parser.add_argument("--beam", type=positive, default=5, help="beam size (default: 5)")
    parser.add_argument("--alone", type=positive, default=200, help="lines to translate alone as well (default: 200)")
    options = parser.parse_args(arguments)

    def body() -> None:
        check_tokenizer(options.tokenize)
        lines, references = list(read_lines(options.source)), list(read_lines(options.reference))
        if not lines or len(lines) != len(references):
            raise UserError(
                f"--source has {len(lines)} lines, --reference {len(references)}: give the same number, at least one"
            )
        differences = []
        for model in options.model:
            figures = measure(model, lines, references, options)
            differences.append(figures["int8_minus_float32"])
            print(json.dumps(figures), flush=True)
        spread = round(statistics.stdev(differences), 3) if len(differences) > 1 else None
        print(json.dumps({"int8_minus_float32": round(statistics.mean(differences), 3), "deviation": spread}))

    return run("engine_parity", body)


if __name__ == "__main__":
    sys.exit(main())
