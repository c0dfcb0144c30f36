"""Translations made up in place of a model's: the words in capitals, in any order, with any alignment."""

from collections.abc import Callable, Sequence
from random import Random

from nmt.decoding.writing import Translation
from nmt.documents.formats import Document

Imitation = Callable[[str], Translation]


def in_order(line: str) -> Translation:
    words = line.upper().split()
    return Translation(" ".join(words), 0.0, [], [(place, place) for place in range(len(words))])


def in_reverse(line: str) -> Translation:
    words = line.upper().split()
    last = len(words) - 1
    return Translation(" ".join(reversed(words)), 0.0, [], [(last - place, place) for place in range(last + 1)])


def at_random(seed: int) -> Imitation:
    """Fewer or more words, and for each any number of links, also to words that do not exist; or no alignment."""
    draw = Random(seed)

    def translation(line: str) -> Translation:
        source = line.split()
        words = [draw.choice([*source, "<&>", '"', "☃"]) for _ in range(draw.choice([0, 1, 2, len(source), 9]))]
        links = [
            (draw.randrange(len(source) + 2), draw.randrange(len(words) + 2)) for _ in range(draw.choice([0, 1, 20]))
        ]
        return Translation(" ".join(words), 0.0, [], draw.choice([None, links, sorted(links)]))

    return translation


def translated(document: Document, imitation: Imitation) -> str:
    return document.written([imitation(line) for line in document.lines])


def same(lines: Sequence[str]) -> list[Translation]:
    """Each line as its own translation."""
    return [in_order(line)._replace(text=line) for line in lines]
