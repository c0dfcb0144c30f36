"""Lines as sentences, and sentences joined to lines."""

import gzip
import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.words import has_finer
from nmt.decoding.text.languages import NAMES
from nmt.decoding.text.sentences import checked_language, joined_sentences, sentences_of, spaces_around
from nmt.errors import UserError

pytest.importorskip("sentencex", reason="needs sentencex, of the extra text")

LANGUAGES = ("ar", "de", "el", "en", "es", "fr", "hi", "hy", "ja", "my", "ru", "th", "xx", "zh")


def texts_of(line: str, language: str, **options: bool) -> list[str]:
    return [line[start:stop] for start, stop in sentences_of(line, language, **options)]


@pytest.mark.parametrize(
    ("language", "line", "texts"),
    [
        ("en", "The old dog sleeps . Two men help a girl .", ["The old dog sleeps .", "Two men help a girl ."]),
        ("en", "Mr. Smith left at 5 p.m. on Friday. He slept.", ["Mr. Smith left at 5 p.m. on Friday.", "He slept."]),
        ("en", "Is it?! Yes! No.", ["Is it?!", "Yes!", "No."]),
        ("en", "no end", ["no end"]),
        ("de", "Am 5. Mai kam er, z. B. mit dem Zug. Dann ging er.", None),
        ("fr", "Il a dit « oui ». Elle est partie\u00a0! Bien.", None),
        ("zh", "我喜欢狗。你呢？我也喜欢！", ["我喜欢狗。", "你呢？", "我也喜欢！"]),
        ("ja", "私は犬が好きです。\u3000あなたは？「はい。」", ["私は犬が好きです。", "あなたは？", "「はい。」"]),
        ("hi", "मैं स्कूल जाता हूँ। वह घर जाती है।", ["मैं स्कूल जाता हूँ।", "वह घर जाती है।"]),
        ("th", "ฉันชอบหมา คุณล่ะ", ["ฉันชอบหมา คุณล่ะ"]),
        ("ar", "كيف حالك؟ أنا بخير.", ["كيف حالك؟", "أنا بخير."]),
        ("ar", "\u202bأنا بخير.\u202c\u200f \u202bنعم.\u202c", ["\u202bأنا بخير.\u202c\u200f", "\u202bنعم.\u202c"]),
        ("ka", "ეს წიგნია. ის სახლია.", ["ეს წიგნია.", "ის სახლია."]),  # small letters, of which no sentence has others
        ("en", "", []),
        ("en", " \t\u3000", []),
        (
            "en",
            "Use Dog.Cat, ASP.NET, www.Python.Org or =Sheet2!C4.",
            ["Use Dog.Cat, ASP.NET, www.Python.Org or =Sheet2!C4."],
        ),
        ("en", "Leave me alone! he yelled. Go.", ["Leave me alone! he yelled.", "Go."]),
        ("en", "1. Two dogs play in the snow. 2. A man runs.", ["1. Two dogs play in the snow.", "2. A man runs."]),
        ("en", "1. The first item 2. The second item", ["1. The first item", "2. The second item"]),
        ("en", "Hello. 😀 Bye. ---", ["Hello.", "😀 Bye. ---"]),
        ("en", "...and two dogs. 42.", ["...and two dogs. 42."]),
        ("en", "---", ["---"]),
        ("en", "See Vol. 2 of it. It is good.", ["See Vol. 2 of it.", "It is good."]),
        ("en", "A\n \nb", ["A", "b"]),
        ("en", "It was so (or not).10 11 We said.3 It ends.", ["It was so (or not).10 11", "We said.3", "It ends."]),
        ("en", 'Chanel No.5 Perfume. "Go!" (He went.)', ["Chanel No.5 Perfume.", '"Go!" (He went.)']),
        ("de", "Die 1. Bundesliga und das 21. Jahrhundert.", ["Die 1. Bundesliga und das 21. Jahrhundert."]),
        ("fr", "M. Dupont est là. Il dort.", ["M. Dupont est là.", "Il dort."]),
        ("ru", "Столица, т.е. Москва. Там.", ["Столица, т.е. Москва.", "Там."]),
        ("sv", "Han bor t.ex. Stockholm. Hej.", ["Han bor t.ex. Stockholm.", "Hej."]),
        ("cs", "To je tzv. Praha. Smrt. Konec.", ["To je tzv. Praha.", "Smrt.", "Konec."]),
        ("zh", "我喜欢Dog.Cat。好!是。", ["我喜欢Dog.Cat。", "好!", "是。"]),
    ],
)
def test_sentences(language, line, texts) -> None:
    sentences = texts_of(line, language)
    if texts is None:  # what abbreviations a language has is for sentencex to know
        assert len(sentences) in (2, 3)
    else:
        assert sentences == texts


@given(
    st.text(st.sampled_from("aB .!?。？।\n\r\t\u00a0\u3000\u2028\u0085\u200b\"'“”«»「」()1é犬ก🙂"), max_size=40),
    st.sampled_from(LANGUAGES),
    st.booleans(),
)
def test_nothing_of_a_line_is_lost(line, language, whole_words) -> None:
    sentences = sentences_of(line, language, whole_words=whole_words)
    spaces = spaces_around(sentences, line)
    texts = [line[start:stop] for start, stop in sentences]
    assert all(text == text.strip() != "" for text in texts)
    between = [line[stop:start] for (_, stop), (start, _) in pairwise(sentences)]
    assert not whole_words or all(map(str.isspace, between))
    for text, space, following in zip(texts, between, texts[1:], strict=False):  # no word is cut
        assert space or text.rstrip("\"'”’»)]}」』").endswith(("。", "？", "।")) or has_finer(following[0])
    assert all(space == "" or space.isspace() for space in spaces)
    parts = [part for pair in zip(spaces, [*texts, ""], strict=True) for part in pair]
    assert "".join("".join(parts).split()) == "".join(line.split())


