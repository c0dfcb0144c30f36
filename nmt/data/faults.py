"""Typical faults of parallel text, which do not keep a model from training but make it worse than it looks.

They are counted once, while the text is read as a stream with 8 bytes of memory a pair; from the counts, which the
cache keeps, come the same warnings at every start. Where they begin: of the training pairs of Multi30k, WMT news and
the synthetic corpus at most 0.4% repeat another one, at most 0.1% of the validation pairs are training pairs, source
and target are identical in at most 0.1%, at most 0.1% of the lines of raw text have an HTML entity, and one has a tab.

Text that Moses has tokenized has entities on purpose, in up to 40% of the lines, and translations get them, too. So
there is no warning where training or validation text of a language is tokenized, and none of it is raw. The space
before punctuation tells: of these files at least 92% of tokenized lines have one, and at most 0.1% of raw lines, of
which at least 95% end in punctuation without a space, as do at most 1.3% of tokenized ones. French has a space before
"?" and "!" in raw text, too, so that these tell nothing behind one. Entities alone tell nothing, and a list of terms
without punctuation is neither. Where only one of the two is tokenized, the model is validated on other text than it
learns from.

Sides that are swapped are told by the words of the first 1,000 pairs, in languages with spaces between words: between
any two parts of these corpora, test sets included, the shares of the words of a side that are among those of the same
side there add up to 0.18 or more over both sides, to five times as much as with the sides exchanged.

It knows lines and files; it knows no subwords, no configuration and no cache.
"""

import re
from array import array
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.data.corpus import old_line_ends, returns_inside
from nmt.errors import counted

REPEATED = 0.2  # share of the training pairs; a corpus that is named twice has half
KNOWN = 0.01  # of the validation pairs
IDENTICAL = 0.2  # of the pairs of two files
ESCAPED = 0.01  # of the lines of a file
TABBED = 0.5  # likewise
LEAST_ALIKE = 0.1  # share of words, added up over both sides
FEWEST_WORDS = 20  # different ones of a side, to tell anything
LOOKED_AT = 1000  # pairs of a corpus whose words are compared with those of another
SPACED = 0.2  # of the lines of a file, with or without the spaces of tokenized text
_ENTITY = re.compile(r"&(?:quot|apos|amp|lt|gt|nbsp|#\d+|#[xX][0-9a-fA-F]+);")
_ENDS = frozenset(".?!。？！।؟")
_BEHIND = " \"'”’»)"  # what may stand behind them
_FRENCH = frozenset("?!")
_UNESCAPE = (  # joined by single spaces, for an entity may stand for a line end
    "python3 -X utf8 -c \"import html; [print(' '.join(html.unescape(line).split())) "
    "for line in open(0, newline='\\n')]\" < FILE > NEW"
)
Paths = tuple[Path, Path]  # source, target
Words = tuple[set[str], set[str]]  # of the source, of the target


class Side(NamedTuple):
    """What was counted in the lines of a file."""

    escaped: int = 0  # with an HTML entity
    first_escaped: int = 0  # the number of the first of them; 0: there is none
    tokenized: int = 0  # with a space before punctuation
    raw: int = 0  # with none, and with punctuation at the end
    returns: int = 0  # carriage returns inside of lines
    tabbed: int = 0  # with a tab

    def is_tokenized(self, lines: int) -> bool:
        """Whether the file of so many lines is."""
        return self.tokenized > self.raw and _is_share(self.tokenized, SPACED, lines)

    def is_raw(self, lines: int) -> bool:
        """Whether the file of so many lines has punctuation, but is not tokenized."""
        return self.raw >= self.tokenized and _is_share(self.raw, SPACED, lines)


class Corpus(NamedTuple):
    """What was counted in a pair of files."""

    lines: int
    pairs: int  # with text on both sides
    identical: int  # of these, with the same text on both
    swapped: int  # 1: its source looks like the target of the first corpus, and its target like that one's source
    source: Side
    target: Side


NUMBERS = 4 + 2 * len(Side._fields)  # of a corpus


