"""What a model is not shown of a line, and what it is shown instead.

A model translates what it has seen in training. Placeholders, addresses, emoji, and characters that its vocabulary
lacks it would lose, or turn into words; so they are taken out before it reads the line, and are put back as marks (see
`marks`). Characters that nobody sees are left out, and what is written in capitals is shown as a sentence is written.
It knows text and what a vocabulary spells; it knows no models.
"""

import time
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, chain
from typing import NamedTuple
from unicodedata import combining, normalize

import regex

from nmt.data.corpus import excerpt
from nmt.data.subwords import Subwords
from nmt.data.words import ALONE, CLOSING, OPENING_SIGNS, Span, are_apart, has_finer, overlapping
from nmt.decoding.text.glossary import Glossary
from nmt.decoding.text.marks import Mark
from nmt.decoding.text.sentences import ENDS, LINE_END
from nmt.errors import UserError
from nmt.protected import (
    BEGINNING,
    NUMBER_SIGNS,
    OF_LETTER,
    PATTERNS,
    RARE_LETTERS,
    SIGN,
    TAG,
    WITHOUT_LETTERS,
    Sets,
    form_of,
    in_form,
    is_in_word,
    is_number,
    literals_of,
)
from nmt.symbols import PIECES, UNKNOWN
from nmt.text_form import INVISIBLE

SECONDS, SECONDS_A_LINE = 1.0, 0.01
"""How long the user's patterns may look at a text: so long, and so much longer for each line."""

DEEPEST = 100
"""Tags in each other that have their partners."""

CAPITALS = 5
"""Letters that a sentence has at least, to be one that is written in capitals: NASA is a word."""

_VISIBLE = regex.compile(rf"[^\s{INVISIBLE}]")
# Without which words are the same: also what stretches them, and accents and vowel signs that are no part of a letter
_VOID = regex.compile(rf"(?V1)[{INVISIBLE}\u0640[\p{{M}}--\p{{ccc=0}}]]")
LATIN = regex.compile(r"\p{Latin}")
_OTHER_SPACE = regex.compile(r"[^\S ]")
_NO_LETTERS = regex.compile(r"[^\p{L}\p{M}]+")
_OPENING = regex.compile(rf"(?<![^\W{ALONE}])[{regex.escape(OPENING_SIGNS)}]")  # not as “ ends „this“
_BRACKETS = dict(zip("([{<«»„“‘\"'", ")]}>»«“”’\"'", strict=True))
# What stands after a sentence: signs that end none
_END = regex.compile(rf"(?r)(?:\s+(?![{ENDS}]+(?:\s|\Z)){SIGN}++)+")  # matched from the end
_AFTER_ADDRESS = regex.compile(r"(?r)[.,;:!?…'\"’”»)\]]+")
_WORD, _LETTER = regex.compile(rf"(?![{ALONE}])[\p{{L}}\p{{M}}\p{{N}}_]"), regex.compile(r"\p{L}")
_NEXT_ELEMENT = regex.compile(r"(?<=</[^<>]*>)<(?!/)")  # as of a list
_LETTER_OR_DIGIT = regex.compile(r"[\p{L}\p{N}]")
_NO_CAPITAL = regex.compile(r"(?V1)[[\p{Ll}\p{Lo}]--[ßªº]]")
_NAME_GOES_ON = regex.compile(r"[\p{Lu}\p{N}]")
_LETTERS = regex.compile(r"[\p{L}\p{M}'’]+")
_BRACKET = r"\p{Ps}\p{Pe}\p{Pi}\p{Pf}\""  # one may be half of a pair
# From the last character of one
_JOINED = regex.compile(rf"[^{ENDS}][^\p{{L}}\p{{N}}{ENDS}{_BRACKET}]*|.[^\p{{L}}\p{{N}}\s{_BRACKET}]*")
_JOINTS = "-/+=&#.:@~^\\"


def is_blank(text: str) -> bool:
    """Whether nobody sees anything of it."""
    return _VISIBLE.search(text) is None


Found = Sequence[Mark]  # of a line: what is kept, and terms; in order, not overlapping


class SlowPattern(UserError):
    """A pattern of the user's takes too long for a text."""


