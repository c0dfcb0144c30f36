"""SubRip in, SubRip out: times, numbers and tags stay, sentences go on over cues, and mistakes have their line."""

import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.decoding.writing import Translation
from nmt.documents.subtitles import Subtitles
from nmt.errors import UserError
from tests.documents.imitation import at_random, in_order, in_reverse, translated

FILE = (Path(__file__).parent / "fixtures" / "subtitles.srt").read_bytes().decode("utf-8")
TAG = re.compile(r"</?[a-z][^<>]*>|\{\\[^}]*\}")


def cues(*texts: str) -> str:
    """A file with these texts."""
    return "".join(f"{n}\n00:00:{n:02},000 --> 00:00:{n:02},900\n{text}\n\n" for n, text in enumerate(texts, 1))


def read(*texts: str) -> Subtitles:
    return Subtitles(cues(*texts), name="a.srt")


@pytest.mark.parametrize(
    ("texts", "lines"),
    [
        (["One.", "Two."], ["One.", "Two."]),
        (["I think", "that he", "is old. Yes."], ["I think that he is old. Yes."]),
        (["a\nb"], ["a b"]),
        (["- Are you?\n- No, I", "am not."], ["Are you?", "No, I", "am not."]),  # two speakers
        (["I", "- You"], ["I", "You"]),
        (["<i>I am</i>", "<i>old.</i>"], ["I am old."]),
        (["a <b>b</b> c."], ["a b c."]),
        (["♪ la la ♪", "He"], ["la la", "He"]),
        (["1984", "..."], []),
        (["a", "1984", "b"], ["a", "b"]),
        ([r"{\an8}a sign", "he"], ["a sign", "he"]),  # at another place on the screen
        (["[noise]", "he"], ["[noise]", "he"]),
        (["Open File --> New.", "A --> 5"], ["Open File --> New.", "A --> 5"]),  # no times
        (["هل هو", "هنا؟", "نعم"], ["هل هو هنا؟", "نعم"]),
        (["वह जाता", "है।", "हाँ"], ["वह जाता है।", "हाँ"]),
        (["a"] * 7, ["a"] * 7),  # no sentence ends
        (["a"] * 6, ["a a a a a a"]),
    ],
)
def test_what_is_translated(texts: list[str], lines: list[str]) -> None:
    assert read(*texts).lines == lines


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["<i>a b</i>", "<i>c.</i>"], ["<i>A B</i>", "<i>C.</i>"]),
        (["- a <b>b</b>!\n- c"], ["- A <b>B</b>!\n- C"]),
        ([r"{\an8}<i>a</i>."], [r"{\an8}<i>A</i>."]),
        (["<i>a b", "c d</i>."], ["<i>A B", "C D</i>."]),  # a tag that goes on
        (["♪ a ♪"], ["♪ A ♪"]),
        (["a & b < c <3"], ["A & B < C <3"]),
        (['<font color="#fff">aa bb\ncc dd</font>'], ['<font color="#fff">AA BB\nCC DD</font>']),
    ],
)
def test_tags_and_dashes_stay(texts: list[str], expected: list[str]) -> None:
    assert translated(read(*texts), in_order) == cues(*expected)


@pytest.mark.parametrize(
    ("texts", "translation", "links", "expected"),
    [
        (["aa aa", "aa aa."], "b b b b.", [], ["b b", "b b."]),  # half and half
        (["aa aa", "aa aa."], "b b, b b b b.", [], ["b b,", "b b b b."]),  # a pause is worth a word
        (["aa aa", "aa aa."], "b b b b b b.", [(0, 0), (2, 1), (2, 2), (3, 3)], ["b", "b b b b b."]),  # alignments are
        (["a a a", "a.", "a."][:2], "b.", [], ["b.", ""]),  # too few words
        (["a", "a", "a."], "b b b.", [(2, 0), (2, 1), (2, 2)], ["b", "b", "b."]),  # a word for each
    ],
)
def test_where_a_sentence_is_cut(
    texts: list[str], translation: str, links: list[tuple[int, int]], expected: list[str]
) -> None:
    assert read(*texts).written([Translation(translation, 0.0, [], links)]) == cues(*expected)


def test_rows_are_no_more_than_they_were() -> None:
    long = Translation("ein sehr sehr langer Satz, der in zwei Zeilen gehört", 0.0, [], [])
    assert read("a long line\nof text.").written([long]) == cues(
        "ein sehr sehr langer Satz,\nder in zwei Zeilen gehört"
    )
    assert read("a long line of text.").written([long]) == cues(long.text)
    assert read("a long line\nof text.").written([long._replace(text="kurz")]) == cues("kurz")


