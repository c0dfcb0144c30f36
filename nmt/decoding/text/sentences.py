"""The sentences of a line: a model that was trained on single sentences translates them better one by one.

Where a sentence ends depends on the language. `sentencex` (Wikimedia, github.com/wikimedia/sentencex) knows the rules
and abbreviations of some thirty languages; others have those of a related language, or English ones. It is imported on
first use. It knows lines and languages; it knows no subwords and no models.
"""

import re
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import accumulate, pairwise
from unicodedata import combining, normalize

from nmt.data.words import Span, has_finer
from nmt.decoding.text.languages import CODE, WITH_ORDINALS
from nmt.errors import UserError
from nmt.text_form import DIRECTIONS, HAN_OR_KANA

INSTALL = "pip install 'nmt-toolkit[text]'"
_OUTSIDE_WORDS = tuple("。！？．｡؟۔।॥།။።፧։")
ENDS = "".join((".!?…", *_OUTSIDE_WORDS))  # marks at the end of a sentence; the first also in words: Python.Org
FULL_STOPS = ".。｡।॥።։۔"
_SPACE = re.compile(rf"[^\S\n ]|(?<![{DIRECTIONS}])[{DIRECTIONS}]+(?=\s)")
_BLANK_LINES = re.compile(r"\n[^\S\n]+(?=\n)")
LINE_END = re.compile(r"\r\n|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")  # where str.splitlines cuts
_BLOCK = 10_000  # characters looked at together: the time for quotation marks that are never closed grows with n²
_NEAR = 40  # characters around the end of a sentence that tell whether it is one

_QUOTES = tuple("\"'”’»")
_CLOSING = "".join((*_QUOTES, *")]}」』"))
_HAN_OR_KANA = f"{HAN_OR_KANA}\u3001-\u303f\uff01-\uff9f"  # with their signs
_ENDS_FLUSH = re.compile(
    rf"(?s)(?!.*[{_HAN_OR_KANA}] [{_HAN_OR_KANA}]).*[{_HAN_OR_KANA}][…—!?,:;{re.escape(_CLOSING)}]*"  # no spaces inside
)
_BEGINS_FLUSH = re.compile(rf"[\"'“‘«…—(]*[{_HAN_OR_KANA}]")
_GOES_ON = re.compile(r"[,;:)\]}]")  # begins no sentence
_FIRST = re.compile(r"[\s\"'“”„«»‘’(\[¿¡–—-]*(\w)")  # the first letter or digit of a sentence
_ITEM = re.compile(r"(?<!\S)(?:[^\w\s]\s?)?(\d{1,3}|[a-z])[.)]+(?=\s|\Z)")  # 2. or b) or • 2. or ⁃2.)
_LAST_ITEM = re.compile(rf"{_ITEM.pattern}\s*\Z")
_LOWER_ITEM = re.compile(r"\(?(?:[a-z]|[ivxl]{1,5})(?:\.?\)|\.\s)")
_FRAGMENT = re.compile(r"[\W\d_]*(?:[A-Za-z][.)]+\W*)?")  # no letters, or A. alone
_NOTE = re.compile(r"(?:[^\W\d_A-Z]{3}|\w\))[.!?]\d{1,3}(?:[, ]+\d{1,3})*\s+(?=[^\W\d_a-z])")  # it is.11 12 We
_ORDINAL = re.compile(r"(?<![^\s(–-])\d{1,2}\.\Z")  # as in: die 1. Liga
_TITLE = re.compile(r"(?<!\w)[^\W\d_]{1,4}[°º]?\.\Z")  # before a number, as in: Vol. 2
# Seen without a list, in a text without accents: M.; т.е., t.ex. and z. B.; words without vowels, of which r and l are
# two in the middle of a word: Dr., str. and tzv., but not smrt. or 5 kg.
_CONSONANTS = "b-df-hjkmnp-qstv-xzбвгджзкмнпстфхцчшщ"
_ABBREVIATION = re.compile(
    r"(?<![\w°])(?:[^\W\d_a-zα-ωа-џ]|[^\W\d_](?:[^\W\d_]?\.[^\W\d_]{1,3}|\. [^\W\d_]))\.\Z|"
    rf"(?<!\d )(?<![^\s('«„“])(?i:[{_CONSONANTS}lrлр])[{_CONSONANTS}]{{0,2}}[{_CONSONANTS}lrлр]\.\Z"
)


def spaces_around(sentences: Sequence[Span], line: str) -> list[str]:
    """The white space before the first sentence of a line, between two, and after the last one; a line end is a space.

    What stands there besides white space, since the subword model has no piece for it, is left out.
    """
    starts = [*(start for start, _ in sentences), len(line)]
    stops = [0, *(stop for _, stop in sentences)]
    between = (line[stop:start] for stop, start in zip(stops, starts, strict=True))
    return [LINE_END.sub(" ", "".join(filter(str.isspace, text))) for text in between]


def is_installed() -> bool:
    """Whether lines can be cut into sentences."""
    return find_spec("sentencex") is not None


