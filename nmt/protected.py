"""What a text has that is no words: placeholders, addresses, symbols, and numbers; and which of it a model learns.

A translation has it as it is (see `nmt.decoding.text.protect`), unless the text that a model was trained on shows
otherwise: a tag for the language to be written, such as <es>, or for the case and the number of an inflected form
stands in the source alone. What the training text translates, the model is shown; and so is what it nearly always
carries over, such as the %s of messages, around which the model has learned to write sentences. Numbers, and names such
as file_name, it is shown; those of a form such as 0,000 are compared with those of the translation unless the training
text translates them.

It knows lines of text, and nothing of models.
"""

import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice
from math import ceil
from operator import itemgetter
from typing import Any, NamedTuple
from unicodedata import decimal

import regex

from nmt.text_form import UNSPACED

_EMOJI = (
    "\u203c\u2049\u2190-\u21ff\u2300-\u23ff\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001faff"
)
_QUOTES = r"\"'`¿¡&;\p{Ps}\p{Pe}\p{Pi}\p{Pf}"
SIGN = rf"[^\p{{L}}\p{{M}}\p{{N}}\s{_QUOTES}]"
# Before a sentence: the numbers and signs of lists, and the dots of what goes on
BEGINNING = regex.compile(rf"(?:(?:\(?\d{{1,3}}[.)]|\(?[A-Za-z]\)|{SIGN}+)\s+)*(?:(?:\.{{2,}}|…)\s*)?(?=\S)")
_LETTER, OF_LETTER = regex.compile(r"\p{L}"), regex.compile(r"[\p{L}\p{M}]")
# Of names beside words of a script without spaces, which are no part of them; of addresses, those between two signs are
_OF_NAME = rf"[\w--[{UNSPACED}]]"
_BETWEEN_SIGNS = rf"(?<![^\W_])[{UNSPACED}][\w\-]*+(?=[\p{{ASCII}}&&[\p{{P}}\p{{S}}]]|\s|\Z)"
_NAME = rf"(?:[{_OF_NAME}.\-]|{_BETWEEN_SIGNS})+"
HYPHENATED = regex.compile(rf"(?V1)(?<!{_OF_NAME}){_OF_NAME}++(?:[-‐]{_OF_NAME}++)+")
TAG = regex.compile(r"<(/?)([A-Za-z][\w:.-]*)[^<>]*>")  # of those that `placeholders` match
NUMBER_SIGNS = "+−–-"  # of numbers
_SIGNED = rf"(?:(?<![\w\p{{Sc}}%°.)\]{NUMBER_SIGNS}])[{NUMBER_SIGNS}](?!\d*[A-Za-z_]))?"  # not as in 10%-20%
_NUMBER = (
    rf"(?=[\d{NUMBER_SIGNS}]){_SIGNED}"  # at most places it is seen at once that none begins
    r"(?:\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?!\d)(?:[.,]\d+)?|\d+(?:[.,:/'’٫٬–-]\d+)*)"
)
_NAMES = {  # of programs
    "--option": r"--[a-z][\w-]*\w",
    "file_name": r"(?=[\d_]*[A-Za-z])(?:_*[^\W_]+_\w*+(?<!_)|__\w+)",  # not the _emphasis_ of plain text
    "fileName": r"[A-Z]?[a-z]+[A-Z]\w*",  # and FileName
    "file.name": r"[a-z]\w+(?:\.[a-z_]\w+)+",
    "0xFF": r"0x[0-9a-fA-F]+",
}
_LITERALS = regex.compile(
    rf"(?<![\w%$@./\\-])(?:{'|'.join(_NAMES.values())})(?:\(\))?(?!\w)|\b[A-Za-z]\w+\(\)|{_NUMBER}"
)
_GROUPING = re.compile(r"(?<=\d)[ \u00a0\u202f.,'’٬](?=(?:\d\d,){0,3}\d{3}(?!\d))")  # also of 1,00,000
_IN_WORD = regex.compile(rf"(?V1)[{_OF_NAME}]")
_NUMERAL = regex.compile(r" ?\p{nt=Numeric}|[만억조]")  # as of 12万, 12만, and 2½
_MAY_BE_LITERAL = re.compile(r"\d|--\w|\w_|[a-z][A-Z]|\w\.[a-z]|\(\)")
PATTERNS = {
    # of templates, ICU, Python, printf, Qt, shells, and tags of XML
    "placeholders": r"\{\{.{0,200}?\}\}|\{%.{0,200}?%\}|<%.{0,200}?%>|\$\{[^{}]*\}|"
    r"\{\s*\w+\s*,\s*(?:plural|select|selectordinal|number|date|time)\b(?:[^{}]|(?&braces))*+\}|\{[^{}\s]*\}|"
    r"(?<![\p{N}%])%(?:\(\w+\))?(?:\d+\$)?[-+#0]*+(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh?|ll?|[LjtzZ])?[@diouxXeEfgGaAcsrmnp]"
    rf"(?![{_OF_NAME}--[\d_]])|%[A-Za-z_]{_OF_NAME}*%|(?<![\p{{N}}%])%L?\d{{1,2}}(?!\d)|\$[A-Za-z_]{_OF_NAME}*|"
    r"</?[A-Za-z][\w:.-]*(?:\s+[\w:@.-]+\s*=\s*(?:\"[^\"<>]*\"|'[^'<>]*'|[^\s\"'<>]+))*\s*/?>",
    # of the web and of mail, names of users, tags, and paths of files
    "addresses": rf"(?:(?:https?|ftps?|file|wss?)://|www\.|mailto:)"
    rf"(?:[^\s<>\"{UNSPACED}\u3001-\u303f\uff01-\uff65]|{_BETWEEN_SIGNS})+|"
    rf"(?<![{_OF_NAME}.+\-])[{_OF_NAME}.+\-]+@(?=[\w\-]+\.\w){_NAME}|"
    r"(?<![\w@])@\w[\w.-]*|(?<![\w&#])#[^\W\d][\w-]*|"
    rf"(?<!\S)(?:~|\.{{1,2}})?(?:/[\w.-]+)+/{_NAME}/?|"
    r"\b[A-Za-z]:\\[^\s<>\"|]+",
    "symbols": r"[0-9#*]\ufe0f?\u20e3|[\U0001f1e6-\U0001f1ff]{2}|"
    rf"[{_EMOJI}][{_EMOJI}\ufe0e\ufe0f\u200d\U0001f3fb-\U0001f3ff]*",
    "numbers": rf"(?<![{_OF_NAME}]){_NUMBER}[%°]?(?![{_OF_NAME}])",
}
_SIGNS = rf"{{%$<@#/\\\u20e3{_EMOJI}"  # each match has one of these, or is a number
_DEFINED = r"(?(DEFINE)(?<braces>\{(?:[^{}]|\{[^{}]*+\})*+\}))"  # no deeper, so that it takes time in proportion