CODES = {name.lower(): code for code, name in NAMES.items()}
CODES |= {"amharic": "am", "armenian": "hy", "burmese": "my", "deutsch": "de", "english_clean": "en", "kazakh": "kk"}
CODES |= {"marathi": "mr", "segmenter": "en"}


def test_public_cases(shared_data: Path) -> None:
    """pySBD's cases: where the sentences of 370 of 405 texts end. Of the others, nine have their text changed."""
    cases = json.loads(gzip.decompress((shared_data / "pysbd-golden-rules" / "cases.json.gz").read_bytes()))
    right = restored = 0
    for name, texts in cases.items():
        code = CODES[Path(name).stem.removeprefix("test_")]
        for text, expected in texts:
            got, wanted = (
                ["".join(one.split()) for one in sentences] for sentences in (texts_of(text, code), expected)
            )
            right += got == wanted
            restored += "".join(got) == "".join(text.split())
    assert (right >= 370, restored) == (True, 405)


@pytest.mark.parametrize("language", ["en", "de"])
def test_no_word_of_real_lines_is_cut(shared_data: Path, language: str) -> None:
    """Help texts that are full of names of files, functions and cells."""
    packed = shared_data / "libreoffice-help" / "en-de" / f"all.{language}.gz"
    lines = gzip.decompress(packed.read_bytes()).decode().split("\n")[::2]
    cut = [(line, start) for line in lines for start, _ in sentences_of(line, language)[1:]]
    assert len(cut) > 2500
    assert all(line[start - 1].isspace() and not line[start].islower() for line, start in cut)


def test_wide_spaces_that_sentencex_fails_at() -> None:
    """A capital letter, a space of several bytes and a full stop."""
    assert sentences_of("Plan B\u00a0. A\u3000.", "en")


def test_a_line_of_a_megabyte_is_cut_in_linear_time() -> None:
    line = "“ a. " * 200_000  # quotations that never end
    assert "".join(texts_of(line, "en")).replace(" ", "") == line.replace(" ", "")


def test_a_long_sentence_without_end_is_one() -> None:
    line = "abcdef " * 3000
    assert texts_of(line, "en") == [line.strip()]


def test_long_lines_are_cut_where_short_ones_are() -> None:
    line = "The dog sleeps. Mr. Smith left! " * 1000  # 32,000 characters, more than are looked at together
    assert {*texts_of(line, "en")} == {"The dog sleeps.", "Mr. Smith left!"}


@pytest.mark.parametrize(
    ("line", "whole_words", "texts"),
    [
        ("狗。猫。 鸟。", False, ["狗。", "猫。", "鸟。"]),
        ("狗。猫。 鸟。", True, ["狗。猫。", "鸟。"]),
        ("狗 。猫 。鸟 。 鱼 。", True, ["狗 。猫 。鸟 。", "鱼 。"]),
    ],
)
def test_whole_words_are_not_cut(line, whole_words, texts) -> None:
    assert texts_of(line, "zh", whole_words=whole_words) == texts


@pytest.mark.parametrize(
    ("name", "code"),
    [("en", "en"), ("EN", "en"), ("en-US", "en"), ("pt_BR", "pt"), ("zh-Hans-CN", "zh"), ("gsw", "gsw")],
)
def test_languages_by_their_codes(name, code) -> None:
    assert checked_language(name) == code


@pytest.mark.parametrize("name", ["", "English", "source", "e", "en.US", "12"])
def test_other_names_are_no_languages(name) -> None:
    with pytest.raises(UserError, match=r"is no code of a language; .*--split-sentences en"):
        checked_language(name)


def test_the_spaces_of_a_line() -> None:
    assert spaces_around([(2, 4), (6, 8), (9, 11)], "\t A.\u00a0 B.\u2028C.\r\n ") == ["\t ", "\u00a0 ", " ", "  "]


def test_what_is_no_sentence_is_no_space() -> None:
    """Such as a sentence of which the subword model makes no piece."""
    assert spaces_around([(0, 2), (5, 7)], "A. \u200b B.") == ["", "  ", ""]


@pytest.mark.parametrize(
    ("texts", "spaces", "line"),
    [
        (["A.", "B."], ["\t", "\u3000", " "], "\tA.\u3000B. "),
        (["A.", "B."], ["", "", ""], "A. B."),
        (["好。", "是。"], ["", "", ""], "好。是。"),
        (["好。", "Yes."], ["", "", ""], "好。 Yes."),
        (["好。", "是。"], ["", " ", ""], "好。是。"),
        (["“好……”", "「是」"], ["", " ", ""], "“好……”「是」"),
        (["好 。", "是 。"], ["", " ", ""], "好 。 是 。"),  # as it is where words are separated
        (["我们 喜欢", "你们"], ["", " ", ""], "我们 喜欢 你们"),
        (["好。", "是。", "对。"], ["", "  ", " ", ""], "好。  是。对。"),
        (["好!", "是?”", "对"], ["", "", " ", ""], "好!是?”对"),  # as most models write them
        (["好。", "是。"], ["", "\u3000", ""], "好。\u3000是。"),
        (["ดี", "ใช่"], ["", "", ""], "ดี ใช่"),
        (["A.", "", "C."], ["", " ", "\t", ""], "A. \tC."),
        (["A.", "", "C."], ["", " ", "", ""], "A. C."),
        (["好。", "“是。”"], ["", " ", ""], "好。“是。”"),
        (["", "B."], ["", "", ""], "B."),
        ([], [" "], " "),
    ],
)
def test_joining(texts, spaces, line) -> None:
    assert joined_sentences(texts, spaces) == line
