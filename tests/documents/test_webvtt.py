"""WebVTT in, WebVTT out: what is in no cue stays, as do times, settings, names and tags; references are characters."""

import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nmt.documents.subtitles import Subtitles
from nmt.errors import UserError
from tests.documents.imitation import at_random, in_order, in_reverse, linked, translated
from tests.documents.test_subtitles import cues as cues_of_subrip

FILE = (Path(__file__).parent / "fixtures" / "subtitles.vtt").read_text(encoding="utf-8")
HEADS = re.compile(r"^.*-->.*$", re.MULTILINE)
TAGS = re.compile(r"</?[a-z][^<>\n]*>|<[\d:.]+>")
WITHOUT_HEADER = "times of WebVTT need that line, and SubRip is the format srt"

STAMPS = re.compile(r"<[\d:.]+>")


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
            assert STAMPS.findall(written) == STAMPS.findall(text)
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
        (["<v Ann>I think", " <v.loud  Ann >he is"], ["I think he is"]),
        (["<v Ann>Are you</v> <v Bob>no I am not</v>"], ["Are you", "no I am not"]),
        (["<i><v Ann>I think</v></i>\n<i><v Bob>he is</v></i>"], ["I think", "he is"]),
        (["He said &quot;Go.&quot;", "we went."], ['He said "Go."', "we went."]),
        (["Go.&nbsp;", "Well&hellip;", "I am", "&#40;noise&#41;"], ["Go.", "Well…", "I am", "(noise)"]),
        (["&#8211; Where?\n&#8211; In there."], ["Where?", "In there."]),
        (["&rlm;- Where?\n\u202b- In there."], ["Where?", "In there."]),
        (["a&nbsp;b &lrm;c &#228; &bogus; & d"], ["a b \u200ec ä &bogus; & d"]),
        (["1984", "<i></i>", "..."], []),
        (
            ["3:16,17 and 4:1,2 are it.", "3:26.00 was hers, then 3:27.5."],
            ["3:16,17 and 4:1,2 are it.", "3:26.00 was hers, then 3:27.5."],
        ),
        (["a\n \nb"], ["a b"]),  # a row of spaces is in the cue
        (["File --> Open", "1.2.3 --> a"], ["File --> Open 1.2.3 --> a"]),  # which players leave out
        (["<v Ann>ANN: Where?", "[&lt;noise&gt;] In there."], ["Where?", "<noise>", "In there."]),
    ],
)
def test_what_is_translated(texts: list[str], lines: list[str]) -> None:
    assert read(cues(*texts)).lines == lines


def test_another_place_on_the_screen_ends_a_sentence() -> None:
    file = cues("I think", "he is", place=" line:0")
    assert read(file).lines == ["I think he is"]
    assert read(file.replace("line:0", "line:0 ", 1)).lines == ["I think he is"]
    assert read(file.replace("line:0", "line:90%", 1)).lines == ["I think", "he is"]


def test_characters_that_are_markup() -> None:
    """A translation cannot end its cue, nor begin a tag."""
    text = "1 < 2 & 3 --> <b>\n\n4"
    written = read(cues("One <b>two</b>.")).written([linked("One two.", text, [(1, 2)])])
    assert written == cues("1 &lt; <b>2</b> &amp; 3 --&gt; &lt;b&gt; 4")


def test_what_is_no_cue_stays() -> None:
    text = (
        "WEBVTT\n\nno cue\n\na name\n00:01.000 --> 00:02.000\na dog\n\nNOTE men\n\nNOTE\n00:03.000 --> 00:04.000\nrun"
    )
    subtitles = read(text)
    assert subtitles.lines == ["a dog run"]  # "NOTE" is a name there
    assert translated(subtitles, in_order) == text.replace("a dog", "A DOG").replace("run", "RUN")
    for empty in ("", "\ufeff", "\n\n", "WEBVTT", "WEBVTT\n\nNOTE a\nb --> c\n1:2.3 -> 1:4.5\n"):
        assert translated(read(empty), in_order) == empty


def test_a_text_behind_a_blank_line_is_translated() -> None:
    """Players do not show it, but a file that is half translated would be worse; times begin a cue anywhere."""
    later = "00:05.000 --> 00:06.000\nmen\ndogs\n05:00.000 --> 05:01.000\nrun"
    text = f"WEBVTT\n\n00:01.000 --> 00:02.000\n\na dog\n\na cat\n\n{later}"
    subtitles = read(text)
    assert subtitles.lines == ["a dog a cat men dogs", "run"]
    assert translated(subtitles, in_order) == re.sub("a dog|a cat|men|dogs|run", lambda match: match[0].upper(), text)


def test_other_line_ends() -> None:
    text = cues("I think", "he is.\nSo.").replace("\n", "\r\n")
    subtitles = read(text)
    assert subtitles.lines == ["I think he is. So."]
    written = translated(subtitles, in_order)
    assert written.count("\r\n") == text.count("\r\n")
    assert "\n" not in written.replace("\r\n", "")