ENOUGH = 5  # lines that have something, to learn what becomes of it
SHARE_CARRIED = 0.9  # of the lines that have something, and from which on the model has learned to write it, too
SHARE_WITHOUT_LETTERS = 0.01  # of the lines; a table in a text does not teach a model to write numbers
MOST_OF_A_LINE = 100  # matches that are looked for in its translation
MOST = 10_000  # different ones that are counted; where there are more, the rarest are forgotten
WITHOUT_LETTERS = ""  # stands for every text that has none, among what is learned
RARE_LETTERS = "rare letters"  # stands for those of words that are spelled anew, among what is learned
SHARE_OF_WORDS = 0.9  # of the lines have a single word, in a list of words
LEARNED = "learned"  # in what a model file says of its training: what `Carried.learned` gives
Learned = dict[str, bool | str]
"""What a model has learned of what is no words: whether translations have it as it is, or it is translated.

Of numbers and names, by their forms, in what form translations have them: 0,000.00 as 0.000,00, a_a as a_a, with ~
where only most have them; and what single ones become often: 2 becomes 14, as of p.m.
"""


def literals_of(text: str) -> list[tuple[int, int]]:
    """Where a text has numbers, digits in words, and names of programs."""
    return [match.span() for match in _LITERALS.finditer(text)] if _MAY_BE_LITERAL.search(text) else []


def is_number(literal: str) -> bool:
    """Whether it is no name."""
    return _LETTER.search(literal) is None


def is_in_word(text: str, start: int, stop: int) -> bool:
    """Whether digits [start, stop) touch letters of a word, as in F5 and 1980s, or are a part of something else."""
    touches = _IN_WORD.match(text, start - 1, start) or _IN_WORD.match(text, stop) or is_of_another(text, start, stop)
    return bool(touches) and is_number(text[start:stop])


def is_of_another(text: str, start: int, stop: int) -> bool:
    """Whether the digits [start, stop) are a part of another number, such as 12万, or of a code such as &#91;."""
    return _NUMERAL.match(text, stop) is not None or text.endswith("&#", 0, start)


def is_form(text: str) -> bool:
    """Whether it is the form of a number or a name."""
    return form_of(text) == text and literals_of(text) == [(0, len(text))]


def form_of(literal: str) -> str:
    """A number with zeros for its digits; a name with a for its small letters, A for its capitals, 0 for its digits."""
    if is_number(literal):
        return "".join(chr(ord(one) - decimal(one)) if one.isdecimal() else one for one in literal)
    return re.sub(r"\d+", "0", re.sub(r"[A-Z]+", "A", re.sub(r"[a-z]+", "a", literal)))


