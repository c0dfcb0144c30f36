"""What translations must contain: the text side of lexical constraints, whose search is in `constrained.py`.

A line of constraints holds the phrases for one line of the text, separated by tabs; it may be empty. A phrase is cut
into pieces as the subword model cuts it by itself, so it begins a word, and the translation has it as the subword model
spells it. Its last word is complete, as that of a prefix is (see `prefixes`).
"""

from collections.abc import Sequence
from typing import NamedTuple

from nmt.data.subwords import Subwords
from nmt.decoding.search.phrases import left_after
from nmt.decoding.text.prefixes import Prefix, in_word
from nmt.decoding.text.segments import WORD_START
from nmt.symbols import UNKNOWN


class Phrase(NamedTuple):
    """Something that a translation must contain."""

    text: str
    tokens: list[int]
    complete: bool  # whether its last word is


def encoded_constraints(lines: Sequence[str], target: Subwords) -> list[list[Phrase]]:
    """The phrases of each line of constraints, each once; what is blank between two tabs is none."""
    texts = [[" ".join(text.split()) for text in line.split("\t")] for line in lines]
    tokens = iter(target.encode_batch([text for line in texts for text in line]))
    found = []
    for line in texts:
        phrases = {text: Phrase(text, _begun(next(tokens), text, target), in_word(text[-1:])) for text in line}
        phrases.pop("", None)
        found.append(list(phrases.values()))
    return found


def _begun(tokens: list[int], text: str, target: Subwords) -> list[int]:
    """The pieces without a space by itself before what begins no word, such as punctuation."""
    apart = len(tokens) > 1 and not in_word(text[:1]) and target.pieces(tokens[:1]) == [WORD_START]
    return tokens[1:] if apart else tokens


def impossible(phrases: Sequence[Phrase], *, line: int, blank: bool, longest: int, prefix: Prefix) -> list[str]:
    """Messages that say why the translation of line `line`, counted from 0, cannot contain its phrases, if it cannot.

    `blank`: whether the line is. `longest`: the most tokens of its translation, END counted.
    """
    problems: list[str] = []
    if not phrases:
        return problems
    if blank:
        shown = ", ".join(repr(phrase.text) for phrase in phrases)
        problems.append(f"line {line + 1} is blank and has constraints, {shown}; do the files go together?")
    for phrase in phrases:
        if UNKNOWN in phrase.tokens or not phrase.tokens:
            problems.append(
                f"the constraint {phrase.text!r} of line {line + 1} cannot be written: it has characters or words that "
                "the model's vocabulary lacks"
            )
    room = longest - 1 - len(prefix.tokens)
    needed = left_after([phrase.tokens for phrase in phrases if phrase.tokens], prefix.tokens)
    if needed > room and not blank:
        after = " after its prefix" if prefix.tokens else ""
        problems.append(
            f"the constraints of line {line + 1} need {needed} pieces{after}, and the line's translation has at most "
            f"{room}; shorten them, or raise max_length_ratio"
        )
    return problems
