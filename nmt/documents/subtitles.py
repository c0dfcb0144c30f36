"""Subtitles of any of FORMS: their texts, and the file with the translations in their place.

Times, numbers, blank lines, the byte order mark and line ends stay as they are. A sentence that goes on in the next
cues is one line to translate, unless there is a long pause between them; its translation is cut again (see `cutting`).
A line that begins with a dash, a speaker's name (ANN: ...) or a sound ([door slams]), and what a voice of WebVTT says
(<v Ann>) are by different speakers, so each is a text of its own. Tags (<i>, <font …>, {\\an8}, <00:01.000>) stay, as
marks (see `tagged`); so do line breaks and hard spaces that are written out (<br>, \\N, \\h), which are between two
words. References (&amp;) of WebVTT and TTML are characters.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from html import escape, unescape
from typing import NamedTuple

import regex

from nmt.decoding.text.sentences import ENDS
from nmt.decoding.writing import Translation
from nmt.documents.cues import Cue, of_ass, of_sbv, of_subrip, of_ttml, of_webvtt
from nmt.documents.cutting import Cut, cut_among
from nmt.documents.formats import Language
from nmt.documents.tagged import SPACES, Notation, Part, Piece, piece_of, tags_by, written_parts
from nmt.text_form import DIRECTIONS

LONGEST_GAP = 5.0  # seconds between two cues; after more a speaker seldom goes on with the sentence
LONGEST_SENTENCE = 6  # cues; where no sentence ends for longer, each is translated by itself

_ESCAPE = r"(?<!\b[A-Za-z]:)\\"  # C:\Nas is a path
_STYLE = r"\{\\[^{}\n]*\}"
_RUBY = r"<rt[^<>\n]*>[^<>\n]*</rt>"  # how the word before it is read
_STAMP = re.compile(r"<[0-9][^<>\n]*>")  # when what follows it is shown; one may not be before another
_WHEN = r"<(?:\d{2,}:)?\d\d:\d\d\.\d{3}>"  # likewise, in SubRip that was WebVTT
_VOICE = re.compile(r"<v(?:\.[^\s<>]*)?(?:\s([^<>\n]*))?>")
_PLACE = re.compile(r"\{\\(?:an?\d|pos)[^{}]*\}")
_DASHES = "-–—‐"
_LABEL = re.compile(r"[A-ZÀ-ÖØ-ÞΑ-ΩЀ-Я][A-ZÀ-ÖØ-ÞΑ-ΩЀ-Я0-9 .'’&#-]{0,40}:(?=\s)\s*")  # who speaks
_SOUND = rf"[^\S\n]*[{_DASHES}]?[^\S\n]*\[[^\[\]\n]*\][^\S\n]+(?=\S)"  # before what is said
_SOUND_ALONE = re.compile(rf"[{_DASHES}>\s]*\[[^\[\]]*\]")
_SENTENCE_ENDS = tuple(f"{ENDS}:♪♫)]")
_QUOTES = "\"'”’»」』 \t\r\n"  # may follow the end of a sentence
_SPEAKERS = (*_DASHES, "♪", "♫", "[", ">>")
_APART = (*_SPEAKERS, "(")  # begins what does not go on from the cue before
_SIGNS = "♪♫#*~"  # of music and the like
_BEHIND = f"{SPACES}{DIRECTIONS}{_SIGNS}"  # not translated where a text ends
_DIRECTION_MARK = re.compile(f"[{DIRECTIONS}]|&(?:lrm|rlm);")


class _Form(NamedTuple):
    """One of the formats."""

    cues: Callable[[str, str], Iterable[Cue]]
    notation: Notation
    row: re.Pattern[str]  # up to a line break, also one that is written out, or to a voice
    blank: str = r"^[^\S\n]*\n"  # a row that ends a cue
    line_break: str = "\n"


def _notation(tag: str, read: Callable[[str], str] = str, write: Callable[[str], str] = str) -> Notation:
    """How texts with such tags are written."""
    before = f"{_BEHIND}{_DASHES}>"
    return Notation(tags_by(re.compile(tag)), read, write, before, _BEHIND, _LABEL, in_order=_STAMP)


_XML = (unescape, partial(escape, quote=False))
_TAG = r"<(/?)([A-Za-z][A-Za-z0-9]*)(?![A-Za-z0-9])[^<>\n]*>"
_WEB_TAG = r"<(?=[0-9A-Za-z./])(/?)(?:([A-Za-z][A-Za-z0-9]*)(?![A-Za-z0-9]))?[^<>\n]*>"
_SUBRIP = _notation(rf"{_TAG}|{_STYLE}|{_WHEN}|{_ESCAPE}[Nh]")
_SUBRIP_ROW = re.compile(rf"{_SOUND}|.*?(?:\n|<[Bb][Rr]\b[^<>\n]*>|{_ESCAPE}N)|.+")
FORMS = {
    "srt": _Form(of_subrip, _SUBRIP, _SUBRIP_ROW),
    "sbv": _Form(of_sbv, _SUBRIP, _SUBRIP_ROW),
    "vtt": _Form(
        of_webvtt,
        _notation(rf"{_RUBY}|{_WEB_TAG}|{_STYLE}", *_XML),
        re.compile(rf"{_SOUND}|(?:<v[.\s][^<>\n]*>)?.*?(?:\n|(?=<v[.\s][^<>\n]*>))|.+"),
        blank=r"^\r?\n",
    ),
    "ass": _Form(
        of_ass, _notation(r"\{[^{}]*\}|\\[nh]()()"), re.compile(rf"{_SOUND}|.*?(?:\n|\\n)|.+"), line_break=r"\N"
    ),
    "ttml": _Form(
        of_ttml,
        _notation(r"<!--[^<>]*-->|<(/?)(?:[\w-]+:)?([A-Za-z][\w.-]*)[^<>]*>", *_XML),
        re.compile(rf"{_SOUND}|.*?(?:\n|<(?:[\w-]+:)?br\b[^<>]*>)|.+"),
        blank=r"(?!)",
    ),
}


class Subtitles:
    """A file of subtitles with its texts: `lines` are to be translated."""

    language = Language(
        regex.compile(r"(?<=<(?:\w+:)?tt\b[^<>]*\sxml:lang\s*=\s*[\"'])[\w-]+"),
        lambda text, direction: text if direction == "rtl" else _DIRECTION_MARK.sub("", text),
    )

    def __init__(self, text: str, *, name: str, form: str = "srt") -> None:
        """Raises UserError, which calls the file `name`, for lines without times, or with wrong ones."""
        self._form = FORMS[form]
        self._runs: list[str | list[Part]] = []  # what is between texts, and texts by what is said
        self._sentences: list[list[Piece]] = []
        sentences: list[list[Piece]] = []
        is_over = True  # the last of them
        last_place: list[str] = []  # where on the screen it stands, and who speaks
        spoken_until, written = 0.0, 0
        found = self._form.cues(text, name) if text.strip("\ufeff").strip() else ()
        for start, stop, times, settings in found:
            is_over = is_over or times[0] - spoken_until > LONGEST_GAP
            spoken_until = max(spoken_until, times[1])
            utterances = _utterances(text[start:stop].replace(self._form.line_break, "\n"), self._form)
            several = len(utterances) > 1
            parts: list[Part] = []
            self._runs += [text[written:start], parts]
            written = stop
            for whole in utterances:
                piece = piece_of(whole, self._form.notation)
                spoken = _spoken(whole, self._form)
                place = [settings, *_PLACE.findall(utterances[0]), *map(str.strip, _VOICE.findall(whole))]
                is_apart = several or spoken.startswith(_APART) or _LABEL.match(spoken) is not None
                if piece is None:
                    parts.append(whole)
                    is_over = True
                else:
                    if is_over or is_apart or place != last_place:
                        sentences.append([])
                    parts.append(piece)
                    sentences[-1].append(piece)
                    is_over = several or spoken.rstrip(_QUOTES).endswith(_SENTENCE_ENDS)
                last_place = place
        self._runs.append(text[written:])
        for pieces in sentences:
            self._sentences += [pieces] if len(pieces) <= LONGEST_SENTENCE else [[piece] for piece in pieces]
        self.lines = [" ".join(piece.text for piece in pieces) for pieces in self._sentences]
        self.is_marked = any(
            len(sentence) > 1 or any(piece.marks for piece in sentence) for sentence in self._sentences
        )

    def written(self, translations: Sequence[Translation]) -> str:
        """The file with a translation for each of the lines.

        A cue that gets no words of its sentence shows those of the cue before it.
        """
        cuts: list[Cut] = []  # in the order of the pieces, as sentences are
        for pieces, translation in zip(self._sentences, translations, strict=True):
            parts = cut_among([piece.text for piece in pieces], translation)
            for number, (part, _) in enumerate(parts[1:], start=1):
                if not part:
                    parts[number] = (parts[number - 1][0], [])
            cuts += parts
        left = iter(cuts)
        return "".join(run if isinstance(run, str) else self._run(run, left) for run in self._runs)

    def _run(self, parts: Sequence[Part], cuts: Iterator[Cut]) -> str:
        """A run with its translations; rows that are blank without one, and would end the cue, are left out."""
        run = written_parts(parts, cuts, self._form.notation)
        if not all(isinstance(part, str) for part in parts):
            end = len(run.rstrip())
            run = re.sub(self._form.blank, "", run[:end], flags=re.MULTILINE) + run[end:]
        return run.replace("\n", self._form.line_break)


def _utterances(text: str, form: _Form) -> list[str]:
    """What each speaker says in a text: a row with a dash, name, sound or voice begins another, as each of a song."""
    utterances: list[str] = []
    has_text = True  # the last of them
    is_sound = False
    for row in form.row.findall(text):
        spoken = _spoken(row, form)
        begins = spoken.startswith(_SPEAKERS) or _VOICE.match(row) or _LABEL.match(f"{spoken} ") or is_sound
        if not utterances or (has_text and begins):
            utterances.append("")
            has_text = False
        utterances[-1] += row
        has_text = has_text or spoken != ""
        is_sound = _SOUND_ALONE.fullmatch(spoken) is not None
    return utterances


def _spoken(source: str, form: _Form) -> str:
    """What is said, without tags, and without white space and marks of direction around it."""
    return form.notation.words(source).strip(f"{SPACES}{DIRECTIONS}")