def in_form(literal: str, form: str) -> str:
    """A number in a form, if it has as many digits; a name as it is."""
    digits = [decimal(one) for one in reversed(literal) if one.isdecimal()]
    if is_number(literal) and len(digits) == sum(map(str.isdecimal, form)):
        return "".join(chr(ord(one) + digits.pop()) if one.isdecimal() else one for one in form)
    return literal


class Literal(NamedTuple):
    """A number or a name, read once: what of it is the same however it is written."""

    value: str  # a name, or the numbers in a number, joined by periods: 1234.5 of -1,234.5, 05.06.2024 of 05/06/2024
    parts: tuple[str, ...]  # these numbers as dates in other orders have them, without zeros before
    stems: tuple[str, ...] = ()  # of what a name may be an inflected form, as McCains of McCain
    is_of_several: bool = False  # as a date, a time, or a range is

    @classmethod
    def of(cls, text: str) -> "Literal":
        if not is_number(text):
            ends = range(1, 4) if text.isalpha() else ()
            return cls(text, (text,), tuple(text[:-end] for end in ends if text[-end:].islower()))
        grouped = _GROUPING.sub("", text)
        numbers = ["".join(str(decimal(one)) for one in number) for number in re.findall(r"\d+", grouped)]
        is_decimal = len(numbers) < 3 and re.search("[/:–-]", text[1:]) is None
        return cls(".".join(numbers), tuple(number.lstrip("0") for number in numbers), is_of_several=not is_decimal)

    def is_parted(self, alone: Container[str]) -> bool:
        """Whether it is a date, a time, or a range, of which parts stand `alone`."""
        return self.is_of_several and any(part in alone for part in self.parts)


def compared(literals: Sequence[str], others: Sequence[str]) -> tuple[dict[int, int | None], list[int]]:
    """Which numbers and names of a text its translation has, and what `others` it has.

    Of each, its place in the text: where the translation has one of the same value, or None where it has its parts, as
    of a date in another order, or another form of the name.
    """
    ours, theirs = ([*map(Literal.of, texts)] for texts in (literals, others))
    same: dict[str, list[int]] = {}
    for place in reversed(range(len(theirs))):
        same.setdefault(theirs[place].value, []).append(place)
    found: dict[int, int | None] = {
        place: places.pop() for place, one in enumerate(ours) if (places := same.get(one.value))
    }
    left = {place for places in same.values() for place in places}
    having: dict[str, list[int]] = {}
    for place in left:
        for key in (*theirs[place].parts, *(f"{stem}~" for stem in theirs[place].stems)):
            having.setdefault(key, []).append(place)
    for place, one in enumerate(ours if left else ()):
        alike = [key for key in (f"{one.value}~", *one.stems) if having.get(key)]
        needed = Counter(alike[:1] or one.parts)
        if place not in found and all(len(having.get(key, ())) >= count for key, count in needed.items()):
            left -= {having[key].pop() for key in needed.elements()}
            found[place] = None
    return found, sorted(left)


class Sets:
    """Sets of patterns by their names."""

    def __init__(self, names: Sequence[str]) -> None:
        sets = "|".join(f"(?P<{name}>{PATTERNS[name]})" for name in names)
        self._pattern = regex.compile(f"(?V1){_DEFINED}{sets}") if names else None
        self._signs = re.compile("[" + _SIGNS + "\\d" * ("numbers" in names) + "]")

    def matches(self, line: str) -> "Iterator[regex.Match[str]]":
        """What the sets match of a line, in order; the name of the set is the match's `lastgroup`."""
        if self._pattern is not None and (self._signs.search(line) or "www." in line or "mailto:" in line):
            yield from self._pattern.finditer(line)


