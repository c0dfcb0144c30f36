"""What is measured of models by themselves: perplexity, contrastive pairs, and the metrics.jsonl of a training run.

A line of metrics.jsonl is a JSON object of a step and a split; what writes it is `training`. It knows only numbers.

Sennrich (2017), EACL E17-2060, on contrastive pairs. Their interval is Wilson's (1927), doi
10.1080/01621459.1927.10502953: it stays within 0 and 1 and is right for few pairs, too.
"""

import json
import math
from typing import Any, NamedTuple

from nmt.errors import counted

FILE = "metrics.jsonl"  # of a run's folder
_SPLITS = ("train", "valid", "average")
_LARGEST = 2**53  # of whole numbers: beyond, a float is not exact, and TensorBoard has no room
Z = 1.959964  # 95% of a normal distribution are within ± so many standard deviations

Record = dict[str, Any]
"""`step` and `split`, and numbers by name, of which None is one that was not finite."""


def perplexity(loss: float) -> float:
    """exp of the loss in nats per token; infinite where a float cannot hold it."""
    return math.exp(loss) if loss < 700 else math.inf


def measurement(line: bytes) -> Record | None:
    """The record that a line holds: `step`, `split` and numbers, of which null is one.

    None when it holds none: somebody may have damaged or edited the file.
    """
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not line.endswith(b"\n"):
        return None
    step = record.get("step")
    first = 1 if record.get("split") == "train" else 0  # a model may be validated before it is trained
    if record.get("split") not in _SPLITS or type(step) is not int or step < first:
        return None
    for name, value in record.items():
        fits = abs(value) <= _LARGEST if type(value) is int else type(value) is float and math.isfinite(value)
        if name != "split" and not (name.isprintable() and (fits or value is None)):  # true and false are no numbers
            return None
    return record


class Contrast(NamedTuple):
    """How often a model finds the right translation more probable than one with a mistake put into it: of at least one
    pair."""

    pairs: int
    right: int  # the right translation has the higher score
    ties: int  # both have the same, which is not counted as right

    @property
    def accuracy(self) -> float:
        return self.right / self.pairs

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of the accuracy, of k right ones of n and z = Z:

        (k + z²/2 ± z √(k (n - k) / n + z²/4)) / (n + z²)
        """
        half = Z * math.sqrt(self.right * (self.pairs - self.right) / self.pairs + Z**2 / 4)
        middle, size = self.right + Z**2 / 2, self.pairs + Z**2
        return max(0.0, (middle - half) / size), min(1.0, (middle + half) / size)

    def numbers(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        least, most = self.interval
        return {**self._asdict(), "accuracy": round(self.accuracy, 6), "interval": [round(least, 6), round(most, 6)]}

    def __str__(self) -> str:
        least, most = self.interval
        sizes = f"{counted(self.pairs, 'pair')}, {counted(self.ties, 'tie')}"
        return f"accuracy {self.accuracy:.4f} (95% interval: {least:.4f} to {most:.4f}), {sizes}"
