#!/usr/bin/env python3
"""What training costs as sentences, vocabulary, corpus and processes grow: tables and plots in docs/performance.md.

    python benchmarks/scaling.py
    python benchmarks/scaling.py --parts corpus --pairs 1000000,10000000 --work /somewhere/large

Every figure comes from a process of its own. length and vocabulary: `train_speed.py` learns to copy sentences of random
words, each a piece, all of one length. corpus: one of scripts/make_large_corpus.py is prepared, which gives pairs a
second; then training starts a second time, which gives the seconds from the start of the process to the end of the
first update, and the memory. processes: nmt-train under torchrun, the same batches shared among all.
"""

import argparse
import json
import math
import random
import shlex
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run as a file, too, it finds its neighbours

from benchmarks.in_turn import Ran, run_command
from benchmarks.reference_task import ROOT, Task, add_task_options, chosen_task, positive
from benchmarks.scaling_report import PARTS, Row, check_document, report
from nmt.cli.common import run
from nmt.errors import UserError

HERE = Path(__file__).resolve().parent
FIELD = "target_tokens_per_second"
SETTLING = 20  # updates of nmt-train before those that count, as many as warm up train_speed.py
FEWEST_PAIRS = 2000  # of random words
VALIDATION_PAIRS = 10  # which the configuration asks for; nothing is validated
SPECIAL = 4  # pieces that are no words
# Of the corpus part: as many tokens as 80 sentences of Multi30k, however long those of the corpus are.
TOKEN_BATCHES = ("training.batch_by=tokens", "training.batch_size=1600")


def words_corpus(folder: Path, *, pieces: int, length: int) -> list[str]:
    """Write a corpus of lines of `length` random words, with as many words as make a vocabulary of `pieces`.

    Both sides are the same text, in which every word occurs. Returns what to set so that it is trained on.
    """
    if pieces <= SPECIAL:
        raise UserError(f"{pieces} pieces: {SPECIAL} of them are special symbols; give {SPECIAL + 1} or more")
    words = [f"w{number}" for number in range(pieces - SPECIAL)]
    lines = max(FEWEST_PAIRS, math.ceil(len(words) / length))
    chance = random.Random(1)
    text = words + [words[int(chance.random() * len(words))] for _ in range(lines * length - len(words))]
    chance.shuffle(text)
    folder.mkdir(parents=True)
    rows = [" ".join(text[start : start + length]) + "\n" for start in range(0, len(text), length)]
    files = [folder / f"{split}.{side}" for split in ("train", "valid") for side in ("source", "target")]
    for path in files:
        path.write_text("".join(rows if path.stem == "train" else rows[:VALIDATION_PAIRS]), encoding="utf-8")
    own = [f"data.max_length={length}", "subwords.type=word", f"subwords.size={pieces}", "subwords.joint=true"]
    return [*_data(*files), *own]


def _data(*files: Path) -> list[str]:
    """What to set so that these are the source and target to train on, and those to validate on."""
    train, valid = ({"source": str(each[0]), "target": str(each[1])} for each in (files[:2], files[2:]))
    return [f"data.train={json.dumps([train])}", f"data.valid={json.dumps(valid)}"]


def train(task: Task, sets: Sequence[str], updates: int) -> Ran:
    """Run train_speed.py on the task with more keys set."""
    every = task._replace(overrides=(*task.overrides, *sets)).arguments
    return run_command([sys.executable, str(HERE / "train_speed.py"), *every, "--updates", str(updates)])


def _costs(result: dict[str, Any]) -> dict[str, float]:
    device = {"device": result["peak_device_mib"]} if "peak_device_mib" in result else {}
    return {"speed": result[FIELD], "resident": result["peak_resident_mib"], **device}


def length_rows(given: argparse.Namespace, task: Task, work: Path) -> Iterator[Row]:
    """Longer and longer sentences."""
    for length in given.lengths:
        sets = words_corpus(work / f"length{length}", pieces=given.vocabulary, length=length)
        costs = _costs(train(task, sets, given.updates).result)
        yield {"length": length, "microseconds": 1e6 / costs["speed"], **costs}


def vocabulary_rows(given: argparse.Namespace, task: Task, work: Path) -> Iterator[Row]:
    """More and more words."""
    for pieces in given.vocabularies:
        sets = words_corpus(work / f"vocabulary{pieces}", pieces=pieces, length=given.length)
        result = train(task, sets, given.updates).result
        yield {"pieces": result["pieces"][1], "parameters": result["parameters"], **_costs(result)}


