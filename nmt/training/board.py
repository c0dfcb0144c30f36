"""What TensorBoard shows of a run: numbers, pictures, and texts.

Each start of a run adds a file of events, and hides what former files have from the step on at which it goes on. What
metrics.jsonl does not have, such as pictures, is in these files alone. It knows records and samples; it knows no model.
"""

import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog  # type: ignore[import-untyped]
from tensorboard.compat.proto.summary_pb2 import Summary  # type: ignore[import-untyped]
from tensorboard.summary.writer.record_writer import RecordWriter  # type: ignore[import-untyped]
from torch.utils.tensorboard import summary

from nmt.evaluation.alignment_plot import Fonts, heat_map, usual_fonts
from nmt.training.run_folder import EVENTS
from nmt.training.samples import LONGEST, Sample, as_markdown

_NOT_SCALARS = frozenset({"step", "epoch", "split"})


class Board:
    """An open file of events.

    PyTorch's SummaryWriter writes such a file from a thread of its own, whose failures, as on a full disk, end in a
    traceback on the terminal; here they are met where they happen.
    """

    def __init__(self, folder: Path, *, step: int) -> None:
        """Open a new file in `folder`; what former files have from `step` on is no longer shown."""
        folder.mkdir(exist_ok=True)
        numbers = [int(match[1]) for path in folder.iterdir() if (match := EVENTS.fullmatch(path.name))]
        path = folder / f"events.out.tfevents.{max(numbers, default=0) + 1:08d}.nmt"
        self._file = open(path, "xb")  # noqa: SIM115 - closed by close()
        self._events = RecordWriter(self._file)
        self._add(Event(step=step, file_version="brain.Event:2"))
        self._add(Event(step=step, session_log=SessionLog(status=SessionLog.START)))

    def write(self, record: Mapping[str, Any]) -> None:
        """Write the numbers of a record under the tags split/name. None, which was not finite, is NaN."""
        numbers = {name: math.nan if record[name] is None else record[name] for name in record.keys() - _NOT_SCALARS}
        values = [
            Summary.Value(tag=f"{record['split']}/{name}", simple_value=number)
            for name, number in sorted(numbers.items())
        ]
        self._add(Event(step=record["step"], summary=Summary(value=values)))

    def show(self, step: int, samples: Sequence[Sample]) -> None:
        """Write what is shown of a validation besides its record."""
        for shown in _pictures(samples, self._fonts):
            self._add(Event(step=step, summary=shown))

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

    def _add(self, event: Event) -> None:
        event.wall_time = time.time()
        self._events.write(event.SerializeToString())
        self._file.flush()


def _pictures(samples: Sequence[Sample], fonts: Fonts | None) -> Iterator[Any]:
    """The text of each sample and the picture of its attention, where there is any; numbered from 1.

    Only the first LONGEST pieces of a translation are in the picture: a model that has learned little may not end.
    """
    digits = len(str(len(samples)))
    for number, sample in enumerate(samples, 1):
        yield summary.text(f"translation/{number:0{digits}}", as_markdown(sample))
        if sample.weights is not None and sample.weights.size:
            pieces, weights = sample.target_pieces[:LONGEST], sample.weights[:LONGEST]
            picture = heat_map(sample.source_pieces, pieces, weights, fonts=fonts)
            yield summary.image(f"attention/{number:0{digits}}", picture, dataformats="HWC")