class Counts(NamedTuple):
    """What was counted in all corpora of a training: those to train on, the validation corpus, and watched ones."""

    repeated: int  # training pairs but the first of those that are the same
    known: int  # validation pairs that are training pairs
    corpora: Sequence[Corpus]

    def numbers(self) -> list[int]:
        """All counts in a flat list, for a file."""
        corpora = ((*corpus[:4], *corpus.source, *corpus.target) for corpus in self.corpora)
        return [self.repeated, self.known, *chain.from_iterable(corpora)]

    @classmethod
    def of_numbers(cls, numbers: Sequence[int]) -> "Counts":
        """The counts of these `numbers`, two of all corpora and then NUMBERS of each."""
        repeated, known, *others = numbers
        corpora = []
        for start in range(0, len(others), NUMBERS):
            lines, pairs, identical, swapped, *sides = others[start : start + NUMBERS]
            half = len(Side._fields)
            corpora.append(Corpus(lines, pairs, identical, swapped, Side(*sides[:half]), Side(*sides[half:])))
        return cls(repeated, known, corpora)


def count_faults(corpora: Iterable[Iterable[tuple[str, str]]], *, train: int) -> Counts:
    """Read every pair of all corpora, of which the first `train` are trained on and the next one validates.

    Pairs with a blank side count neither as repeated nor as known nor as identical. Pairs are the same if their hashes
    of 64 bits are: among 100 million, two others may be by a chance of 1 to 4,000.
    """
    counts: list[Corpus] = []
    first: Words | None = None
    hashes = [array("q") for _ in range(3)]  # of the pairs to train on, to validate with, and to watch
    for number, pairs in enumerate(corpora):
        counted_now, words = _counted(pairs, hashes[(number >= train) + (number > train)])
        first = first or words
        counts.append(counted_now._replace(swapped=int(_are_swapped(words, first))))
    trained, validating, _ = (np.frombuffer(values, dtype=np.int64) for values in hashes)
    trained.sort()
    repeated = int(np.count_nonzero(trained[1:] == trained[:-1]))
    return Counts(repeated, _known(validating, trained), counts)


def _are_swapped(words: "Words", others: "Words") -> bool:
    """Whether the two sides look like the other ones of another corpus, by their words, and clearly."""
    if min(map(len, (*words, *others))) < FEWEST_WORDS:
        return False
    straight = _share_of(words[0], others[0]) + _share_of(words[1], others[1])
    crossed = _share_of(words[0], others[1]) + _share_of(words[1], others[0])
    return crossed > max(2 * straight, LEAST_ALIKE)


def _share_of(words: set[str], others: set[str]) -> float:
    return len(words & others) / max(len(words), 1)


def _known(validating: npt.NDArray[np.int64], trained: npt.NDArray[np.int64]) -> int:
    """How many of the hashes are among the sorted ones of training pairs."""
    if not len(trained):
        return 0
    places = np.minimum(np.searchsorted(trained, validating), len(trained) - 1)
    return int(np.count_nonzero(trained[places] == validating))


class _Counting:
    """The counts of one file, while its lines come."""

    def __init__(self) -> None:
        self.escaped = self.first_escaped = self.tokenized = self.raw = self.returns = self.tabbed = 0

    def read(self, number: int, line: str) -> None:
        if "&" in line and _ENTITY.search(line):
            self.escaped += 1
            self.first_escaped = self.first_escaped or number
        text = line.rstrip(_BEHIND)
        end = text[-1:]
        is_apart = text[-2:-1] == " "
        if " ." in line or " , " in line or (is_apart and end in _ENDS and end not in _FRENCH):
            self.tokenized += 1
        elif end in _ENDS and not is_apart:
            self.raw += 1
        self.returns += returns_inside(line)
        self.tabbed += "\t" in line

    def side(self) -> Side:
        return Side(self.escaped, self.first_escaped, self.tokenized, self.raw, self.returns, self.tabbed)


def _counted(pairs: Iterable[tuple[str, str]], hashes: "array[int]") -> tuple[Corpus, Words]:
    """Count the pairs of a corpus, and append the hashes of those with text on both sides; with words of both."""
    number = identical = 0
    before = len(hashes)
    words: Words = (set(), set())
    sides = _Counting(), _Counting()
    read_source, read_target = sides[0].read, sides[1].read
    for number, pair in enumerate(pairs, start=1):
        source, target = pair
        read_source(number, source)
        read_target(number, target)
        if source.strip() and target.strip():
            hashes.append(hash(pair))
            identical += source == target
            if number <= LOOKED_AT:
                words[0].update(source.lower().split())
                words[1].update(target.lower().split())
    return Corpus(number, len(hashes) - before, identical, 0, sides[0].side(), sides[1].side()), words


