#!/usr/bin/env python3
"""What training and translation cost as one thing grows: tables and plots in research/speed.md.

    python benchmarks/scaling.py
    python benchmarks/scaling.py --parts corpus --pairs 1000000,10000000 --work /somewhere/large
    python benchmarks/scaling.py --parts beam --model runs/multi30k_en_de

Every figure comes from a separate process. length and vocabulary: `train_speed.py` learns to copy sentences of random
words, each of them a piece, all sentences of the same length. hidden: it trains the task with a decoder of this hidden
size, and half of it in each direction of the encoder. beam: `translate_speed.py` translates with a trained model.
corpus: a corpus from scripts/make_large_corpus.py is prepared, which gives pairs per second; then training starts a
second time, which gives the memory and the seconds from the start of the process to the end of the first update.
processes: nmt-train under torchrun shares the same batches.
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

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # to find its neighbors when run as a file

from benchmarks.in_turn import Ran, run_command
from benchmarks.reference_task import ROOT, TEST_SOURCE, TEST_TARGET, Task, add_task_options, chosen_task, positive
from benchmarks.scaling_report import PARTS, Row, check_document, report
from nmt.cli.common import run
from nmt.errors import UserError

HERE = Path(__file__).resolve().parent
FIELD = "target_tokens_per_second"
SETTLING = 20  # updates of nmt-train before those that count, like the warm-up of train_speed.py
FEWEST_PAIRS = 2000  # of random words
VALIDATION_PAIRS = 10  # required by the configuration; nothing is validated
SPECIAL = 4  # pieces that are not words
# For the corpus part: as many tokens as 80 sentences of Multi30k, however long those of the corpus are.
TOKEN_BATCHES = ("training.batch_by=tokens", "training.batch_size=1600")


def words_corpus(folder: Path, *, pieces: int, length: int) -> list[str]:
    """Write a corpus of lines of `length` random words, with enough distinct words for a vocabulary of `pieces`.

    Both sides are the same text, in which every word occurs. Returns the overrides for training on it.
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
    sizes = [f"data.max_length={length}", "subwords.type=word", f"subwords.size={pieces}", "subwords.joint=true"]
    return [*_data(*files), *sizes]


def _data(*files: Path) -> list[str]:
    """The overrides for these files: source and target of the training corpus, then of the validation corpus."""
    train, valid = ({"source": str(source), "target": str(target)} for source, target in (files[:2], files[2:]))
    return [f"data.train={json.dumps([train])}", f"data.valid={json.dumps(valid)}"]


def train(task: Task, sets: Sequence[str], updates: int) -> Ran:
    """Run train_speed.py on the task with more keys set."""
    arguments = task._replace(overrides=(*task.overrides, *sets)).arguments
    return run_command([sys.executable, str(HERE / "train_speed.py"), *arguments, "--updates", str(updates)])


def _costs(result: dict[str, Any], field: str = FIELD) -> dict[str, float]:
    device = {"device": result["peak_device_mib"]} if "peak_device_mib" in result else {}
    return {"speed": result[field], "resident": result["peak_resident_mib"], **device}


def _parameters(result: dict[str, Any]) -> dict[str, int]:
    return {key: result[key] for key in ("parameters", "multiplied")}


def length_rows(options: argparse.Namespace, task: Task, work: Path) -> Iterator[Row]:
    """Longer and longer sentences."""
    for length in options.lengths:
        sets = words_corpus(work / f"length{length}", pieces=options.vocabulary, length=length)
        costs = _costs(train(task, sets, options.updates).result)
        yield {"length": length, "microseconds": 1e6 / costs["speed"], **costs}


def vocabulary_rows(options: argparse.Namespace, task: Task, work: Path) -> Iterator[Row]:
    """More and more words."""
    for pieces in options.vocabularies:
        sets = words_corpus(work / f"vocabulary{pieces}", pieces=pieces, length=options.length)
        result = train(task, sets, options.updates).result
        yield {"pieces": result["pieces"][1], **_parameters(result), **_costs(result)}


def hidden_rows(options: argparse.Namespace, task: Task, _: Path) -> Iterator[Row]:
    """Larger and larger recurrent layers."""
    for hidden in options.hidden:
        sets = [f"model.encoder.hidden_size={hidden // 2}", f"model.decoder.hidden_size={hidden}"]
        result = train(task, sets, options.updates).result
        yield {"hidden": hidden, **_parameters(result), **_costs(result)}


def beam_rows(options: argparse.Namespace, task: Task, _: Path) -> Iterator[Row]:
    """Wider and wider beams."""
    given = {"model": options.model, "source": options.source, "reference": options.reference}
    given |= {"precision": task.precision, "device": task.device}
    given |= {} if task.threads is None else {"threads": task.threads}
    words = [word for name, value in given.items() for word in (f"--{name}", str(value))]
    for beam in options.beams:
        command = [sys.executable, str(HERE / "translate_speed.py"), *words, "--beam", str(beam)]
        result = run_command(command).result
        yield {"beam": beam, "bleu": result["bleu"], **_costs(result, "sentences_per_second")}


def corpus_rows(options: argparse.Namespace, task: Task, work: Path) -> Iterator[Row]:
    """More and more pairs; each corpus is removed after use."""
    for pairs in options.pairs:
        with tempfile.TemporaryDirectory(dir=work) as name:
            folder = Path(name)
            make = [sys.executable, str(ROOT / "scripts" / "make_large_corpus.py"), "--pairs", str(pairs)]
            captions = [] if options.captions is None else ["--captions", str(options.captions)]
            run_command([*make, *captions, "--output", str(folder)])
            files = [folder / f"{split}.{side}" for split in ("train", "valid") for side in ("en", "de")]
            sets = [*_data(*files), *TOKEN_BATCHES, f"data.cache_folder={json.dumps(str(folder / 'cache'))}"]
            first, second = (train(task, sets, options.updates) for _ in range(2))
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


