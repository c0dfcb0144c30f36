#!/usr/bin/env python3
"""Translation speed of a model, with the BLEU of what it wrote.

    python benchmarks/translate_speed.py --model runs/multi30k_en_de_luong --beam 5 --batch 64

translates Multi30k's test_2016_flickr, or --source, and prints one JSON line. The time is from lines to translations,
with the model already loaded, by one line. A batch has `--batch` sentences of similar length, so `--batch 1`
is one sentence at a time. `--against COMMAND` runs another program in turn with this one, `--runs` times each: its last
line of output must be a JSON object with `sentences_per_second`. Machines are noisy: compare medians of runs in turn on
the same machine.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # to find its neighbors when run as a file

from benchmarks.in_turn import MEBIBYTE, add_rival_options, compare, own_peak_resident_mib, run_command
from benchmarks.reference_task import DEVICES, TEST_SOURCE, TEST_TARGET, add_threads_option, positive
from nmt.cli.common import run
from nmt.data.corpus import read_lines
from nmt.decoding.translator import TranslationOptions, Translator
from nmt.devices import PRECISIONS, choose_device
from nmt.errors import UserError
from nmt.evaluation.metrics import corpus_scores
from nmt.models.model_file import load_model

FIELD = "sentences_per_second"
ANY_TOKENS = 10**9  # switches off the translator's limit in pieces: here a batch is a number of sentences


def translate_in_batches(translator: Translator, lines: Sequence[str], *, beam: int, batch: int) -> list[str]:
    """The translation of each line; `batch` lines of similar length are computed together."""
    together = [lines] if batch > 1 else [[line] for line in lines]
    options = TranslationOptions(beam_size=beam, batch_tokens=ANY_TOKENS, batch_sentences=batch)
    return [best[0].text for some in together for best in translator.translate(some, options)]


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Translate the source once, and score the translations."""
    lines, references = _both(options.source, options.reference)
    device = choose_device(options.device)
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    translator = Translator.load(options.model, device=device, precision=options.precision, shortlist=options.shortlist)
    list(translator.translate(lines[:1]))  # loads what is loaded late
    began = time.perf_counter()
    translations = translate_in_batches(translator, lines, beam=options.beam, batch=options.batch)
    seconds = time.perf_counter() - began
    memory = {"peak_resident_mib": round(own_peak_resident_mib(), 1)}
    if device.type == "cuda":
        memory["peak_device_mib"] = round(torch.cuda.max_memory_allocated() / MEBIBYTE, 1)
    bleu = corpus_scores(translations, references, metrics=("bleu",))["bleu"]
    return {
        **_described(options),
        "threads": torch.get_num_threads(),
        "pytorch": torch.__version__,
        "parameters": sum(weight.numel() for weight in load_model(Path(options.model)).weights.values()),
        "sentences": len(lines),
        "seconds": round(seconds, 3),
        FIELD: round(len(lines) / seconds, 3),
        "bleu": round(bleu.score, 2),
        "signature": bleu.signature,
        **memory,
    }


def _both(source: Path, reference: Path) -> tuple[list[str], list[str]]:
    problems: list[str] = []
    sides: list[list[str]] = []
    for option, path in (("--source", source), ("--reference", reference)):
        try:
            sides.append(list(read_lines(path)))
        except UserError as error:
            problems.extend(f"{option}: {message}" for message in error.messages)
    if problems and (source, reference) == (TEST_SOURCE, TEST_TARGET):
        problems.append("fetch Multi30k with: python scripts/get_multi30k.py")
    if problems:
        raise UserError(*problems)
    lines, references = sides
    if not lines or len(lines) != len(references):
        raise UserError(
            f"--source {source} has {len(lines)} lines and --reference {reference} has {len(references)}: they need "
            "the same number, and at least one"
        )
    return lines, references


def _described(options: argparse.Namespace) -> dict[str, Any]:
    """The options that describe the measurement."""
    return {
        "model": str(options.model),
        "source": options.source.name,
        "device": options.device,
        "precision": options.precision,
        "shortlist": options.shortlist is not None,
        "beam": options.beam,
        "batch": options.batch,
    }


def compared(options: argparse.Namespace) -> dict[str, Any]:
    """Run this benchmark and the rival in turn in separate processes; with the BLEU of each, if it reports one."""
    ours = [sys.executable, __file__, "--model", str(options.model), "--beam", str(options.beam)]
    ours += ["--batch", str(options.batch), "--precision", options.precision, "--device", options.device]
    ours += ["--source", str(options.source), "--reference", str(options.reference)]
    ours += [] if options.threads is None else ["--threads", str(options.threads)]
    ours += [] if options.shortlist is None else ["--shortlist", str(options.shortlist)]
    bleu: dict[str, float] = {}

    def speed(command: Sequence[str]) -> float:
        ran = run_command(command)
        if "bleu" in ran.result:
            bleu["bleu" if command is ours else "rival_bleu"] = ran.result["bleu"]
        return ran.number(FIELD, command)

    figures = compare(ours, options.against, runs=options.runs, field=FIELD, unit="sentences/s", measure=speed)
    return {**_described(options), **figures, **bleu}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--model", type=Path, required=True, metavar="PATH", help="model file or run folder")
    parser.add_argument("--beam", type=positive, default=5, help="beam size; 1 is greedy search (default: 5)")
    parser.add_argument("--batch", type=positive, default=64, metavar="N", help="sentences per batch (default: 64)")
    parser.add_argument("--precision", choices=PRECISIONS, default="float32", help="default: float32")
    parser.add_argument("--shortlist", type=Path, metavar="FILE", help="a file from nmt-shortlist")
    parser.add_argument("--device", choices=DEVICES, default="cpu", help="default: cpu")
    add_threads_option(parser)
    parser.add_argument("--source", type=Path, default=TEST_SOURCE, metavar="FILE", help="default: Multi30k's test set")
    parser.add_argument("--reference", type=Path, default=TEST_TARGET, metavar="FILE", help="its translations")
    add_rival_options(parser, prints=f"its last line is a JSON object with {FIELD}", runs=5)
    options = parser.parse_args(arguments)

    def body() -> None:
        print(json.dumps(compared(options) if options.against else measure(options)))

    return run("translate_speed", body)


if __name__ == "__main__":
    sys.exit(main())
