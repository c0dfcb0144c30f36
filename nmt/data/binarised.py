"""Token ids of a parallel corpus in memory-mapped files: opened in a moment, larger than memory.

A corpus is a folder of flat arrays, little-endian: `SIDE.ids` (uint16, or uint32 for more than 65536 pieces),
`SIDE.offsets` (int64: row i is `ids[offsets[i]:offsets[i + 1]]`), with text also `SIDE.text` (UTF-8) and
`SIDE.text_offsets`; and `meta.json`, with the report and the size of every file. `binarising.py` writes it.

It knows these files; it knows no subwords, no configuration and no cache.
"""

import json
import mmap
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FORMAT = 1  # of the files; part of the cache keys
_READS_KEPT = 16  # rows read between two times that memory is given back; a row may map 2 MiB of either file


class Filters(NamedTuple):
    """Which pairs are left out besides those with an empty side; None: that filter is off."""

    max_length: int | None = None  # pieces on either side
    max_length_ratio: float | None = None  # pieces of the longer side / pieces of the shorter side


class CorpusReport(NamedTuple):
    """What became of the pairs of a corpus; each pair left out counts once, in the order of the fields."""

    read: int
    kept: int
    empty: int = 0
    overlong: int = 0
    unbalanced: int = 0
    source_pieces: int = 0
    target_pieces: int = 0
    source_unknown: int = 0
    target_unknown: int = 0
    max_length: int | None = None  # the filters, as in Filters
    max_length_ratio: float | None = None

    @property
    def left_out(self) -> str:
        """Which filter left out how many pairs; "" when no filter left out any."""
        reasons = (
            (self.empty, "empty on one side"),
            (self.overlong, f"longer than data.max_length = {self.max_length} pieces"),
            (self.unbalanced, f"over data.max_length_ratio = {self.max_length_ratio}"),
        )
        return ", ".join(f"{count:,} {reason}" for count, reason in reasons if count)

    def lines(self) -> list[str]:
        """The report as text: one line for the pairs, one for the pieces of each side."""
        left_out = f" (left out: {self.left_out})" if self.left_out else ""
        return [f"{self.read:,} pairs read, {self.kept:,} kept{left_out}"] + [
            f"{side}: {pieces:,} pieces, {pieces / max(self.kept, 1):.1f} a sentence, "
            f"{unknown:,} unknown ({100 * unknown / max(pieces, 1):.2f} %)"
            for side, pieces, unknown in (
                ("source", self.source_pieces, self.source_unknown),
                ("target", self.target_pieces, self.target_unknown),
            )
        ]


class PairedIds:
    """An open corpus. Ids are read from the files when asked for; only the lengths are kept in memory."""

    def __init__(self, folder: Path) -> None:
        """Open a folder written by `binarise`; raises ValueError if it is damaged."""
        self.folder = folder
        try:
            meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
            sizes = {name: (folder / name).stat().st_size for name in meta["files"]}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{folder}: not a complete corpus of token ids ({error})") from None
        if meta.get("format") != FORMAT or sizes != meta["files"]:
            raise ValueError(f"{folder}: damaged corpus of token ids")
        self.report = CorpusReport(**meta["report"])
        self.has_text = "source.text" in sizes
        self._source = _Rows(folder / "source.ids", folder / "source.offsets", meta["id_type"])
        self._target = _Rows(folder / "target.ids", folder / "target.offsets", meta["id_type"])
        if self.has_text:
            self._source_text = _Rows(folder / "source.text", folder / "source.text_offsets", "u1")
            self._target_text = _Rows(folder / "target.text", folder / "target.text_offsets", "u1")

    def __len__(self) -> int:
        """Number of pairs."""
        return self.report.kept

    @cached_property
    def source_lengths(self) -> npt.NDArray[np.int32]:
        """Pieces of each source, (pairs,), END not counted."""
        return self._source.lengths()

    @cached_property
    def target_lengths(self) -> npt.NDArray[np.int32]:
        """Pieces of each target, (pairs,), END not counted."""
        return self._target.lengths()

    @cached_property
    def longest_source(self) -> int:
        """Pieces of the longest source."""
        return int(self.source_lengths.max(initial=0))

    @cached_property
    def longest_target(self) -> int:
        """Pieces of the longest target."""
        return int(self.target_lengths.max(initial=0))

    def source(self, row: int) -> npt.NDArray[np.integer]:
        """Ids of a source, without special symbols."""
        return self._source[row]

    def target(self, row: int) -> npt.NDArray[np.integer]:
        """Ids of a target, without special symbols."""
        return self._target[row]

    def text(self, row: int) -> tuple[str, str]:
        """The lines of a pair; raises ValueError if the corpus was written without its text."""
        if not self.has_text:
            raise ValueError(f"{self.folder}: written without its text")
        return self._source_text[row].tobytes().decode(), self._target_text[row].tobytes().decode()


class _Rows:
    """Rows of different lengths in one flat memory-mapped file, with their offsets in another.

    What was read of the files would count as memory of the process until the end, although the system can take it back
    at any time; so it is given back now and then.
    """

    def __init__(self, values: Path, offsets: Path, item_type: str) -> None:
        self._offsets, offsets_file = _mapped(offsets, "<i8")
        self._values, values_file = _mapped(values, item_type)
        self._files = [file for file in (offsets_file, values_file) if file is not None]
        self._reads = 0

    def __getitem__(self, row: int) -> npt.NDArray[np.integer]:
        self._reads += 1
        if self._reads % _READS_KEPT == 0:
            self._release()
        return self._values[self._offsets[row] : self._offsets[row + 1]]

    def lengths(self) -> npt.NDArray[np.int32]:
        lengths = np.empty(len(self._offsets) - 1, dtype=np.int32)
        np.subtract(self._offsets[1:], self._offsets[:-1], out=lengths, casting="same_kind")
        self._release()
        return lengths

    def _release(self) -> None:
        """Unmap what was read; arrays that are still in use read it again from the system's cache."""
        if hasattr(mmap, "MADV_DONTNEED"):
            for file in self._files:
                file.madvise(mmap.MADV_DONTNEED)


def _mapped(path: Path, item_type: str) -> tuple[npt.NDArray[np.integer], mmap.mmap | None]:
    """The values of a file, and the mapping that they lie in; an empty file cannot be mapped."""
    if not path.stat().st_size:
        return np.empty(0, dtype=item_type), None
    with path.open("rb") as file:
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return np.frombuffer(mapping, dtype=item_type), mapping
