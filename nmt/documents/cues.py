"""The files of subtitles: which characters of them are shown as text, and when.

SubRip has no standard: what the format's first program wrote is read, and what players accept. Numbers may be missing,
as players need none; times may not. A number alone before times, or at the end, is none of the text, as for pysubs2;
any other row is. SBV is the same without numbers. WebVTT is read as by the parser of W3C's
recommendation (2019): comments, style sheets and regions are no text. Rows that a blank line parts from their cue are,
though players leave them out: a file that mixes two languages would be worse. `of_ass` reads the events of (Advanced)
SubStation Alpha, `of_ttml` the paragraphs of W3C's Timed Text. Mistakes in rows of times are reported with their line.

It knows rows and times; it knows no sentences, and nothing of tags.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from nmt.data.corpus import excerpt
from nmt.errors import UserError, refuse_lines

Seconds = tuple[float, float]  # from and until which a cue is shown

_ROW = re.compile(r"[^\n]*\n|[^\n]+")
_STAMP = r"(\d{1,3}):(\d{1,2}):(\d{1,2})[,.](\d{1,3})"
TIMES = re.compile(rf"\s*{_STAMP}\s*-->\s*{_STAMP}(?:\s(.*))?")  # of SubRip
SBV_TIMES = re.compile(rf"\s*{_STAMP}\s*,\s*{_STAMP}(\s*)")
_WEB_STAMP = r"(?:([0-9]{1,9}):)?([0-5][0-9]):([0-5][0-9])\.([0-9]{3})"
_WEB_TIMES = re.compile(rf"[ \t]*{_WEB_STAMP}[ \t]*-->[ \t]*{_WEB_STAMP}(?![0-9])[ \t]*(.*)")
_WEB_FIRST = re.compile(r"WEBVTT(?:[ \t].*)?")
_WEB_APART = re.compile(r"NOTE(?:[ \t].*)?|(?:STYLE|REGION)[ \t]*")  # begins a block that is no cue
_ANY_STAMP = r"\d{1,3}:\d{1,2}(?::\d{1,2}(?:[.,]\d{1,3})?|[.,]\d{1,3})"
_TWO_STAMPS = re.compile(rf"\s*{_ANY_STAMP}\W+{_ANY_STAMP}\s*")
_LIKE_STAMP = re.compile(r"\d:\d+[:.,]\d")
_NUMBER = re.compile(r"\s*\d+\s*")
_ASS_FIELDS = ["layer", "start", "end", "style", "name", "marginl", "marginr", "marginv", "effect", "text"]
_ASS_EVENTS = re.compile(r"^\s*\[events\]", re.IGNORECASE | re.MULTILINE)
_ASS_DRAWING = re.compile(r"\\p[1-9]")
_TTML_ROOT = re.compile(r"<(?:[\w-]+:)?tt[\s>]")
_TTML_START = re.compile(r"<!--|<((?:[\w-]+:)?p)(?=[\s>])([^<>]*)>")
_TTML_ATTRIBUTE = re.compile(r"(?<![\w:-])(begin|end|dur|region|style)\s*=\s*[\"']([^\"']*)")
_TTML_TIME = re.compile(r"(?:(\d+):(\d\d):(\d\d(?:\.\d+)?)(?::[\d.]+)?)|(\d+(?:\.\d+)?)(h|m|s|ms|f|t)")
_TTML_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "f": 0.04, "t": 1e-7}


class Cue(NamedTuple):
    """A text that is shown: the characters [start, stop) of a file."""

    start: int
    stop: int
    times: Seconds
    place: str  # where on the screen, as the file says it


class _Timed(NamedTuple):
    """A format with a line of times above each text."""

    times: re.Pattern[str]
    example: str
    blank: str | None = None  # what a blank line may have; None: any white space
    first: re.Pattern[str] | None = None  # the first line


_SUBRIP = _Timed(TIMES, "00:01:02,345 --> 00:01:04,000")
_SBV = _Timed(SBV_TIMES, "0:01:02.345,0:01:04.000")
_WEBVTT = _Timed(_WEB_TIMES, "01:02.345 --> 01:04.000", blank="", first=_WEB_FIRST)


def _timed(text: str, name: str, form: _Timed) -> list[Cue]:
    """The texts of a file, which messages call `name`.

    A row with times begins a text anywhere. A number above it is none, nor is, in WebVTT, what begins a block there.
    """
    rows = [*_ROW.finditer(text)]
    bares = [row[0].strip("\ufeff\r\n") for row in rows]
    if form.first and not form.first.fullmatch(bares[0]):
        has_times = any(TIMES.fullmatch(row) or _WEB_TIMES.fullmatch(row) for row in bares[:2])
        hint = "times of WebVTT need that line, and SubRip is the format srt" if has_times else "is this WebVTT?"
        raise UserError(f"{name}, line 1: {excerpt(bares[0])} stands where WEBVTT belongs; {hint}")
    found: list[Cue] = []
    damaged: list[str] = []
    times: Seconds | None = None  # of the last text
    place = ""
    is_blank = is_apart = False  # whether the row is blank, and whether its block is no text
    is_first = False  # whether the row is the first one below times, where two times are text
    for number, (row, bare) in enumerate(zip(rows, bares, strict=True), start=1):
        begins, is_blank = is_blank, not bare.strip(form.blank)
        is_apart = _WEB_APART.fullmatch(bare) is not None if begins and form.first else is_apart
        if (match := form.times.fullmatch(bare)) is not None:
            times, place, is_apart = _seconds(match.groups()), (match[9] or "").strip(), False
        elif not (is_apart or is_first) and (  # two times and no words, or one with an arrow, which alone may be text
            _TWO_STAMPS.fullmatch(bare) or ("-->" in bare and _LIKE_STAMP.search(bare))
        ):
            example = f"expected times such as {form.example}"
            damaged.append(f"{name}, line {number}: {excerpt(bare)} is damaged; {example}")
            times = (0.0, 0.0)
        elif times is None and not (is_blank or form.first or _NUMBER.fullmatch(bare)):
            hint = "this is WebVTT, the format vtt" if _WEB_FIRST.fullmatch(bare) else f"expected {form.example}"
            raise UserError(f"{name}, line {number}: {excerpt(bare)} comes before the times of the first text; {hint}")
        elif times is not None and not (is_blank or is_apart):
            is_like_name = _NUMBER.fullmatch(bare) or (begins and form.first)
            if not (is_like_name and _is_above_times(bares, number, form)):
                begin = found.pop().start if found and found[-1].stop == row.start() else row.start()
                found.append(Cue(begin, row.end(), times, place))
        is_first = match is not None
    refuse_lines(name, damaged)
    if times is None and not form.first:
        raise UserError(f"{name}: has no line with times, such as {form.example}")
    return found


def _is_above_times(rows: Sequence[str], number: int, form: _Timed) -> bool:
    """Whether times follow the row with this number; in all but WebVTT also behind blank rows, or nothing follows."""
    below = (rows[place] for place in range(number, len(rows)) if form.first or rows[place].strip())
    row = next(below, None)
    return form.first is None if row is None else form.times.fullmatch(row) is not None


of_subrip, of_sbv, of_webvtt = (partial(_timed, form=form) for form in (_SUBRIP, _SBV, _WEBVTT))


def of_ass(text: str, name: str) -> Iterator[Cue]:
    """The events of (Advanced) SubStation Alpha; comments and drawings are no text."""
    if not _ASS_EVENTS.search(text):
        raise UserError(f"{name}: has no [Events]; is this ASS or SSA?")
    fields = _ASS_FIELDS
    for row in _ROW.finditer(text):
        kind, _, content = row[0].partition(":")
        if kind == "Format" and content.rstrip().lower().endswith("text"):
            fields = [field.strip().lower() for field in content.split(",")]
        if kind != "Dialogue":
            continue
        values = content.split(",", len(fields) - 1)
        event = dict(zip(fields, values, strict=False))
        times = SBV_TIMES.fullmatch(f"{event.get('start')},{event.get('end')}")
        said = event.get("text", "").rstrip("\r\n")
        if not _ASS_DRAWING.search(said):
            start = row.end() - len(values[-1])
            place = f"{event.get('style')} {event.get('name')}"
            yield Cue(start, start + len(said), _seconds(times.groups()) if times else (0.0, 0.0), place)


def of_ttml(text: str, name: str) -> Iterator[Cue]:
    """The paragraphs of Timed Text (TTML, DFXP)."""
    if not _TTML_ROOT.search(text):
        raise UserError(f"{name}: has no element <tt>; is this TTML?")
    place = 0  # where the next paragraph may begin
    for tag in _TTML_START.finditer(text):
        if tag.start() < place or tag[0].endswith("/>"):
            continue
        place = text.find(f"</{tag[1]}" if tag[1] else "-->", tag.end())
        if place < 0:
            break
        if not tag[1]:
            continue
        attributes = dict(_TTML_ATTRIBUTE.findall(tag[2]))
        begin, end, duration = (_ttml_seconds(attributes.get(key, "")) for key in ("begin", "end", "dur"))
        settings = f"{attributes.get('region')} {attributes.get('style')}"
        yield Cue(tag.end(), place, (begin, end or begin + duration), settings)


def _ttml_seconds(value: str) -> float:
    """The seconds of a clock time or an offset; frames are taken for a 25th, ticks for a ten millionth; else 0."""
    match = _TTML_TIME.fullmatch(value)
    if match is None:
        return 0.0
    if match[4]:
        return float(match[4]) * _TTML_UNITS[match[5]]
    return 3600 * int(match[1]) + 60 * int(match[2]) + float(match[3])


def _seconds(groups: Sequence[Any]) -> Seconds:
    """The seconds of two stamps, from their hours, minutes, seconds and digits behind the point: the first groups."""
    start, stop = (
        3600 * int(hours or 0) + 60 * int(minutes) + float(f"{seconds}.{digits}")
        for hours, minutes, seconds, digits in (groups[:4], groups[4:8])
    )
    return start, stop
