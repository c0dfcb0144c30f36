"""The files of corpora, hashed, and checked line by line, which is remembered in the cache for their bytes.

Whoever reads them again is given just these bytes, or a UserError. It knows lines and tags; it knows no subwords.
"""

import json
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any, NamedTuple

from nmt.config.schema import Config, ParallelFiles
from nmt.data.alignments import check_alignments
from nmt.data.cache import Log, cache_key, reused
from nmt.data.corpus import check_corpora, digests, read_lines, read_pairs
from nmt.data.faults import NUMBERS, Counts, count_faults
from nmt.data.sealed import read_sealed, write_sealed
from nmt.errors import Checking, UserError, caught, checked, counted
from nmt.pharaoh import links_of_line, pharaoh

_FAULTS = 2  # what is counted of them; part of the cache keys
_CHECKS = 1  # which lines and links are refused; part of the cache keys


class CheckedCorpus(NamedTuple):
    """One pair of checked files: paths and hashes, each in the order source, target; perhaps with alignments."""

    paths: tuple[Path, Path]
    digests: tuple[str, str]
    lines: int
    alignments: tuple[Path, str] | None  # path and hash
    tag: str | None = None  # what is put in front of every source that is not blank

    @property
    def hashes(self) -> tuple[str, ...]:
        """Those of all files."""
        return self.digests if self.alignments is None else (*self.digests, self.alignments[1])

    def alignment_lines(self) -> Iterator[str]:
        """One line a pair, empty where there are no alignments."""
        if self.alignments is None:
            return repeat("", self.lines)
        path, digest = self.alignments
        lines = read_lines(path, expected=digest)
        return lines if self.tag is None else map(_behind_tag, lines)

    def rows(self, sides: Sequence[int]) -> Iterator[tuple[str, ...]]:
        """The lines of both sides, or of one of them (0 or 1), as they are in the files."""
        if len(sides) == 2:
            return read_pairs(*self.paths, expected=self.digests)
        return ((line,) for line in read_lines(self.paths[sides[0]], expected=self.digests[sides[0]]))

    def pairs(self) -> Iterator[tuple[str, str]]:
        """The pairs of lines to encode, with the tag."""
        pairs = read_pairs(*self.paths, expected=self.digests)
        if self.tag is None:
            return pairs
        return ((f"{self.tag} {source}" if source.strip() else source, target) for source, target in pairs)


def _behind_tag(line: str) -> str:
    """The links of a line to the words of a source that has got a tag in front."""
    return pharaoh((source + 1, target) for source, target in links_of_line(line, place="an alignment"))


def checked_corpora(files: Sequence[ParallelFiles], cache: Path, log: Log) -> list[CheckedCorpus]:
    """Hash all files, and check every line of them unless that has been done for these bytes before."""
    paths = [(pair.source, pair.target, *([pair.alignments] if pair.alignments else [])) for pair in files]
    try:
        hashes = digests(chain.from_iterable(paths))
    except UserError as error:
        checked(_checking(files, None, error.messages))  # reports every problem, not only unreadable files
        raise
    made_from = [[hashes[path] for path in group] for group in paths]
    entry = cache / "checked" / f"{cache_key([_CHECKS, made_from])}.json"
    expected = partial(_numbers, count=len(files), what=f"the line counts of {len(files)} corpora")
    counts = reused(entry, expected, log)
    if counts is None:
        counts = checked(_checking(files, hashes))
        entry.parent.mkdir(parents=True, exist_ok=True)
        write_sealed(entry, json.dumps(counts).encode())
    return [
        CheckedCorpus(
            (pair.source, pair.target),
            (hashes[pair.source], hashes[pair.target]),
            count,
            (pair.alignments, hashes[pair.alignments]) if pair.alignments else None,
        )
        for pair, count in zip(files, counts, strict=True)
    ]


def _checking(
    files: Sequence[ParallelFiles], hashes: dict[Path, str] | None, problems: Sequence[str] = ()
) -> Checking[list[int]]:
    """Read every line, after the `problems` so far; returns the number of lines of each corpus."""
    yield from problems
    pairs = [(pair.source, pair.target) for pair in files]
    counts: list[int] = yield from caught(lambda: check_corpora(pairs, expected=hashes), [])
    for pair in files:
        if pair.alignments is not None:
            texts = (pair.source, pair.target)
            check = partial(check_alignments, texts, pair.alignments)
            if hashes is not None:
                expected = (hashes[pair.source], hashes[pair.target])
                check = partial(check, expected=expected, expected_alignments=hashes[pair.alignments])
            yield from caught(check, None)
    return counts


def _numbers(path: Path, *, count: int, what: str) -> list[int]:
    """So many numbers, as counted before; raises ValueError when the file is damaged."""
    try:
        numbers = json.loads(read_sealed(path))
    except RecursionError:
        numbers = None
    if not (isinstance(numbers, list) and len(numbers) == count and all(map(_is_count, numbers))):
        raise ValueError(f"expected {what}")
    return numbers


def _is_count(number: Any) -> bool:
    return type(number) is int and 0 <= number < 1 << 63


def counted_faults(corpora: Sequence[CheckedCorpus], train: int, cache: Path, log: Log) -> Counts:
    """What was counted of the faults of all corpora, of which the first `train` are trained on."""
    entry = cache / "faults" / f"{cache_key([_FAULTS, train, [corpus.digests for corpus in corpora]])}.json"
    expected = partial(_numbers, count=2 + NUMBERS * len(corpora), what=f"counts of faults in {len(corpora)} corpora")
    numbers = reused(entry, expected, log)
    if numbers is not None:
        return Counts.of_numbers(numbers)
    counts = count_faults((read_pairs(*corpus.paths, expected=corpus.digests) for corpus in corpora), train=train)
    entry.parent.mkdir(exist_ok=True)
    write_sealed(entry, json.dumps(counts.numbers()).encode())
    return counts


def refuse_blank(config: Config, counts: Counts) -> None:
    """Raise UserError for corpora that validate with nothing; a training corpus without a pair is refused later."""
    keys = ["data.valid", *(f"data.watch.{index}" for index in range(len(config.data.watch)))]
    files = [config.data.valid, *config.data.watch]
    problems = [
        f"{key}: {pair.source} and {pair.target} have no pair with text on both sides, of "
        f"{counted(corpus.lines, 'pair')}, so that there is nothing to measure; give sentences with their translations"
        for key, pair, corpus in zip(keys, files, counts.corpora[len(config.data.train) :], strict=True)
        if corpus.pairs == 0
    ]
    if problems:
        raise UserError(*problems)
