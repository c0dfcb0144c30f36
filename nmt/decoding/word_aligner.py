"""Word alignments of parallel text, learned from the text itself in both directions.

Words are what stands between white space, in lower case: "The" and "the" are one. It knows lines and words; the model
of them is that of `nmt.ops.translation_table`, with positions.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from nmt.ops.translation_table import Pair, ibm_model_1, linked
from nmt.pharaoh import Link

LONGEST, MOST_CELLS = 100, 100_000_000
"""Words of a sentence that is learned from, and, of all pairs together, source words × target words: time and memory
grow with them, to about 1.3 GB. Of more, every second pair is learned from, or every third, and so on."""


def aligned(lines: Iterable[tuple[str, str]], *, count: int) -> tuple[Iterator[list[Link]], Iterator[list[Link]]]:
    """The links of the first `count` pairs of lines, learned from all of them, in both directions: of each word at most
    one to the other side; in the second, sources are our targets."""
    vocabularies: tuple[dict[str, int], dict[str, int]] = ({}, {})
    pairs = [_numbered(pair, vocabularies) for pair in lines]
    sizes = (len(vocabularies[0]), len(vocabularies[1]))
    turned = [(target, source) for source, target in pairs]
    return _links(pairs, sizes, count), _links(turned, sizes[::-1], count)


def _numbered(pair: tuple[str, str], vocabularies: tuple[dict[str, int], dict[str, int]]) -> Pair:
    source, target = (
        np.array([ids.setdefault(word, len(ids)) for word in line.lower().split()], dtype=np.int32)
        for line, ids in zip(pair, vocabularies, strict=True)
    )
    return source, target


def _links(pairs: Sequence[Pair], sizes: tuple[int, int], count: int) -> Iterator[list[Link]]:
    learned = [pair for pair in pairs if 0 < len(pair[0]) <= LONGEST and 0 < len(pair[1]) <= LONGEST]
    cells = sum(len(source) * len(target) for source, target in learned)
    learned = learned[:: max(1, -(-cells // MOST_CELLS))]
    table = ibm_model_1(learned, source_size=sizes[0], target_size=sizes[1], with_positions=True)
    return linked(table, pairs[:count], source_size=sizes[0], target_size=sizes[1])
