"""Token ids of a parallel corpus in memory-mapped files: larger than memory, and opened at once.

Rows of different lengths are two flat little-endian arrays: NAME.values, and NAME.offsets (int64), where row i is
`values[offsets[i]:offsets[i + 1]]`. A corpus has `source` and `target` (uint16, or uint32 for more than 65,536 pieces),
with text also `source_text` and `target_text` (UTF-8), with alignments also `links` (float32: of each link between
pieces its target piece, its source piece and its share, see `alignments.py`), with weights also `weights` (float32).

It knows these files, pairs of lines, and subword models; it knows no configuration, and the cache checks the files.
"""

import mmap
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.data.alignments import piece_links
from nmt.data.cache import Facts
from nmt.data.subwords import Subwords, Vocabularies
from nmt.data.words import words_of_parts
from nmt.errors import UserError, counted
from nmt.pharaoh import links_of_line
from nmt.symbols import UNKNOWN

LINK_VALUES = 3  # of a link: numbers that float32 holds exactly, for no line has 2²⁴ pieces, and a share
_CHUNK = 1 << 14  # pairs that are encoded at once
_READS_KEPT = 16  # rows read before memory is given back; a row may map 2 MiB of either file
_CHUNK_CHARACTERS = 1 << 22  # or about this many characters, if that is fewer pairs
Texts = list[tuple[str, ...]]  # the lines of each side
_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
_MOST_NAMED = 20  # characters that a vocabulary lacks


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
        lines = [f"{counted(self.read, 'pair')} read, {self.kept:,} kept{left_out}"]
        sides = (
            ("source", self.source_pieces, self.source_unknown),
            ("target", self.target_pieces, self.target_unknown),
        )
        for side, pieces, unknown in sides:
            lines.append(
                f"{side}: {counted(pieces, 'piece')}, {pieces / max(self.kept, 1):.1f} a sentence, "
                f"{unknown:,} unknown ({100 * unknown / max(pieces, 1):.2f}%)"
            )
        if self.aligned is not None:
            share = 100 * self.aligned / max(self.target_pieces, 1)
            lines.append(f"alignments: {share:.2f}% of the target pieces have a link")
        return lines


class Unknown(NamedTuple):
    """What the vocabulary lacks of a side: the share of its pieces that are no mere space, the lines, and characters.

    Of an unknown word, sentencepiece makes a space and one unknown piece.
    """

    share: float
    lines: int
    characters: Mapping[str, int]  # by lines, the most frequent first; of a vocabulary of words, none


class PairedIds:
    """An open corpus. Ids are read from the files on demand; only the lengths are kept in memory."""

    def __init__(self, folder: Path, facts: Facts) -> None:
        """Open what `write_ids` wrote into `folder`; `facts` is what it returned."""
        self.folder = folder
        self.report = CorpusReport(**facts["report"])
        self.unknown = {side: Unknown(**found) for side, found in facts["unknown"].items()}
        self.sizes: tuple[int, ...] = tuple(facts["sizes"])  # pairs of each of the corpora one after the other
        rows = {name: _Rows(folder, name, item_type) for name, item_type in facts["types"].items()}
        self._source, self._target = rows["source"], rows["target"]
        self._source_text, self._target_text = rows.get("source_text"), rows.get("target_text")
        self._links = rows.get("links")
        self.weights = rows["weights"].values() if "weights" in rows else None  # (pairs,), or None: all are 1

    def __len__(self) -> int:
        """Number of pairs."""
        return self.report.kept

    @property
    def has_alignments(self) -> bool:
        """Whether `links` can be read."""
        return self._links is not None

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
        """The two lines of a pair, of a corpus that was written with its text."""
        assert self._source_text is not None
        assert self._target_text is not None
        return self._source_text[row].tobytes().decode(), self._target_text[row].tobytes().decode()

    def links(self, row: int) -> npt.NDArray[np.float32]:
        """The links between the pieces of a pair, (links, 3): target piece, source piece, share.

        Only a corpus that was written with alignments has them.
        """
        assert self._links is not None
        return self._links[row].reshape(-1, LINK_VALUES)


