"""SubRip in, SubRip out: times, numbers and tags stay, sentences go on over cues, and mistakes have their line."""

import re
from pathlib import Path

import pysubs2
import pytest

from nmt.decoding.writing import Translation
from nmt.documents.subtitles import Subtitles
from nmt.errors import UserError
from tests.documents.imitation import at_random, in_order, in_reverse, linked, translated

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
        (["I think", "that he\n- is"], ["I think", "that he", "is"]),
        (["<i>I am</i>", "<i>old.</i>"], ["I am old."]),
        (["a <b>b</b> c."], ["a b c."]),
        (["♪ la la ♪", "He"], ["la la", "He"]),
        (["1984", "..."], []),
        (["a", "1984", "b"], ["a", "b"]),
        ([r"{\an8}a sign", "he"], ["a sign", "he"]),  # at another place on the screen
        (["a\n" + r"{\an8}sign", "he"], ["a sign", "he"]),
        (["[noise]", "he"], ["noise", "he"]),
        (["[door slams] Come in.", "He\n[a door\nslams] and"], ["door slams", "Come in.", "He", "[a door slams] and"]),
        (["I do\nANN: No."], ["I do", "No."]),
        (["ANN: I think", "DR. O'NEIL #2: No,\nI"], ["I think", "No, I"]),  # two speakers
        (["- ANN: I do\n- [laughs] So.", "NASA: two"], ["I do", "laughs", "So.", "two"]),
        (["At 10:15: we", "Ann: we go"], ["At 10:15: we Ann: we go"]),
        (["Open\nFile --> New.", "v1.2 --> v1.3.4"], ["Open File --> New.", "v1.2 --> v1.3.4"]),  # no times
        (["10:15:20 to 11:30:45 is the time.", "10:15:20 - 11:30:45"], ["10:15:20 to 11:30:45 is the time."]),
        (
            ["From\n10:15:20.5 to 11:30:45.", "10:15:20, or 10:15:21."],
            ["From 10:15:20.5 to 11:30:45.", "10:15:20, or 10:15:21."],
        ),
        (["هل هو", "هنا؟", "نعم"], ["هل هو هنا؟", "نعم"]),
        (["वह जाता", "है।", "हाँ"], ["वह जाता है।", "हाँ"]),
        (["a"] * 7, ["a"] * 7),  # no sentence ends
        (["a"] * 6, ["a a a a a a"]),
        (["He runs.<br>Two dogs play."], ["He runs. Two dogs play."]),
        ([r"He runs.\NTwo\hdogs play."], ["He runs. Two dogs play."]),
        ([r"Open C:\Nas\new now."], [r"Open C:\Nas\new now."]),  # a path
        (["- Are you?<br>- No.<br/>", r"- I\N- am"], ["Are you?", "No.", "I", "am"]),
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
        ([">> ANN: [a] <i>b</i>\n- c"], [">> ANN: [A] <i>B</i>\n- C"]),
        (["[a b] MAN:\nc", "(a)"], ["[A B] MAN:\nC", "(A)"]),
        (["a & b < c <3"], ["A & B < C <3"]),
        (['<font color="#fff">aa bb\ncc dd</font>'], ['<font color="#fff">AA BB\nCC DD</font>']),
        (["<b>a</b>.<br>b <br/> c"], ["<b>A</b>.<br>B <br/> C"]),
        ([r"<i>a\Nb\hc</i>\N"], [r"<i>A\NB\hC</i>\N"]),
        (["- a<br>- b"], ["- A<br>- B"]),
        (["\u200f- a.\n\u202b- b\u202c"], ["\u200f- A.\n\u202b- B\u202c"]),
    ],
)
def test_tags_and_dashes_stay(texts: list[str], expected: list[str]) -> None:
    assert translated(read(*texts), in_order) == cues(*expected)


def test_tags_without_partners_stay_in_order() -> None:
    """As of styles that go on over cues, whatever words attend to."""
    assert translated(read("a a</i> b b <i>c."), in_reverse) == cues("C. B</i> B A <i>A")


