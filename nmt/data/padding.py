"""Sentences of several lengths as one array."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nmt.symbols import END, PAD

Ids = Sequence[int] | npt.NDArray[np.integer]


def padded_with_end(sentences: Sequence[Ids]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the sentences with END appended, padded to (batch, length), and their lengths (batch,) including END."""
    padded = np.full((len(sentences), 1 + max(map(len, sentences))), PAD, dtype=np.int64)
    for row, pieces in enumerate(sentences):
        padded[row, : len(pieces)] = pieces
        padded[row, len(pieces)] = END
    return padded, np.array([len(pieces) + 1 for pieces in sentences], dtype=np.int64)
