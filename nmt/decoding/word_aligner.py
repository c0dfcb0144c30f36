"""Word alignments of parallel text, learned from the text itself in both directions.

Words are what stands between white space, in lower case: "The" and "the" are one. It knows lines and words; the model
of them is that of `nmt.ops.hidden_markov`.
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from nmt.errors import InputWarning, first_of
from nmt.ops.hidden_markov import Direction, agreeing, most_probable_origins
from nmt.ops.translation_table import Pair
from nmt.pharaoh import Link

LONGEST, MOST_CELLS = 100, 80_000_000
"""Words of a sentence that is learned from, and, of all pairs together, source words × target words: of more, every
second pair is learned from, or every third, and so on. So many, of 620,000 lines of parliament, took 1.6 GB, 134 bytes
for each two words that stand in a pair."""
LONGEST_LINKED = 1000
"""Words of a line that gets links: the time of one grows with the cube of its length, and is six seconds here."""


def aligned(lines: Iterable[tuple[str, str]], *, count: int) -> tuple[Iterator[list[Link]], Iterator[list[Link]]]:
    """The links of the first `count` pairs of lines, learned from all of them, in both directions: of each word at most
    one to the other side; in the second, sources are our targets."""
    vocabularies: tuple[dict[str, int], dict[str, int]] = ({}, {})
    pairs = [_numbered(pair, vocabularies) for pair in lines]
    learned = [pair for pair in pairs if all(0 < len(side) <= LONGEST for side in pair)]
    if not learned:
        message = f"nothing to learn from, and so no links: no line has 1 to {LONGEST} words on both sides"
        warnings.warn(message, InputWarning, stacklevel=2)
        return iter([[] for _ in pairs[:count]]), iter([[] for _ in pairs[:count]])
    cells = sum(len(source) * len(target) for source, target in learned)
    learned = learned[:: max(1, -(-cells // MOST_CELLS))]
    forward, backward = agreeing(learned, source_size=len(vocabularies[0]), target_size=len(vocabularies[1]))
    del pairs[count:]
    long = [number for number, pair in enumerate(pairs) if max(map(len, pair)) > LONGEST_LINKED]
    for number in long:
        pairs[number] = (pairs[number][0][:0], pairs[number][1][:0])
    if long:
        numbers = ", ".join(first_of([f"{number + 1:,}" for number in long], 10))
        warnings.warn(f"lines of over {LONGEST_LINKED:,} words get no links: {numbers}", InputWarning, stacklevel=2)
    return _links(forward, pairs), _links(backward, [(target, source) for source, target in pairs])


def _numbered(pair: tuple[str, str], vocabularies: tuple[dict[str, int], dict[str, int]]) -> Pair:
    source, target = (
        np.array([ids.setdefault(word, len(ids)) for word in line.lower().split()], dtype=np.int32)
        for line, ids in zip(pair, vocabularies, strict=True)
    )
    return source, target


def _links(model: Direction, pairs: Sequence[Pair]) -> Iterator[list[Link]]:
    for (source, _), origins in zip(pairs, most_probable_origins(model, pairs), strict=True):
        yield [(place, piece) for piece, place in enumerate(origins.tolist()) if place < len(source)]