def checked_language(name: str) -> str:
    """The code of a language that is named by its code, perhaps with a region: en for en, EN-us or en_GB.

    Raises UserError for another name, of which sentencex would make English; and where that is not installed.
    """
    if not is_installed():
        raise UserError(f"sentencex, which knows where sentences end, is not installed; {INSTALL}")
    match = CODE.fullmatch(name.lower())
    if match is None:
        raise UserError(
            f"{name!r} is no code of a language; name the one whose rules say where sentences end, such as "
            "split_sentences='en' (--split-sentences en)"
        )
    return match[1]


def sentences_of(line: str, language: str, *, whole_words: bool = False) -> list[Span]:
    """The sentences of a line by the rules of the language with this code, without the white space around them; none
    of a blank one.

    sentencex says where they may end, as they may behind the number of a footnote, and `_is_end` where that is one.
    What has no letters goes to the next sentence if it is a number, else to the one before. `whole_words`: only where
    there is white space between them.
    """
    text = _SPACE.sub(lambda match: " " * len(match[0]), line)  # as long as before
    text = _BLANK_LINES.sub(lambda match: "\n" * len(match[0]), text)
    parts = list(_parts(text, language))
    stops = accumulate(map(len, parts))
    places = [stop - len(part.lstrip()) for part, stop in zip(parts, stops, strict=True) if part.strip()]
    places = sorted({*places, *(match.end() for match in _NOTE.finditer(text))})
    starts = places[:1]
    for place in places[1:]:
        start, near = starts[-1], text[max(0, place - _NEAR) : place]
        space = near[len(near.rstrip()) :]
        if space.count("\n") > 1:
            starts.append(place)
        elif place - start < _NEAR and _FRAGMENT.fullmatch(text, start, place):
            if space and len(starts) > 1 and not any(map(str.isalnum, text[start:place])):
                starts[-1] = place
        elif (item := _next_item(text, start, place)) is not None:
            starts.append(item)
        elif (space or not whole_words) and _is_end(text, start, place, language):
            starts.append(place)
    if len(starts) > 1 and _FRAGMENT.fullmatch(text, starts[-1]):
        starts.pop()
    return [(start, start + len(line[start:stop].rstrip())) for start, stop in pairwise([*starts, len(line)])]


def _next_item(text: str, start: int, place: int) -> int | None:
    """Where the item of a list begins whose number ends before `place`, and is the next after that at `start`."""
    first, item = _ITEM.match(text, start), _LAST_ITEM.search(text, max(start, place - _NEAR), place)
    if first is None or item is None:
        return None
    following = str(int(first[1]) + 1) if first[1].isdigit() else chr(ord(first[1]) + 1)
    return item.start() if item[1] == following else None


def _is_end(text: str, start: int, place: int, language: str) -> bool:
    """Whether the sentence that begins at `start` ends before `place`, as sentencex says."""
    near, after = text[max(start, place - _NEAR) : place], text[place : place + _NEAR]
    before, first = near.rstrip(), _FIRST.match(after)
    if near == before and not (before.rstrip(_CLOSING).endswith(_OUTSIDE_WORDS) or has_finer(after[0])):
        return False
    if after[0] == "(" and before.endswith(_QUOTES):  # a remark on what was said
        return False
    # Georgian letters are lower case, and the same at the beginning of a sentence
    if _GOES_ON.match(after) or (first and first[1] != first[1].title() and not _LOWER_ITEM.match(after)):
        return False
    if language in WITH_ORDINALS and _ORDINAL.search(before):
        return False
    if after[0].isdigit() and (title := _TITLE.search(before)) and title[0][0].isupper():
        return False
    if language == "en":  # of which sentencex knows more
        return True
    return not _ABBREVIATION.search("".join(letter for letter in normalize("NFD", before) if not combining(letter)))


def _parts(text: str, language: str) -> Iterator[str]:
    """The text cut after each sentence and the white space that follows it, by sentencex."""
    from sentencex import segment

    start = 0
    while len(text) - start > _BLOCK:
        stop = text.rfind(" ", start, start + _BLOCK) + 1 or start + _BLOCK  # a word stays whole
        parts = segment(language, text[start:stop])
        parts = parts[:-1] or parts  # the last one may go on in the next block
        start += sum(map(len, parts))
        yield from parts
    yield from segment(language, text[start:])


def joined_sentences(texts: Sequence[str], spaces: Sequence[str]) -> str:
    """The texts with `spaces` before, between and after them: one more than there are texts.

    Where there is none or a single one between two texts, there is a space, but none between Chinese or Japanese ones,
    unless their words have spaces between them.
    """
    line = ""
    for space, text in zip(spaces[:-1], texts, strict=True):
        line += _between(line, space, text) + text
    return line + spaces[-1]


def _between(before: str, space: str, following: str) -> str:
    """The white space between two texts whose sources have `space` between them."""
    if space not in ("", " "):
        return space
    if _ENDS_FLUSH.fullmatch(before[-_NEAR:]) and _BEGINS_FLUSH.match(following):
        return ""
    return " " if before and following and not before[-1].isspace() else space
