"""The words of a line, also in scripts that have no spaces between them: there every character is one.

Where a line may be broken between them follows the classes of Unicode's line breaking (UAX #14), and for what those
leave to a dictionary, as in Thai, at least no letter loses its vowels. It knows lines and alignments, and no marks.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate, pairwise

from nmt.data.words import Span, words_of
from nmt.decoding.writing import Translation
from nmt.pharaoh import Link

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


def words_by_part(parts: Iterable[str], text: str) -> list[range]:
    """Which of its words each part of a text has; all together the parts are the text, except for white space."""
    starts = [*accumulate((stop - start for start, stop in words_of(text)), initial=0)][:-1]  # without white space
    counts = [bisect_left(starts, stop) for stop in accumulate(map(len, parts), initial=0)]
    return [range(first, last) for first, last in pairwise(counts)]


def word_links(translation: Translation, source: str, target: str) -> list[Link]:
    """The links of a translation as links of the words of both texts, which it has perhaps with other white space.

    Those of what was aligned more finely are links to all of its words, for several target words in proportion.
    """
    finer = translation.finer_alignment
    if finer is None:
        return spread(translation.alignment or (), source, target)
    sources, targets = words_by_part(finer.source_words, source), words_by_part(finer.target_words, target)
    return [
        (source_word, target_word)
        for part, place in finer.links
        for index, target_word in enumerate(targets[place])
        for source_word in _share(sources[part], index, len(targets[place]))
    ]


def spread(links: Iterable[Link], source: str, target: str) -> list[Link]:
    """Links between what white space separates (`str.split()`), of several of a target the first, as links of words.

    Where that is several words, they are aligned in proportion.
    """
    sources, targets = words_by_part(source.split(), source), words_by_part(target.split(), target)
    first = {place: word for word, place in reversed([*links]) if word < len(sources) and place < len(targets)}
    return [
        (_share(sources[word], index, len(targets[place]))[0], target_word)
        for place, word in sorted(first.items())
        for index, target_word in enumerate(targets[place])
    ]


def _share(words: range, index: int, parts: int) -> range:
    """The words of the part `index` of so many equal parts: at least one, if there are any."""
    first = index * len(words) // parts
    return words[first : max((index + 1) * len(words) // parts, first + 1)]
