"""The Pharaoh format of word alignments: a line a sentence pair, with a link such as "0-2" for each pair of words.

A link (source, target) connects a source word to a target word, both counted from 0. It knows links and lines of text;
it reads no files.
"""

import re
from collections.abc import Collection, Iterable
from typing import NamedTuple

from nmt.errors import UserError, collected, refuse_lines

Link = tuple[int, int]  # source word, target word
Links = Collection[Link]

FEWEST_LINES = 10
_LINK = re.compile(r"([0-9]{1,9})([-p?])([0-9]{1,9})")
_SHOWN = 30  # characters of a malformed link in a message
_SURE = "source-target, such as 0-2"


class Gold(NamedTuple):
    """The links of a sentence as annotated by people."""

    sure: set[Link]
    possible: set[Link]  # including the sure ones


def pharaoh(links: Iterable[Link]) -> str:
    """Links in Pharaoh format: "0-0 2-1", source word - target word, counted from 0."""
    return " ".join(f"{source}-{target}" for source, target in links)


def links_of_line(line: str, *, place: str) -> list[Link]:
    """The links of a line, in order and without repetitions.

    Raises UserError, which begins with `place`, for a malformed link and for a merely possible one.
    """
    return list(dict.fromkeys(link for _, link in _marked_links(line, place, allowed="-", expected=_SURE)))


def read_links(lines: Iterable[str], *, name: str) -> list[list[Link]]:
    """The links of each line, in order and without repetitions.

    Raises UserError, which calls the lines `name`, for malformed links and for merely possible ones.
    """
    every = _marked_lines(lines, name, allowed="-", expected=_SURE)
    return [list(dict.fromkeys(link for _, link in marked)) for marked in every]


def read_gold(lines: Iterable[str], *, name: str, first_word: int = 0) -> list[Gold]:
    """The links of each line: s-t is a sure link, spt and s?t are possible ones; the first word has the number 0 or 1.

    Raises UserError, which calls the lines `name`, for malformed links.
    """
    expected = "source-target for a sure link, such as 0-2, or 0p2 for a possible one"
    gold = []
    for number, line in enumerate(_marked_lines(lines, name, allowed="-p?", expected=expected), start=1):
        marked = [(mark, (source - first_word, target - first_word)) for mark, (source, target) in line]
        if any(min(link) < 0 for _, link in marked):
            raise UserError(f"{name}, line {number}: has a link of word 0, so its words are not counted from 1")
        gold.append(Gold({link for mark, link in marked if mark == "-"}, {link for _, link in marked}))
    return gold


def is_counted_from_1(gold: Iterable[Gold]) -> bool:
    """Whether no line links a first word, though FEWEST_LINES or more have links: of lines by people 94% do."""
    linked = [possible for _, possible in gold if possible]
    return len(linked) >= FEWEST_LINES and all(0 not in link for possible in linked for link in possible)


def _marked_lines(lines: Iterable[str], name: str, *, allowed: str, expected: str) -> list[list[tuple[str, Link]]]:
    """The links of each line, with the mark of each link."""
    marked_links: list[list[tuple[str, Link]]] = []
    problems: list[str] = []
    for number, line in enumerate(lines, start=1):
        with collected(problems):
            marked_links.append(_marked_links(line, f"{name}, line {number}", allowed=allowed, expected=expected))
    refuse_lines(name, problems)
    return marked_links


def _marked_links(line: str, place: str, *, allowed: str, expected: str) -> list[tuple[str, Link]]:
    """The links of a line, with the mark of each. Raises UserError for the first that is malformed."""
    links = []
    for text in line.split():
        match = _LINK.fullmatch(text)
        if match is None or match[2] not in allowed:
            raise UserError(f"{place}: {text[:_SHOWN]!r} is not a link; expected {expected}")
        links.append((match[2], (int(match[1]), int(match[3]))))
    return links
