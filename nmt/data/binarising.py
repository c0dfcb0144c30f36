"""Writing the token ids of a parallel corpus, filtered, into the files that `binarised.PairedIds` opens.

The corpus is read once, as a stream. Its folder is built under a temporary name and renamed at the end, so that it
exists completely or not at all, whenever the process is killed. It knows pairs of lines, subword models and filters; it
knows no configuration and no cache keys.
"""

import json
import os
import re
import shutil
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nmt.data.alignments import piece_links
from nmt.data.binarised import ALIGNMENT, FORMAT, META, SIDES, CorpusReport, Filters, PairedIds
from nmt.data.sealed import Seal, new_checksum, write_sealed
from nmt.data.subwords import Vocabularies
from nmt.data.words import words_of_parts
from nmt.errors import UserError
from nmt.files import ABANDONED, UNFINISHED, temporary_name
from nmt.pharaoh import links_of_line
from nmt.symbols import UNKNOWN

_CHUNK = 2048  # pairs that each core encodes at once
_UNFINISHED = re.compile(f".+{UNFINISHED.pattern}")  # whatever name the folder was going to have
_CHUNK_CHARACTERS = 1 << 22  # or about this many characters, if that is fewer pairs


def binarise(
    pairs: Iterable[tuple[str, str]],
    folder: Path,
    *,
    vocabularies: Vocabularies,
    filters: Filters | None,
    with_text: bool = False,
    alignments: Iterable[str] | None = None,
    corpora: Sequence[int] | None = None,
    blank: Sequence[list[int]] = (),
) -> PairedIds:
    """Encode pairs of lines into `folder` and open it; the pairs are read once and never all in memory.

    `corpora` says how many pairs come from each of several corpora, one after the other; None: all are from one.

    `filters` None keeps every pair, even empty ones; sources with the ids of one of `blank`, such as those of a tag
    alone, count as empty. `with_text` also keeps the lines, for sampling segmentations.
    `alignments` are lines in Pharaoh format, one a pair, whose links are between words that the pair has.

    Raises:
        UserError: no pair is left; the message says how many each filter dropped.
    """
    id_type = "<u2" if max(vocabularies.source.size, vocabularies.target.size) <= 1 << 16 else "<u4"
    counts: Counter[str] = Counter()
    with _built_completely(folder) as partial:
        with ExitStack() as stack:
            id_writers = [_RowsWriter(stack, partial, f"{side}.ids", f"{side}.offsets", id_type) for side in SIDES]
            sides = SIDES if with_text else ()
            text_writers = [_RowsWriter(stack, partial, f"{side}.text", f"{side}.text_offsets", "u1") for side in sides]
            aligning = None if alignments is None else _Aligning(stack, partial, vocabularies, alignments)
            ends = np.cumsum(corpora or [0])[:-1]  # of all corpora but the last
            sizes = np.zeros(len(ends) + 1, dtype=np.int64)
            for texts, ids in _encoded(pairs, vocabularies):
                kept, chunk_counts = _write_chunk(texts, ids, id_writers, text_writers, filters, blank)
                np.add.at(sizes, np.searchsorted(ends, counts["read"] + kept, side="right"), 1)
                counts.update(chunk_counts)
                if aligning is not None:
                    aligning.write(texts, kept)
            aligned = None if aligning is None else aligning.end()
        report = CorpusReport(**counts, **(filters._asdict() if filters else {}), aligned=aligned)
        writers = [*id_writers, *text_writers, *([] if aligning is None else [aligning.writer])]
        if report.kept == 0:
            raise UserError(f"no training pair is left of {report.read:,}: {report.left_out}")
        meta = {
            "format": FORMAT,
            "id_type": id_type,
            "pieces": [subwords.size for subwords in vocabularies],
            "report": report._asdict(),
            "sizes": sizes.tolist(),
            "files": {file.name: file.seal for rows in writers for file in rows.files},
        }
        write_sealed(partial / META, json.dumps(meta).encode())
        corpus = PairedIds(partial)  # checked before other processes, which discard a damaged one, see the folder
    corpus.folder = folder
    return corpus


def _encoded(
    pairs: Iterable[tuple[str, str]], vocabularies: Vocabularies
) -> Iterator[tuple[list[tuple[str, ...]], list[list[list[int]]]]]:
    """Yield chunk after chunk of pairs, in order: for each side its texts and their ids.

    Sentencepiece computes outside Python's lock: while one chunk is written, all cores encode the next ones.
    """
    cores, rest = os.cpu_count() or 1, iter(pairs)
    with ThreadPoolExecutor(cores) as pool:
        ahead: deque[tuple[list[tuple[str, ...]], list[Future[list[list[int]]]]]] = deque()
        while True:
            while len(ahead) <= cores and (chunk := _chunk(rest)):
                texts = list(zip(*chunk, strict=True))
                sides = zip(vocabularies, texts, strict=True)
                ahead.append((texts, [pool.submit(subwords.encode_batch, side, threads=1) for subwords, side in sides]))
            if not ahead:
                return
            texts, futures = ahead.popleft()
            yield texts, [future.result() for future in futures]


def _chunk(pairs: Iterator[tuple[str, str]]) -> list[tuple[str, str]]:
    """The next pairs to encode at once; only a few if their lines are huge."""
    chunk, characters = [], 0
    for pair in islice(pairs, _CHUNK):
        chunk.append(pair)
        characters += len(pair[0]) + len(pair[1])
        if characters >= _CHUNK_CHARACTERS:
            break
    return chunk


