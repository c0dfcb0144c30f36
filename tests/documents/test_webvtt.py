"""WebVTT in, WebVTT out: what is in no cue stays, as do times, settings, names and tags; references are characters."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.decoding.writing import Translation
from nmt.documents.subtitles import Subtitles
from nmt.errors import UserError
from tests.documents.imitation import at_random, in_order, in_reverse, translated

FILE = (Path(__file__).parent / "fixtures" / "subtitles.vtt").read_text(encoding="utf-8")
HEADS = re.compile(r"^.*-->.*$", re.MULTILINE)
TAGS = re.compile(r"</?[a-z][^<>\n]*>|<[\d:.]+>")


def read(text: str) -> Subtitles:
    return Subtitles(text, name="a.vtt", form="vtt")


def cues(*texts: str, place: str = "") -> str:
    """A file with these texts, each half a second after the last."""
    head = "00:{0:02}.000 --> 00:{0:02}.500" + place
    return "WEBVTT\n\n" + "".join(f"{head.format(n)}\n{text}\n\n" for n, text in enumerate(texts, 1))


def test_a_file() -> None:
    """Only what is shown is translated: neither names of cues nor comments, style sheets, regions."""
    subtitles = read(FILE)
    assert subtitles.lines == [
        "I think that he is old. And he is happy & free.",
        "Are you there?",
        "No, I am not.",
        "Two dogs play.",
        "Where?",
        "In the park <there>.",
        "La la",
    ]
    for text in (FILE, f"\ufeff{FILE}", FILE.replace("\n", "\r\n")):
        for imitation in (in_order, in_reverse, at_random(1), at_random(5)):
            written = translated(read(text), imitation)
            assert HEADS.findall(written) == HEADS.findall(text)
            assert sorted(TAGS.findall(written)) == sorted(TAGS.findall(text))
            assert written.partition("00:01.000")[0] == text.partition("00:01.000")[0]
            assert "NOTE the end" in written
    written = translated(subtitles, in_order)
    assert written.upper().replace("&AMP;", "&amp;").split() == FILE.upper().replace("&AMP;", "&amp;").split()
    assert "is HAPPY" not in written
    assert "HAPPY &amp; FREE." in written
    assert "IN THE PARK &lt;THERE&gt;." in written


@pytest.mark.parametrize(
    ("texts", "lines"),
    [
        (["One.", "Two."], ["One.", "Two."]),
        (["I think", "he is old."], ["I think he is old."]),
        (["<v Ann>I think", "<v Bob>he is"], ["I think", "he is"]),  # two people
        (["<v Ann>I think", "<v Ann>he is"], ["I think he is"]),
        (["a&nbsp;b &lrm;c &#228; &bogus; & d"], ["a b \u200ec ä &bogus; & d"]),
        (["1984", "<i></i>", "..."], []),
        (["a\n \nb"], ["a b"]),  # a row of spaces is in the cue
    ],
)
def test_what_is_translated(texts: list[str], lines: list[str]) -> None:
    assert read(cues(*texts)).lines == lines


def test_another_place_on_the_screen_ends_a_sentence() -> None:
    file = cues("I think", "he is", place=" line:0")
    assert read(file).lines == ["I think he is"]
    assert read(file.replace("line:0", "line:90%", 1)).lines == ["I think", "he is"]


def test_characters_that_are_markup() -> None:
    """A translation cannot end its cue, nor begin a tag."""
    text = "1 < 2 & 3 --> <b>\n\n4"
    written = read(cues("One <b>two</b>.")).written([Translation(text, 0.0, [], [(1, 2)])])
    assert written == cues("1 &lt; <b>2 &amp; 3 --&gt; &lt;b&gt; 4</b>")


def test_what_is_in_no_cue_stays() -> None:
    head, again = "WEBVTT\n\n00:01.000 --> 00:02.000\na dog\n\na cat", "00:03.000 --> 00:04.000\nmen"
    text = f"{head} in no cue\n\n{again}\n05:00.000 --> 05:01.000\nrun"
    subtitles = read(text)
    assert subtitles.lines == ["a dog men", "run"]  # times begin a cue, also without a blank line
    assert translated(subtitles, in_order) == text.replace("a dog", "A DOG").replace("men", "MEN").replace("run", "RUN")
    for empty in ("", "\ufeff", "\n\n", "WEBVTT", "WEBVTT\n\nNOTE a\nb --> c\n"):
        assert translated(read(empty), in_order) == empty


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A page.", "a.vtt, line 1: 'A page.' stands where WEBVTT belongs; is this WebVTT?"),
        ("WEBVTTs\n", "a.vtt, line 1: 'WEBVTTs' stands where WEBVTT belongs; is this WebVTT?"),
        (
            "1\n00:00:01,000 --> 00:00:02,000\na\n",
            "a.vtt, line 1: '1' stands where WEBVTT belongs; this is SubRip, the format srt",
        ),
        (
            "WEBVTT\n\n00:01,000 --> 00:02,000\na\n",
            "a.vtt, line 3: '00:01,000 --> 00:02,000' is damaged; expected times such as 01:02.345 --> 01:04.000",
        ),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        read(text)
    assert error.value.messages == (message,)


def test_webvtt_that_is_read_as_subrip() -> None:
    with pytest.raises(UserError) as error:
        Subtitles(FILE, name="a.srt")
    assert str(error.value) == (
        "a.srt, line 1: 'WEBVTT - A walk in the park' comes before the times of the first subtitle; this is WebVTT, "
        "the format vtt"
    )


PARTS = st.sampled_from(
    [
        "a",
        "B.",
        "我们，",
        "<i>",
        "</i>",
        "<v Ann>",
        "</v>",
        "<c.x>",
        "<00:01.500>",
        "\n",
        " ",
        "- ",
        "&amp;",
        "&lt;b>",
        "<",
        ">",
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(PARTS, min_size=1, max_size=8).map("".join), max_size=8), st.integers(0, 99))
def test_any_tags_and_translations(texts: list[str], seed: int) -> None:
    file = cues(*texts)
    written = translated(read(file), at_random(seed))
    assert HEADS.findall(written) == HEADS.findall(file)
    assert sorted(TAGS.findall(written)) == sorted(TAGS.findall(file))
    rows, now = ([text.count("\n") for text in HEADS.split(one)] for one in (file, written))
    assert all(before >= after for before, after in zip(rows, now, strict=True))
    read(written)
