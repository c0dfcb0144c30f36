"""The words of a line, also in scripts that have no spaces between them: there every character is one.

Where a line may be broken between them follows the classes of Unicode's line breaking (UAX #14), and for what those
leave to a dictionary, as in Thai, at least no letter loses its vowels. It knows lines and alignments, and no marks.
"""

import re
from collections.abc import Iterable

from nmt.pharaoh import Link

Span = tuple[int, int]  # characters [start, stop)

# Scripts without spaces: Thai to Tibetan, Burmese, Khmer, kana, Han and their punctuation
ALONE = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3001-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff9f\U00020000-\U0003ffff"
)
_WORD = re.compile(rf"[{ALONE}]|[^\s{ALONE}]+")

CLOSING = ".,;:!?…)]}»”’、。〉》」』】〕〗〙〞〟！），．：；？］｝｠｡｣､،؛؟۔।"  # belongs to the word before
_OPENING = "([{«„‘“¿¡〈《「『【〔〖〘〝（［｛｟｢"
_CLOSING = re.escape(f"{CLOSING}%％·･・〜～")
_LEADING = "\u0e40-\u0e44\u0ec0-\u0ec4\u1039\u17d2"  # Thai and Lao vowels before their consonant; what stacks one below
_TRAILING = (  # vowels and signs behind their consonant, by script; small kana and repetition marks
    "\u0e2f-\u0e3a\u0e45-\u0e4e\u0eaf-\u0ebd\u0ec6-\u0ece\u0f0b-\u0f14\u102b-\u103e\u104a\u104b\u17b6-\u17da\u17dd"
    "々〻ぁぃぅぇぉっゃゅょゎゕゖ\u3099-\u309eァィゥェォッャュョヮヵヶー-ヾｧ-ｰﾞﾟ"
)
_HIRAGANA, _KATAKANA = "\u3041-\u3096", "\u30a1-\u30fa\u30fc\uff66-\uff9d"
# Two characters, one behind the other, between which a line is not broken; Japanese grammar is in hiragana, behind the
# Han or katakana it belongs to
_TOGETHER = re.compile(
    rf"[{_OPENING}{_LEADING}].|.[{_CLOSING}{_TRAILING}]|[{_KATAKANA}]{{2}}|[\u3400-\u9fff々{_KATAKANA}][{_HIRAGANA}]"
    r"|\d\d|[\"'].|.[\"']|.[\u1000-\u1021]\u1037?\u103a"  # numbers; quotes, of which one side is open; a Burmese final
    r"|[^\u0f0b-\u0f14][\u0f00-\u0fff]"  # a Tibetan syllable
)
# As in « Non ! »; dots by themselves may begin what follows
_OPENING_WORD, _CLOSING_WORD = re.compile(f"[{_OPENING}]+"), re.compile(rf"(?![.…]+\Z)[{_CLOSING}]+")


def words_of(text: str) -> list[Span]:
    """The words of a text."""
    return [match.span() for match in _WORD.finditer(text)]


def unbroken(text: str) -> list[Span]:
    """Words of a text joined where a line is better not broken between them, as before a closing bracket."""
    joined: list[Span] = []
    for start, stop in words_of(text):
        if joined and (
            (joined[-1][1] == start and _TOGETHER.match(text, start - 1))
            or _OPENING_WORD.fullmatch(text, *joined[-1])
            or _CLOSING_WORD.fullmatch(text, start, stop)
        ):
            start = joined.pop()[0]
        joined.append((start, stop))
    return joined


def between_spaces(text: str) -> list[range]:
    """Which of its words each part of the text between white space has."""
    words = words_of(text)
    parts, count = [], 0
    for part in re.finditer(r"\S+", text):
        first = count
        while count < len(words) and words[count][0] < part.end():
            count += 1
        parts.append(range(first, count))
    return parts


def spread(links: Iterable[Link], source: str, target: str) -> list[Link]:
    """Links between what white space separates (`str.split()`), of several of a target the first, as links of words.

    Where that is several words, they are aligned in proportion.
    """
    sources, targets = between_spaces(source), between_spaces(target)
    first = {place: word for word, place in reversed([*links]) if word < len(sources) and place < len(targets)}
    return [
        (sources[word][index * len(sources[word]) // len(targets[place])], target_word)
        for place, word in sorted(first.items())
        for index, target_word in enumerate(targets[place])
    ]
