"""SubRip subtitles: their texts, and the file with the translations in their place.

Times, numbers, blank lines, the byte order mark and line ends stay as they are. A sentence that goes on in the next
cues is one line to translate; its translation is cut near the same share of its characters, rather where a punctuation
mark stands and where few word alignments cross. Lines that begin with a dash are by different speakers, so each is a
text of its own. Tags (<i>, <font …>, {\\an8}) stay, as marks (see `inline`).

Numbers may be missing, as players need none; times may not, and mistakes in them are reported with their line. There is
no standard: this reads what the format's first program wrote, and what players accept.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from nmt.decoding.text.sentences import ENDS
from nmt.decoding.writing import Translation
from nmt.documents.inline import Line, Mark
from nmt.documents.placing import placed
from nmt.documents.tags import END, OTHER, START, TEXT, Token, partners
from nmt.errors import Checking, checked
from nmt.pharaoh import Link

LONGEST_SENTENCE = 6  # cues; where no sentence ends for longer, as without punctuation, each is translated by itself
PAUSE = 2.0  # what a cut at a pause may cost, in words away from the same share and alignments that it crosses
ROW_PAUSE = 6.0  # what a line break at a pause may cost, in characters away from the middle

_STAMP = r"\d{1,3}:\d{1,2}:\d{1,2}[,.]\d{1,3}"
_TIMES = re.compile(rf"\s*{_STAMP}\s*-->\s*{_STAMP}(\s.*)?")
_TWO_STAMPS = re.compile(r"\s*\d{1,3}:\d{1,2}:\d{1,2}\D.*\d{1,3}:\d{1,2}:\d{1,2}")
_LIKE_STAMP = re.compile(r"\d[:.,]\d+[:.,]\d")
_NUMBER = re.compile(r"\s*\d+\s*")
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]*)(?![A-Za-z0-9])[^<>\n]*>|\{\\[^{}\n]*\}")
_PLACE = re.compile(r"\{\\(?:an?\d|pos)[^{}]*\}")
_DASH = re.compile(r"\s*[-–—‐]+\s*")
_SENTENCE_ENDS = tuple(f"{ENDS}:♪♫)]")
_QUOTES = "\"'”’»」』 \t\r\n"  # may follow the end of a sentence
_SPEAKERS = ("-", "–", "—", "‐", "♪", "♫")
_APART = (*_SPEAKERS, "(", "[")  # begins what does not go on from the cue before
_PAUSE = re.compile(rf"[{ENDS},;:，、；：،؛–—][\"'”’»)\]」』]*$")
_SIGNS = "♪♫#*~"  # of music and the like; not translated where a text begins or ends with them


class _Piece(NamedTuple):
    """The text of a cue, or of one of the speakers in it."""

    before: str  # what stays around the text: white space, a dash, tags
    text: str  # on one line
    marks: list[Mark]
    tags: list[tuple[str, str]]
    after: str
    is_whole: bool  # whether its tags have their partners
    rows: int
    longest: int  # characters of a row
    line_end: str


class Subtitles:
    """A SubRip file with its texts: `lines` are to be translated."""

    def __init__(self, text: str, *, name: str) -> None:
        """Raises UserError, which calls the file `name`, for lines without times, or with wrong ones."""
        self.lines: list[str] = []
        self._parts: list[str | _Piece] = []
        self._sentences: list[list[_Piece]] = []
        running: list[_Piece] = []  # the beginning of a sentence
        last_place: list[str] = []  # where on the screen it stands
        for rows, is_spoken in checked(_runs(text, name)):
            if not is_spoken:
                self._parts.append("".join(rows))
                continue
            utterances = _utterances(rows)
            for utterance in utterances:
                piece = _piece(utterance)
                spoken = _TAG.sub("", "".join(utterance)).strip()
                place = _PLACE.findall(utterance[0])
                if piece is None or len(utterances) > 1 or spoken.startswith(_APART) or place != last_place:
                    self._end_sentence(running)
                    running, last_place = [], place
                if piece is None:
                    self._parts.append("".join(utterance))
                    continue
                self._parts.append(piece)
                running.append(piece)
                if len(utterances) > 1 or spoken.rstrip(_QUOTES).endswith(_SENTENCE_ENDS):
                    self._end_sentence(running)
                    running = []
        self._end_sentence(running)
        self.is_marked = any(len(pieces) > 1 or pieces[0].marks for pieces in self._sentences)

    def _end_sentence(self, pieces: list[_Piece]) -> None:
        """Make the pieces one line; or one for each, where they are too many for a sentence."""
        for sentence in [pieces] if len(pieces) <= LONGEST_SENTENCE else [[piece] for piece in pieces]:
            if sentence:
                self._sentences.append(sentence)
                self.lines.append(" ".join(piece.text for piece in sentence))

    def written(self, translations: Sequence[Translation]) -> str:
        """The file with a translation for each of the lines."""
        texts = []  # in the order of the pieces, as sentences are
        for pieces, translation in zip(self._sentences, translations, strict=True):
            cuts = _cut([piece.text for piece in pieces], translation.text, translation.alignment or [])
            for piece, (words, links) in zip(pieces, cuts, strict=True):
                text = _in_rows(words, piece)
                text = placed(piece.text, piece.marks, piece.tags, text, links if piece.is_whole else None)
                texts.append(f"{piece.before}{text}{piece.after}")
        following = iter(texts)
        return "".join(part if isinstance(part, str) else next(following) for part in self._parts)


def _runs(text: str, name: str) -> Checking[list[tuple[list[str], bool]]]:
    """All rows of a file with their line ends, those of a text together; and whether they are a text."""
    rows = re.findall(r"[^\n]*\n|[^\n]+", text)
    heads: set[int] = set()  # rows with numbers and times
    begun = False
    for index, row in enumerate(rows):
        bare, number = row.strip("\ufeff\r\n"), index + 1
        if _TIMES.fullmatch(bare):
            begun = True
            heads.add(index)
            if index and _NUMBER.fullmatch(rows[index - 1].strip("\ufeff")):
                heads.add(index - 1)
        elif _is_like_times(bare):
            begun = True
            yield f"{name}, line {number}: {bare!r} is damaged; expected times such as 00:01:02,345 --> 00:01:04,000"
        elif not begun and bare.strip() and not _NUMBER.fullmatch(bare):
            yield f"{name}, line {number}: {bare[:50]!r} comes before the times of the first subtitle; is this SubRip?"
            return []
    if not begun and text.strip("\ufeff").strip():
        yield f"{name}: has no line with times, such as 00:01:02,345 --> 00:01:04,000; is this SubRip?"
    for index, row in enumerate(rows):
        is_number = (
            index not in heads and _NUMBER.fullmatch(row) and (not index or not rows[index - 1].strip("\ufeff\r\n\t "))
        )
        if is_number and index + 1 < len(rows) and rows[index + 1].strip() and not _is_like_times(rows[index + 1]):
            yield f"{name}, line {index + 1}: the number {row.strip()} is not followed by a line with times"
    runs: list[tuple[list[str], bool]] = []
    for index, row in enumerate(rows):
        is_spoken = index not in heads and row.strip("\ufeff").strip() != ""
        if not runs or runs[-1][1] != is_spoken:
            runs.append(([], is_spoken))
        runs[-1][0].append(row)
    return runs


def _is_like_times(row: str) -> bool:
    """Whether a row, which may be damaged, has times; an arrow alone is text, as in "File --> Open"."""
    return bool(_TWO_STAMPS.match(row) or ("-->" in row and _LIKE_STAMP.search(row)))


def _utterances(rows: Sequence[str]) -> list[list[str]]:
    """The rows of a text by speaker: each row with a dash begins another, and so does each line of a song."""
    utterances: list[list[str]] = []
    for row in rows:
        if not utterances or _TAG.sub("", row).lstrip().startswith(_SPEAKERS):
            utterances.append([])
        utterances[-1].append(row)
    return utterances


def _piece(rows: Sequence[str]) -> _Piece | None:
    """The text of these rows; None where there is nothing to translate."""
    source = "".join(rows)
    tokens = _tokens(source)
    together = partners(tokens)
    before, after, start, stop = 0, len(source), 0, len(tokens)  # what is left: source[before:after]
    while start < stop:
        first, last = tokens[start], tokens[stop - 1]
        if first.kind != TEXT and start not in together:
            before, start = first.stop, start + 1
        elif last.kind != TEXT and stop - 1 not in together:
            after, stop = last.start, stop - 1
        elif first.kind == TEXT and (cut := first.stop - len(_begun(source[before : first.stop]))) > before:
            before, start = cut, start + (cut == first.stop)
        elif (
            last.kind == TEXT and (cut := last.start + len(source[last.start : after].rstrip().rstrip(_SIGNS))) < after
        ):
            after, stop = cut, stop - (cut == last.start)
        elif first.kind == START and together[start] == stop - 1:
            before, after, start, stop = first.stop, last.start, start + 1, stop - 1
        else:
            break
    line, tags, enclosing, is_whole = Line(), [], [], True
    for index in range(start, stop):
        token = tokens[index]
        text = source[max(token.start, before) : min(token.stop, after)]
        if token.kind == TEXT:
            line.write(text)
        elif index not in together:
            is_whole = is_whole and token.kind == OTHER
            line.put()
            tags.append((text, ""))
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
    longest = max(len(_TAG.sub("", row).strip()) for row in rows)
    line_end = "\r\n" if rows[0].endswith("\r\n") else "\n"
    around = (source[:before], source[after:])
    return _Piece(around[0], line.text, line.marks, tags, around[1], is_whole, len(rows), longest, line_end)


def _begun(text: str) -> str:
    """A text without what is not translated at its beginning: white space, dashes, signs of music."""
    text = text.lstrip()
    dash = _DASH.match(text)
    return text[dash.end() :] if dash else text.lstrip(_SIGNS)


def _tokens(source: str) -> list[Token]:
    tokens = []
    place = 0
    for tag in _TAG.finditer(source):
        if place < tag.start():
            tokens.append(Token(TEXT, place, tag.start()))
        kind = OTHER if tag[2] is None else END if tag[1] else START
        tokens.append(Token(kind, tag.start(), tag.end(), (tag[2] or "").lower()))
        place = tag.end()
    if place < len(source):
        tokens.append(Token(TEXT, place, len(source)))
    return tokens


def _cut(texts: Sequence[str], translation: str, links: Sequence[Link]) -> list[tuple[list[str], list[Link]]]:
    """The words of the translation for each of the texts, with the links between the words of both.

    A cut is made where the words before it are as large a share of the characters as in the source. It may be moved:
    each word costs one, so does each link that it crosses, and a pause is worth PAUSE. Every text gets a word, if there
    are enough.
    """
    words = translation.split()
    lengths = [0, *accumulate(len(word) + 1 for word in words)]
    counts = [0, *accumulate(len(text.split()) for text in texts)]
    characters = [0, *accumulate(len(text) + 1 for text in texts)]
    cuts = [0]
    for number in range(1, len(texts)):
        share = characters[number] / characters[-1] * lengths[-1]
        usual = bisect_left(lengths, share)
        usual -= usual > 0 and share - lengths[usual - 1] < lengths[usual] - share
        crossed = _crossed(counts[number], len(words), links)
        first, last = cuts[-1] + 1, len(words) - (len(texts) - number)
        if last < first:
            first = last = min(cuts[-1] + 1, len(words))
        costs = {
            place: abs(place - usual) + crossed[place] - PAUSE * bool(place and _PAUSE.search(words[place - 1]))
            for place in range(first, last + 1)
        }
        cuts.append(min(costs, key=lambda place: costs[place]))
    cuts.append(len(words))
    return [
        (
            words[cuts[number] : cuts[number + 1]],
            [
                (source - counts[number], target - cuts[number])
                for source, target in links
                if counts[number] <= source < counts[number + 1] and cuts[number] <= target < cuts[number + 1]
            ],
        )
        for number in range(len(texts))
    ]


def _crossed(boundary: int, words: int, links: Sequence[Link]) -> list[int]:
    """How many links a cut before each target word crosses, if the source is cut before word `boundary`."""
    changes = [0] * (words + 1)
    for source, target in links:
        if target < words:
            changes[0] += source < boundary
            changes[target + 1] += -1 if source < boundary else 1
    return list(accumulate(changes))


def _in_rows(words: Sequence[str], piece: _Piece) -> str:
    """The words in rows of about the same length, at most as many as the piece has, and no more than they need."""
    places = [0, *accumulate(len(word) + 1 for word in words)]  # where each word begins
    rows: list[str] = []
    first = 0
    for rest in range(min(piece.rows, -(-(places[-1] - 1) // max(piece.longest, 1))), 1, -1):
        share = (places[-1] - 1 - places[first]) / rest
        last = bisect_left(places, places[first] + 2 * share)  # what comes later is too long a row
        costs = {
            place: abs(places[place] - places[first] - share) - ROW_PAUSE * bool(_PAUSE.search(words[place - 1]))
            for place in range(first + 1, min(last + 1, len(words)))
        }
        if not costs:
            break
        cut = min(costs, key=lambda place: costs[place])
        rows.append(" ".join(words[first:cut]))
        first = cut
    return piece.line_end.join([*rows, " ".join(words[first:])])