class Seen(NamedTuple):
    """A sentence, or a part of one, as the model sees it."""

    text: str
    places: Sequence[int]  # of each of its characters in the line
    marks: Sequence[Mark] = ()  # what is kept, and terms of a glossary, by characters of it
    in_capitals: bool = False  # whether its translation is written in capitals, as the line has it
    sentence: Span = (0, 0)  # in the line

    def span(self, start: int, stop: int) -> Span:
        """The characters [start, stop) in the line, without white space before them, behind which something is kept."""
        start = next((place for place in range(start, stop) if not self.text[place].isspace()), stop)
        if start == stop:
            place = self.places[start] if start < len(self.places) else self.places[-1] + 1
            return place, place
        return self.places[start], self.places[stop - 1] + 1

    def cased(self, text: str) -> str:
        """What stands in a translation: in capitals, if the line is."""
        return text.upper() if self.in_capitals else text

    def part(self, start: int, stop: int) -> "Seen":
        """The characters [start, stop), with the marks in them; those at the end of all belong to the last."""
        first = bisect_left(self.marks, start, key=lambda mark: mark.start)
        last = bisect_left(self.marks, stop + (stop == len(self.text)), key=lambda mark: mark.start)
        return self._replace(
            text=self.text[start:stop],
            places=self.places[start:stop],
            marks=[
                mark._replace(start=mark.start - start, stop=min(mark.stop, stop) - start)
                for mark in self.marks[first:last]
            ],
        )


