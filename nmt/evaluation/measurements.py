"""What is measured of models by themselves: perplexity, contrastive pairs, and the metrics.jsonl of a training run.

A line of metrics.jsonl is a JSON object of a step and a split; what writes it is `training`. It knows only numbers.

Sennrich (2017), EACL E17-2060, on contrastive pairs. Their interval is Wilson's (1927), doi
10.1080/01621459.1927.10502953: it stays within 0 and 1 and is right for few pairs, too.
"""

import math
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, Field, ValidationError

from nmt.errors import counted

FILE = "metrics.jsonl"  # of a run's folder
Z = 1.959964  # 95% of a normal distribution are within ± so many standard deviations

Record = dict[str, Any]
"""`step` and `split`, and numbers by name, of which None is one that was not finite."""


def perplexity(loss: float) -> float:
    """exp of the loss in nats per token; infinite where a float cannot hold it."""
    return math.exp(loss) if loss < 700 else math.inf


class _Line(BaseModel, extra="allow", strict=True, allow_inf_nan=False):
    __pydantic_extra__: dict[str, float | None]
    step: int = Field(ge=0)
    split: Literal["train", "valid", "average"]


def measurement(line: bytes) -> Record | None:
    """The record that a line holds; None when it holds none: somebody may have damaged or edited the file."""
    try:
        return _Line.model_validate_json(line).model_dump() if line.endswith(b"\n") else None
    except ValidationError:
        return None


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
