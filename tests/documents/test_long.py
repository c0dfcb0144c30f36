"""The time that a document takes grows with its length, whatever it repeats: no recursion, no second look at all."""

import time

import pytest

from nmt.documents.document import read_document
from tests.documents.imitation import in_order, in_reverse, translated

HTML = """<div>x <b>w</b> <a_ <!-- &amp; <br> <b></b> x<br>_ <p_translate=no> </b>x <b><p> "<a_b=" <a_b='" <title>
<b>我</b> < </ <script> _ &nbsp; <!--_-->_ <i>_</i>_ <b>w_ <b>w</b>_ <b>"""
SRT, VTT = "1\n00:00:01,000 --> 00:00:01,900\n", "WEBVTT\n\n00:00:01.000 --> 00:00:01.900\n"
ASS = "[Events]\nFormat: Start, End, Style, Text\nDialogue: 0:00:01.00,0:00:02.00,A,"
SRT_UNITS = [
    ("<", "a" * 20),
    ("", ")" * 20),
    ("", "a b\n"),
    ("x ", "<i>a</i> "),
    ("", "{\\an8}"),
    ("- ", "\n"),
    ("a", " "),
]
VTT_UNITS = [("&", "- "), ("a &", "♪ "), ("", "&amp;"), ("a", "<v A"), ("a", "<v A>"), ("<1>", "a <1>")]
REPEATED = [  # format, beginning, what is repeated, end, and what is repeated behind it
    *(("html", "<p>", unit.replace("_", " "), "x y", "</b>") for unit in HTML.split()),
    ("html", "<p><b>x</b>", "!", "", ""),
    *(("srt", SRT + begun, unit, "a\n\n", "") for begun, unit in SRT_UNITS),
    *(("vtt", VTT + begun, unit, "a\n\n", "") for begun, unit in VTT_UNITS),
    *(("ass", ASS, unit, "\n", "") for unit in ("Dialogue: ", "{", "a\\N", "[a] ", "A.")),
    *(("ttml", "<tt><p>", unit, "</p></tt>", "") for unit in ("<p ", "<p>", "<!--", "<p begin='", "<br/>")),
    *(
        ("markdown", "", unit, "", "")
        for unit in ("*a ", "[a", "`", "> ", "- a\n", "a *b* ", "[a](b) ", "| a ", "<b>a")
    ),
    *(("markdown", "", unit, "", "") for unit in ("a\n\n", "\\")),
]
TIMES = {"html": 5_000, "markdown": 2_000}


@pytest.mark.slow
@pytest.mark.parametrize(("form", "begin", "unit", "end", "behind"), REPEATED)
def test_time_grows_with_the_length(form: str, begin: str, unit: str, end: str, behind: str) -> None:
    """Sixteen times the length takes no more than three times as much time as it should."""

    def seconds(times: int) -> float:
        text = begin + unit * times + end + behind * times
        started = time.process_time()
        translated(read_document(text, format=form), in_reverse if form == "html" else in_order)
        return time.process_time() - started

    seconds(1)  # imports what reads such a document
    times = TIMES.get(form, 4_000)
    assert seconds(times) < 0.15 + 48 * seconds(times // 16)
