"""ASS, SBV and TTML in, the same out: what is shown of them, and what is said about mistakes."""

import re
from pathlib import Path

import pytest

from nmt.documents.subtitles import Subtitles
from nmt.errors import UserError
from tests.documents.imitation import at_random, in_order, in_reverse, translated

FIXTURES = Path(__file__).parent / "fixtures"
ASS = "[Events]\nFormat: Start, End, Style, Text\n"


@pytest.mark.parametrize(
    ("form", "lines"),
    [
        ("ass", ["I think that, well, he is old.", "Open daily", "door slams", "Who is there?"]),
        ("sbv", ["I think that he is old.", "At 10:15, or 5 --> 6?"]),
        ("ttml", ["I think that he is & was old."]),
    ],
)
def test_a_file(form: str, lines: list[str]) -> None:
    text = (FIXTURES / f"subtitles.{form}").read_text()
    assert Subtitles(text, name="", form=form).lines == lines
    tag = re.compile(r"<[a-z/!?][^<>]*>|\{[^{}]*\}|^Dialogue:.*,,|^[\d:.,]+$", re.MULTILINE)
    for imitation in (in_order, in_reverse, at_random(1), at_random(2)):
        written = translated(Subtitles(text, name="", form=form), imitation)
        assert sorted(tag.findall(written)) == sorted(tag.findall(text))
        assert written.count("\n") <= text.count("\n")
    again = translated(Subtitles(text.replace("\n", "\r\n"), name="", form=form), in_order)
    assert "\n" not in again.replace("\r\n", "")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (f"{ASS}Dialogue: 0:00:01.00,0:00:02.00,A,One, text\n", ["One, text"]),
        (f"{ASS}Dialogue: 0:00:01.00,0:00:02.00,A,One\nDialogue: 0:00:02.00,0:00:03.00,B,two\n", ["One", "two"]),
        (f"{ASS}Dialogue: 0:00:01.00,0:00:02.00,A,One\nDialogue: 0:00:08.00,0:00:09.00,A,two\n", ["One", "two"]),
        (f"{ASS}Dialogue: 0:00:01.00,0:00:02.00,A,{{\\p1}}m 0 0{{\\p0}}\nComment: 1,2,A,no\n", []),
        (f"{ASS}Dialogue: 0:00:01.00,0:00:02.00,A,{{\\k20}}Kara{{\\k30}}oke\\hnow\n", ["Karaoke now"]),
        ("Format: Name, Fontname\n[Events]\nDialogue: Marked=0,0:00:01.00,0:00:02.00,A,,0,0,0,,One\n", ["One"]),
        (f"{ASS}Dialogue: 1 s,2 s,A,One\nDialogue: 0:00:01.00\n", ["One"]),  # not as in the format
        ("[Script Info]\n[Events]\n", []),
        ("\ufeff\n", []),
    ],
)
def test_events_of_ass(text: str, lines: list[str]) -> None:
    document = Subtitles(text, name="", form="ass")
    assert document.lines == lines
    if not lines:
        assert document.written([]) == text


@pytest.mark.parametrize(
    ("paragraphs", "lines"),
    [
        ('<p begin="1s" end="2s">One</p><p begin="8s" end="9s">two</p>', ["One", "two"]),  # after a pause
        ('<p begin="1s" end="4s">One</p><p begin="8s" end="9s">two</p>', ["One two"]),
        ('<p begin="1s" dur="6s">One</p><p begin="8s" end="9s">two</p>', ["One two"]),
        ('<p begin="1s" end="2s" region="a">One</p><p begin="2s" end="3s" region="b">two</p>', ["One", "two"]),
        ('<tt:p begin="00:00:01:12" end="25000000t">a &lt;<tt:br/>b</tt:p>', ["a < b"]),
        ('<p begin="1 s">a</p>', ["a"]),  # not as in the standard
        ("<pre>no</pre><p /><p>a", []),
    ],
)
def test_paragraphs_of_ttml(paragraphs: str, lines: list[str]) -> None:
    document = Subtitles(f"<tt>{paragraphs}</tt>", name="", form="ttml")
    assert document.lines == lines


@pytest.mark.parametrize(
    ("form", "text", "message"),
    [
        ("ass", "Some text\n", "a: has no [Events]; is this ASS or SSA?"),
        ("ttml", "<p>a</p>", "a: has no element <tt>; is this TTML?"),
        (
            "sbv",
            "0:00:01.000,0:00:02.000\na\n\n0:00:02.000 0:00:03.000\nb\n",
            "a, line 4: '0:00:02.000 0:00:03.000' is",
        ),
        ("sbv", "a page\n", "a, line 1: 'a page' comes before the times of the first text; expected 0:01:02.345,0:"),
    ],
)
def test_mistakes(form: str, text: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        Subtitles(text, name="a", form=form)
    assert str(error.value).startswith(message)
