"""What a run tells: a line in metrics.jsonl, the same scalars in TensorBoard, and a readable line in the log.

A resumed run cuts metrics.jsonl back to the saved update, so that an interrupted run leaves the file of an
uninterrupted one.
"""

import json
import math
import os
import socket
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog  # type: ignore[import-untyped]
from tensorboard.compat.proto.summary_pb2 import Summary  # type: ignore[import-untyped]
from tensorboard.summary.writer.record_writer import RecordWriter  # type: ignore[import-untyped]

from nmt.training.run_folder import METRICS, TENSORBOARD

_NOT_SCALARS = frozenset({"step", "epoch", "split"})
_TITLES = {"train": "", "valid": "validation", "average": "average of checkpoints"}


class Records:
    """Writes the measurements of one run folder."""

    def __init__(self, folder: Path, *, size: int) -> None:
        """Continue `folder`'s records from the first `size` bytes of metrics.jsonl (0 for a new run)."""
        self._path = folder / METRICS
        last_step = _cut(self._path, size)
        self._board = _Board(folder / TENSORBOARD, first_step=last_step + 1)
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
        scalars = {f"{record['split']}/{name}": value for name, value in record.items() if name not in _NOT_SCALARS}
        self._board.write(record["step"], scalars)

    def close(self) -> None:
        with closing(self._board):
            self._file.close()


class _Board:
    """A file of TensorBoard events.

    PyTorch's SummaryWriter writes such a file from a thread of its own, whose failures, as on a full disk, end in a
    traceback on the terminal; here they are met where they happen.
    """

    def __init__(self, folder: Path, *, first_step: int) -> None:
        """Open a new file, whose beginning hides the events of earlier files from `first_step` on."""
        folder.mkdir(exist_ok=True)
        now = time.time()
        path = folder / f"events.out.tfevents.{now:.6f}.{socket.gethostname()}.{os.getpid()}"  # read in their order
        self._file = open(path, "xb")  # noqa: SIM115 - closed by close()
        self._events = RecordWriter(self._file)
        self._add(Event(wall_time=now, file_version="brain.Event:2"))
        self._add(Event(wall_time=now, step=first_step, session_log=SessionLog(status=SessionLog.START)))

    def write(self, step: int, scalars: dict[str, float]) -> None:
        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in scalars.items()]
        self._add(Event(wall_time=time.time(), step=step, summary=Summary(value=values)))

    def close(self) -> None:
        self._file.close()

    def _add(self, event: Event) -> None:
        self._events.write(event.SerializeToString())
        self._file.flush()


def _cut(path: Path, size: int) -> int:
    """Cut the file to the whole lines among its first `size` bytes, and return the step of the last; 0 if none is left.

    A file that somebody has shortened or edited loses its lines from there on; training need not end for that.
    """
    path.touch()
    end = last_step = 0
    with open(path, "r+b") as file:
        for line in file:
            try:
                step = int(json.loads(line)["step"])
            except (ValueError, TypeError, KeyError):
                break
            if end + len(line) > size or not line.endswith(b"\n"):
                break
            end, last_step = end + len(line), step
        file.truncate(end)
    return last_step


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
