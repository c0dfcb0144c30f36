"""Chunks of the tokens whose logits over the vocabulary are computed together, so that never all are held."""

from collections.abc import Iterator

from torch import Tensor
from torch.nn import functional

CHUNK = 128  # rows, an even number; the logits of a chunk are then 4 MB for 8,000 words, about what a cache holds
GROUP = 1 << 24  # tokens × vocabulary; the weight's gradient is written once for so many, and takes them of all chunks


def groups_of_chunks(vectors: Tensor, vocabulary: int) -> Iterator[tuple[Tensor, int]]:
    """The rows of `vectors` (tokens, size) in groups of whole chunks, with the number of the first row.

    A group has about GROUP / `vocabulary` rows. The last chunk is filled up with zeros, so that products have few
    shapes.
    """
    filled = functional.pad(vectors, (0, 0, 0, -len(vectors) % CHUNK))
    size = CHUNK * max(1, GROUP // (CHUNK * vocabulary))
    for first in range(0, len(vectors), size):
        yield filled[first : first + size], first


def chunks_of(rows: Tensor, first: int, count: int) -> Iterator[tuple[Tensor, slice]]:
    """The chunks of a group that begins with row `first` of `count`, and the real rows that each has."""
    for begin in range(0, len(rows), CHUNK):
        start = first + begin
        yield rows[begin : begin + CHUNK], slice(start, min(start + CHUNK, count))