class Protection:
    """What is kept: sets of patterns by their names, or regular expressions (of the package `regex`)."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self.around = "symbols" in patterns
        self.sets = Sets([name for name in PATTERNS if name in patterns])
        own = (pattern for pattern in patterns if pattern not in PATTERNS)
        self.own = [regex.compile(pattern, cache_pattern=False) for pattern in own]

    def spans(self, line: str, seconds: float = SECONDS, *, known: Container[str] = ()) -> list[Span]:
        """What is kept of a line: not overlapping, in order, with the brackets and the parts of words around it.

        Of what the sets match, all but what the model has learned, which is `known`. Raises SlowPattern where
        those of the user's take more than `seconds` together.
        """
        found: list[Span] = []
        began = time.monotonic()
        matches = [match for match in self.sets.matches(line) if match[0] not in known or match.lastgroup == "numbers"]
        around = _around_words(line, [match.span() for match in matches])
        for match in matches:
            start, stop = match.span()
            if found and stop <= found[-1][1]:
                continue
            if match.span() in around:
                found.append(match.span())
                continue
            if match.lastgroup == "addresses" and (signs := _AFTER_ADDRESS.match(line, start, stop)):
                stop = signs.start()
            with_words = match.lastgroup in ("placeholders", "addresses") and not TAG.fullmatch(match[0])
            found.append(_grown(line, start, stop, with_words=with_words))
        for pattern in self.own:
            try:
                left = max(seconds - (time.monotonic() - began), 1e-6)
                for match in pattern.finditer(line, timeout=left):
                    start, stop = _stripped(line, *match.span())
                    if start < stop:
                        found.append(_grown(line, start, stop, with_words=False))
                    if time.monotonic() - began > seconds:  # the time-out is that of each match
                        raise TimeoutError
            except TimeoutError:
                raise SlowPattern(
                    f"the pattern {pattern.pattern!r} takes more than {SECONDS:g} s, for {excerpt(line)} or together "
                    "with lines before: what may be repeated in it repeats something itself"
                ) from None
        return joined_spans(found)


def _stripped(line: str, start: int, stop: int) -> Span:
    """The characters without white space around them."""
    text = line[start:stop]
    return start + len(text) - len(text.lstrip()), stop - len(text) + len(text.rstrip())


def _grown(line: str, start: int, stop: int, *, with_words: bool) -> Span:
    """The characters with the rest of their word, and with the brackets around them."""
    if with_words:
        start, stop = _end_of_word(line, start, -1), _end_of_word(line, stop, 1)
    return with_brackets(line, start, stop)


def with_brackets(line: str, start: int, stop: int) -> Span:
    """The characters with the brackets around them."""
    while start > 0 and stop < len(line) and _BRACKETS.get(line[start - 1]) == line[stop]:
        start, stop = start - 1, stop + 1
    return start, stop


def _end_of_word(line: str, place: int, step: int) -> int:
    """Where what is written together with the characters before `place` ends (step 1), or begins (step -1)."""
    at = place if step > 0 else place - 1
    while 0 <= at < len(line):
        if not _WORD.match(line, at):
            after = at + step
            if line[at] not in _JOINTS or not 0 <= after < len(line) or not _WORD.match(line, after):
                break
        at += step
    return at if step > 0 else at + 1


def joined_spans(spans: Iterable[Span]) -> list[Span]:
    """The spans in order; those that overlap are one."""
    joined: list[Span] = []
    for start, stop in sorted(spans):
        if joined and start < joined[-1][1]:
            start, other = joined.pop()
            stop = max(stop, other)
        joined.append((start, stop))
    return joined


def _together(line: str, spans: Iterable[Span]) -> list[Span]:
    """The spans, in order; those that overlap are one, and those that have no words and no end of a sentence between.

    A tag around words stays by itself.
    """
    apart = joined_spans(spans)
    around = _around_words(line, apart)
    together: list[Span] = []
    for start, stop in apart:
        is_apart = not together or bool({together[-1], (start, stop)} & around)
        if not is_apart and _JOINED.fullmatch(line, together[-1][1] - 1, start):
            start = together.pop()[0]
        together.append((start, stop))
    return together


def paired_tags(texts: Iterable[str]) -> dict[int, int]:
    """Which of the texts are a start tag and its end tag, by their numbers, in the order of the end tags."""
    pairs: dict[int, int] = {}
    started = deque[tuple[str, int]](maxlen=DEEPEST)
    for number, text in enumerate(texts):
        tag = TAG.fullmatch(text)
        name = tag[2].lower() if tag else ""
        if tag and not tag[1] and not text.endswith("/>"):
            started.append((name, number))
        elif tag and tag[1] and any(other == name for other, _ in started):
            while (start := started.pop())[0] != name:  # which has no end
                pass
            pairs[start[1]] = number
    return pairs


def _around_words(line: str, spans: Sequence[Span]) -> set[Span]:
    """Those of the spans, which are in order, that are a tag around words, or its end tag."""
    pairs = paired_tags(line[slice(*span)] for span in spans)
    if not pairs:
        return set()
    words = [*accumulate(_LETTER_OR_DIGIT.search(line, *span) is not None for span in _between(spans, 0, len(line)))]
    return {spans[tag] for pair in pairs.items() if words[pair[0]] < words[pair[1]] for tag in pair}


class Sight:
    """How a model sees sentences: what it is not shown is kept, as `protection` says; None: it is shown everything.

    `keeps_unknown`: so is what the vocabulary has no pieces for, but for a vocabulary of words, which knows few.
    `learned`: what the sets match and is shown, as symbols of the vocabulary are; of that which is carried over a
    translation has as much as the sentence.
    """

    def __init__(
        self,
        subwords: Subwords,
        protection: Protection | None,
        glossary: Glossary | None = None,
        *,
        keeps_unknown: bool = True,
        learned: Mapping[str, bool | str] | None = None,
    ) -> None:
        self.subwords, self.glossary = subwords, glossary
        self.forms = learned or {}  # of numbers, among others
        self.carried = {text for text, is_carried in self.forms.items() if is_carried is True}
        self._every = {*subwords.symbols, *(learned or {})}
        self.learned = self._every - self.carried
        self.keeps_unknown = keeps_unknown and not subwords.of_words
        self.protection = None if subwords.joiner else protection
        self.shows_letters = RARE_LETTERS in self.learned and self.protection is not None and not subwords.of_words
        self._seconds = SECONDS  # that are left for patterns of the user's

    @cached_property
    def _known(self) -> frozenset[str]:
        """The characters of the vocabulary; of the non-joiner, with which Persian parts words, most make a space."""
        known = "".join(self.subwords.pieces(range(len(PIECES), self.subwords.size)))
        return frozenset(known if UNKNOWN in self.subwords.encode("\u200c") else f"{known}\u200c")

    @cached_property
    def _kept_signs(self) -> frozenset[str]:
        """Those that the vocabulary lacks, so that the model is shown the digits of such a number."""
        return frozenset(sign for sign in NUMBER_SIGNS if self.keeps_unknown and UNKNOWN in self.subwords.encode(sign))

    def found(self, line: str) -> list[Mark]:
        """What is kept of a line, and the terms in it, in order and not overlapping.

        A term that is no part of what a pattern finds, as 24/7 is not, but perhaps has it in it, is the user's word.
        """
        terms = self.glossary.occurrences(line) if self.glossary is not None else []
        if self.protection is None:
            return terms
        began = time.monotonic()
        shown = self._shown_matches(line)
        spans = self.protection.spans(line, self._seconds, known=self._every if shown else self.learned)
        if self.protection.own:
            self._seconds = min(SECONDS, self._seconds + SECONDS_A_LINE) - (time.monotonic() - began)
        terms = [term for term in terms if not _is_part(spans, term.place)]
        taken = sorted([*spans, *(term.place for term in terms)])
        shown = [span for span in shown if not overlapping(taken, span)]
        words = [(start + (line[start] in self._kept_signs), stop) for start, stop in self.literals(line)]
        words = [span for span in words if not (is_in_word(line, *span) or overlapping(taken, span))]
        shown += [span for span in words if self.forms.get(form_of(line[slice(*span)])) is not False]
        terms += [mark._replace(instead=mark.tags[0]) for mark in (_kept(line, *span) for span in shown)]
        return with_kept(sorted(terms, key=lambda term: term.place), spans, line)

    def _shown_matches(self, line: str) -> list[Span]:
        """What of a line is carried over and shown all the same, if it has more than capitals beside it."""
        spans = self.carried_spans(line)
        beside = _between(spans, 0, len(line)) if spans else []
        return spans if any(_NO_CAPITAL.search(line, *span) for span in beside) else []

    def literals(self, text: str) -> list[Span]:
        """Where a line, or a translation, has numbers and names, but for those in what the sets match."""
        found = literals_of(text)
        matches = [match.span() for match in self._matches(text)] if found else []
        return [span for span in found if not overlapping(matches, span)]

    def literal(self, literal: str) -> tuple[str, bool]:
        """A number, or a name, as translations have it, and whether nearly all have it, as numbers of unknown forms."""
        form = self.forms.get(form_of(literal)) or (form_of(literal) if is_number(literal) else "~")
        return in_form(literal, str(form).removeprefix("~")), not str(form).startswith("~")

    def carried_spans(self, text: str) -> list[Span]:
        """Where a line, or a translation, has what is carried over."""
        matches = self._matches(text) if self.carried else ()
        return [match.span() for match in matches if match[0] in self.carried and match.lastgroup != "numbers"]

    def _matches(self, text: str) -> "Iterable[regex.Match[str]]":
        return self.protection.sets.matches(text) if self.protection is not None else ()

    def has_words(self, line: str, start: int, stop: int, found: Found) -> bool:
        """Whether there is something to translate in the characters [start, stop) of a line."""
        marks = [mark for mark in _inside(found, start, stop) if not is_shown(mark) or mark.instead in self.carried]
        if self.protection is None or any(mark.instead is not None and not is_shown(mark) for mark in marks):
            return True
        return any(_LETTER.search(line, *span) for span in _between([mark.place for mark in marks], start, stop))

    def seen(self, line: str, start: int, stop: int, found: Found) -> Seen:
        """The sentence [start, stop) of a line in which this was found; one in capitals is shown as any other."""
        has_words = self.has_words(line, start, stop, found)
        if not has_words and WITHOUT_LETTERS not in self.learned:
            return Seen("", ())
        marks = _inside(found, start, stop)
        takes_signs = has_words and self.protection is not None and self.protection.around
        around = _around(line, start, stop) if takes_signs else []
        if around := [span for span in around if line[slice(*span)] not in self.learned]:
            marks = with_kept(marks, around, line)
        seen = _with_terms(self._shown(line, start, stop, [mark for mark in marks if mark.instead is None]), marks)
        # All letters, of which there are CAPITALS, are capitals, or ß, which has none
        is_in_capitals = not _NO_CAPITAL.search(seen.text) and seen.text.lower() != seen.text
        is_cased = any(is_shown(mark) and mark.tags[0] in self.carried for mark in seen.marks)
        is_long = sum(map(str.isalpha, seen.text)) >= CAPITALS
        if self.protection is not None and is_in_capitals and is_long and not is_cased:
            seen = seen._replace(text=self._as_sentence(seen.text), in_capitals=True)
        return seen._replace(text=self._spelled(seen.text))

    def unknown(self, seen: Seen, pieces: Sequence[Span]) -> list[Span]:
        """The `unknown_pieces` of `seen` that are kept, with the rest of their words, in the line.

        A letter of a word that is spelled anew is shown, and a sign between letters, if the vocabulary has any other
        letter of the line.
        """
        if self.protection is None or not self.keeps_unknown:
            return []
        if self.shows_letters and any(_LETTER.search(seen.text, *span) for span in _between(pieces, 0, len(seen.text))):
            others = chain.from_iterable(_NO_LETTERS.finditer(seen.text, *span) for span in pieces)
            pieces = [sign.span() for sign in others if not _is_between_letters(seen.text, *sign.span())]
        found: list[Span] = []
        for start, stop in pieces:
            if not (found and stop <= found[-1][1]):
                in_name = seen.text[start - 1 : start].isalnum() and _NAME_GOES_ON.match(seen.text, stop)  # Ctrl+X
                with_words = in_name or _WORD.search(seen.text, start, stop)
                found.append(_grown(seen.text, start, stop, with_words=bool(with_words)))
        return [seen.span(*span) for span in found]

    def unknown_pieces(self, seen: Seen, ids: Sequence[int]) -> list[Span]:
        """What a vocabulary of parts of words has no pieces for, in `seen`, whose pieces are `ids`."""
        if self.subwords.of_words or UNKNOWN not in ids:
            return []
        spans = zip(ids, self.subwords.spans(seen.text), strict=True)
        return [(start, stop) for piece, (start, stop) in spans if piece == UNKNOWN and start < stop]

    def _shown(self, line: str, start: int, stop: int, kept: Sequence[Mark]) -> Seen:
        """The sentence without what is kept, and with marks where it was."""
        void = () if self.protection is None else _VOID.finditer(line, start, stop)
        if not kept and all(character[0] in self._known for character in void):
            return Seen(line[start:stop], range(start, stop), sentence=(start, stop))
        text: list[str] = []
        places: list[int] = []
        marks: list[Mark] = []
        around = _around_words(line, [mark.place for mark in kept])
        for number, (first, last) in enumerate(_between([mark.place for mark in kept], start, stop)):
            # One space where two would be, and none behind an opening bracket
            if number and (not text or text[-1].isspace() or _OPENING.match(line, places[-1])):
                while first < last and line[first].isspace():
                    first += 1
                if text and text[-1].isspace() and first < last and line[first] in CLOSING:
                    del text[-1], places[-1]
                    marks[-1] = marks[-1]._replace(start=len(text), stop=len(text))
            for place in range(first, last):
                if not self._is_hidden(line, place, behind=text[-1] if text else ""):
                    text.append(line[place])
                    places.append(place)
            if number < len(kept):
                mark = kept[number]
                marks.append(mark._replace(start=len(text), stop=len(text)))
                parts_words = mark.place not in around or _NEXT_ELEMENT.match(line, mark.start)
                if parts_words and text and _WORD.match(text[-1]) and _WORD.match(line, mark.stop):
                    text.append(" ")
                    places.append(mark.start)
        while kept and text and text[-1].isspace():
            del text[-1], places[-1]
        marks = [mark._replace(start=min(mark.start, len(text)), stop=min(mark.stop, len(text))) for mark in marks]
        return Seen("".join(text), places, marks, sentence=(start, stop))

    def _spelled(self, text: str) -> str:
        """The text with a space for other white space that the vocabulary lacks, as without normalization, and in words
        that are spelled anew the nearest letters for those that it lacks."""
        text = _OTHER_SPACE.sub(lambda space: space[0] if space[0] in self._known else " ", text)
        if not self.shows_letters:
            return text
        lacking = set(OF_LETTER.findall(text)) - self._known
        return text.translate({ord(letter): self._nearest(letter) for letter in lacking})

    def _nearest(self, letter: str) -> str:
        """The letter that it is in the other case, or without what is on it, if the vocabulary has that one alone."""
        parts = normalize("NFKD", letter)
        bare = parts[0] if all(map(combining, parts[1:])) else letter
        cases = letter.swapcase()
        others = (letter, cases.swapcase(), cases, bare, bare.swapcase())  # of ſ the second is s
        return next((one for one in others if len(one) == 1 and UNKNOWN not in self.subwords.encode(one)), letter)

    def _is_hidden(self, line: str, place: int, *, behind: str) -> bool:
        """Whether the vocabulary lacks a character without which words are the same, which is shown `behind` another.

        A mark stays on a letter that it lacks, too, and on a Latin one, which it makes another. A zero-width space
        parts words in scripts that have no others.
        """
        character = line[place]
        if character.isascii() or not _VOID.match(character) or character in self._known:
            return False
        if combining(character):
            is_shown_bare = self.shows_letters and UNKNOWN in self.subwords.encode(character)  # not as bytes
            return behind in self._known and (is_shown_bare or not LATIN.match(behind))
        around = line[place - 1 : place] + line[place + 1 : place + 2]
        return character != "\u200b" or not has_finer(around)

    def _as_sentence(self, text: str) -> str:
        """A sentence that is written in capitals as it would be otherwise, with as many characters.

        Of a word in lower case, and with a capital, the one is taken that the vocabulary has pieces for, and that it
        spells with fewer; the first one has a capital unless the vocabulary has none.
        """

        def usual(match: regex.Match[str]) -> str:
            if match[0] in self.subwords.symbols:
                return match[0]
            lower = "".join(one.lower() if len(one.lower()) == 1 else one for one in match[0])
            title = match[0][0] + lower[1:]
            ranks = {word: (UNKNOWN in (ids := self.subwords.encode(word)), len(ids)) for word in (lower, title)}
            return min((lower, title), key=lambda word: ranks[word]) if match.start() or ranks[title][0] else title

        symbols = [rf"(?<!\S){regex.escape(symbol)}(?!\S)" for symbol in self.subwords.symbols]
        return regex.sub("|".join([*symbols, _LETTERS.pattern]), usual, text)


def _with_terms(seen: Seen, found: Found) -> Seen:
    """The sentence with the terms among what was found of the line."""
    terms = [
        mark._replace(start=bisect_left(seen.places, mark.start), stop=bisect_left(seen.places, mark.stop))
        for mark in found
        if mark.instead is not None
    ]
    return seen._replace(marks=sorted([*seen.marks, *terms], key=lambda mark: mark[:2])) if terms else seen


def _is_between_letters(text: str, start: int, stop: int) -> bool:
    """Whether something stands between letters, as an apostrophe or a hyphen does, and is not a number."""
    has_letters = OF_LETTER.match(text[start - 1 : start]) and OF_LETTER.match(text[stop : stop + 1])
    return bool(has_letters) and not _LETTER_OR_DIGIT.search(text, start, stop)


def _is_part(spans: Sequence[Span], other: Span) -> bool:
    """Whether one of the spans, which are in order, has another one and more."""
    place = bisect_right(spans, other[0], key=lambda span: span[0]) - 1
    return place >= 0 and other[1] <= spans[place][1] and spans[place] != other


def with_kept(found: Found, spans: Iterable[Span], line: str) -> list[Mark]:
    """What was found of a line, in order, with the spans, of which nothing is kept that is a term's."""
    kept = joined_spans(spans)
    marks = [
        mark for mark in found if mark.instead is not None and not (is_shown(mark) and overlapping(kept, mark.place))
    ]
    terms = [mark.place for mark in marks]
    for span in _together(line, [*(mark.place for mark in found if mark.instead is None), *kept]):
        for part in _between([terms[term] for term in overlapping(terms, span)], *span):
            begin, end = _stripped(line, *part)
            if begin < end:
                marks.append(_kept(line, begin, end))
    return sorted(marks, key=lambda mark: mark.place)


