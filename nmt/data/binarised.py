"""Token ids of a parallel corpus in memory-mapped files: larger than memory, opened as fast as they can be checked.

A corpus is a folder of flat little-endian arrays: `SIDE.ids` (uint16, or uint32 for more than 65536 pieces) and
`SIDE.offsets` (int64: row i is `ids[offsets[i]:offsets[i + 1]]`), with text also `SIDE.text` (UTF-8) and
`SIDE.text_offsets`, with alignments also `alignment.links` (float32: of each link between pieces its target piece, its
source piece and its share, see `alignments.py`) and `alignment.offsets`. `meta.json`, sealed like any cached file,
holds the report, the size of each vocabulary and the seal of every array. `binarising.py` writes them. Opening a corpus
reads every byte on all cores, so damage is found before any row is used, and no id is beyond the vocabulary.

It knows these files and seals; it knows no subwords, no configuration and no cache.
"""

import json
import mmap
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.data.sealed import Seal, check_size, new_checksum, opened, read_sealed, telling_damage
from nmt.errors import counted

FORMAT = 2  # of the files
META = "meta.json"
SIDES = ("source", "target")
ALIGNMENT = "alignment"
LINK_VALUES = 3  # of a link: numbers that float32 holds exactly, for no line has 2²⁴ pieces, and a share
_CHUNK = 1 << 20  # bytes checked at once, a multiple of every item size
_READS_KEPT = 16  # rows read before memory is given back; a row may map 2 MiB of either file


class Filters(NamedTuple):
    """Which pairs are dropped, in addition to those with an empty side; None: that filter is off."""

    max_length: int | None = None  # pieces on either side
    max_length_ratio: float | None = None  # pieces of the longer side / pieces of the shorter side


class CorpusReport(NamedTuple):
    """What became of the pairs of a corpus; a dropped pair counts once, for the first reason in this order."""

    read: int = 0
    kept: int = 0
    empty: int = 0
    overlong: int = 0
    unbalanced: int = 0
    source_pieces: int = 0
    target_pieces: int = 0
    source_unknown: int = 0
    target_unknown: int = 0
    max_length: int | None = None  # the filters, as in Filters
    max_length_ratio: float | None = None
    aligned: int | None = None  # target pieces with a link; None: there are no alignments

    @property
    def left_out(self) -> str:
        """How many pairs each filter dropped; "" when none did."""
        pieces = "piece" if self.max_length == 1 else "pieces"
        reasons = (
            (self.empty, "empty on one side"),
            (self.overlong, f"longer than data.max_length = {self.max_length} {pieces}"),
            (self.unbalanced, f"over data.max_length_ratio = {self.max_length_ratio}"),
        )
        return ", ".join(f"{count:,} {reason}" for count, reason in reasons if count)

    def lines(self) -> list[str]:
        """The report as text: a line for the pairs, one for the pieces of each side, and one for alignments."""
        left_out = f" ({100 * self.kept / self.read:.2f}%; left out: {self.left_out})" if self.left_out else ""
        lines = [f"{counted(self.read, 'pair')} read, {self.kept:,} kept{left_out}"] + [
            f"{side}: {counted(pieces, 'piece')}, {pieces / max(self.kept, 1):.1f} a sentence, "
            f"{unknown:,} unknown ({100 * unknown / max(pieces, 1):.2f}%)"
            for side, pieces, unknown in (
                ("source", self.source_pieces, self.source_unknown),
                ("target", self.target_pieces, self.target_unknown),
            )
        ]
        if self.aligned is not None:
            share = 100 * self.aligned / max(self.target_pieces, 1)
            lines.append(f"alignments: {share:.2f}% of the target pieces have a link")
        return lines


class PairedIds:
    """An open corpus. Ids are read from the files on demand; only the lengths are kept in memory."""

    def __init__(self, folder: Path) -> None:
        """Open a folder written by `binarise`, reading all of it.

        Raises ValueError if anything in it is damaged, and OSError if it cannot be read for another reason.
        """
        self.folder = folder
        try:
            meta = json.loads(read_sealed(folder / META))
            if meta["format"] != FORMAT:
                raise ValueError(f"{META} is of format {meta['format']!r}, not {FORMAT}")
            self.report = CorpusReport(**meta["report"])
            self.pieces = tuple(map(int, meta["pieces"]))  # sizes of the vocabularies
            # Pairs of each of the corpora that stand here one after the other; older folders tell only their sum.
            self.sizes = tuple(map(int, meta.get("sizes", [self.report.kept])))
            self.has_text = "source.text" in meta["files"]
            self.has_alignments = f"{ALIGNMENT}.links" in meta["files"]
            with telling_damage(folder):
                rows = _opened_rows(
                    folder, meta, self.pieces, with_text=self.has_text, with_alignments=self.has_alignments
                )
            for side in rows:
                side.check(self.report.kept)
            if sum(self.sizes) != self.report.kept:
                raise ValueError("the corpora do not fill their rows")
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"{META} is not as it was written ({error!r})") from None
        self._source, self._target = rows[:2]
        if self.has_text:
            self._source_text, self._target_text = rows[2:4]
        if self.has_alignments:
            self._links = rows[-1]

    def __len__(self) -> int:
        """Number of pairs."""
        return self.report.kept

    @cached_property
    def source_lengths(self) -> npt.NDArray[np.int32]:
        """Pieces in each source, (pairs,), without END."""
        return self._source.lengths()

    @cached_property
    def target_lengths(self) -> npt.NDArray[np.int32]:
        """Pieces in each target, (pairs,), without END."""
        return self._target.lengths()

    def source(self, row: int) -> npt.NDArray[np.integer]:
        """Ids of a source, without special symbols."""
        return self._source[row]

    def target(self, row: int) -> npt.NDArray[np.integer]:
        """Ids of a target, without special symbols."""
        return self._target[row]

    def text(self, row: int) -> tuple[str, str]:
        """The two lines of a pair; raises ValueError if the corpus was written without its text."""
        if not self.has_text:
            raise ValueError(f"{self.folder}: written without its text")
        return self._source_text[row].tobytes().decode(), self._target_text[row].tobytes().decode()

    def links(self, row: int) -> npt.NDArray[np.float32]:
        """The links between the pieces of a pair, (links, 3): target piece, source piece, share.

        Only a corpus that was written with alignments has them.
        """
        return self._links[row].reshape(-1, LINK_VALUES)


