"""Typical faults of parallel text, which do not keep a model from training but make it worse than it looks.

They are counted once, while the text is read as a stream with 8 bytes of memory a pair; from the counts, which the
cache keeps, come the same warnings at every start. Where they begin: of the training pairs of Multi30k, WMT news and
the synthetic corpus at most 0.4% repeat another one, at most 0.1% of the validation pairs are training pairs, source
and target are identical in at most 0.1%, at most 0.1% of the lines of raw text have an HTML entity, and one has a tab.

Text that Moses has tokenized has entities on purpose, in up to 48% of the lines, and translations get them, too. There
they are words of their own, or begin or end one as "&apos;" does; so only others are faults: of 32,000 tokenized lines
with entities (Multi30k, IWSLT 2014, WMT news) none has such a one, and of 489 raw lines with entities 37%.

Sides that are swapped are recognized by the words of the first 1,000 pairs, if words have spaces between them: between
any two parts of these corpora, test sets included, the shares of the words of a side that are among those of the same
side there add up to 0.18 or more over both sides, to five times as much as with the sides exchanged.

It knows lines and files; it knows no subwords and no cache. Files that are misaligned, too long, or not UTF-8 are
refused by `corpus.py`; how many pairs are empty or too long is in the report of `store.py`.
"""

import re
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.data.corpus import RETURNS, read_lines
from nmt.errors import counted

LEAST_ALIKE = 0.1  # share of words, added up over both sides
FEWEST_WORDS = 20  # different ones of a side, to judge by
LOOKED_AT = 1000  # pairs of a corpus whose words are compared with those of another; lines that may begin with a tag
_NAME = r"(?:quot|amp|lt|gt|nbsp|#\d+|#[xX][0-9a-fA-F]+);"
_ENTITY = re.compile(rf"\w&(?:{_NAME}|apos;\w)|&{_NAME}\w")
Paths = tuple[Path, Path]  # source, target
Words = tuple[set[str], set[str]]  # of the source, of the target


class Fault(NamedTuple):
    """A fault that lines or pairs may have."""

    share: float  # of all of them from which there is a warning
    noun: str  # what is counted
    message: str  # after "PLACE: 1,200 of 3,000 NOUNs (40.0%) "; {first} is the number of the first one


FAULTS = {
    "repeated": Fault(
        0.2, "pair", "repeat another one; give each pair once, and a weight to a corpus that is to count for more"
    ),
    "known": Fault(
        0.01,
        "pair",
        "are training pairs, too, so that it does not measure what the model makes of other text; take them out of one "
        "of the two",
    ),
    "identical": Fault(
        0.2,
        "pair",
        "have the same text on both sides (the first is line {first}), which was not translated, or is of the same "
        "language twice; a model learns from them to copy",
    ),
    "tabbed": Fault(
        0.5,
        "line",
        "have a tab (the first is line {first}), as in a table with both languages, and what a tab separates is one "
        "text to a model; give one of the columns, as cut -f1 FILE > NEW writes it",
    ),
    "returned": Fault(
        0.5,
        "line",
        f"have a carriage return within (the first is line {{first}}), where no line ends here; {RETURNS}",
    ),
    "escaped": Fault(
        0.01,
        "line",
        "have HTML entities such as &quot; in words (the first is line {first}), which belong only in text that Moses "
        "has tokenized, as words of their own; this puts characters in their place: "
        # joined by single spaces, for an entity may stand for a line end
        "python3 -X utf8 -c \"import html; [print(' '.join(html.unescape(line).split())) "
        "for line in open(0, newline='\\n')]\" < FILE > NEW",
    ),
    "tagged": Fault(
        0.01,
        "line",
        "begin with the tag of the corpus (the first is line {first}), which is put in front of every line; take it "
        "out of the text, or leave out the key tag",
    ),
}


@dataclass
class FileCounts:
    """What was counted in the lines of a file; `first_` is the number of the first such line, 0 if there is none."""

    escaped: int = 0  # with an HTML entity that is a part of a word
    first_escaped: int = 0
    tabbed: int = 0
    first_tabbed: int = 0
    returned: int = 0  # with a carriage return before its end
    first_returned: int = 0

    def add(self, number: int, line: str) -> None:
        """Count a line."""
        if "&" in line and _ENTITY.search(line):
            self.escaped += 1
            self.first_escaped = self.first_escaped or number
        if "\t" in line:
            self.tabbed += 1
            self.first_tabbed = self.first_tabbed or number
        if "\r" in line:
            self.returned += 1
            self.first_returned = self.first_returned or number


@dataclass
class CorpusCounts:
    """What was counted in a pair of files."""

    source: FileCounts
    target: FileCounts
    lines: int = 0
    pairs: int = 0  # with text on both sides
    identical: int = 0  # of these, with the same text on both
    first_identical: int = 0
    known: int = 0  # of a corpus that is not trained on: pairs that are training pairs
    is_swapped: bool = False  # its source looks like the target of the first corpus, and its target like the source


@dataclass
class Counts:
    """What was counted in all corpora of a training."""

    repeated: int  # training pairs but the first of those that are the same
    corpora: list[CorpusCounts]

    def facts(self) -> dict[str, Any]:
        """All counts, for JSON."""
        return asdict(self)

    @classmethod
    def of_facts(cls, facts: dict[str, Any]) -> "Counts":
        """The counts that `facts` returned."""
        corpora = []
        for corpus in facts["corpora"]:
            sides = {side: FileCounts(**corpus[side]) for side in ("source", "target")}
            corpora.append(CorpusCounts(**{**corpus, **sides}))
        return cls(facts["repeated"], corpora)


