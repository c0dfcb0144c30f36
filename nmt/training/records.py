"""The measurements of a run: a line in metrics.jsonl, the same scalars in TensorBoard, and a readable line in the log;
and a file with the translations of each validation.

A resumed run goes back to the saved state in all of them, so that an interrupted run leaves the files of an
uninterrupted one. Every line of a damaged metrics.jsonl that can be read is kept.
"""

import json
import math
import os
import re
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from nmt.evaluation import metrics
from nmt.evaluation.measurements import Record, measurement
from nmt.files import new_digest, open_refusing_links, written_atomically
from nmt.training.board import Board
from nmt.training.corpus_loss import Validation
from nmt.training.progress import Progress
from nmt.training.run_folder import METRICS, TENSORBOARD, VALIDATIONS, files_of_updates, path_of_update

Log = Callable[[str], None]
_LARGE = 1e6  # from here on, a number has an exponent in the log
_TITLES = {"train": "", "valid": "validation", "average": "average of checkpoints"}


class Records:
    """Writes the measurements of one run folder."""

    def __init__(self, folder: Path, state: Mapping[str, Any], progress: Progress, log: Log) -> None:
        """Continue `folder`'s records: of those in metrics.jsonl, the ones that the run had written at `progress`.

        `state` has what `saved` returned then, among others, and is empty for a new run. `log` is told of damage.
        """
        self._path = folder / METRICS
        self._folder = folder
        for update, path in files_of_updates(folder, VALIDATIONS):
            if not progress.is_after(update, "valid"):
                path.unlink()
        lines = _saved_lines(self._path, state, progress, log)
        self._digest = new_digest(b"".join(lines))
        is_shown = progress.validated == progress.update  # all of that step
        step = progress.update + is_shown
        self._board = Board(folder / TENSORBOARD, step=step)
        for record in map(json.loads, lines):
            if record["step"] >= step:
                self._board.write(record)
        self._file = open_refusing_links(self._path, "a", encoding="utf-8", newline="\n")

    def saved(self) -> dict[str, Any]:
        """The checksum of metrics.jsonl so far, which is then on the disk: a saved state will count on it."""
        self._board.save()
        self._file.flush()
        os.fsync(self._file.fileno())
        return {"recorded": self._digest.hexdigest()}

    def write(self, record: Record) -> None:
        """Write one measurement: `step`, `epoch`, `split` and numbers; what is not finite becomes null."""
        infinite = {name for name, value in record.items() if isinstance(value, float) and not math.isfinite(value)}
        record = {**record, **dict.fromkeys(infinite)}
        line = json.dumps(record) + "\n"
        self._digest.update(line.encode())
        self._file.write(line)
        self._file.flush()
        self._board.write(record)

    def show(self, step: int, validation: Validation) -> None:
        """Write what a validation has besides its record: some sentences to TensorBoard, all translations to a file."""
        self._board.show(step, validation.samples)
        path = path_of_update(self._folder, VALIDATIONS, step)
        path.parent.mkdir(exist_ok=True)
        with written_atomically(path) as file:
            file.writelines(f"{translation}\n" for translation in validation.translations)

    def close(self) -> None:
        with closing(self._board):
            self._file.close()


def _saved_lines(path: Path, state: Mapping[str, Any], progress: Progress, log: Log) -> list[bytes]:
    """Leave in the file the records that had been written at `progress`, and return their lines.

    A line that cannot be read is left out; the others stay. The last one may have been cut short by a kill.
    """
    with open_refusing_links(path, "a+b") as file:
        file.seek(0)
        lines = list(file)
    kept = []
    for line in lines:
        record = measurement(line)
        if record is not None and progress.is_after(record["step"], record["split"]):
            kept.append(line)
    if kept != lines:
        with written_atomically(path, "wb") as file:
            file.writelines(kept)
    if state and new_digest(b"".join(kept)).hexdigest() != state["recorded"]:
        log(f"warning: {path}: has changed since the state was saved; every line that can be read stays")
    return kept


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