class _Rows:
    """Rows of different lengths in one flat memory-mapped file, with their offsets in another.

    Everything read from the files would count as the process's memory to the end, although the system can reclaim it at
    any time; so it is given back now and then.
    """

    def __init__(self, values: "_Mapped", offsets: "_Mapped") -> None:
        self._values, self._offsets = values.items, offsets.items
        self._files = [mapped.file for mapped in (offsets, values) if mapped.file is not None]
        self._reads = 0

    def check(self, rows: int) -> None:
        """Raise ValueError unless there are `rows` rows, in order and without gaps."""
        offsets = self._offsets
        if len(offsets) != rows + 1 or offsets[0] != 0 or offsets[-1] != len(self._values):
            raise ValueError("the rows do not fill their files")
        if (offsets[1:] < offsets[:-1]).any():
            raise ValueError("the rows are not in order")
        self._release()

    def __getitem__(self, row: int) -> npt.NDArray[Any]:
        self._reads += 1
        if self._reads % _READS_KEPT == 0:
            self._release()
        return self._values[self._offsets[row] : self._offsets[row + 1]]

    def lengths(self) -> npt.NDArray[np.int32]:
        lengths = np.empty(len(self._offsets) - 1, dtype=np.int32)
        np.subtract(self._offsets[1:], self._offsets[:-1], out=lengths)
        self._release()
        return lengths

    def _release(self) -> None:
        """Unmap what was read; arrays still in use read it again from the system's cache."""
        if hasattr(mmap, "MADV_DONTNEED"):
            for file in self._files:
                file.madvise(mmap.MADV_DONTNEED)


class _Mapped(NamedTuple):
    """The values of a file and the mapping that holds them; None for an empty file, which cannot be mapped."""

    items: npt.NDArray[Any]
    file: mmap.mmap | None


def _mapped(file: IO[bytes], item_type: str) -> _Mapped:
    if not os.fstat(file.fileno()).st_size:
        return _Mapped(np.empty(0, dtype=item_type), None)
    mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return _Mapped(np.frombuffer(mapping, dtype=item_type), mapping)


def _opened_rows(
    folder: Path, meta: dict[str, Any], pieces: Sequence[int], *, with_text: bool, with_alignments: bool
) -> list[_Rows]:
    """Open the files of a corpus, check them all in parallel, and map what was checked."""
    id_type = {"<u2": "<u2", "<u4": "<u4"}[meta["id_type"]]
    kinds = [(side, "ids", "offsets", id_type) for side in SIDES]
    kinds += [(side, "text", "text_offsets", "u1") for side in SIDES if with_text]
    kinds += [(ALIGNMENT, "links", "offsets", "<f4")] if with_alignments else []
    below = {f"{side}.ids": size for side, size in zip(SIDES, pieces, strict=True)}
    types: dict[str, str] = {}
    for side, values, offsets, item_type in kinds:
        types |= {f"{side}.{values}": item_type, f"{side}.{offsets}": "<i8"}
    with ExitStack() as stack:
        files = {name: stack.enter_context(opened(folder / name)) for name in types}
        pool = stack.enter_context(ThreadPoolExecutor(os.cpu_count() or 1))
        checks = [
            pool.submit(_check, file, name, Seal(*meta["files"][name]), types[name], below.get(name))
            for name, file in files.items()
        ]
        for check in checks:
            check.result()
        mapped = {name: _mapped(file, types[name]) for name, file in files.items()}
    return [_Rows(mapped[f"{side}.{values}"], mapped[f"{side}.{offsets}"]) for side, values, offsets, _ in kinds]


def _check(file: IO[bytes], name: str, seal: Seal, item_type: str, below: int | None) -> None:
    """Raise ValueError if a file is not as it was written, or has a value that is not below `below`."""
    check_size(file, name, seal)
    checksum, buffer = new_checksum(), bytearray(_CHUNK)
    items, largest = np.frombuffer(buffer, dtype=item_type), 0  # those that are not overwritten have been looked at
    while count := file.readinto(buffer):  # type: ignore[attr-defined]
        checksum.update(memoryview(buffer)[:count])
        if below is not None:
            largest = max(largest, int(items.max()))
    if checksum.hexdigest() != seal.checksum:
        raise ValueError(f"{name} is not as it was written")
    if below is not None and largest >= below:
        raise ValueError(f"{name} has the piece {largest} of a vocabulary of {below}")
