"""Training, validation, and test text without leaks: no sentence of a side is in two of the parts.

Sentences are the same if they are so without case and the number and kind of their spaces. Their hashes of 64 bits are
kept, 28 bytes a pair; among 10 million, two others are the same by a chance of 1 to 400,000.
"""

from array import array
from functools import cached_property

import numpy as np
from numpy.random import default_rng
from numpy.typing import NDArray

TRAIN, VALID, TEST, REPEATED, ELSEWHERE = range(5)
PARTS = ("train", "valid", "test", "repeated", "elsewhere")
_SEED = 1
_FEWEST = 20  # documents by which a text is split; each of a few is of its own kind


class Keys:
    """The pairs of a text, as they are compared."""

    def __init__(self) -> None:
        self._pairs, self._sources, self._targets = array("q"), array("q"), array("q")
        self._documents = array("i")
        self._names = {"": 0}  # of documents

    def __len__(self) -> int:
        return len(self._pairs)

    def add(self, source: str, target: str, document: str) -> None:
        """Add a pair."""
        self._pairs.append(hash((source, target)))
        for keys, text in ((self._sources, source), (self._targets, target)):
            keys.append(hash(" ".join(text.casefold().split())))
        self._documents.append(self._names.setdefault(document, len(self._names)))

    @cached_property
    def distinct(self) -> NDArray[np.intp]:
        """The numbers of the first of equal pairs, once all are added."""
        return np.sort(np.unique(np.frombuffer(self._pairs, dtype=np.int64), return_index=True)[1])

    def split(self, size: int) -> tuple[NDArray[np.int8], bool]:
        """The part of each pair, and whether documents were kept whole; the same for the same pairs in their order.

        About `size` pairs are VALID, and as many TEST, or fewer where others share a sentence with them. Of a document
        that is held out, pairs are ELSEWHERE if another document has a sentence of theirs. The second of equal pairs is
        REPEATED.
        """
        documents = np.frombuffer(self._documents, dtype=np.int32)[self.distinct]
        alone = np.arange(len(documents)) + len(self._names)
        by_documents = len(self._names) > _FEWEST
        chosen, is_own = self._held_out(np.where(documents == 0, alone, documents), size)
        if not by_documents or np.sum(is_own & (chosen == VALID)) < size / 2:
            by_documents = False
            chosen, is_own = self._held_out(alone, size)
        parts = np.full(len(self), REPEATED, dtype=np.int8)
        parts[self.distinct] = np.where((chosen == TRAIN) | is_own, chosen, ELSEWHERE)
        return parts, by_documents

    def _held_out(self, groups: NDArray[np.intp], size: int) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """The part of each distinct pair, groups kept whole, and whether no other group has a sentence of it."""
        is_own = np.ones(len(groups), dtype=bool)
        for keys in (self._sources, self._targets):
            is_own &= _only_in_one(np.frombuffer(keys, dtype=np.int64)[self.distinct], groups)
        _, numbers = np.unique(groups, return_inverse=True)
        sizes = np.bincount(numbers, weights=is_own)
        order = default_rng(_SEED).permutation(len(sizes))
        order = order[(sizes[order] > 0) & (sizes[order] <= max(1, size / 2))]
        before = np.cumsum(sizes[order]) - sizes[order]
        parts = np.full(len(sizes), TRAIN)
        parts[order[before < 2 * size]] = VALID
        parts[order[before < size]] = TEST
        return parts[numbers], is_own


def _only_in_one(keys: NDArray[np.int64], groups: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Whether all that have the same key are of the same group."""
    _, numbers = np.unique(keys, return_inverse=True)
    first = np.zeros(len(keys), dtype=np.intp)
    first[numbers] = groups  # of each key, some group
    is_mixed = np.bincount(numbers, weights=groups != first[numbers])
    return is_mixed[numbers] == 0
