"""What a run tells: a line in metrics.jsonl, the same scalars in TensorBoard, and a readable line in the log.

A resumed run cuts metrics.jsonl back to the saved update, so that an interrupted run leaves the file of an
uninterrupted one; TensorBoard's file follows metrics.jsonl.
"""

import json
import math
import os
from contextlib import closing
from pathlib import Path
from typing import Any

from nmt.training.board import Board
from nmt.training.run_folder import METRICS, TENSORBOARD

_TITLES = {"train": "", "valid": "validation", "average": "average of checkpoints"}


class Records:
    """Writes the measurements of one run folder."""

    def __init__(self, folder: Path, *, size: int) -> None:
        """Continue `folder`'s records from the first `size` bytes of metrics.jsonl (0 for a new run)."""
        self._path = folder / METRICS
        self._board = Board(folder / TENSORBOARD, _cut(self._path, size))
        self._file = open(self._path, "a", encoding="utf-8", newline="\n")  # noqa: SIM115 - closed by close()

    def saved_size(self) -> int:
        """Bytes of metrics.jsonl so far, which are then on the disk: a saved state will count on them."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._path.stat().st_size

    def write(self, record: dict[str, Any]) -> None:
        """Write one measurement: `step`, `epoch`, `split` and numbers; what is not finite becomes null."""
        self._file.write(json.dumps({name: _finite(value) for name, value in record.items()}) + "\n")
        self._file.flush()
        self._board.write(record)

    def close(self) -> None:
        with closing(self._board):
            self._file.close()


def _cut(path: Path, size: int) -> list[dict[str, Any]]:
    """Cut the file to the whole lines among its first `size` bytes, and return their records.

    A file that somebody has shortened or edited loses its lines from there on; training need not end for that.
    """
    path.touch()
    end = 0
    records = []
    with open(path, "r+b") as file:
        for line in file:
            record = _record(line)
            if record is None or end + len(line) > size or not line.endswith(b"\n"):
                break
            end += len(line)
            records.append(record)
        file.truncate(end)
    return records


def _record(line: bytes) -> dict[str, Any] | None:
    """The record that a line holds; None when it holds none."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    if not isinstance(record, dict) or not isinstance(record.get("step"), int) or "split" not in record:
        return None
    numbers = (value for name, value in record.items() if name != "split")
    return record if all(value is None or isinstance(value, int | float) for value in numbers) else None


def readable(record: dict[str, Any]) -> str:
    """The record as a line for people."""
    words = [_TITLES[record["split"]], f"epoch {record['epoch']:.2f}", f"update {record['step']:,}"]
    words.append(f"loss {record['loss']:.4f}")
    words.append(f"perplexity {record['perplexity']:.2f}")
    formats = {
        "bleu": "BLEU {:.2f}",
        "learning_rate": "rate {:.3g}",
        "gradient_norm": "gradient {:.2f}",
        "target_tokens_per_second": "{:,.0f} tokens/s",
        "padding_share": "padding {:.1%}",
    }
    words.extend(text.format(record[name]) for name, text in formats.items() if name in record)
    return " · ".join(filter(None, words))


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