def corpus_rows(given: argparse.Namespace, task: Task, work: Path) -> Iterator[Row]:
    """More and more pairs; each corpus is removed when it is done with."""
    for pairs in given.pairs:
        with tempfile.TemporaryDirectory(dir=work) as name:
            folder = Path(name)
            make = [sys.executable, str(ROOT / "scripts" / "make_large_corpus.py"), "--pairs", str(pairs)]
            captions = [] if given.captions is None else ["--captions", str(given.captions)]
            run_command([*make, *captions, "--output", str(folder)])
            files = [folder / f"{split}.{side}" for split in ("train", "valid") for side in ("en", "de")]
            sets = [*_data(*files), *TOKEN_BATCHES, f"data.cache_folder={json.dumps(str(folder / 'cache'))}"]
            first, second = (train(task, sets, given.updates) for _ in range(2))
        seconds = first.result["preparation_seconds"]
        yield {
            "pairs": pairs,
            "preparation": seconds,
            "rate": pairs / seconds,
            "preparing": first.result["peak_resident_mib"],
            "start": second.result["first_update_at"] - second.began,
            "resident": second.result["peak_resident_mib"],
            "model": second.result["parameters_mib"],
        }


def process_rows(given: argparse.Namespace, task: Task, work: Path) -> Iterator[Row]:
    """More and more processes."""
    threads = task.threads or 1
    first = None
    for processes in given.processes:
        folder = work / f"processes{processes}"
        every = max(1, given.updates // 5)
        sets = [*task.sets, f"training.max_updates={SETTLING + given.updates}", f"training.log_every={every}"]
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
        command += ["-m", "nmt.cli.train", "--config", str(task.config), "--output", str(folder)]
        command += [word for each in sets for word in ("--set", each)]
        run_command([*command, "--device", task.device], environment={"OMP_NUM_THREADS": str(threads)})
        records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
        training = [each for each in records if each["split"] == "train" and each["step"] >= SETTLING + every]
        speed = statistics.median(each[FIELD] for each in training)
        first = first or speed
        yield {"processes": processes, "threads": threads, "speed": speed, "gain": speed / first}


MEASURES: dict[str, Callable[[argparse.Namespace, Task, Path], Iterator[Row]]] = {
    "length": length_rows,
    "vocabulary": vocabulary_rows,
    "corpus": corpus_rows,
    "processes": process_rows,
}
assert MEASURES.keys() == PARTS.keys()


def measure(given: argparse.Namespace, task: Task, command: str) -> None:
    """Measure every part, and write down those that were, also when a later one fails."""
    check_document(given.document, given.parts)
    task.load()
    found: dict[str, list[Row]] = {}
    try:
        for part in given.parts:
            rows: list[Row] = []
            with tempfile.TemporaryDirectory(dir=given.work) as work:
                for row in MEASURES[part](given, task, Path(work)):
                    print(f"{part}: {json.dumps(row)}", file=sys.stderr)
                    rows.append(row)
            found[part] = rows
    finally:
        if found:
            report(given.document, given.images, found, origin=_origin(task, command))


def _origin(task: Task, command: str) -> str:
    """How and where it was measured."""
    import torch  # only now: what this process holds in memory would count for those that it starts

    from benchmarks.attention_tasks import machine

    threads = "" if task.threads is None else f", {task.threads} threads"
    return f"`{command}` on {machine(task.device)}{threads}, PyTorch {torch.__version__}."


def _positives(text: str) -> list[int]:
    return [positive(word) for word in text.split(",")]


def _parts(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in PARTS or names.count(name) > 1:
            raise argparse.ArgumentTypeError(f"{name!r}: choose from {', '.join(PARTS)}, each once")
    return names


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--parts", type=_parts, default=list(PARTS), help=f"default: {','.join(PARTS)}")
    parser.add_argument("--updates", type=positive, default=50, help="updates timed for each figure (default: 50)")
    for option, sizes, explanation in (
        ("lengths", [10, 20, 40, 80], "length: words a sentence"),
        ("vocabularies", [4000, 8000, 16000, 32000], "vocabulary: pieces"),
        ("pairs", [100_000, 1_000_000], "corpus: training pairs"),
        ("processes", [1, 2], "processes: how many"),
    ):
        shown = ",".join(map(str, sizes))
        parser.add_argument(f"--{option}", type=_positives, default=sizes, help=f"{explanation} (default: {shown})")
    parser.add_argument("--vocabulary", type=positive, default=8000, help="length: pieces (default: 8000)")
    parser.add_argument("--length", type=positive, default=15, help="vocabulary: words a sentence (default: 15)")
    parser.add_argument("--captions", type=Path, metavar="DIR", help="corpus: folder of Multi30k's training text")
    parser.add_argument("--work", type=Path, metavar="DIR", help="where corpora are made (default: the system's /tmp)")
    parser.add_argument("--document", type=Path, default=ROOT / "docs" / "performance.md", help="default: %(default)s")
    parser.add_argument("--images", type=Path, default=ROOT / "docs" / "images", help="default: %(default)s")
    add_task_options(parser)
    given = parser.parse_args(arguments)
    if given.work is not None and not given.work.is_dir():
        parser.error(f"--work {given.work}: no such folder")
    words = sys.argv[1:] if arguments is None else arguments
    command = shlex.join(["python", "benchmarks/scaling.py", *words])
    return run("scaling", lambda: measure(given, chosen_task(given), command))


if __name__ == "__main__":
    sys.exit(main())