class _Rows:
    """Rows of different lengths in a memory-mapped file, with their offsets in another.

    Everything read from the files would count as the process's memory to the end, although the system can reclaim it at
    any time; so it is given back now and then.
    """

    def __init__(self, folder: Path, name: str, item_type: str) -> None:
        self._files: list[mmap.mmap] = []
        self._values = self._mapped(folder / f"{name}.values", item_type)
        self._offsets = self._mapped(folder / f"{name}.offsets", "<i8")
        self._reads = 0

    def _mapped(self, path: Path, item_type: str) -> npt.NDArray[Any]:
        with open(path, "rb") as file:
            if not os.fstat(file.fileno()).st_size:  # an empty file cannot be mapped
                return np.empty(0, dtype=item_type)
            self._files.append(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        return np.frombuffer(self._files[-1], dtype=item_type)

    def __getitem__(self, row: int) -> npt.NDArray[Any]:
        self._reads += 1
        if self._reads % _READS_KEPT == 0:
            self._release()
        return self._values[self._offsets[row] : self._offsets[row + 1]]

    def values(self) -> npt.NDArray[Any]:
        """Those of all rows, copied."""
        return self._values.copy()

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


# ----------------------------------------------------------------------------------------------------------- writing


def write_ids(
    folder: Path,
    pairs: Iterable[tuple[str, str]],
    *,
    vocabularies: Vocabularies,
    filters: Filters | None,
    with_text: bool = False,
    alignments: Iterable[str] | None = None,
    weights: Iterable[float] | None = None,
    corpora: Sequence[int] = (),
) -> Facts:
    """Encode pairs of lines into files of `folder`; returns the facts that `PairedIds` needs to open them.

    The pairs are read once, as a stream. `filters` None keeps every pair, even empty ones. `with_text` also keeps the
    lines, for sampling segmentations. `alignments` are lines in Pharaoh format, one a pair, whose links are between
    words that the pair has, and `weights` numbers, one a pair. `corpora` says how many pairs come from each of several
    corpora, one after the other.

    Raises:
        UserError: no pair is left; the message says how many each filter dropped.
    """
    id_type = "<u2" if max(vocabularies.source.size, vocabularies.target.size) <= 1 << 16 else "<u4"
    types = {"source": id_type, "target": id_type}
    if with_text:
        types |= {"source_text": "u1", "target_text": "u1"}
    if alignments is not None:
        types["links"] = "<f4"
    if weights is not None:
        types["weights"] = "<f4"
    counts: Counter[str] = Counter()
    sides = {name: _Seen(subwords) for name, subwords in zip(("source", "target"), vocabularies, strict=True)}
    ends = np.cumsum(corpora or [0])[:-1]  # of all corpora but the last
    sizes = np.zeros(len(ends) + 1, dtype=np.int64)
    rest, links_left, weights_left = iter(pairs), iter(alignments or ()), iter(weights or ())
    with ExitStack() as stack:
        writers = {name: _RowsWriter(stack, folder, name, item_type) for name, item_type in types.items()}
        while chunk := _chunk(rest):
            texts = list(zip(*chunk, strict=True))
            ids = [subwords.encode_batch(side) for subwords, side in zip(vocabularies, texts, strict=True)]
            lengths = [np.array([len(row) for row in side]) for side in ids]
            kept = _kept_rows(lengths[0], lengths[1], filters, counts)
            np.add.at(sizes, np.searchsorted(ends, counts["read"] + kept, side="right"), 1)
            counts.update(read=len(texts[0]), kept=len(kept))
            for name, rows, lines in zip(sides, ids, texts, strict=True):
                kept_rows, kept_lines = [rows[row] for row in kept], [lines[row] for row in kept]
                sides[name].add(kept_rows, kept_lines, writers[name].write(kept_rows))
                if with_text:
                    writers[f"{name}_text"].write([line.encode() for line in kept_lines])
            if alignments is not None:
                link_rows = _link_rows(texts, list(islice(links_left, len(texts[0]))), kept, vocabularies)
                writers["links"].write(link_rows)
                counts["aligned"] += sum(len(set(row[::LINK_VALUES])) for row in link_rows)
            if weights is not None:
                of_chunk = list(islice(weights_left, len(texts[0])))
                writers["weights"].write([[of_chunk[row]] for row in kept])
    for name, seen in sides.items():
        counts.update({f"{name}_pieces": seen.pieces, f"{name}_unknown": seen.unknown})
    report = CorpusReport(**counts, **(filters._asdict() if filters else {}))
    if report.kept == 0:
        raise UserError(f"no training pair is left of {report.read:,}: {report.left_out}")
    unknown = {name: seen.lacking()._asdict() for name, seen in sides.items()}
    return {"types": types, "report": report._asdict(), "sizes": sizes.tolist(), "unknown": unknown}


class _Seen:
    """What was seen of a side, and what its vocabulary lacks."""

    def __init__(self, subwords: Subwords) -> None:
        self.pieces = self.unknown = self._spaces = self._lines = 0
        self._subwords, self._characters = subwords, Counter[str]()  # characters of lines with unknown pieces
        names = enumerate(subwords.pieces(range(subwords.size)))
        self._space_ids = [number for number, piece in names if piece == _SPACE]

    def add(self, rows: Sequence[Sequence[int]], lines: Sequence[str], pieces: npt.NDArray[Any]) -> None:
        """Count lines, whose pieces are `rows`, and also `pieces`, one after the other."""
        self.pieces += len(pieces)
        self.unknown += int((pieces == UNKNOWN).sum())
        self._spaces += int(np.isin(pieces, self._space_ids).sum())
        for row, line in zip(rows, lines, strict=True):
            if UNKNOWN in row:
                self._lines += 1
                self._characters.update(set(line))

    def lacking(self) -> Unknown:
        """What the vocabulary lacks of all of them."""
        found = {} if self._subwords.of_words else self._subwords.unknown(self._characters)
        share = self.unknown / max(self.pieces - self._spaces, 1)
        return Unknown(share, self._lines, dict(islice(found.items(), _MOST_NAMED)))


def _chunk(pairs: Iterator[tuple[str, str]]) -> list[tuple[str, str]]:
    """The next pairs to encode at once; only a few if their lines are huge."""
    chunk, characters = [], 0
    for pair in islice(pairs, _CHUNK):
        chunk.append(pair)
        characters += len(pair[0]) + len(pair[1])
        if characters >= _CHUNK_CHARACTERS:
            break
    return chunk


def _kept_rows(
    source_lengths: npt.NDArray[np.int64],
    target_lengths: npt.NDArray[np.int64],
    filters: Filters | None,
    counts: Counter[str],
) -> npt.NDArray[np.int64]:
    """The rows (kept,) that pass the filters, by their lengths (rows,); the others are counted by reason."""
    if filters is None:
        return np.arange(len(source_lengths))
    shorter, longer = np.minimum(source_lengths, target_lengths), np.maximum(source_lengths, target_lengths)
    masks = {"empty": shorter == 0}
    if filters.max_length is not None:
        masks["overlong"] = longer > filters.max_length
    if filters.max_length_ratio is not None:
        masks["unbalanced"] = longer > filters.max_length_ratio * shorter
    left = np.ones(len(source_lengths), dtype=np.bool_)
    for reason, mask in masks.items():
        counts[reason] += int((left & mask).sum())
        left &= ~mask
    return np.flatnonzero(left)


def _link_rows(
    texts: Texts, lines: Sequence[str], kept: npt.NDArray[np.int64], vocabularies: Vocabularies
) -> list[list[float]]:
    """The links between the pieces of each kept pair, one after the other: target piece, source piece, share."""
    rows = []
    for row in kept:
        sides = zip(texts, vocabularies, strict=True)
        # Words of the text as it is, whether or not it was cut before.
        source, target = (words_of_parts(side[row], subwords.spans(side[row])).places for side, subwords in sides)
        links = piece_links(links_of_line(lines[row], place="an alignment"), source, target)
        rows.append(list(chain.from_iterable(links)))
    return rows


class _RowsWriter:
    """Writes rows of different lengths into two files, as `_Rows` reads them, until the stack closes."""

    def __init__(self, stack: ExitStack, folder: Path, name: str, item_type: str) -> None:
        self._values = stack.enter_context(open(folder / f"{name}.values", "wb"))  # noqa: SIM115
        self._offsets = stack.enter_context(open(folder / f"{name}.offsets", "wb"))  # noqa: SIM115
        self._item_type = item_type
        self._end = 0
        self._offsets.write(np.zeros(1, dtype="<i8").tobytes())

    def write(self, rows: Sequence[Sequence[float]]) -> npt.NDArray[Any]:
        """Append the rows; returns their values in one array."""
        offsets = self._end + np.cumsum([len(row) for row in rows], dtype="<i8")
        values = np.fromiter(chain.from_iterable(rows), dtype=self._item_type)
        self._end += len(values)
        self._values.write(values.tobytes())
        self._offsets.write(offsets.tobytes())
        return values