def process_rows(options: argparse.Namespace, task: Task, work: Path) -> Iterator[Row]:
    """More and more processes."""
    threads = task.threads or 1
    first = None
    for processes in options.processes:
        folder = work / f"processes{processes}"
        log_every = max(1, options.updates // 5)
        sets = [*task.sets, f"training.max_updates={SETTLING + options.updates}", f"training.log_every={log_every}"]
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
        command += ["-m", "nmt", "train", "--config", str(task.config), "--output", str(folder)]
        command += [word for override in sets for word in ("--set", override)]
        run_command([*command, "--device", task.device], environment={"OMP_NUM_THREADS": str(threads)})
        records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
        training = [row for row in records if row["split"] == "train" and row["step"] >= SETTLING + log_every]
        speed = statistics.median(row[FIELD] for row in training)
        first = first or speed
        yield {"processes": processes, "threads": threads, "speed": speed, "gain": speed / first}


MEASURES: dict[str, Callable[[argparse.Namespace, Task, Path], Iterator[Row]]] = {
    "length": length_rows,
    "vocabulary": vocabulary_rows,
    "hidden": hidden_rows,
    "beam": beam_rows,
    "corpus": corpus_rows,
    "processes": process_rows,
}
assert MEASURES.keys() == PARTS.keys()


def measure(options: argparse.Namespace, task: Task, command: str) -> None:
    """Measure every part, and write down those that succeeded even if a later one fails."""
    check_document(options.document, options.parts)
    task.load()
    measured: dict[str, list[Row]] = {}
    try:
        for part in options.parts:
            rows: list[Row] = []
            with tempfile.TemporaryDirectory(dir=options.work) as work:
                for row in MEASURES[part](options, task, Path(work)):
                    print(f"{part}: {json.dumps(row)}", file=sys.stderr)
                    rows.append(row)
            measured[part] = rows
    finally:
        if measured:
            report(options.document, options.images, measured, origin=_origin(task, command))


def _origin(task: Task, command: str) -> str:
    """How and where the measurements were made."""
    import torch  # only now: this process's memory would count toward those it starts

    from benchmarks.attention_tasks import machine

    threads = "" if task.threads is None else f", {task.threads} thread{'s' if task.threads > 1 else ''}"
    return f"`{command}` on {machine(task.device)}{threads}, PyTorch {torch.__version__}."


def _positives(text: str) -> list[int]:
    return [positive(word) for word in text.split(",")]


def _even(text: str) -> list[int]:
    sizes = _positives(text)
    if any(size % 2 for size in sizes):
        raise argparse.ArgumentTypeError(f"{text!r}: each direction of the encoder has half, so choose even sizes")
    return sizes


def _parts(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in PARTS or names.count(name) > 1:
            raise argparse.ArgumentTypeError(f"{name!r}: choose from {', '.join(PARTS)}, without repetitions")
    return names


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--parts", type=_parts, help="default: all; beam only with --model")
    parser.add_argument("--updates", type=positive, default=50, help="updates to time for each figure (default: 50)")
    for option, sizes, explanation in (
        ("lengths", [10, 20, 50, 100, 200], "length: words per sentence"),
        ("vocabularies", [4000, 8000, 16000, 32000, 64000], "vocabulary: pieces"),
        ("hidden", [128, 256, 512, 1024], "hidden: of the decoder, and of both directions of the encoder together"),
        ("beams", [1, 2, 5, 10, 20, 50], "beam: hypotheses"),
        ("pairs", [100_000, 1_000_000], "corpus: training pairs"),
        ("processes", [1, 2], "processes: how many"),
    ):
        shown = ",".join(map(str, sizes))
        kind = _even if option == "hidden" else _positives
        parser.add_argument(f"--{option}", type=kind, default=sizes, help=f"{explanation} (default: {shown})")
    parser.add_argument("--vocabulary", type=positive, default=8000, help="length: pieces (default: 8000)")
    parser.add_argument("--length", type=positive, default=15, help="vocabulary: words per sentence (default: 15)")
    parser.add_argument("--model", type=Path, metavar="PATH", help="beam: model file or run folder")
    parser.add_argument("--source", type=Path, default=TEST_SOURCE, metavar="FILE", help="beam: Multi30k's test set")
    parser.add_argument("--reference", type=Path, default=TEST_TARGET, metavar="FILE", help="beam: its translations")
    parser.add_argument("--captions", type=Path, metavar="DIR", help="corpus: folder of Multi30k's training text")
    parser.add_argument("--work", type=Path, metavar="DIR", help="where to make corpora (default: the system's /tmp)")
    parser.add_argument("--document", type=Path, default=ROOT / "research" / "speed.md", help="default: %(default)s")
    parser.add_argument("--images", type=Path, default=ROOT / "research" / "images", help="default: %(default)s")
    add_task_options(parser)
    options = parser.parse_args(arguments)
    if options.parts is None:
        options.parts = [part for part in PARTS if part != "beam" or options.model is not None]
    if "beam" in options.parts and options.model is None:
        parser.error("--parts beam: needs --model")
    for path in (options.model, options.source, options.reference) if "beam" in options.parts else ():
        if not path.exists():
            parser.error(f"{path}: no such file")
    if options.work is not None and not options.work.is_dir():
        parser.error(f"--work {options.work}: no such folder")
    words = sys.argv[1:] if arguments is None else arguments
    command = shlex.join(["python", "benchmarks/scaling.py", *words])
    return run("scaling", lambda: measure(options, chosen_task(options), command))


if __name__ == "__main__":
    sys.exit(main())