def test_a_file() -> None:
    subtitles = Subtitles(FILE, name="subtitles.srt")
    assert FILE.startswith("\ufeff1\r\n")
    assert len(subtitles.lines) == 49
    heads = re.findall(r"\d+\r\n.* --> .*\r\n", FILE)
    assert len(heads) == 58
    for imitation in (in_order, in_reverse, at_random(1), at_random(5)):
        written = translated(subtitles, imitation)
        assert re.findall(r"\d+\r\n.* --> .*\r\n", written) == heads
        assert "\n" not in written.replace("\r\n", "")
        assert sorted(TAG.findall(written)) == sorted(TAG.findall(FILE))
        before, after = (re.split(r"\d+\r\n.* --> .*\r\n", text)[1:] for text in (FILE, written))
        assert all(one.count("\n") >= other.count("\n") for one, other in zip(before, after, strict=True))
    written = translated(subtitles, in_order)
    assert written.upper().split() == FILE.upper().split()
    assert "BUT HE GAVE IT BREAD.\r\n" in written


def test_players_need_no_numbers_and_no_blank_line_at_the_end() -> None:
    text = "00:00:01.5 --> 00:00:02,000 X1:0\n\nyes, he is\n\n\n00:00:03,000 --> 0:00:04,000\nold."
    assert translated(Subtitles(text, name=""), in_order) == text.replace("yes, he is", "YES, HE IS").replace(
        "old", "OLD"
    )
    for empty in ("", "\ufeff", "\n\n"):
        assert translated(Subtitles(empty, name=""), in_order) == empty


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("A page.", ["a.srt, line 1: 'A page.' comes before the times of the first subtitle; is this SubRip?"]),
        ("WEBVTT\n\n00:01.0 --> 00:02.0\na", ["a.srt, line 1: 'WEBVTT' comes before the times"]),
        ("1\n", ["a.srt: has no line with times, such as 00:01:02,345 --> 00:01:04,000; is this SubRip?"]),
        (cues("a").replace("-->", "->"), ["a.srt, line 2: '00:00:01,000 -> 00:00:01,900' is damaged; expected times"]),
        (cues("a").replace("00:00:01,000 ", ""), ["a.srt, line 2: '--> 00:00:01,900' is damaged; expected times"]),
        (cues("a", "b").replace("00:00:02,", "O0:00:02,", 1), ["a.srt, line 6: 'O0:00:02,000 --> 00:00:02,900' is"]),
        (cues("a") + "2\nb\n", ["a.srt, line 5: the number 2 is not followed by a line with times"]),
    ],
)
def test_mistakes(text: str, messages: list[str]) -> None:
    with pytest.raises(UserError) as error:
        Subtitles(text, name="a.srt")
    assert len(error.value.messages) == len(messages)
    assert all(text.startswith(start) for text, start in zip(error.value.messages, messages, strict=True))


@pytest.mark.parametrize(
    ("begun", "unit"),
    [("<", "a" * 20), ("", ")" * 20), ("", "a b\n"), ("x ", "<i>a</i> "), ("", "{\\an8}"), ("- ", "\n")],
)
def test_time_grows_with_the_length(begun: str, unit: str) -> None:
    """A sixteenth of the length takes no more than a quarter of the time."""

    def seconds(times: int) -> float:
        started = time.process_time()
        translated(Subtitles(cues(f"{begun}{unit * times}a"), name=""), in_order)
        return time.process_time() - started

    assert seconds(8_000) < 0.5 + 64 * seconds(500)


PARTS = st.sampled_from(
    ["a", "B.", "<i>", "</i>", "<b>", r"{\an8}", "\n", " ", "- ", "♪", "...", "<font x='1'>", "c, d"]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(PARTS, min_size=1, max_size=8).map("".join), max_size=8), st.integers(0, 99))
def test_any_tags_and_translations(texts: list[str], seed: int) -> None:
    file = cues(*texts)
    written = translated(Subtitles(file, name=""), at_random(seed))
    assert re.findall("^.*-->.*$", written, re.M) == re.findall("^.*-->.*$", file, re.M)
    tag = re.compile(r"</?(?:i|b|font)[^<>]*>|\{.*?\}")
    assert sorted(tag.findall(written)) == sorted(tag.findall(file))