def test_stamps_inside_of_a_cue_stay_in_the_order_of_time() -> None:
    words = "<00:01.000>He <00:01.500>has <00:02.000>seen <00:02.500>dogs."
    links = [(0, 0), (1, 1), (3, 2), (2, 3)]
    written = read(cues(words)).written([linked("He has seen dogs.", "Er hat Hunde gesehen.", links)])
    assert written == cues("<00:01.000>Er <00:01.500>hat <00:02.000>Hunde <00:02.500>gesehen.")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("&nbsp;&nbsp;go&nbsp;on&#160;", "&nbsp;&nbsp;GO ON&#160;"),
        ("&#9834; la la &#9834;", "&#9834; LA LA &#9834;"),
        ("&#8211; go &amp; see", "&#8211; GO &amp; SEE"),
        (r"C:\Nas \host {\an8}", r"C:\NAS \HOST {\an8}"),
        ("<.loud>go</>", "<.loud>GO</>"),
        ("<ruby>a<rt>b</rt></ruby> go", "<ruby>A<rt>b</rt></ruby> GO"),
        ("1 < 2 a", "1 &lt; 2 A"),
    ],
)
def test_what_stays_in_a_cue(text: str, written: str) -> None:
    assert translated(read(cues(text)), in_order) == cues(written)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A page.", "a.vtt, line 1: 'A page.' stands where WEBVTT belongs; is this WebVTT?"),
        (
            "1\n00:00:01,000 --> 00:00:02,000\na\n",
            f"a.vtt, line 1: '1' stands where WEBVTT belongs; {WITHOUT_HEADER}",
        ),
        (
            "00:01.000 --> 00:02.000\na\n",
            f"a.vtt, line 1: '00:01.000 --> 00:02.000' stands where WEBVTT belongs; {WITHOUT_HEADER}",
        ),
        (
            "WEBVTT\n\n00:01,000 --> 00:02,000\na\n",
            "a.vtt, line 3: '00:01,000 --> 00:02,000' is damaged; expected times such as 01:02.345 --> 01:04.000",
        ),
        (
            "WEBVTT\n\n1\n00:01.000 -> 00:02.000\na\n",
            "a.vtt, line 4: '00:01.000 -> 00:02.000' is damaged; expected times such as 01:02.345 --> 01:04.000",
        ),
        (
            f"WEBVTT\n\n{'1' * 5000}:00:01.000 --> 00:02.000\na\n",
            f"a.vtt, line 3: '{'1' * 40}...' is damaged; expected times such as 01:02.345 --> 01:04.000",
        ),
        (
            "WEBVTT\n\n00:01.000 --> 00:02.000\na\n\nname\n00:02.0 - 00:03.0\nb\n",
            "a.vtt, line 7: '00:02.0 - 00:03.0' is damaged; expected times such as 01:02.345 --> 01:04.000",
        ),
        (
            "WEBVTT\n\n00:01.000 --> 00:02.000\na\n00:02.000 - 00:03.000\nb\n",
            "a.vtt, line 5: '00:02.000 - 00:03.000' is damaged; expected times such as 01:02.345 --> 01:04.000",
        ),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        read(text)
    assert error.value.messages == (message,)


@pytest.mark.parametrize("text", ["10:15.30 - 10:20.45 is the best.", "Laps:\n10:15.30 - 10:20.45 is the best."])
def test_times_that_are_spoken(text: str) -> None:
    assert read(cues(text)).lines == [text.replace("\n", " ")]


def test_of_many_damaged_times_the_first_are_told() -> None:
    with pytest.raises(UserError) as error:
        read(cues(*["a"] * 59).replace(".", ",") + f"00:01.000 --> {'1' * 40_000}\n")
    assert [message.partition(":")[0] for message in error.value.messages[:20]] == [
        f"a.vtt, line {3 + 3 * n}" for n in range(20)
    ]
    assert error.value.messages[20:] == ("a.vtt: 40 more lines are malformed",)


@pytest.mark.parametrize(
    "times", ["0:00:01.000 --> 0:00:02.000", "00:01.000-->00:02.000align:start", " 00:01.000\t-->00:02.000 "]
)
def test_times_that_players_accept(times: str) -> None:
    assert read(f"WEBVTT\n\n{times}\na dog\n").lines == ["a dog"]


def test_webvtt_that_is_read_as_subrip() -> None:
    with pytest.raises(UserError) as error:
        Subtitles(FILE, name="a.srt")
    assert str(error.value) == (
        "a.srt, line 1: 'WEBVTT - A walk in the park' comes before the times of the first text; this is WebVTT, the "
        "format vtt"
    )


PARTS = {  # of texts in each format, the tags that all stay, and a file with some texts
    "srt": (r"<br> \N <b> {\an8} ♪ ... <font_x='1'> c,_d", r"</?(?:i|b|font)[^<>]*>|\{.*?\}", cues_of_subrip),
    "vtt": ("<v_Ann> </v> <c.x> <00:01.500> <00:02.500> &nbsp; &#9834; &amp; &lt;b> < >", TAGS.pattern, cues),
}


def some_texts(form: str) -> st.SearchStrategy[tuple[str, list[str]]]:
    parts = ["\n", " ", "- ", "a", "B.", "我们，", "<i>", "</i>"]
    parts += [part.replace("_", " ") for part in PARTS[form][0].split()]
    return st.tuples(st.just(form), st.lists(st.lists(st.sampled_from(parts), min_size=1, max_size=8).map("".join)))


@settings(max_examples=200)
@example(("vtt", ["a", "<i>", "a<i>\n</i>a"]), 0)  # a row ends in a mark, and not once more elsewhere
@given(st.sampled_from([*PARTS]).flatmap(some_texts), st.integers(0, 99))
def test_any_tags_and_translations(texts: tuple[str, list[str]], seed: int) -> None:
    form, (_, tags, written_as) = texts[0], PARTS[texts[0]]
    file = written_as(*texts[1])
    written = translated(Subtitles(file, name="", form=form), at_random(seed))
    assert HEADS.findall(written) == HEADS.findall(file)
    assert STAMPS.findall(written) == STAMPS.findall(file)
    assert sorted(re.findall(tags, written)) == sorted(re.findall(tags, file))
    rows, now = ([text.count("\n") for text in HEADS.split(one)] for one in (file, written))
    assert all(before >= after for before, after in zip(rows, now, strict=True))
    Subtitles(written, name="", form=form)
