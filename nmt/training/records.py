"""What a run tells: a line in metrics.jsonl, the same scalars in TensorBoard, and a readable line in the log.

A resumed run cuts metrics.jsonl back to the saved state, so that an interrupted run leaves the file of an
uninterrupted one; TensorBoard's file follows metrics.jsonl. Every line of a damaged file that can be read is kept.
"""

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from nmt.config import Config
from nmt.evaluation import metrics
from nmt.evaluation.measurements import measurement
from nmt.files import open_refusing_links, written_atomically
from nmt.training.board import Board
from nmt.training.gradient_norms import Counts
from nmt.training.run_files import DAMAGED, METRICS, TENSORBOARD
from nmt.training.samples import Sample
from nmt.training.summaries import hyperparameters

Saved = Callable[[int, str], bool]  # whether a state has the record of a step and split behind it
Log = Callable[[str], None]
_LONGEST = 1 << 16  # bytes of a line; a record has some hundred
_LARGE = 1e6  # from here on, a number has an exponent in the log
_TITLES = {"train": "", "valid": "validation", "average": "average of checkpoints"}


class Records:
    """Writes the measurements of one run folder."""

    def __init__(self, folder: Path, config: Config, state: Mapping[str, Any], saved: Saved, log: Log) -> None:
        """Continue `folder`'s records: of those in metrics.jsonl, the ones before the state that is resumed from.

        `saved` says which these are; `state` has what `saved` returned then, among others, and is empty for a new run.
        `log` is told of damage.
        """
        self._path = folder / METRICS
        self._digest = hashlib.blake2b(digest_size=16)
        self._board = Board(
            folder / TENSORBOARD,
            _resumed(folder, state, self._digest, saved, log),
            hyperparameters=hyperparameters(config),
            training=config.training,
        )
        self._file = open_refusing_links(self._path, "a", encoding="utf-8", newline="\n")

    def saved(self) -> dict[str, Any]:
        """Bytes and checksum of metrics.jsonl so far, which is then on the disk: a saved state will count on it."""
        self._board.save()
        self._file.flush()
        os.fsync(self._file.fileno())
        return {"recorded": self._path.stat().st_size, "recorded_digest": self._digest.hexdigest()}

    def write(self, record: dict[str, Any]) -> None:
        """Write one measurement: `step`, `epoch`, `split` and numbers; what is not finite becomes null."""
        record = {name: _finite(value) for name, value in record.items()}
        line = json.dumps(record) + "\n"
        self._digest.update(line.encode())
        self._file.write(line)
        self._file.flush()
        self._board.write(record)

    def show(self, step: int, samples: Sequence[Sample], gradient_norms: Counts) -> None:
        """Show, in TensorBoard alone, what a validation has besides its record, which is written before it."""
        self._board.show(step, samples, gradient_norms)

    def end(self, step: int) -> None:
        """Note, in TensorBoard alone, that the run has come to its end."""
        self._board.end(step)

    def close(self) -> None:
        with closing(self._board):
            self._file.close()


def _resumed(
    folder: Path, state: Mapping[str, Any], digest: "hashlib.blake2b", saved: Saved, log: Log
) -> list[dict[str, Any]]:
    """Leave in the file the records that were `saved`, and return them; `digest` is told of their lines.

    A line that cannot be read is moved to another file; the others stay.
    """
    path, size = folder / METRICS, state.get("recorded", 0)
    kept: list[bytes] = []
    records: list[dict[str, Any]] = []
    damaged: list[tuple[int, int]] = []  # places, as they may be large
    end = end_of_kept = 0
    with open_refusing_links(path, "a+b") as file:
        file.seek(0)
        for line in iter(lambda: file.readline(_LONGEST), b""):
            start, end = end, end + len(line)
            record = measurement(line)
            if record is None:
                if start < size or line.endswith(b"\n"):  # else a process was killed while it wrote it
                    damaged.append((start, len(line)))
            elif saved(record["step"], record["split"]):
                kept.append(line)
                digest.update(line)
                records.append(record)
                end_of_kept = end
        if damaged:
            with open_refusing_links(folder / DAMAGED, "ab") as aside:
                for start, length in damaged:
                    file.seek(start)
                    aside.write(file.read(length))
                aside.write(b"\n")
                aside.flush()
                os.fsync(aside.fileno())
        size_of_kept = sum(map(len, kept))
        if size_of_kept == end_of_kept:
            file.truncate(end_of_kept)
        else:
            with written_atomically(path, "wb") as whole:
                whole.writelines(kept)
    if damaged:
        log(f"{path}: has lines that cannot be read; they are in {DAMAGED} now, and all others stay")
    elif size_of_kept < size:
        log(f"{path}: has become shorter since the state was saved; what is left stays")
    elif digest.hexdigest() != state.get("recorded_digest", digest.hexdigest()):  # absent from earlier versions' states
        log(f"{path}: has been changed since the state was saved; it stays as it is")
    return records


def readable(record: dict[str, Any]) -> str:
    """The record as a line for people."""
    words = [_TITLES[record["split"]], f"epoch {record['epoch']:.2f}", f"update {record['step']:,}"]
    formats = {
        "loss": "loss {:.4f}",
        "perplexity": "perplexity {:.2f}",
        **{name: f"{metric.title} {{:.2f}}" for name, metric in metrics.METRICS.items()},
        "guided_loss": "guided {:.4f}",
        "expected_risk": "risk {:.4f}",
        "learning_rate": "rate {:.3g}",
        "gradient_norm": "gradient {:.3g}",
        "target_tokens_per_second": "{:,.0f} tokens/s",
        "padding_share": "padding {:.1%}",
    }
    words.extend(_written(text, record[name]) for name, text in formats.items() if name in record)
    for name in record:  # of a watched corpus
        corpus, dot, metric = name.partition(".")
        if dot:
            words.append(f"{corpus}: {_written(formats[metric], record[name])}")
    return " · ".join(filter(None, words))


def _written(text: str, value: float) -> str:
    """The text with the value; that of a run that diverges may be 8.47e+89, which fixed places would write in full."""
    return (re.sub(r":\.\df", ":.3g", text) if abs(value) >= _LARGE else text).format(value)


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
