"""Words and phrases that no translation may have, however the subword model would cut them.

A phrase is found as whole words: where it begins or ends with a letter or digit, no other stands beside it. So a
forbidden "Hund" leaves "Hunde" alone, but not "Hund-". White space within it may be of any length.

What counts of a text is the longest beginning of a phrase that it ends with (Aho & Corasick 1975, doi
10.1145/360825.360855), with a mark wherever a word begins or ends; so states are few, and what each piece makes of one
is worked out once. Where a text ends with a phrase whose last word is open, it must not end, but the word may be made
longer, if there is room for a piece that does: there always is a way to the end.

It knows subwords and text; it knows no searches. `search.rules.NoForbidden` is the rule that asks it.
"""

import codecs
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.data.subwords import Subwords
from nmt.decoding.text.required import in_word
from nmt.symbols import END

_MARK = "\n"  # where a word begins or ends; no text on one line has it
_REMEMBERED = 1 << 10  # states of which is kept what must not follow
_UTF_8 = codecs.getincrementaldecoder("utf-8")


class State(NamedTuple):
    """What counts of a text."""

    beginning: str = ""  # of a phrase with its marks, the longest that the text ends with
    inside: bool = False  # whether the last character is one of a word
    part: bytes = b""  # of a character


@lru_cache(maxsize=8)
def forbidden_by(phrases: tuple[str, ...], target: Subwords) -> "Forbidden | None":
    """The phrases as the pieces of `target` spell them, also with a capital first letter; None where there are none."""
    capitals = (phrase[:1].upper() + phrase[1:] for phrase in phrases)
    spelled = [text for phrase in (*phrases, *capitals) if (text := target.normalized(phrase))]
    return Forbidden(spelled, target) if spelled else None


class Forbidden:
    """Phrases, with single spaces and no other white space, that texts of the pieces of `target` must not have.

    The state None stands for every text that has one.
    """

    start = State()

    def __init__(self, phrases: Iterable[str], target: Subwords) -> None:
        self.phrases = {_marked(phrase): phrase for phrase in phrases}
        self.beginnings = {marked[:stop] for marked in self.phrases for stop in range(len(marked))}
        self.spellings = target.spellings()
        self._by_first: dict[str, list[int]] = defaultdict(list)  # the tokens, by their first characters
        for token, spelled in enumerate(self.spellings):
            self._by_first[spelled[:1] if isinstance(spelled, str) else ""].append(token)
        self._read = lru_cache(maxsize=1 << 16)(self._after_character)
        self.way_out = lru_cache(maxsize=1 << 16)(self._way_out)
        self.barred = lru_cache(maxsize=_REMEMBERED)(self._barred)

    def found_in(self, text: str) -> str | None:
        """A phrase that the text has, the longest of those that end first; None if it has none."""
        text, state = " ".join(text.split()), self.start
        for place, character in enumerate(f"{text} "):
            after = self._read(state, character)
            if after is None:
                ends = (text[: place + 1], text[:place])  # the phrase, or the phrase and what ends its last word
                return max((one for one in self.phrases.values() if any(end.endswith(one) for end in ends)), key=len)
            state = after
        return None

    def contradictions(self, texts: Iterable[str], by: str) -> list[str]:
        """Which of the texts, required `by` something, cannot be written."""
        found = [(text, self.found_in(text)) for text in texts]
        return [f"{text!r}, required by {by}, has the forbidden {one!r}; leave one out" for text, one in found if one]

    def after(self, state: State | None, token: int) -> State | None:
        """The state after one more token. A forbidden word is not made longer by a part of a character, which may turn
        out to be no letter."""
        if state is None:
            return None
        spelled, part = self.spellings[token], b""
        if isinstance(spelled, int):
            decoder = _UTF_8("replace")
            spelled, part = decoder.decode(state.part + bytes([spelled])), decoder.getstate()[0]
        elif state.part:
            spelled = f"\ufffd{spelled}"
        state = state._replace(part=b"")
        for character in spelled:
            if (state := self._read(state, character)) is None:
                return None
        return None if part and not self.may_end(state) else state._replace(part=part)

    def may_end(self, state: State | None) -> bool:
        """Whether a text may end so."""
        return state is not None and (not state.inside or self._longest(state.beginning + _MARK) is not None)

    @cached_property
    def ways_out(self) -> list[int]:
        """Tokens that are enough to go on with wherever a text must not end: those that a shortlist must not lack."""
        states = [State(beginning, in_word(beginning[-1:])) for beginning in self.beginnings]
        tokens = {self.way_out(state) for state in states if not self.may_end(state)}
        return sorted(token for token in tokens if token is not None)

    def _way_out(self, state: State) -> int | None:
        """The shortest token after which the text may end, the first of equally short ones; None if there is none."""
        return next((token for token in self._lengthening if self.may_end(self.after(state, token))), None)

    @cached_property
    def _lengthening(self) -> list[int]:
        tokens = (token for first, some in self._by_first.items() if in_word(first) for token in some)
        return sorted(tokens, key=lambda token: (len(str(self.spellings[token])), token))

    def _barred(self, state: State | None, is_last: bool) -> npt.NDArray[np.bool_]:
        """Whether each token must not follow, as the last one before END if it `is_last`.

        Most tokens lead from all states to the same one, as the first character that they spell already does.
        """
        if state is None:
            return np.ones(len(self.spellings), dtype=bool)
        usual = State(inside=state.inside)
        barred = np.zeros(len(self.spellings), dtype=bool) if state == usual else self.barred(usual, is_last).copy()
        for first, tokens in self._by_first.items():
            if first and state != usual and not state.part and self._read(state, first) == self._read(usual, first):
                continue
            for token in tokens:
                after = self.after(state, token)
                goes_on = after is not None and not is_last and self.way_out(after) is not None
                barred[token] = not (goes_on or self.may_end(after))
        barred[END] = not self.may_end(state)
        return barred

    def _after_character(self, state: State, character: str) -> State | None:
        character, inside = " " if character.isspace() else character, in_word(character)
        beginning: str | None = state.beginning
        if inside != state.inside:
            beginning = self._longest(state.beginning + _MARK)
        if beginning is not None and not (character == " " and beginning.endswith(" ")):
            beginning = self._longest(beginning + character)
        return None if beginning is None else State(beginning, inside)

    def _longest(self, text: str) -> str | None:
        """The longest beginning of a phrase that the text ends with; None where it ends with a phrase."""
        ends = [text[start:] for start in range(len(text) + 1)]
        if any(end in self.phrases for end in ends):
            return None
        return next(end for end in ends if end in self.beginnings)


def _marked(text: str) -> str:
    """The text with marks."""
    changes = (in_word(before) != in_word(character) for before, character in pairwise(f" {text} "))
    return "".join(_MARK * change + character for change, character in zip(changes, [*text, ""], strict=True))