class Carried:
    """Counts, in pairs of lines, how often what the sets match in the source stands in the target; so what a line of a
    list begins with, and lines without letters."""

    def __init__(self) -> None:
        self.counts: dict[str, tuple[int, int]] = {}  # lines of the source, and of these those whose target has it
        self.forms: dict[str, Counter[str]] = {}  # of numbers and names, and those that the target has them in
        self.others: dict[str, Counter[str]] = {}  # which number the target has instead of one, where it is the only
        self.letters: dict[str, tuple[int, int]] = {}  # the same counts, of characters in pairs of single words
        self._sets = Sets([name for name in PATTERNS if name != "numbers"])  # of which there are too many
        self._pairs = self._words = self._forgotten = 0  # words: pairs of them; forgotten is what so few lines have

    def add(self, source: str, target: str) -> None:
        """Count the next pair."""
        matches = [*islice(self._sets.matches(source), MOST_OF_A_LINE)]
        texts = {match[0]: match[0] in target for match in matches}
        is_list = not source[:1].isalpha() or source[1:2] == ")"  # most lines are none, and matched no further
        if is_list and (match := BEGINNING.match(source)) and (beginning := match[0].rstrip()):
            texts[beginning] = target.startswith(beginning)
        self._pairs += 1
        self._count_literals(source, target, [match.span() for match in matches])
        if not _LETTER.search(source):
            texts[WITHOUT_LETTERS] = source.strip() == target.strip()
        _count(self.counts, texts)
        if " " not in source and " " not in target:
            self._words += 1
            _count(self.letters, {letter: letter in target for letter in set(source)})
        while len(self.counts) > MOST:
            self._forgotten += 1
            self.counts = {text: counts for text, counts in self.counts.items() if counts[0] > self._forgotten}

    def _count_literals(self, source: str, target: str, matches: Sequence[tuple[int, int]]) -> None:
        """Count the forms of numbers and names, but for those in what the sets match."""
        if not (spans := literals_of(source)):
            return
        literals = [source[slice(*span)] for span in spans]
        others = [target[slice(*span)] for span in literals_of(target)]
        found, left = compared(literals, others)
        lost: list[str] = []
        for place, (start, stop) in enumerate(spans):
            if is_in_word(source, start, stop) or any(start < last and first < stop for first, last in matches):
                continue
            form, other = form_of(literals[place]), found.get(place)
            has = form_of(others[other]) if other is not None else form if place in found else ""
            if form in self.forms or len(self.forms) < MOST:
                self.forms.setdefault(form, Counter())[has] += 1
            if place not in found:
                lost.append(literals[place])
        if len(lost) == len(left) == 1 and (lost[0] in self.others or len(self.others) < MOST):
            self.others.setdefault(lost[0], Counter())[others[left[0]]] += 1

    def learned(self, *, of_words: bool = False) -> Learned:
        """What stands in ENOUGH lines or more, and in less than half of their translations, or in SHARE_CARRIED.

        Of numbers and names, every form that stands in so many, and what most of those become that another replaces;
        of text `of_words`, which are its lines, whether their rarest letters stand in less than half of the target.
        """
        least = {WITHOUT_LETTERS: max(ENOUGH, SHARE_WITHOUT_LETTERS * self._pairs)}
        learned: Learned = {}
        for literal, others in self.others.items():
            other, count = others.most_common(1)[0]
            if count >= ENOUGH and 2 * count >= others.total():
                learned[literal] = other
        for form, forms in self.forms.items():
            if (count := forms.total()) >= ENOUGH:
                carried = count - forms[""]
                usual = max(filter(None, forms), key=lambda form: forms[form], default="")
                mostly = "~" if carried < SHARE_CARRIED * count else ""
                learned[form] = f"{mostly}{usual}" if 2 * carried >= count else False
        for text, (lines, carried) in sorted(self.counts.items()):
            begins_a_list = all(match[0] != text for match in self._sets.matches(text))  # and is nothing else
            is_carried = carried >= SHARE_CARRIED * lines and not begins_a_list
            if lines >= least.get(text, ENOUGH) and (is_carried or 2 * carried < lines):
                learned[text] = is_carried
        if of_words and self._loses_rare_letters():
            learned[RARE_LETTERS] = False
        return learned

    def _loses_rare_letters(self) -> bool:
        lines, carried = 0, 0.0
        letters = sorted(counts for letter, counts in self.letters.items() if OF_LETTER.match(letter))
        for count, several in groupby(letters, key=itemgetter(0)):
            shares = [count_carried / count for _, count_carried in several]
            more = count * min(len(shares), ceil(max(ENOUGH - lines, 0) / count))  # of some of these, any as likely
            lines, carried = lines + more, carried + more * sum(shares) / len(shares)
        return lines >= ENOUGH and 2 * carried < lines and self._words > SHARE_OF_WORDS * self._pairs


def _count(counts: dict[str, tuple[int, int]], texts: Mapping[str, bool]) -> None:
    """Count a line that has the texts, and of each whether its target has it."""
    for text, is_carried in texts.items():
        lines, carried = counts.get(text, (0, 0))
        counts[text] = lines + 1, carried + is_carried


def learned_by(*trainings: Mapping[str, Any]) -> Learned:
    """What models have learned of what is no words: of each, what the one says that carries it over least often.

    Letters are those of words that are spelled anew where all were trained on such words.
    """
    learned: Learned = {}
    every = [said if isinstance(said := training.get(LEARNED), dict) else {} for training in trainings]
    for text, how in chain.from_iterable(said.items() for said in every):
        ways = (learned.get(text, how), how)
        learned[text] = min(ways, key=lambda how: (how is not False, not str(how).startswith("~")))
    if not all(RARE_LETTERS in said for said in every):
        learned.pop(RARE_LETTERS, None)
    return dict(sorted(learned.items()))