def _kept(line: str, start: int, stop: int) -> Mark:
    """The mark for the characters [start, stop) of a line, which stay as they are."""
    before, after = are_apart(line[start - 1 : start], line[stop : stop + 1])
    content = LINE_END.sub(" ", line[start:stop])
    breaks = content.startswith("<") and content.endswith(">")
    return Mark(start, stop, before=before, after=after, breaks=breaks, tags=(content, ""), place=(start, stop))


def is_shown(mark: Mark) -> bool:
    """Whether the model is shown what the mark stands for, which its translation should have as well."""
    return mark.instead is not None and mark.instead == mark.tags[0]


def _inside(found: Found, start: int, stop: int) -> Found:
    """Those that begin among the characters [start, stop)."""
    first, last = (bisect_left(found, bound, key=lambda mark: mark.start) for bound in (start, stop))
    return found[first:last]


def _around(line: str, start: int, stop: int) -> list[Span]:
    """What stands at the beginning and at the end of a sentence and is no part of it."""
    beginning, last = BEGINNING.match(line, start, stop), start + len(line[start:stop].rstrip(ENDS))
    end = _END.match(line, start, last)  # without the period behind it
    spans = [(start, start + len(beginning[0].rstrip()))] if beginning and beginning[0].strip() else []
    return [*spans, (end.end() - len(end[0].lstrip()), end.end())] if end else spans


def _between(kept: Sequence[Span], start: int, stop: int) -> list[Span]:
    """What is left of the characters [start, stop) before, between, and after what is kept."""
    if not kept:
        return [(start, stop)]
    starts, stops = [start, *(last for _, last in kept)], [*(first for first, _ in kept), stop]
    return list(zip(starts, stops, strict=True))