def _write_chunk(
    texts: Sequence[tuple[str, ...]],
    ids: Sequence[list[list[int]]],
    id_writers: Sequence["_RowsWriter"],
    text_writers: Sequence["_RowsWriter"],
    filters: Filters | None,
    blank: Sequence[list[int]],
) -> tuple[npt.NDArray[np.int64], Counter[str]]:
    """Filter and write a chunk of pairs; without `text_writers` no text. Sources in `blank` count as empty.

    Returns the rows that were kept, and the counts of the chunk, as in `CorpusReport`.
    """
    source_lengths, target_lengths = (np.array([len(row) for row in side]) for side in ids)
    if blank:
        source_lengths[[row for row, source in enumerate(ids[0]) if source in blank]] = 0
    empty, overlong, unbalanced = _left_out(source_lengths, target_lengths, filters)
    kept = np.flatnonzero(~(empty | overlong | unbalanced))
    counts = Counter(
        read=len(texts[0]),
        kept=len(kept),
        empty=int(empty.sum()),
        overlong=int(overlong.sum()),
        unbalanced=int(unbalanced.sum()),
    )
    for side, rows, writer in zip(SIDES, ids, id_writers, strict=True):
        pieces = writer.write([rows[row] for row in kept])
        counts.update({f"{side}_pieces": len(pieces), f"{side}_unknown": int((pieces == UNKNOWN).sum())})
    if text_writers:
        for lines, writer in zip(texts, text_writers, strict=True):
            writer.write([lines[row].encode() for row in kept])
    return kept, counts


class _Aligning:
    """Writes the links between pieces of the pairs that are kept, chunk by chunk, in step with their ids."""

    def __init__(self, stack: ExitStack, folder: Path, vocabularies: Vocabularies, alignments: Iterable[str]) -> None:
        self.writer = _RowsWriter(stack, folder, f"{ALIGNMENT}.links", f"{ALIGNMENT}.offsets", "<f4")
        self._aligned = 0
        self._vocabularies, self._lines = vocabularies, iter(alignments)

    def write(self, texts: Sequence[tuple[str, ...]], kept: npt.NDArray[np.int64]) -> None:
        lines = list(islice(self._lines, len(texts[0])))
        rows = []
        for row in kept:
            sides = zip(texts, self._vocabularies, strict=True)
            # Words of the text as it is, whether or not it was cut before.
            words = (words_of_parts(side[row], subwords.spans(side[row])) for side, subwords in sides)
            links = list(piece_links(links_of_line(lines[row], place="an alignment"), *words))
            self._aligned += len({target for target, *_ in links})
            rows.append(list(chain.from_iterable(links)))
        self.writer.write(rows)

    def end(self) -> int:
        """The number of target pieces with a link, after all lines: only at its end a file turns out to be changed."""
        left = next(self._lines, None)
        assert left is None
        return self._aligned


def _left_out(
    source_lengths: npt.NDArray[np.int64], target_lengths: npt.NDArray[np.int64], filters: Filters | None
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which pairs are empty, overlong and unbalanced: three masks (pairs,), of which at most one has a given pair."""
    none = np.zeros(len(source_lengths), dtype=np.bool_)
    if filters is None:
        return none, none, none
    shorter, longer = np.minimum(source_lengths, target_lengths), np.maximum(source_lengths, target_lengths)
    empty = shorter == 0
    overlong = unbalanced = none
    if filters.max_length is not None:
        overlong = ~empty & (longer > filters.max_length)
    if filters.max_length_ratio is not None:
        unbalanced = ~empty & ~overlong & (longer > filters.max_length_ratio * shorter)
    return empty, overlong, unbalanced


class _SealedFile:
    """A file being written and sealed; it is on disk once the stack closes."""

    def __init__(self, stack: ExitStack, path: Path) -> None:
        self._file = stack.enter_context(open(path, "wb"))  # noqa: SIM115 - the stack closes it
        stack.callback(self._sync)  # before it is closed
        self.name = path.name
        self._size, self._checksum = 0, new_checksum()

    def write(self, content: bytes) -> None:
        self._file.write(content)
        self._size += len(content)
        self._checksum.update(content)

    @property
    def seal(self) -> Seal:
        return Seal(self._size, self._checksum.hexdigest())

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())


class _RowsWriter:
    """Writes rows of different lengths into two files, as `PairedIds` reads them."""

    def __init__(self, stack: ExitStack, folder: Path, values: str, offsets: str, item_type: str) -> None:
        self.files = (_SealedFile(stack, folder / values), _SealedFile(stack, folder / offsets))
        self._item_type = item_type
        self._end = 0
        self.files[1].write(np.zeros(1, dtype="<i8").tobytes())

    def write(self, rows: Sequence[Sequence[float]]) -> npt.NDArray[Any]:
        """Append the rows; returns their values in one array."""
        offsets = self._end + np.cumsum([len(row) for row in rows], dtype="<i8")
        values = np.fromiter(chain.from_iterable(rows), dtype=self._item_type)
        self._end += len(values)
        self.files[0].write(values.tobytes())
        self.files[1].write(offsets.tobytes())
        return values


@contextmanager
def _built_completely(folder: Path) -> Iterator[Path]:
    """Yield an empty folder to fill, which becomes `folder` once the block ends without an exception.

    Several processes may build the same folder: the first to finish wins, and the others' would be equal anyway.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(folder.parent)
    partial = temporary_name(folder)
    partial.mkdir()
    try:
        yield partial
        try:
            partial.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
            shutil.rmtree(partial)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _remove_abandoned(parent: Path) -> None:
    """Remove what killed processes left: unfinished folders to which nothing was written for a day."""
    for partial in parent.iterdir():
        if not _UNFINISHED.fullmatch(partial.name) or partial.is_symlink():
            continue
        try:
            newest = max(path.stat().st_mtime for path in (partial, *partial.iterdir()))
        except OSError:
            continue  # its process has just finished it
        if newest < time.time() - ABANDONED:
            shutil.rmtree(partial, ignore_errors=True)
