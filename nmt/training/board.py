"""The scalars of a run for TensorBoard: one file of events, with each tag and step once.

A resumed run rewrites the file. TensorBoard's own way to purge events hides whole steps, but the saved state may lie
between the training line and the validation line of one step. It knows records as metrics.jsonl has them.
"""

import math
import os
import socket
import struct
import time
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from tensorboard.compat.proto.event_pb2 import Event, SessionLog  # type: ignore[import-untyped]
from tensorboard.compat.proto.summary_pb2 import Summary  # type: ignore[import-untyped]
from tensorboard.summary.writer.record_writer import RecordWriter  # type: ignore[import-untyped]

from nmt.training.run_files import EVENTS

_NOT_SCALARS = frozenset({"step", "epoch", "split"})
_HEAD, _TAIL = struct.Struct("<QI"), 4  # of a record: its length and the checksum of that, and its own checksum


class Board:
    """An open file of events.

    PyTorch's SummaryWriter writes such a file from a thread of its own, whose failures, as on a full disk, end in a
    traceback on the terminal; here they are met where they happen.
    """

    def __init__(self, folder: Path, records: Iterable[dict[str, Any]]) -> None:
        """Open a new file in `folder` that begins with `records`, and remove the former ones of this program.

        An event that a former file has keeps its time.
        """
        folder.mkdir(exist_ok=True)
        former = sorted(path for path in folder.iterdir() if EVENTS.fullmatch(path.name) and path.is_file())
        times = dict(chain.from_iterable(map(_times, former)))
        now = time.time()
        path = folder / f"events.out.tfevents.{now:.6f}.{socket.gethostname()}.{os.getpid()}"
        self._file = open(path, "xb")  # noqa: SIM115 - closed by close()
        self._events = RecordWriter(self._file)
        self._add(Event(wall_time=now, file_version="brain.Event:2"))
        # Whoever has read the former files forgets their events.
        self._add(Event(wall_time=now, step=0, session_log=SessionLog(status=SessionLog.START)))
        for record in records:
            self.write(record, at=times.get((record["step"], record["split"])))
        for path in former:
            path.unlink()

    def write(self, record: dict[str, Any], *, at: float | None = None) -> None:
        """Write the numbers of a record, under the tags split/name, as measured `at` a time in seconds (None: now)."""
        values = [
            # In metrics.jsonl a number that is not finite is null.
            Summary.Value(tag=f"{record['split']}/{name}", simple_value=math.nan if value is None else value)
            for name, value in record.items()
            if name not in _NOT_SCALARS
        ]
        self._add(Event(wall_time=at or time.time(), step=record["step"], summary=Summary(value=values)))

    def close(self) -> None:
        self._file.close()

    def _add(self, event: Event) -> None:
        self._events.write(event.SerializeToString())
        self._file.flush()


def _times(path: Path) -> Iterator[tuple[tuple[int, str], float]]:
    """(step, split) and time of each event of scalars, up to where the file is damaged or cut short."""
    content = path.read_bytes()
    position = 0
    while position + _HEAD.size <= len(content):
        length, _ = _HEAD.unpack_from(content, position)
        start = position + _HEAD.size
        position = start + length + _TAIL
        try:
            event = Event.FromString(content[start : start + length])
        except DecodeError:
            return
        if position <= len(content) and event.summary.value:
            yield (event.step, event.summary.value[0].tag.partition("/")[0]), event.wall_time