def count_faults(corpora: Iterable[Iterable[tuple[str, str]]], *, train: int) -> Counts:
    """Read every pair of all corpora, of which the first `train` are trained on.

    Pairs with a blank side count neither as repeated nor as known nor as identical. Pairs are the same if their hashes
    of 64 bits are: among 100 million, two others may be by a chance of 1 to 4,000.
    """
    counts: list[CorpusCounts] = []
    first: Words | None = None
    trained, others = array("q"), []  # hashes
    for number, pairs in enumerate(corpora):
        if number >= train:
            others.append(array("q"))
        corpus, words = _counted(pairs, trained if number < train else others[-1])
        first = first or words
        corpus.is_swapped = _are_swapped(words, first)
        counts.append(corpus)
    known = np.frombuffer(trained, dtype=np.int64)
    known.sort()
    for corpus, hashes in zip(counts[train:], others, strict=True):
        corpus.known = _number_among(np.frombuffer(hashes, dtype=np.int64), known)
    return Counts(int(np.count_nonzero(known[1:] == known[:-1])), counts)


def _counted(pairs: Iterable[tuple[str, str]], hashes: "array[int]") -> tuple[CorpusCounts, Words]:
    """Count the pairs of a corpus, and append the hashes of those with text on both sides; with words of both."""
    before = len(hashes)
    words: Words = (set(), set())
    counts = CorpusCounts(FileCounts(), FileCounts())
    add_source, add_target = counts.source.add, counts.target.add
    for number, pair in enumerate(pairs, start=1):
        source, target = pair
        add_source(number, source)
        add_target(number, target)
        counts.lines = number
        if source.strip() and target.strip():
            hashes.append(hash(pair))
            if source == target:
                counts.identical += 1
                counts.first_identical = counts.first_identical or number
            if number <= LOOKED_AT:
                words[0].update(source.lower().split())
                words[1].update(target.lower().split())
    counts.pairs = len(hashes) - before
    return counts, words


def _number_among(hashes: npt.NDArray[np.int64], known: npt.NDArray[np.int64]) -> int:
    """How many of the hashes are among the sorted `known` ones."""
    if not len(known):
        return 0
    places = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
    return int(np.count_nonzero(known[places] == hashes))


def _are_swapped(words: Words, others: Words) -> bool:
    """Whether the two sides look like the other ones of another corpus, by their words, and clearly."""
    if min(map(len, (*words, *others))) < FEWEST_WORDS:
        return False
    straight = _share_of(words[0], others[0]) + _share_of(words[1], others[1])
    crossed = _share_of(words[0], others[1]) + _share_of(words[1], others[0])
    return crossed > max(2 * straight, LEAST_ALIKE)


def _share_of(words: set[str], others: set[str]) -> float:
    return len(words & others) / max(len(words), 1)


def fault_warnings(counts: Counts, paths: Sequence[Paths], keys: Sequence[str], *, train: int) -> list[str]:
    """Complete messages about the faults of corpora with these `paths` and `keys`, in the order of `count_faults`.

    A file with the same fault in several corpora is named once.
    """
    warnings: list[str | None] = []
    for number, side in enumerate(("source", "target")):
        for files, corpus in zip(paths, counts.corpora, strict=True):
            path, lines, file = files[number], corpus.lines, getattr(corpus, side)
            for name in ("tabbed", "returned", "escaped"):
                count, first = getattr(file, name), getattr(file, f"first_{name}")
                warnings.append(_warning(path, name, count, lines, first))
    trained = sum(corpus.pairs for corpus in counts.corpora[:train])
    warnings.append(_warning("data.train", "repeated", counts.repeated, trained))
    for (source, target), key, corpus in zip(paths, keys, counts.corpora, strict=True):
        names = f"{source} and {target}"
        if corpus.is_swapped:
            warnings.append(
                f"{names} look swapped: the words of the source are rather those of {paths[0][1]}, and the words of "
                f"the target those of {paths[0][0]}; one of the two corpora has its sides the wrong way round, unless "
                "that is meant"
            )
        warnings.append(_warning(names, "identical", corpus.identical, corpus.pairs, corpus.first_identical))
        warnings.append(_warning(key, "known", corpus.known, corpus.pairs))
    return [warning for warning in dict.fromkeys(warnings) if warning is not None]


def tag_warning(source: Path, tag: str) -> str | None:
    """Warn about a tag that was written into the text, too, so that its lines have it twice."""
    lines = list(islice(read_lines(source), LOOKED_AT))
    tagged = [number for number, line in enumerate(lines, start=1) if line.split(maxsplit=1)[:1] == [tag]]
    return _warning(source, "tagged", len(tagged), len(lines), tagged[0] if tagged else 0)


def _warning(place: Path | str, name: str, count: int, total: int, first: int = 0) -> str | None:
    """The message about a fault of `count` lines or pairs of all, the first of them `first`; None if they are few."""
    fault = FAULTS[name]
    if count == 0 or count < fault.share * total:
        return None
    message = fault.message.format(first=f"{first:,}")
    return f"{place}: {count:,} of {counted(total, fault.noun)} ({count / total:.1%}) {message}"
