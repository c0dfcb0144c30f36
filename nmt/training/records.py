"""What a run tells: a line in metrics.jsonl, the same scalars in TensorBoard, and a readable line in the log.

A resumed run cuts metrics.jsonl back to the saved update, so that an interrupted run leaves the file of an
uninterrupted one.
"""

import json
import math
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter

METRICS = "metrics.jsonl"
_NOT_SCALARS = frozenset({"step", "epoch", "split"})


class Records:
    """Writes the measurements of one run folder."""

    def __init__(self, folder: Path, *, size: int) -> None:
        """Continue `folder`'s records from the first `size` bytes of metrics.jsonl (0 for a new run)."""
        self._path = folder / METRICS
        self._path.touch()
        with open(self._path, "r+b") as file:
            file.truncate(size)
        self._file = open(self._path, "a", encoding="utf-8", newline="\n")  # noqa: SIM115 - closed by close()
        self._board = SummaryWriter(str(folder / "tensorboard"), purge_step=last_step(self._path) + 1)

    @property
    def size(self) -> int:
        """Bytes of metrics.jsonl so far."""
        self._file.flush()
        return self._path.stat().st_size

    def write(self, record: dict[str, Any]) -> None:
        """Write one measurement: `step`, `epoch`, `split` and numbers; what is not finite becomes null."""
        self._file.write(json.dumps({name: _finite(value) for name, value in record.items()}) + "\n")
        self._file.flush()
        for name, value in record.items():
            if name not in _NOT_SCALARS:
                self._board.add_scalar(f"{record['split']}/{name}", value, record["step"])
        self._board.flush()

    def close(self) -> None:
        self._file.close()
        self._board.close()


def last_step(path: Path) -> int:
    """The step of the last line of a metrics.jsonl; 0 when it is empty."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return int(json.loads(lines[-1])["step"]) if lines else 0


def readable(record: dict[str, Any]) -> str:
    """The record as a line for people."""
    words = [f"epoch {record['epoch']:.2f}", f"update {record['step']:,}"]
    if record["split"] != "train":
        words.insert(0, "validation")
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
    return " · ".join(words)


def perplexity(loss: float) -> float:
    """exp of the loss in nats per token; infinite where a float cannot hold it."""
    return math.exp(loss) if loss < 700 else math.inf


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