def fault_warnings(counts: Counts, paths: Sequence[Paths], *, train: int) -> list[str]:
    """Complete messages about the faults of corpora with these `paths`, in the order of `count_faults`.

    A file with the same fault in several corpora is named once.
    """
    corpora = counts.corpora
    sides = [[corpus.source for corpus in corpora], [corpus.target for corpus in corpora]]
    warnings: list[str | None] = []
    for side, files in zip(sides, zip(*paths, strict=True), strict=True):
        lines = [corpus.lines for corpus in corpora]
        ends = zip(files, side, lines, strict=True)
        warnings += [old_line_ends(str(path), count.returns, lines=total) for path, count, total in ends]
        warnings += _escaped(files, side, lines, train=train)
        warnings += _tabbed(files, side, lines)
    warnings += [_swapped(*files, *paths[0]) for files, corpus in zip(paths, corpora, strict=True) if corpus.swapped]
    warnings += [_identical(*files, corpus) for files, corpus in zip(paths, corpora, strict=True)]
    trained, validating = sum(corpus.pairs for corpus in corpora[:train]), corpora[train].pairs
    if _is_share(counts.repeated, REPEATED, trained):
        warnings.append(
            f"data.train: {_of(counts.repeated, trained, 'pair')} repeat another one; give each pair once, and a "
            "weight to a corpus that is to count for more"
        )
    if _is_share(counts.known, KNOWN, validating):
        warnings.append(
            f"data.valid: {_of(counts.known, validating, 'pair')} are training pairs, too, so that validation does not "
            "measure what the model makes of other text; take them out of one of the two"
        )
    return [warning for warning in dict.fromkeys(warnings) if warning is not None]


def _swapped(source: Path, target: Path, first_source: Path, first_target: Path) -> str:
    """The warning about a corpus whose sides are those of the first one the other way round."""
    return (
        f"{source} and {target} look swapped: the words of the source are rather those of {first_target}, and the "
        f"words of the target those of {first_source}; one of the two corpora has its sides the wrong way round, "
        "unless that is meant"
    )


def _identical(source: Path, target: Path, corpus: Corpus) -> str | None:
    """The warning about a corpus whose sides are often the same."""
    if not _is_share(corpus.identical, IDENTICAL, corpus.pairs):
        return None
    return (
        f"{source} and {target}: {_of(corpus.identical, corpus.pairs, 'pair')} have the same text on both sides, which "
        "was not translated, or is of the same language twice; a model learns from them to copy"
    )


def _tabbed(paths: Sequence[Path], sides: Sequence[Side], lines: Sequence[int]) -> list[str]:
    """Warn of tables, of which a column is the text."""
    return [
        f"{path}: {_of(side.tabbed, count, 'line')} have a tab, as in a table with both languages, and what a tab "
        "separates is one text to a model; give one of the columns, as cut -f1 FILE > NEW writes it"
        for path, side, count in zip(paths, sides, lines, strict=True)
        if _is_share(side.tabbed, TABBED, count)
    ]


def _escaped(paths: Sequence[Path], sides: Sequence[Side], lines: Sequence[int], *, train: int) -> list[str]:
    """Warn of HTML entities in the files of a language, unless they, and what validates, have them from Moses."""
    files = list(zip(sides, lines, strict=True))[: train + 1]
    on_purpose = any(side.is_tokenized(count) for side, count in files) and not any(
        side.is_raw(count) for side, count in files
    )
    return [
        f"{path}: {_of(side.escaped, count, 'line')} have HTML entities such as &quot; (the first is line "
        f"{side.first_escaped:,}), which belong only in text that Moses has tokenized, in training and validation "
        f"alike; this puts characters in their place: {_UNESCAPE}"
        for path, side, count in zip(paths, sides, lines, strict=True)
        if _is_share(side.escaped, ESCAPED, count) and not (on_purpose and not side.is_raw(count))
    ]


def _is_share(count: int, share: float, total: int) -> bool:
    """Whether there are any, and so many."""
    return count > 0 and count >= share * total


def _of(count: int, total: int, noun: str) -> str:
    """How many there are of all: "1,200 of 3,000 pairs (40.0%)"."""
    return f"{count:,} of {counted(total, noun)} ({count / max(total, 1):.1%})"
