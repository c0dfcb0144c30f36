"""What TensorBoard shows of a run: one file of events, with each tag and step once.

A resumed run rewrites the file. TensorBoard's own way to purge events hides whole steps, but the saved state may lie
between the training line and the validation line of one step. It knows records as metrics.jsonl has them; what else is
shown at a validation is nowhere but here, and stays if its record does.
"""

import math
import os
import socket
import struct
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from tensorboard.compat.proto.event_pb2 import Event, SessionLog  # type: ignore[import-untyped]
from tensorboard.compat.proto.summary_pb2 import Summary  # type: ignore[import-untyped]
from tensorboard.summary.writer.record_writer import RecordWriter  # type: ignore[import-untyped]

from nmt.config.schema import TrainingConfig
from nmt.evaluation.alignment_plot import Fonts, usual_fonts
from nmt.training import summaries
from nmt.training.gradient_norms import Counts
from nmt.training.progress import Progress
from nmt.training.run_files import EVENTS
from nmt.training.samples import Sample

_NOT_SCALARS = frozenset({"step", "epoch", "split"})
_HEAD, _TAIL = struct.Struct("<QI"), 4  # of a record: its length and the checksum of that, and its own checksum


class Board:
    """An open file of events.

    PyTorch's SummaryWriter writes such a file from a thread of its own, whose failures, as on a full disk, end in a
    traceback on the terminal; here they are met where they happen.
    """

    def __init__(
        self,
        folder: Path,
        records: Iterable[dict[str, Any]],
        *,
        hyperparameters: summaries.Hyperparameters,
        training: TrainingConfig,
    ) -> None:
        """Open a new file in `folder` that begins with `records`, and remove the former ones of this program.

        An event that a former file has keeps its time. `training` says which of several validations is the best.
        """
        folder.mkdir(exist_ok=True)
        files = sorted(path for path in folder.iterdir() if EVENTS.fullmatch(path.name) and path.is_file())
        former = _Former(chain.from_iterable(map(_events, files)))
        self._training, self._progress = training, Progress()  # only for what it says of validations
        now = time.time()
        began = former.began or now
        path = folder / f"events.out.tfevents.{now:.6f}.{socket.gethostname()}.{os.getpid()}"
        self._file = open(path, "xb")  # noqa: SIM115 - closed by close()
        self._events = RecordWriter(self._file)
        self._add(Event(wall_time=began, file_version="brain.Event:2"))
        # Whoever has read the former files forgets their events.
        self._add(Event(wall_time=began, step=0, session_log=SessionLog(status=SessionLog.START)))
        self._add_values(0, summaries.started(hyperparameters, began), at=began)
        for record in records:
            self.write(record, at=former.times.get((record["step"], record["split"])))
            if record["split"] == "valid" and record["step"] in former.shown:
                self._add(former.shown[record["step"]])
        self._ended = former.ended
        for path in files:
            path.unlink()

    def write(self, record: dict[str, Any], *, at: float | None = None) -> None:
        """Write the numbers of a record, under the tags split/name, as measured `at` a time in seconds (None: now).
        A number that is None was not finite.

        Those of the best validation so far are under best/name, too.
        """
        self._ended = 0.0  # it goes on, if it had ended before
        numbers = {name: value for name, value in record.items() if name not in _NOT_SCALARS}
        values = summaries.scalars(record["split"], numbers)
        if record["split"] != "train":
            # What is null, or gone from the line, is never the best, nor is it retained; but a perplexity that is null
            # was infinite, so that the first one is the best until another is finite.
            known = {name: value for name, value in numbers.items() if value is not None}
            if "perplexity" in numbers:
                known.setdefault("perplexity", math.inf)
            if self._progress.record(defaultdict(lambda: math.nan, known), self._training):
                values += summaries.scalars("best", numbers)
        self._add_values(record["step"], values, at=at)

    def show(self, step: int, samples: Sequence[Sample], gradient_norms: Counts) -> None:
        """Write what is shown of a validation besides its record, which is written before it."""
        values = [*summaries.gradient_norms(gradient_norms), *summaries.samples(samples, self._fonts)]
        if values:
            self._add_values(step, values)

    def end(self, step: int) -> None:
        """Write that the run has come to its end."""
        at = self._ended or time.time()
        self._add_values(step, summaries.ended(at), at=at)

    def save(self) -> None:
        """Have the disk hold what was written so far: a saved state will count on it."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()

    @cached_property
    def _fonts(self) -> Fonts | None:
        try:
            return usual_fonts()
        except ImportError:  # matplotlib, which writes the labels of pictures
            return None

    def _add_values(self, step: int, values: summaries.Values, *, at: float | None = None) -> None:
        self._add(Event(wall_time=at or time.time(), step=step, summary=Summary(value=values)))

    def _add(self, event: Event) -> None:
        self._events.write(event.SerializeToString())
        self._file.flush()


class _Former:
    """What the events of former files have that metrics.jsonl does not."""

    def __init__(self, events: Iterable[Any]) -> None:
        self.began = self.ended = 0.0  # seconds; 0: not known
        self.times: dict[tuple[int, str], float] = {}  # when the record of a step and split was written
        self.shown: dict[int, Any] = {}  # the event with what is shown of the validation at a step
        for event in events:
            first = event.summary.value[0]
            self.began = min(event.wall_time, self.began or math.inf)
            if first.WhichOneof("value") == "simple_value":
                self.times[event.step, first.tag.partition("/")[0]] = event.wall_time
            elif summaries.is_shown(first):
                self.shown[event.step] = event
            elif summaries.is_end(first):
                self.ended = event.wall_time


def _events(path: Path) -> Iterator[Any]:
    """The events that hold values, up to where the file is damaged or cut short."""
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
            yield event
