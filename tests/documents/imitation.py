"""Translations made up in place of a model's: the words in capitals, in any order, with any alignment."""

from collections.abc import Callable, Sequence
from random import Random

import numpy as np

from nmt.decoding.text.alignment import Block, SoftAlignment
from nmt.decoding.writing import Translation
from nmt.documents.formats import Document
from nmt.pharaoh import Link

Imitation = Callable[[str], Translation]


def linked(line: str, text: str, links: Sequence[Link]) -> Translation:
    """A translation whose words attend to those that they are linked to, of several to the first."""
    source, target = line.split(), text.split()
    words = {place: word for word, place in reversed(links)}
    blocks = [
        Block(np.array([[1.0, 0.0]], dtype=np.float32), words[place])
        if place in words
        else Block(np.zeros((1, 1), dtype=np.float32))
        for place in range(len(target))
    ]
    return Translation(text, 0.0, [], list(links), SoftAlignment(source, target, blocks, list(links)))


def in_order(line: str) -> Translation:
    words = line.upper().split()
    return linked(line, " ".join(words), [(place, place) for place in range(len(words))])


def in_reverse(line: str) -> Translation:
    words = line.upper().split()
    last = len(words) - 1
    return linked(line, " ".join(reversed(words)), [(last - place, place) for place in range(last + 1)])


def at_random(seed: int) -> Imitation:
    """Fewer or more words, and for each any number of links; or no alignment."""
    draw = Random(seed)

    def translation(line: str) -> Translation:
        source = line.split()
        words = [draw.choice([*source, "<&>", '"', "☃"]) for _ in range(draw.choice([0, 1, 2, len(source), 9]))]
        count = draw.choice([0, 1, 20]) if source and words else 0
        links = [(draw.randrange(len(source)), draw.randrange(len(words))) for _ in range(count)]
        text = " ".join(words)
        return draw.choice([Translation(text, 0.0, []), linked(line, text, links)])

    return translation


def translated(document: Document, imitation: Imitation) -> str:
    return document.written([imitation(line) for line in document.lines])


def same(lines: Sequence[str]) -> list[Translation]:
    """Each line as its own translation."""
    return [in_order(line)._replace(text=line) for line in lines]