def test_what_needs_alignments() -> None:
    texts = (["a b."], ["a <b>b</b> c."], ["a", "b."])
    assert [read(*one).is_marked for one in texts] == [False, True, True]


@pytest.mark.parametrize(
    ("texts", "translation", "links", "expected"),
    [
        (["aa aa", "aa aa."], "b b b b.", [], ["b b", "b b."]),  # half and half
        (["aa aa", "aa aa."], "b b, b b b b.", [], ["b b,", "b b b b."]),  # a pause is worth a word
        (["aa aa", "aa aa."], "b b b b b b.", [(0, 0), (2, 1), (2, 2), (3, 3)], ["b", "b b b b b."]),  # alignments are
        (["a a a", "a.", "a."][:2], "b.", [], ["b.", "b."]),  # too few words: it stays on the screen
        (["a", "a", "a."], "b b b.", [(2, 0), (2, 1), (2, 2)], ["b", "b", "b."]),  # a word for each
    ],
)
def test_where_a_sentence_is_cut(
    texts: list[str], translation: str, links: list[tuple[int, int]], expected: list[str]
) -> None:
    assert read(*texts).written([linked(" ".join(texts), translation, links)]) == cues(*expected)


def test_a_long_pause_ends_a_sentence() -> None:
    """From the end of a cue to the beginning of the next with a text; the file may have others between them."""
    file = cues("I think", "", "he is old.")
    assert Subtitles(file, name="").lines == ["I think he is old."]
    for start, lines in (("06,900", 1), ("06,901", 2)):  # the first cue ends at 1.9 seconds
        later = file.replace("00:00:03,000 --> 00:00:03,900", f"00:00:{start} --> 00:00:09,000")
        assert len(Subtitles(later, name="").lines) == lines
    assert Subtitles(file.replace("00:00:03", "01:00:03"), name="").lines == ["I think", "he is old."]


def test_a_cue_that_is_still_shown_is_no_pause() -> None:
    file = cues("I think", "he", "is old.").replace("00:00:01,900", "00:00:20,000")
    file = file.replace("00:00:03,000 --> 00:00:03,900", "00:00:10,000 --> 00:00:20,000")
    assert Subtitles(file, name="").lines == ["I think he is old."]


def test_white_space_of_a_translation_breaks_no_cue() -> None:
    """Programs may translate the lines themselves."""
    assert read("One two.").written([Translation(" eins\n\nzwei\u2028 ", 0.0, [])]) == cues("eins zwei")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hm.\n- He runs.\n- Yes.", "- HE RUNS.\n- YES."),
        ("Hm.\n- 5", "- 5"),
        ("- He runs.\n- Hm.", "- HE RUNS.\n- "),
        (" Hm. \n- He runs.", "- HE RUNS."),
        ("Hm.\n- He runs.\n5\n- Yes.", "- HE RUNS. 5\n- YES."),
        (r"Hm.\N- He runs.", r"\N- HE RUNS."),
    ],
)
def test_an_empty_translation_leaves_no_blank_line_in_a_cue(text: str, expected: str) -> None:
    """Players take a blank line for the end of the cue."""
    written = translated(read(text, "Bye."), lambda line: in_order("" if line == "Hm." else line))
    begin = "1\n00:00:01,000 --> 00:00:01,900\n"
    assert written == f"{begin}{expected}\n\n2\n00:00:02,000 --> 00:00:02,900\nBYE.\n\n"


