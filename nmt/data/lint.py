"""Typical faults of parallel text, which do not keep a model from training but make it worse than it looks.

They are counted while the text is read as a stream with 8 bytes of memory a pair. Where warnings begin: of the training
pairs of Multi30k, WMT news and the synthetic corpus at most 0.4% repeat another one, at most 0.1% of the validation
pairs are training pairs, source and target are identical in at most 0.1%, at most 0.1% of the lines of raw text have an
HTML entity, and one has a tab.

Text that Moses has tokenized has entities on purpose, in up to 48% of the lines, and translations get them, too. There
they are words of their own, or begin or end one as "&apos;" does; so only others are faults: of 32,000 tokenized lines
with entities (Multi30k, IWSLT 2014, WMT news) none has such a one, and of 489 raw lines with entities 37%.

Sides that are swapped are recognized by the words of the first 1,000 pairs, if words have spaces between them: between
any two parts of these corpora, test sets included, the shares of the words of a side that are among those of the same
side there add up to 0.18 or more over both sides, to five times as much as with the sides exchanged.

It knows lines; it knows no subwords and no cache. Files that are misaligned, too long, or not UTF-8 are
refused by `corpus.py`; how many pairs are empty or too long is in the report of `store.py`.
"""

from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nmt.errors import counted, refuse
from nmt.protected import Carried, Learned
from nmt.text_form import TextForm, together

REPEATED, KNOWN, IDENTICAL = 0.2, 0.01, 0.2  # shares of the pairs from which there is a warning
LEAST_ALIKE = 0.1  # share of words, added up over both sides
FEWEST_WORDS = 20  # different ones of a side, to judge by
LOOKED_AT = 1000  # pairs of a corpus whose words are compared with those of another
Words = tuple[set[str], set[str]]  # of the source, of the target
Forms = tuple[TextForm, TextForm]  # likewise


class Read(NamedTuple):
    """A corpus that is read: its key in the configuration, its files, and its pairs."""

    key: str
    paths: tuple[Path, Path]  # source, target
    pairs: Iterable[tuple[str, str]]

    @property
    def name(self) -> str:
        """Both files."""
        return f"{self.paths[0]} and {self.paths[1]}"


def checked(corpora: Iterable[Read], *, train: int) -> tuple[list[str], list[Forms], Learned]:
    """Read every pair of all corpora, of which the first `train` are trained on, and return a message for each fault,
    the forms of both sides of each corpus, and what a model learns of what is no words (see `nmt.protected`).

    Pairs with a blank side count neither as repeated nor as known nor as identical. Pairs are the same if their hashes
    of 64 bits are: among 100 million, two others may be by a chance of 1 to 4,000.

    Raises:
        UserError: a corpus that is not trained on has no pair with text on both sides.
    """
    warnings: list[str] = []
    problems: list[str] = []
    every: list[Forms] = []
    carried = Carried()
    trained = array("q")  # hashes
    known = np.array([], dtype=np.int64)  # the same, in order, once all training pairs are read
    first: tuple[Read, Words] | None = None
    for number, corpus in enumerate(corpora):
        if number == train:
            known = np.frombuffer(trained, dtype=np.int64)
            known.sort()
            if share := _many(int(np.count_nonzero(known[1:] == known[:-1])), len(known), REPEATED):
                cure = "give each pair once, and a weight to a corpus that is to count for more"
                warnings.append(f"data.train: {share} repeat another one; {cure}")
        hashes = trained if number < train else array("q")
        before = len(hashes)
        forms, words, identical = _read(corpus, hashes, carried if number < train else None)
        pairs = len(hashes) - before
        first = first or (corpus, words)
        every.append(forms)
        warnings += _faults(corpus, forms, identical, pairs)
        if are_swapped(words, first[1]):
            warnings.append(_swapped(corpus, first[0]))
        if number < train:
            continue
        mine = np.frombuffer(hashes, dtype=np.int64)
        both = known.searchsorted(mine, side="right") > known.searchsorted(mine, side="left")
        if share := _many(int(both.sum()), pairs, KNOWN):
            cure = "so that it does not measure what the model makes of other text; take them out of one of the two"
            warnings.append(f"{corpus.key}: {share} are training pairs, too, {cure}")
        if pairs == 0:
            read = counted(forms[0].counts["lines"], "pair")
            none = f"have no pair with text on both sides, of {read}, so that there is nothing to measure"
            problems.append(f"{corpus.key}: {corpus.name} {none}; give sentences with their translations")
    refuse(problems)
    of_words = together([forms[1] for forms in every[:train]], name="the targets").is_word_list
    return [*dict.fromkeys(warnings)], every, carried.learned(of_words=of_words)  # a file may be in several corpora


def _faults(corpus: Read, forms: Forms, identical: Sequence[int], pairs: int) -> list[str]:
    """What is odd in a corpus by itself, of which so many pairs have text on both sides."""
    warnings = [*forms[0].oddities(), *forms[1].oddities()]
    share = _many(len(identical), pairs, IDENTICAL)
    if share and not forms[0].is_word_list:  # in which many stay the same, such as names or modern spellings
        warnings.append(
            f"{corpus.name}: {share} have the same text on both sides (the first is line {identical[0]:,}), which was "
            "not translated, or is of the same language twice; a model learns from them to copy"
        )
    return warnings


def _swapped(corpus: Read, other: Read) -> str:
    source, target = other.paths
    return (
        f"{corpus.name} look swapped: the words of the source are rather those of {target}, and the words of the "
        f"target those of {source}; one of the two corpora has its sides the wrong way round, unless that is meant"
    )


def _read(corpus: Read, hashes: "array[int]", carried: Carried | None) -> tuple[Forms, Words, "array[int]"]:
    """The forms of both sides of a corpus, words of both, and the numbers of the pairs that are twice the same text.

    The hashes of the pairs with text on both sides are appended to `hashes`, and these pairs added to `carried`.
    """
    source_path, target_path = corpus.paths
    forms, words = (TextForm(str(source_path)), TextForm(str(target_path))), (set[str](), set[str]())
    identical = array("q")
    for number, pair in enumerate(corpus.pairs, start=1):
        source, target = pair
        forms[0].add(source)
        forms[1].add(target)
        if source.strip() and target.strip():
            hashes.append(hash(pair))
            if carried is not None:
                carried.add(*pair)
            if source == target:
                identical.append(number)
            if number <= LOOKED_AT:
                words[0].update(source.lower().split())
                words[1].update(target.lower().split())
    return forms, words, identical


def are_swapped(words: Words, others: Words) -> bool:
    """Whether the two sides look like the other ones of another corpus, by their words, and clearly."""
    if min(map(len, (*words, *others))) < FEWEST_WORDS:
        return False
    straight = _share_of(words[0], others[0]) + _share_of(words[1], others[1])
    crossed = _share_of(words[0], others[1]) + _share_of(words[1], others[0])
    return crossed > max(2 * straight, LEAST_ALIKE)


def _share_of(words: set[str], others: set[str]) -> float:
    return len(words & others) / max(len(words), 1)


def _many(count: int, total: int, least: float) -> str:
    """How many pairs of all have a fault; "" if they are less than that share."""
    return f"{count:,} of {counted(total, 'pair')} ({count / total:.1%})" if count and count >= least * total else ""
