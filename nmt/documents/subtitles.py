"""Subtitles, SubRip or WebVTT: their texts, and the file with the translations in their place.

Times, numbers, blank lines, the byte order mark and line ends stay as they are. A sentence that goes on in the next
cues is one line to translate, unless there is a long pause between them; its translation is cut again (see `cutting`).
A row that is shown again at the top of the next cue, as captions roll, is translated once.
A line that begins with a dash and what a voice of WebVTT says (<v Ann>) are by different speakers, so each is a text of
its own. Tags (<i>, <font …>, {\\an8}, <00:01.000>) stay, as marks (see `inline`); so do line breaks and hard spaces
that SubRip has written out (<br>, \\N, \\h), which are between two words. WebVTT's references (&amp;) are characters.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape, unescape
from typing import Literal, NamedTuple

from nmt.decoding.text.sentences import ENDS
from nmt.decoding.writing import Translation
from nmt.documents.cues import Run, of_subrip, of_webvtt
from nmt.documents.cutting import columns, cut_among, in_rows
from nmt.documents.inline import Line, Mark
from nmt.documents.placing import placed
from nmt.documents.tags import END, OTHER, START, TEXT, Token, partners
from nmt.pharaoh import Link

LONGEST_GAP = 5.0  # seconds between two cues; after more a speaker seldom goes on with the sentence
LONGEST_SENTENCE = 6  # cues or rolling rows; where no sentence ends for longer, each is translated by itself
MOST_ROLLED = 4  # rows that captions show at a time
ROLLED_WITHIN = 0.05  # seconds after a cue in which captions roll on; what comes later was said again

_ESCAPE = r"(?<!\b[A-Za-z]:)\\"  # C:\Nas is a path
_STYLE = r"\{\\[^{}\n]*\}"
_RUBY = r"<rt[^<>\n]*>[^<>\n]*</rt>"  # how the word before it is read
_STAMP = re.compile(r"<[0-9][^<>\n]*>")  # when what follows it is shown; in the order of time
_WHEN = r"<(?:\d{2,}:)?\d\d:\d\d\.\d{3}>"  # likewise, in SubRip that was WebVTT
_VOICE = re.compile(r"<v(?:\.[^\s<>]*)?(?:\s([^<>\n]*))?>")
_CHARACTER = re.compile(r"&#?[0-9A-Za-z]{1,32};|.", re.DOTALL)  # as a reference, or itself
_LAST_REFERENCE = re.compile(r"&#?[0-9A-Za-z]{1,32};\Z")
_LONGEST_REFERENCE = 35
_PLACE = re.compile(r"\{\\(?:an?\d|pos)[^{}]*\}")
_SPACES = "".join(character for character in map(chr, range(0x3001)) if character.isspace())
_DASHES = "-–—‐"
_SENTENCE_ENDS = tuple(f"{ENDS}:♪♫)]")
_QUOTES = "\"'”’»」』 \t\r\n"  # may follow the end of a sentence
_SPEAKERS = (*_DASHES, "♪", "♫")
_APART = (*_SPEAKERS, "(", "[")  # begins what does not go on from the cue before
_SIGNS = "♪♫#*~"  # of music and the like
_DIRECTIONS = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # marks of direction
_BEHIND = f"{_SPACES}{_DIRECTIONS}{_SIGNS}"  # not translated where a text ends
_BEFORE = f"{_BEHIND}{_DASHES}"  # or begins


class _Form(NamedTuple):
    """One of the two formats."""

    runs: Callable[[str, str], list[Run]]
    tag: re.Pattern[str]  # its groups: the slash of an end tag, and the name
    row: re.Pattern[str]  # up to a line break, also one that is written out, or to a voice
    blank: re.Pattern[str]  # a row that ends a cue
    read: Callable[[str], str]  # the text that is written so
    write: Callable[[str], str]


_FORMS = {
    "srt": _Form(
        of_subrip,
        re.compile(rf"<(/?)([A-Za-z][A-Za-z0-9]*)(?![A-Za-z0-9])[^<>\n]*>|{_STYLE}|{_WHEN}|{_ESCAPE}[Nh]"),
        re.compile(rf".*?(?:\n|<[Bb][Rr]\b[^<>\n]*>|{_ESCAPE}N)|.+"),
        re.compile(r"^[^\S\n]*\n", re.MULTILINE),
        str,
        str,
    ),
    "vtt": _Form(
        of_webvtt,
        re.compile(rf"{_RUBY}|<(?=[0-9A-Za-z./])(/?)(?:([A-Za-z][A-Za-z0-9]*)(?![A-Za-z0-9]))?[^<>\n]*>|{_STYLE}"),
        re.compile(r"(?:<v[.\s][^<>\n]*>)?.*?(?:\n|(?=<v[.\s][^<>\n]*>))|.+"),
        re.compile(r"^\r?\n", re.MULTILINE),
        unescape,
        partial(escape, quote=False),
    ),
}


class _Piece(NamedTuple):
    """The text of a cue, or of one of the speakers in it."""

    before: str  # what stays around the text: white space, a dash, tags
    text: str  # on one line
    marks: list[Mark]
    tags: list[tuple[str, str]]
    after: str
    is_whole: bool  # whether its tags have their partners
    rows: int
    longest: int  # columns of a row
    line_end: str


class _Shown(NamedTuple):
    """A piece where it is shown."""

    piece: _Piece
    number: int  # among the pieces that are translated; what is shown again has that of the first time


class Subtitles:
    """A file of subtitles with its texts: `lines` are to be translated."""

    def __init__(self, text: str, *, name: str, form: Literal["srt", "vtt"] = "srt") -> None:
        """Raises UserError, which calls the file `name`, for lines without times, or with wrong ones."""
        self.lines: list[str] = []
        self._form = _FORMS[form]
        self._is_old = "\r" in text and "\n" not in text  # its lines end as those of old Macs did
        text = text.replace("\r", "\n") if self._is_old else text
        self._runs: list[list[str | _Shown]] = []
        self._sentences: list[list[_Piece]] = []
        running: list[_Piece] = []  # the beginning of a sentence
        last_place: list[str] = []  # where on the screen it stands, and who speaks
        spoken_until = 0.0
        count = 0  # of the pieces that are translated
        shown: list[int] = []  # their numbers in the last cue
        runs = self._form.runs(text, name)
        rolled = _rolled(runs, self._form)
        for index, (rows, times, settings) in enumerate(runs):
            if times is None:
                self._runs.append(["".join(rows)])
                continue
            if times[0] - spoken_until > LONGEST_GAP:
                self._end_sentence(running)
                running = []
            spoken_until = max(spoken_until, times[1])
            rolls = index in rolled
            utterances = _single_rows(rows, self._form) if rolls else _utterances(rows, self._form)
            several = len(utterances) > 1 and not rolls
            again = shown[-rolled[index] :] if rolled.get(index) else []
            shown = []
            voices: list[str] = []
            parts: list[str | _Shown] = []
            self._runs.append(parts)
            for utterance in utterances:
                piece = _piece(utterance, self._form)
                whole = "".join(utterance)
                spoken = _spoken(whole, self._form)
                voices = [voice.strip() for voice in _VOICE.findall(whole)] or voices
                is_again = len(shown) < len(again)
                if piece is None and rolls and (is_again or not spoken):  # the sentence may go on behind it
                    parts.append(whole)
                    continue
                if piece is not None and is_again:
                    shown.append(again[len(shown)])
                    parts.append(_Shown(piece, shown[-1]))
                    continue
                place = [settings, *_PLACE.findall(utterances[0][0]), *voices]
                if piece is None or several or spoken.startswith(_APART) or place != last_place:
                    self._end_sentence(running)
                    running, last_place = [], place
                if piece is None:
                    parts.append(whole)
                    continue
                parts.append(_Shown(piece, count))
                shown.append(count)
                count += 1
                running.append(piece)
                if several or spoken.rstrip(_QUOTES).endswith(_SENTENCE_ENDS):
                    self._end_sentence(running)
                    running = []
        self._end_sentence(running)
        pieces = [part.piece for parts in self._runs for part in parts if isinstance(part, _Shown)]
        self.is_marked = len(self.lines) < count or any(piece.marks for piece in pieces)

    def _end_sentence(self, pieces: list[_Piece]) -> None:
        """Make the pieces one line; or one for each, where they are too many for a sentence."""
        for sentence in [pieces] if len(pieces) <= LONGEST_SENTENCE else [[piece] for piece in pieces]:
            if sentence:
                self._sentences.append(sentence)
                self.lines.append(" ".join(piece.text for piece in sentence))

    def written(self, translations: Sequence[Translation]) -> str:
        """The file with a translation for each of the lines."""
        cuts: list[tuple[str, list[Link]]] = []  # in the order of the pieces, as sentences are
        for pieces, translation in zip(self._sentences, translations, strict=True):
            cuts += cut_among([piece.text for piece in pieces], translation)
        written = "".join(self._run(parts, cuts) for parts in self._runs)
        return written.replace("\n", "\r") if self._is_old else written

    def _run(self, parts: Sequence[str | _Shown], cuts: Sequence[tuple[str, list[Link]]]) -> str:
        """A run with its translations; rows that are blank without one, and would end the cue, are left out."""
        run = "".join(part if isinstance(part, str) else self._text(part.piece, *cuts[part.number]) for part in parts)
        if all(isinstance(part, str) for part in parts):
            return run
        end = len(run.rstrip())
        return self._form.blank.sub("", run[:end]) + run[end:]

    def _text(self, piece: _Piece, translation: str, links: Sequence[Link]) -> str:
        """A piece with its translation and what stands around it."""
        rows = piece.line_end.join(in_rows(translation, most=piece.rows, longest=piece.longest))
        whole = links if piece.is_whole else None
        text = placed(piece.text, piece.marks, piece.tags, rows, whole, escape=self._form.write)
        return f"{piece.before}{_in_time(text, piece.tags)}{piece.after}"


def _rolled(runs: Sequence[Run], form: _Form) -> dict[int, int]:
    """The cues whose rows are translated one by one, by their places among the runs, as they roll on or did.

    With each, how many of its first rows with words are the last ones of the cue before.
    """
    rolled: dict[int, int] = {}
    last, shown_until = 0, 0.0
    last_texts: list[str] = []
    for index, (rows, times, _) in enumerate(runs):
        if times is None:
            continue
        pieces = (_piece(row, form) for row in _single_rows(rows, form))
        texts = [piece.text for piece in pieces if piece is not None]
        most = min(MOST_ROLLED, len(texts), len(last_texts)) if times[0] <= shown_until + ROLLED_WITHIN else 0
        if again := next((count for count in range(most, 0, -1) if last_texts[-count:] == texts[:count]), 0):
            rolled.setdefault(last, 0)
            rolled[index] = again
        last, last_texts, shown_until = index, texts, times[1]
    return rolled


def _single_rows(rows: Sequence[str], form: _Form) -> list[list[str]]:
    """Each row as a text of its own."""
    return [[row] for row in form.row.findall("".join(rows))]


def _utterances(rows: Sequence[str], form: _Form) -> list[list[str]]:
    """The rows of a text by speaker: each row with a dash or a voice begins another, as does each line of a song."""
    utterances: list[list[str]] = []
    has_text = True  # the last of them
    for row in form.row.findall("".join(rows)):
        spoken = _spoken(row, form)
        if not utterances or (has_text and (spoken.startswith(_SPEAKERS) or _VOICE.match(row))):
            utterances.append([])
            has_text = False
        utterances[-1].append(row)
        has_text = has_text or spoken != ""
    return utterances


def _in_time(text: str, tags: Sequence[tuple[str, str]]) -> str:
    """A text of WebVTT with its stamps in the order of time, which is that of `tags`: one may not be before another."""
    stamps = (stamp for tag, _ in tags for stamp in _STAMP.findall(tag))
    return _STAMP.sub(lambda stamp: next(stamps, stamp[0]), text)


def _spoken(source: str, form: _Form) -> str:
    """What is said, without tags, and without white space and marks of direction around it."""
    return form.read(form.tag.sub("", source)).strip(_SPACES + _DIRECTIONS)


def _piece(rows: Sequence[str], form: _Form) -> _Piece | None:
    """The text of these rows; None where there is nothing to translate."""
    source = "".join(rows)
    tokens = _tokens(source, form)
    together = partners(tokens)
    before, after, start, stop = _inner(source, tokens, together, form)
    line, tags, enclosing, is_whole = Line(), [], [], True
    while start < stop:
        token, index = tokens[start], start
        start += 1
        if token.kind != TEXT and index not in together:  # with others right behind it, to stay in their order
            while start < stop and tokens[start].kind != TEXT and start not in together:
                start += 1
            alone = tokens[index:start]
            is_whole = is_whole and all(other.kind == OTHER for other in alone)
            is_break = any(other.name == "br" for other in alone)
            line.put(separates=is_break, breaks=is_break)
            tags.append((source[token.start : alone[-1].stop], ""))
            continue
        text = source[max(token.start, before) : min(token.stop, after)]
        if token.kind == TEXT:
            line.write(form.read(text))
        elif token.kind == START:
            line.open()
            enclosing.append(len(tags))
            tags.append((text, ""))
        else:
            line.close()
            number = enclosing.pop()
            tags[number] = (tags[number][0], text)
    line.end()
    if not any(map(str.isalpha, line.text)):
        return None
    own_rows = source[before:after].split("\n")
    longest = max(columns(form.read(form.tag.sub("", row)).strip()) for row in source.split("\n"))
    line_end = "\r\n" if "\r\n" in source else "\n"
    around = (source[:before], source[after:])
    return _Piece(around[0], line.text, line.marks, tags, around[1], is_whole, len(own_rows), longest, line_end)


def _inner(source: str, tokens: Sequence[Token], together: Mapping[int, int], form: _Form) -> tuple[int, int, int, int]:
    """What is left without all that is kept around the text: source[before:after], in tokens[start:stop].

    From outside to inside these are tags without a partner, pairs of tags around everything, and the characters that
    `_begin` and `_end` pass over. `together`: the places of tags by those of their partners.
    """
    before, after, start, stop = 0, len(source), 0, len(tokens)
    begun = ended = -1  # the texts whose beginning and whose end is known
    while start < stop:
        first, last = tokens[start], tokens[stop - 1]
        if first.kind != TEXT and start not in together:
            before, start = first.stop, start + 1
        elif last.kind != TEXT and stop - 1 not in together:
            after, stop = last.start, stop - 1
        elif first.kind == TEXT and start != begun:
            before, begun = _begin(source, before, first.stop, form), start
            start += before == first.stop
        elif last.kind == TEXT and stop != ended:
            after, ended = _end(source, last.start, after, form), stop
            stop -= after == last.start
        elif first.kind == START and together[start] == stop - 1:
            before, after, start, stop = first.stop, last.start, start + 1, stop - 1
        else:
            break
    return before, after, start, stop


def _begin(source: str, start: int, stop: int, form: _Form) -> int:
    """Where of the text source[start:stop] begins what is translated: after white space, dashes, signs of music."""
    for character in _CHARACTER.finditer(source, start, stop):
        if form.read(character[0]).strip(_BEFORE):
            return character.start()
    return stop


def _end(source: str, start: int, stop: int, form: _Form) -> int:
    """Where of the text source[start:stop] ends what is translated: before white space and signs of music."""
    while stop > start:
        reference = _LAST_REFERENCE.search(source, max(start, stop - _LONGEST_REFERENCE), stop)
        last = source[stop - 1] if reference is None else reference[0]
        if form.read(last).strip(_BEHIND):
            break
        stop -= len(last)
    return stop


def _tokens(source: str, form: _Form) -> list[Token]:
    tokens = []
    place = 0
    for tag in form.tag.finditer(source):
        if place < tag.start():
            tokens.append(Token(TEXT, place, tag.start()))
        name = "br" if tag[0].startswith("\\") else (tag[2] or "").lower()
        kind = OTHER if name in ("", "br") else END if tag[1] else START
        tokens.append(Token(kind, tag.start(), tag.end(), name))
        place = tag.end()
    if place < len(source):
        tokens.append(Token(TEXT, place, len(source)))
    return tokens