@pytest.mark.parametrize(
    ("texts", "translation", "links", "expected"),
    [
        # 15, 18 and 10 of 45 characters: near 7.0 and 15.4 of 21, and rather at a comma
        (
            ["This is a long", "sentence that goes", "on and on."],
            "这是一个很长的句子，一直在继续，没完没了。",
            [],
            ["这是一个很长的句子，", "一直在继续，", "没完没了。"],
        ),
        (["aaaa", "aaaa."], "我们很喜欢。", [], ["我们很", "喜欢。"]),
        (["aaaa", "aaaa."], "我们很。", [], ["我们", "很。"]),
        (["aaaa", "aaaa."], "Ich wollte ... ... gehen", [], ["Ich wollte ...", "... gehen"]),
        (["aaaaaaaaa", "a."], "我们很喜。", [], ["我们很", "喜。"]),  # no cue begins with the full stop
        (["a", "a", "a."], "是。", [], ["是。", "是。", "是。"]),
        (["aaaa", "aaaa."], "他说「好」。", [], ["他说", "「好」。"]),
        (["aaa", "aaaa."], "私はラーメンが好き", [], ["私は", "ラーメンが好き"]),  # no word in katakana is cut
        (["aaaa", "aaaa."], "กำลังวิ่ง และกำลังเล่น", [], ["กำลังวิ่ง", "และกำลังเล่น"]),  # but at a space
        (["a a", "a a."], "我 们们 很 喜欢。", [(0, 0), (1, 1), (1, 2), (3, 3)], ["我 们们 很", "喜欢。"]),
        (["Is it 5", "o'clock?"], "Docker（约5点）", [], ["Docker", "（约5点）"]),
        (["aa aa", "aa aa."], "Il dit : « Non ! »", [], ["Il dit :", "« Non ! »"]),
        (["aa aa aa", "a."], "Il dit non !", [], ["Il dit", "non !"]),
    ],
)
def test_where_a_sentence_without_spaces_is_cut(
    texts: list[str], translation: str, links: list[tuple[int, int]], expected: list[str]
) -> None:
    assert read(*texts).written([linked(" ".join(texts), translation, links)]) == cues(*expected)


@pytest.mark.parametrize(
    ("text", "translation", "expected"),
    [
        (
            "a line of text\nand one more",
            "这是一个有两行文字的字幕。",
            "这是一个有两\n行文字的字幕。",
        ),  # two columns a character
        ("a line of text\nand one more", "这是字幕。", "这是字幕。"),
        ("a line of text\nand one more", "これは字幕のテキストです。", "これは字幕の\nテキストです。"),
        ("a line\nof text", "他们喜欢，我不。", "他们喜欢，\n我不。"),
        ("两行文字的\n一个字幕", "a line of text", "a line\nof text"),
    ],
)
def test_rows_of_wide_characters(text: str, translation: str, expected: str) -> None:
    assert read(text).written([Translation(translation, 0.0, [], [])]) == cues(expected)


def test_tags_in_scripts_without_spaces() -> None:
    """Links are those of what is between spaces, and are spread over the characters of each cue."""
    subtitles = read("He <i>likes</i>", "the <b>old dog</b>.")
    links = [(0, 0), (1, 1), (3, 2), (4, 3)]
    written = subtitles.written([linked(*subtitles.lines, "他 喜欢 老狗 狗。", links)])
    assert written == cues("他 <i>喜欢</i>", "<b>老狗 狗</b>。")
    assert subtitles.written([Translation("他喜欢老狗。", 0.0, [], None)]) == cues("他喜<i>欢</i>", "老<b>狗</b>。")


def test_rows_are_no_more_than_they_were() -> None:
    long = Translation("ein sehr sehr langer Satz, der in zwei Zeilen gehört", 0.0, [], [])
    assert read("a long line\nof text.").written([long]) == cues(
        "ein sehr sehr langer Satz,\nder in zwei Zeilen gehört"
    )
    assert read("a long line of text.").written([long]) == cues(long.text)
    assert read("a long line\nof text.").written([long._replace(text="kurz")]) == cues("kurz")
    assert read("{\\an8}\na line of text.").written([long]) == cues(f"{{\\an8}}\n{long.text}")  # a row of the tag's own
    said = "Da sagte der alte Mann: Komm her und hilf"
    written = read("Then the old man said: <i>\ncome here and</i> help <i>").written([long._replace(text=said)])
    assert written.count("\n") == cues("a\nb").count("\n")


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
    text = " \n00:00:01.5 --> 00:00:02,000 X1:0\n\nyes, he is\n\n\n00:00:03,000 --> 0:00:04,000\nold."
    assert translated(Subtitles(text, name=""), in_order) == text.replace("yes, he is", "YES, HE IS").replace(
        "old", "OLD"
    )
    for empty in ("", "\ufeff", "\n\n"):
        assert translated(Subtitles(empty, name=""), in_order) == empty


