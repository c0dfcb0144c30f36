#!/usr/bin/env python3
"""How long training waits for a cached corpus, every byte of which is checked.

    python benchmarks/cache_start.py --pairs 10000000 --work /somewhere/large

makes a corpus with scripts/make_large_corpus.py, prepares it like nmt-train, and prints one JSON line: the sizes of the
text and the cache, and the median seconds of reopening them `--runs` times. verification: opening the ids of the
training corpus, which reads and hashes all of them. start: everything that nmt-train does until it has its data, which
is the same plus hashing the text, the subword model and the validation corpus. Both are measured warm, with the files
in the system's memory, and, where possible, cold, after asking the system to forget them.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # to find its neighbors when run as a file

from benchmarks.in_turn import run_command
from benchmarks.reference_task import ROOT, positive
from nmt.cli.common import run
from nmt.config.schema import Config
from nmt.data.cache import checked_facts
from nmt.data.prepare import prepare
from nmt.data.store import PairedIds

PIECES = 8000
Result = TypeVar("Result")


def make_corpus(folder: Path, pairs: int, captions: Path | None) -> Config:
    """Write the corpus; returns a configuration for it."""
    make = [sys.executable, str(ROOT / "scripts" / "make_large_corpus.py"), "--pairs", str(pairs)]
    run_command([*make, *([] if captions is None else ["--captions", str(captions)]), "--output", str(folder)])
    train, valid = (
        {"source": str(folder / f"{split}.en"), "target": str(folder / f"{split}.de")} for split in ("train", "valid")
    )
    data = {"source_language": "en", "target_language": "de", "train": [train], "valid": valid}
    return Config.model_validate({"name": "cache_start", "data": data})


def measure(config: Config, cache: Path, *, pieces: int, runs: int) -> dict[str, Any]:
    """Prepare the corpus, and reopen it `runs` times."""
    config = config.model_copy(update={"subwords": config.subwords.model_copy(update={"size": pieces})})

    def start() -> PairedIds:
        return prepare(config, cache=cache, log=lambda line: None).train

    preparation, ids = _timed(start)
    texts = [path for pair in (*config.data.train, config.data.valid) for path in (pair.source, pair.target)]
    cached = [path for path in cache.rglob("*") if path.is_file()]
    figures: dict[str, Any] = {
        "pairs": len(ids),
        "text_gigabytes": _gigabytes(texts),
        "cache_gigabytes": _gigabytes(cached),
        "preparation_seconds": round(preparation, 2),
    }
    for name, again in (("verification", lambda: checked_facts(ids.folder)), ("start", start)):
        for state, before in (("warm", lambda: None), ("cold", lambda: _forget([*texts, *cached]))):
            if state == "warm" or hasattr(os, "posix_fadvise"):
                seconds = []
                for _ in range(runs):
                    before()
                    seconds.append(_timed(again)[0])
                figures[f"{name}_{state}_seconds"] = round(statistics.median(seconds), 2)
    return {**figures, "cores": os.cpu_count(), "runs": runs}


def _timed(call: Callable[[], Result]) -> tuple[float, Result]:
    began = time.perf_counter()
    result = call()
    return time.perf_counter() - began, result


def _gigabytes(paths: Sequence[Path]) -> float:
    return round(sum(path.stat().st_size for path in paths) / 1e9, 3)


def _forget(paths: Sequence[Path]) -> None:
    """Ask the system to drop the files from its cache; it keeps what a process has mapped."""
    os.sync()
    for path in paths:
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--pairs", type=positive, default=1_000_000, help="training pairs (default: 1000000)")
    parser.add_argument("--pieces", type=positive, default=PIECES, help=f"size of the vocabulary (default: {PIECES})")
    parser.add_argument("--runs", type=positive, default=3, help="how often to measure (default: 3)")
    parser.add_argument("--captions", type=Path, metavar="DIR", help="folder of Multi30k's training text")
    parser.add_argument(
        "--work", type=Path, metavar="DIR", help="where to make the corpus (default: the system's /tmp)"
    )
    options = parser.parse_args(arguments)
    if options.work is not None and not options.work.is_dir():
        parser.error(f"--work {options.work}: no such folder")

    def body() -> None:
        with tempfile.TemporaryDirectory(dir=options.work) as name:
            config = make_corpus(Path(name), options.pairs, options.captions)
            figures = measure(config, Path(name) / "cache", pieces=options.pieces, runs=options.runs)
        print(json.dumps(figures))

    return run("cache_start", body)


if __name__ == "__main__":
    sys.exit(main())
