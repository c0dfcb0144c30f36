"""Some sentences whose translations and attention are shown at every validation, to look at while a model learns.

It knows pieces and texts; it knows no model and no file.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

LONGEST = 60  # pieces: of more, neither the picture nor the line could be taken in at a glance


class Sample(NamedTuple):
    """A validation sentence and what the model makes of it."""

    source: str
    reference: str
    translation: str
    source_pieces: Sequence[str]  # and the end mark: the columns of the weights
    target_pieces: Sequence[str]  # their rows
    weights: "npt.NDArray[np.float32] | None"  # None: the model has no attention


def chosen(source_lengths: "npt.NDArray[np.integer]", number: int) -> list[int]:
    """The places of up to `number` sentences: evenly spaced among those that have 1 to LONGEST pieces."""
    places = np.flatnonzero((source_lengths >= 1) & (source_lengths <= LONGEST))
    number = min(number, len(places))
    return [int(places[index * len(places) // number]) for index in range(number)]


def as_markdown(sample: Sample) -> str:
    """The three texts below each other, in a block that shows every character as it is."""
    texts = {"source": sample.source, "reference": sample.reference, "translation": sample.translation}
    return "\n".join(f"    {name:11}  {' '.join(text.split())}" for name, text in texts.items())