@pytest.mark.parametrize(
    ("below", "line"),
    [
        ("he is\n\n2\n00:00:03,000 --> 00:00:04,000\nold.", "he is old."),
        ("he is\n\n2\n \n00:00:03,000 --> 00:00:04,000\nold.", "he is old."),  # a blank row behind its number
        ("he\n\nNOTE\n00:00:03,000 --> 00:00:04,000\nold.", "he NOTE old."),  # no number, and a blank row in a cue
        ("he is\n2\n00:00:03,000 --> 00:00:04,000\nold.\n\n3\n", "he is old."),  # the file is cut off
    ],
)
def test_numbers_are_those_of_players(below: str, line: str) -> None:
    text = f"1\n00:00:01,000 --> 00:00:02,000\n{below}"
    assert Subtitles(text, name="").lines == [line]
    events = pysubs2.SSAFile.from_string(text, format_="srt")
    assert " ".join(event.plaintext for event in events).split() == line.split()


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("A page.", ["a.srt, line 1: 'A page.' comes before the times of the first text; expected 00:01:02,345 --> "]),
        ("WEBVTT\n\n00:01.0 --> 00:02.0\na", ["a.srt, line 1: 'WEBVTT' comes before the times"]),
        ("1\n", ["a.srt: has no line with times, such as 00:01:02,345 --> 00:01:04,000"]),
        (cues("a").replace("-->", "->"), ["a.srt, line 2: '00:00:01,000 -> 00:00:01,900' is damaged; expected times"]),
        (cues("a").replace("00:00:01,000 ", ""), ["a.srt, line 2: '--> 00:00:01,900' is damaged; expected times"]),
        (cues("a", "b").replace("00:00:02,", "O0:00:02,", 1), ["a.srt, line 6: 'O0:00:02,000 --> 00:00:02,900' is"]),
        (cues("a").replace(",000 -->", " -"), ["a.srt, line 2: '00:00:01 - 00:00:01,900' is damaged; expected times"]),
        (cues("a").replace("1\n", "", 1).replace(" --> ", " "), ["a.srt, line 1: '00:00:01,000 00:00:01,900' is"]),
        ("1\n00:00:01 00:00:02\na\n", ["a.srt, line 2: '00:00:01 00:00:02' is damaged; expected times"]),
        (cues("a\n00:00:02,000 00:00:02,900\nb"), ["a.srt, line 4: '00:00:02,000 00:00:02,900' is damaged"]),
        (cues("a\n0:0:2 -> 0:0:3\nb"), ["a.srt, line 4: '0:0:2 -> 0:0:3' is damaged"]),
    ],
)
def test_mistakes(text: str, messages: list[str]) -> None:
    with pytest.raises(UserError) as error:
        Subtitles(text, name="a.srt")
    assert len(error.value.messages) == len(messages)
    assert all(text.startswith(start) for text, start in zip(error.value.messages, messages, strict=True))


def test_times_inside_of_a_text_stay() -> None:
    """As in SubRip that was made of WebVTT."""
    text = cues("<00:00:01.500>He <00:00:02.000>has seen 3 <4>.")
    subtitles = Subtitles(text, name="")
    assert subtitles.lines == ["He has seen 3 <4>."]
    assert translated(subtitles, in_order) == text.replace("He", "HE").replace("has seen", "HAS SEEN")
