#!/usr/bin/env python3
"""Whether the search for a single sentence earns its file: its plain loop against the batched one, in turn.

    python benchmarks/one_sentence.py --model runs/multi30k_en_de_luong

translates `--lines` lines of Multi30k's test_2016_flickr, or of --source, one at a time with one thread, `--runs` times
each way in one process, and prints one JSON line for each beam: the median seconds of processor time either way, and
how many times longer the batched loop takes. Both ways find the same translations, which is checked.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from unittest.mock import patch

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run as a file, too, it finds its neighbors

from benchmarks.reference_task import ROOT, positive
from nmt.data.corpus import read_lines
from nmt.decoding.search import beam
from nmt.decoding.translator import Translator


def measure(translator: Translator, lines: Sequence[str], *, beam_size: int, runs: int) -> dict[str, float]:
    """The median seconds of processor time either way."""
    seconds: dict[str, list[float]] = {"alone": [], "batched": []}
    texts = set()
    for _ in range(runs):
        for way, largest_beam in (("alone", beam_size), ("batched", 0)):
            with patch.object(beam, "LARGEST_BEAM", largest_beam):
                began = time.process_time()
                translations = list(translator.translate(lines, beam_size=beam_size, waiting=lambda: True))
                seconds[way].append(time.process_time() - began)
            texts.add(tuple(best[0].text for best in translations))
    if len(texts) > 1:
        raise RuntimeError("the two searches have written different translations")
    alone, batched = (statistics.median(seconds[way]) for way in ("alone", "batched"))
    return {
        "beam": beam_size,
        "alone": round(alone, 3),
        "batched": round(batched, 3),
        "ratio": round(batched / alone, 3),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True, metavar="PATH", help="model file or run folder")
    parser.add_argument("--beams", type=positive, nargs="+", default=[1, 5, 10], metavar="K", help="default: 1 5 10")
    parser.add_argument("--lines", type=positive, default=60, help="lines to translate (default: 60)")
    parser.add_argument("--runs", type=positive, default=9, help="times each way (default: 9)")
    source = ROOT / "data" / "multi30k" / "test_2016_flickr.en"
    parser.add_argument("--source", type=Path, default=source, metavar="FILE", help="default: Multi30k's test set")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    translator, lines = Translator.load(options.model), list(islice(read_lines(options.source), options.lines))
    for beam_size in options.beams:
        print(json.dumps(measure(translator, lines, beam_size=beam_size, runs=options.runs)), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
