"""The files of subtitles, SubRip and WebVTT, as rows: which of them are shown as text, and when.

SubRip has no standard: `of_subrip` reads what the format's first program wrote, and what players accept. Numbers may be
missing, as players need none; times may not. `of_webvtt` follows the parser of W3C's recommendation (2019): comments,
style sheets and regions are no text. Rows that a blank line parts from their cue are, though players leave them out: a
file that mixes two languages would be worse. Mistakes in times are reported with their line.

It knows rows and times; it knows no sentences, and nothing of tags.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from nmt.data.corpus import excerpt
from nmt.errors import UserError, counted, refuse

Seconds = tuple[float, float]  # from and until which a cue is shown

_DAMAGED_SHOWN = 10  # of the rows with damaged times
_STAMP = r"(\d{1,3}):(\d{1,2}):(\d{1,2})[,.](\d{1,3})"
_TIMES = re.compile(rf"\s*{_STAMP}\s*-->\s*{_STAMP}(?:\s.*)?")
_TWO_STAMPS = re.compile(r"\s*\d{1,3}:\d{1,2}:\d{1,2}\D.*\d{1,3}:\d{1,2}:\d{1,2}")
_LIKE_STAMP = re.compile(r"\d[:.,]\d+[:.,]\d")
_NUMBER = re.compile(r"\s*\d+\s*")
_WEB_STAMP = r"(?:([0-9]{1,9}):)?([0-5][0-9]):([0-5][0-9])\.([0-9]{3})"
_WEB_TIMES = re.compile(rf"[ \t]*{_WEB_STAMP}[ \t]*-->[ \t]*{_WEB_STAMP}(?![0-9])[ \t]*(.*)")
_TIMES_OF_BOTH = re.compile(rf"\ufeff?[ \t]*{_WEB_STAMP}[ \t]*-->")  # though SubRip's usually have a comma
_WEB_LIKE_STAMP = r"(?:\d{1,3}:)?\d{1,2}:\d{1,2}[.,]\d{1,3}"
_WEB_LIKE_TIMES = re.compile(rf"\s*{_WEB_LIKE_STAMP}\s*[-–—=]+>?\s*{_WEB_LIKE_STAMP}")
_NO_SPEECH = re.compile(r"[-–—=]>|[,.]\d{3}\D.*[,.]\d{3}")  # of two times: an arrow, or both with milliseconds
_WEB_FIRST = re.compile(r"\ufeff?WEBVTT(?:[ \t].*)?")
_WEB_APART = re.compile(r"NOTE(?:[ \t].*)?|(?:STYLE|REGION)[ \t]*")  # begins a block that is no cue


class Run(NamedTuple):
    """Rows that follow each other, with their line ends."""

    rows: list[str]
    times: Seconds | None  # when they are shown as a text; None: they are none
    place: str = ""  # where on the screen, as the file says it


def of_subrip(text: str, name: str) -> list[Run]:
    """The rows of a SubRip file, which messages call `name`: those of a text together, and those between texts."""
    rows = _rows(text)
    heads: set[int] = set()  # rows with numbers and times
    damaged: list[int] = []
    begun = False
    for index, row in enumerate(rows):
        bare, number = row.strip("\ufeff\r\n"), index + 1
        if _TIMES.fullmatch(bare):
            begun = True
            heads.add(index)
            if index and _NUMBER.fullmatch(rows[index - 1].strip("\ufeff")):
                heads.add(index - 1)
        elif _is_like_times(bare, belongs=not index or _is_above_times(rows[index - 1])):
            begun = True
            damaged.append(index)
        elif not begun and bare.strip() and not _NUMBER.fullmatch(bare):
            hint = "this is WebVTT, the format vtt" if _WEB_FIRST.fullmatch(bare) else "is this SubRip?"
            raise UserError(
                f"{name}, line {number}: {bare[:50]!r} comes before the times of the first subtitle; {hint}"
            )
    problems = list(_damaged(name, rows, damaged, "00:01:02,345 --> 00:01:04,000"))
    if not begun and text.strip("\ufeff").strip():
        problems.append(f"{name}: has no line with times, such as 00:01:02,345 --> 00:01:04,000; is this SubRip?")
    for index, row in enumerate(rows):
        is_number = (
            index not in heads and _NUMBER.fullmatch(row) and (not index or not rows[index - 1].strip("\ufeff\r\n\t "))
        )
        if is_number and index + 1 < len(rows) and rows[index + 1].strip() and not _is_like_times(rows[index + 1]):
            problems.append(f"{name}, line {index + 1}: the number {row.strip()} is not followed by a line with times")
    refuse(problems)
    times: Seconds = (0.0, 0.0)
    found: list[Run] = []
    for index, row in enumerate(rows):
        if index in heads and (match := _TIMES.fullmatch(row.strip("\ufeff\r\n"))) is not None:
            times = _seconds(match.groups())
        is_text = index not in heads and row.strip("\ufeff").strip() != ""
        _add(found, Run([row], times if is_text else None))
    return found


def of_webvtt(text: str, name: str) -> list[Run]:
    """The rows of a WebVTT file, which messages call `name`, likewise. A row with times begins a cue anywhere."""
    rows = _rows(text)
    if not text.strip("\ufeff").strip():
        return [Run(rows, None)]
    if not _WEB_FIRST.fullmatch(rows[0].rstrip("\r\n")):
        first = rows[0].strip("\ufeff\r\n")[:50]
        hint = "is this WebVTT?"
        if any(map(_is_web_alone, rows[:2])):
            hint = "these are the times of WebVTT, whose first line must be WEBVTT"
        elif any(map(_TIMES_OF_BOTH.match, rows[:2])):
            hint = "this is SubRip, the format srt, or WebVTT, whose first line must be WEBVTT"
        elif any(map(_is_like_times, rows[:2])):
            hint = "this is SubRip, the format srt"
        raise UserError(f"{name}, line 1: {first!r} stands where WEBVTT belongs; {hint}")
    times: Seconds | None = None  # of the last cue
    place = ""
    begins = is_apart = False  # whether a block begins, and whether it is no cue; the first is the head of the file
    is_below_name = False  # whether the row above may be the name of a cue
    damaged: list[int] = []
    found: list[Run] = []
    for index, (row, following) in enumerate(pairwise([*rows, ""])):
        bare = row.strip("\r\n")
        if begins:
            is_apart = _WEB_APART.fullmatch(bare) is not None
        is_name = begins and _WEB_TIMES.fullmatch(following.strip("\r\n")) is not None
        belongs = begins or is_below_name or times is None
        is_below_name = begins
        begins = not bare
        if (match := _WEB_TIMES.fullmatch(bare)) is not None:
            times, place, is_apart = _seconds(match.groups()[:8]), match[9].strip(), False
            is_below_name = False
            _add(found, Run([row], None))
            continue
        is_like_times = _WEB_LIKE_TIMES.match(bare) and (belongs or _NO_SPEECH.search(bare))
        if not is_apart and ("-->" in bare or is_like_times):
            damaged.append(index)
        is_text = times is not None and bare and not is_apart and not is_name
        _add(found, Run([row], times, place) if is_text else Run([row], None))
    refuse(list(_damaged(name, rows, damaged, "01:02.345 --> 01:04.000")))
    return found


def _is_web_alone(row: str) -> bool:
    """Whether a row has times that WebVTT allows, and SubRip does not: without hours, or with a place behind them."""
    match = _WEB_TIMES.fullmatch(bare := row.strip("\ufeff\r\n"))
    return match is not None and (_TIMES.fullmatch(bare) is None or ":" in match[9])


def _damaged(name: str, rows: Sequence[str], damaged: Sequence[int], times: str) -> Iterator[str]:
    """The messages about rows with damaged times, the first of them by their line."""
    for index in damaged[:_DAMAGED_SHOWN]:
        shown = excerpt(rows[index].strip("\ufeff\r\n"))
        yield f"{name}, line {index + 1}: {shown} is damaged; expected times such as {times}"
    if more := len(damaged[_DAMAGED_SHOWN:]):
        yield f"{name}: times are damaged on {counted(more, 'more line')}"


def _rows(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _add(runs: list[Run], run: Run) -> None:
    """Append a run of one row, or the row to the last one, if both are texts or none is."""
    if runs and (runs[-1].times is None) == (run.times is None):
        runs[-1].rows.extend(run.rows)
    else:
        runs.append(run)


def _seconds(groups: Sequence[str | None]) -> Seconds:
    """The seconds of two stamps, from their hours, minutes, seconds and digits behind the point."""
    start, stop = (
        int(hours or 0) * 3600 + int(minutes or 0) * 60 + float(f"{seconds}.{fraction}")
        for hours, minutes, seconds, fraction in (groups[:4], groups[4:])
    )
    return start, stop


def _is_above_times(row: str) -> bool:
    """Whether times belong below a row: one that is blank, or a number."""
    bare = row.strip("\ufeff\r\n\t ")
    return not bare or _NUMBER.fullmatch(bare) is not None


def _is_like_times(row: str, *, belongs: bool = True) -> bool:
    """Whether a row, which may be damaged, has times; an arrow alone is text, as in "File --> Open".

    Where times do not belong, so are two times of the day, as in "10:15:20 to 11:30:45".
    """
    if "-->" in row and _LIKE_STAMP.search(row):
        return True
    return bool(_TWO_STAMPS.match(row) and (belongs or _NO_SPEECH.search(row)))
