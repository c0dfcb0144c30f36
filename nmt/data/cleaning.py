"""Which pairs of somebody's text are of use, and what is usual in it, by which that is decided.

What is usual is learned from the first pairs, so there are no numbers for languages or scripts here. A rule has a name,
by which reports count what it leaves out.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from nmt.data.pairs import Pair
from nmt.data.words import words_of
from nmt.protected import SHARE_OF_WORDS

_LONGEST = 1000  # characters of a side; at most some hundred pieces are trained on
_UNEVEN, _MARGIN = 3, 20  # times the usual ratio of lengths; characters that are added to both
_USUAL_SHARE = 0.05  # of the letters of a text, from which a script is usual in it
_SINGLE = 0.8  # share of words with one character; of Moses' tokens up to 0.3
_HTML = "a|b|big|br|code|div|em|font|h[1-6]|hr|i|img|li|ol|p|pre|small|span|strong|sub|sup|table|t[dhr]|tbody|u|ul"
_MARKUP = re.compile(rf"(?i)\t|\|\|\||</?(?:{_HTML})(?:\s[^<>]*)?/?>| \| .* \| ")
_KANA = ("KATAKANA", "KATAKANA-HIRAGANA", "HALFWIDTH")  # of one script with hiragana: a title may be all katakana

RULES = {
    "columns": "have more or fewer columns than the first row",
    "languages": "are not in both languages",
    "blank": "are blank, or not translated, on a side",
    "long": f"have more than {_LONGEST:,} characters on a side",
    "markup": "have a tab, a row of a table, or tags of HTML",
    "identical": "have the same text on both sides",
    "uneven": f"have sides whose lengths differ more than {_UNEVEN} times as much as usual here",
    "script": "have a side in another script than usual here",
    "repeated": "repeat another pair",
    "elsewhere": "are of a document that was held out, and share a sentence with another document",
}


class Usual(NamedTuple):
    """What is usual in a text."""

    units: Literal["sentences", "words", "characters"]  # what its lines are; characters have spaces between them
    ratio: float  # of the characters of the target to those of the source
    scripts: tuple[frozenset[str], frozenset[str]]  # of the letters of source and target

    def fault(self, pair: Pair) -> str:
        """The rule by which a pair with text on both sides is left out; "" if there is none."""
        sides = (pair.source.strip(), pair.target.strip())
        shorter, longer = sorted((len(sides[0]) * self.ratio + _MARGIN, len(sides[1]) + _MARGIN))
        faults = {
            "long": max(map(len, sides)) > _LONGEST,
            "markup": any(map(_MARKUP.search, sides)),
            "identical": self.units == "sentences" and sides[0].casefold() == sides[1].casefold(),
            "uneven": longer > _UNEVEN * shorter,
            "script": any(map(_is_foreign, sides, self.scripts)),
        }
        return next((rule for rule, is_found in faults.items() if is_found), "")


def lacking(pair: Pair) -> str:
    """The rule by which what has no text on both sides is left out; "" if it has."""
    return pair.fault or ("" if pair.source.strip() and pair.target.strip() else "blank")


def usual(pairs: Sequence[Pair]) -> Usual:
    """What is usual in these pairs, which have text on both sides."""
    sides = [pair.source for pair in pairs], [pair.target for pair in pairs]
    lengths = [sum(map(len, side)) or 1 for side in sides]
    scripts = _scripts(sides[0]), _scripts(sides[1])
    single = sorted(map(_single, sides))
    if single[1] > _SINGLE and single[0] > 1 - _SINGLE:
        return Usual("characters", lengths[1] / lengths[0], scripts)
    untagged = [pair.document if pair.tags else pair.source for pair in pairs]
    # A list of terms, of two or three words, is translated, and not spelled anew
    counts = [sum(len(words_of(text)) == 1 for text in side) for side in (untagged, sides[1])]
    is_list = max(counts) > SHARE_OF_WORDS * len(pairs)
    return Usual("words" if is_list else "sentences", lengths[1] / lengths[0], scripts)


def _single(texts: Sequence[str]) -> float:
    """Share of one character among the words of the texts."""
    words = [word for text in texts for word in text.split()]
    return sum(len(word) == 1 for word in words) / max(len(words), 1)


def _scripts(texts: Sequence[str]) -> frozenset[str]:
    letters = Counter(_script(character) for text in texts for character in text)
    del letters[""]
    return frozenset(name for name, count in letters.items() if count >= _USUAL_SHARE * letters.total())


def _is_foreign(text: str, scripts: frozenset[str]) -> bool:
    """Whether most letters of a text are of other scripts than these."""
    if text.isascii() and "LATIN" in scripts:
        return False
    letters = [script for script in map(_script, text) if script]
    return 2 * sum(script in scripts for script in letters) < len(letters)


@lru_cache(maxsize=1 << 16)
def _script(character: str) -> str:
    """The first word of a letter's name, such as LATIN, or HIRAGANA, for all kana; "" if it is none."""
    name = unicodedata.name(character, "").partition(" ")[0] if character.isalpha() else ""
    return "HIRAGANA" if name in _KANA else name
