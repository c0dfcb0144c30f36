"""Contrastive pairs: how often a model finds the right translation more probable than one with a mistake put into it.

Sennrich (2017), EACL E17-2060. The interval is Wilson's (1927), doi 10.1080/01621459.1927.10502953: it stays within 0
and 1 and is right for few pairs, too. It knows numbers only.
"""

from math import sqrt
from typing import Any, NamedTuple

from nmt.errors import counted

Z = 1.959964  # 95% of a normal distribution are within ± so many standard deviations


class Contrast(NamedTuple):
    """What came of some pairs, at least one."""

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
        half = Z * sqrt(self.right * (self.pairs - self.right) / self.pairs + Z**2 / 4)
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
