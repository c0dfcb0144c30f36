#!/usr/bin/env python3
"""A text in shards: translate it as a whole, and again with --shard, some shards at a time; kill one and repeat it.

    python benchmarks/shards.py --lines 1000000 --shards 8 --together 2

The merged file must be that of the whole, byte for byte; before the killed shard is repeated, --merge must say that it
is missing. The exit code is 1 otherwise. The text is made of the sentences of the demo's corpus, and so is the model,
which is smaller than the demo's and trained for a minute; or give --model. Search is greedy, and every process has one
thread.
"""

import argparse
import filecmp
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # to find its neighbors when run as a file

from benchmarks.reference_task import ROOT
from benchmarks.soak import one_thread
from nmt.cli.common import run
from nmt.errors import UserError

SENTENCES = 100_000  # different ones, of which the text is made
SMALL = {"embedding_size": 48, "encoder": {"hidden_size": 48}, "decoder": {"hidden_size": 64}}


class Translation:
    """nmt-translate with a model and a text, in a folder."""

    def __init__(self, folder: Path, model: Path, shards: int) -> None:
        self.text, self.whole, self.merged = folder / "text.en", folder / "whole.de", folder / "merged.de"
        self._model, self._shards = model, shards

    def of_whole(self) -> None:
        _finished(self._start("--output", self.whole))

    def of_shard(self, number: int, *, killed_after: float | None = None) -> None:
        """Translate a shard; `killed_after` so many seconds it is killed."""
        process = self._start("--output", self.merged, "--shard", f"{number}/{self._shards}")
        if killed_after is not None:
            time.sleep(killed_after)
            process.kill()
            if process.wait() >= 0:
                raise UserError(f"shard {number} was finished before it was killed; give more --lines")
            return
        _finished(process)

    def merge(self) -> str:
        """Merge the shards; returns what is said if that is refused."""
        command = [*_program("translate"), "--merge", "--output", str(self.merged)]
        done = subprocess.run(command, cwd=ROOT, env=one_thread(), capture_output=True, text=True)
        return done.stderr.strip() if done.returncode else ""

    def _start(self, *options: str | Path) -> "subprocess.Popen[str]":
        arguments = ("--model", self._model, "--input", self.text, "--beam-size", 1, "--device", "cpu", *options)
        command = [*_program("translate"), *map(str, arguments)]
        return subprocess.Popen(command, cwd=ROOT, env=one_thread(), stderr=subprocess.PIPE, text=True)


def _program(name: str) -> list[str]:
    return [sys.executable, "-m", "nmt", name]


def _finished(process: "subprocess.Popen[str]") -> None:
    _, said = process.communicate()
    if process.returncode:
        raise UserError(f"{process.args!r}: ended with code {process.returncode}\n{said}")


def prepare(folder: Path, *, lines: int, updates: int | None) -> None:
    """Make the text; with `updates`, train the model run/best.safetensors too."""
    script = str(ROOT / "scripts" / "make_synthetic_corpus.py")
    _finished(_quiet([sys.executable, script, "--output", str(folder), "--train", str(SENTENCES)]))
    sentences = (folder / "train.en").read_text(encoding="utf-8").splitlines()
    with open(folder / "text.en", "w", encoding="utf-8") as text:
        text.writelines(f"{sentence}\n" for sentence in islice(cycle(sentences), lines))
    if updates is not None:
        recipe: dict[str, Any] = yaml.safe_load((ROOT / "configs" / "demo.yaml").read_text(encoding="utf-8"))
        train, valid = ({"source": f"{name}.en", "target": f"{name}.de"} for name in ("train", "valid"))
        recipe["data"] |= {"train": [train], "valid": valid}
        for part, sizes in SMALL.items():
            recipe["model"][part] = {**recipe["model"][part], **sizes} if isinstance(sizes, dict) else sizes
        del recipe["training"]["schedule"], recipe["training"]["max_epochs"]
        recipe["training"] |= {"max_updates": updates, "validate_every": updates, "validation": {"metric": "loss"}}
        (folder / "config.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
        arguments = ["--config", str(folder / "config.yaml"), "--output", str(folder / "run")]
        _finished(_quiet([*_program("train"), *arguments]))


def _quiet(command: Sequence[str]) -> "subprocess.Popen[str]":
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.Popen(command, cwd=ROOT, env=one_thread(), stdout=nothing, stderr=pipe, text=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--lines", type=int, default=1_000_000, help="default: %(default)s")
    parser.add_argument("--shards", type=int, default=8, help="default: %(default)s")
    parser.add_argument("--together", type=int, default=2, help="shards at a time (default: %(default)s)")
    parser.add_argument("--updates", type=int, default=1000, help="of the model (default: %(default)s)")
    parser.add_argument("--model", type=Path, help="another model")
    options = parser.parse_args(arguments)

    def body() -> int:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            prepare(folder, lines=options.lines, updates=None if options.model else options.updates)
            model = (options.model or folder / "run").resolve()
            return _compare(Translation(folder, model, options.shards), options.shards, options.together)

    return run("shards", body)


def _compare(translation: Translation, shards: int, together: int) -> int:
    """Translate as a whole and in shards, and print what came of it; returns the exit code."""
    begun = time.monotonic()
    translation.of_whole()
    seconds = time.monotonic() - begun
    print(f"the whole: {seconds:,.0f} s", flush=True)
    victim = shards // 2 + 1
    begun = time.monotonic()
    with ThreadPoolExecutor(together) as pool:  # of threads that wait
        ends = {victim: 0.75 * seconds / shards}
        list(pool.map(lambda number: translation.of_shard(number, killed_after=ends.get(number)), range(1, shards + 1)))
    refused = translation.merge()
    print(f"{shards} shards, {together} at a time, shard {victim} killed: {time.monotonic() - begun:,.0f} s")
    print(f"--merge: {refused}", flush=True)
    translation.of_shard(victim)
    begun = time.monotonic()
    said = translation.merge()
    print(f"merged after shard {victim} was repeated: {time.monotonic() - begun:,.1f} s {said}")
    same = not said and filecmp.cmp(translation.whole, translation.merged, shallow=False)
    size = translation.whole.stat().st_size
    print(f"{size:,} bytes: {'the same' if same else 'NOT THE SAME'}")
    return 0 if same and f"run --shard {victim}/{shards} again" in refused else 1


if __name__ == "__main__":
    sys.exit(main())
