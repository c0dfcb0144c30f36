"""Lines as sentences, and sentences joined to lines."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.decoding.text.sentences import Line, Sentence, checked_language, joined_sentences, sentences_of
from nmt.errors import UserError

pytest.importorskip("sentencex", reason="needs sentencex, of the extra text")

LANGUAGES = ("ar", "de", "el", "en", "es", "fr", "hi", "hy", "ja", "my", "ru", "th", "xx", "zh")


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
        ("en", "", []),
        ("en", " \t\u3000", []),
    ],
)
def test_sentences(language, line, texts) -> None:
    sentences = sentences_of(line, language)
    if texts is None:  # what abbreviations a language has is for sentencex to know
        assert len(sentences) in (2, 3)
    else:
        assert [sentence.text for sentence in sentences] == texts
    assert all(line[start : start + len(text)] == text for text, start in sentences)


@given(
    st.text(st.sampled_from("aB .!?。？।\n\r\t\u00a0\u3000\u2028\u0085\u200b\"'“”«»「」()1é犬ก🙂"), max_size=40),
    st.sampled_from(LANGUAGES),
    st.booleans(),
)
def test_nothing_of_a_line_is_lost(line, language, whole_words) -> None:
    sentences = sentences_of(line, language, whole_words=whole_words)
    spaces = Line(line, sentences).spaces()
    assert all(text == text.strip() != "" for text, _ in sentences)
    between = [line[one.start + len(one.text) : other.start] for one, other in pairwise(sentences)]
    assert not whole_words or all(map(str.isspace, between))
    assert all(space == "" or space.isspace() for space in spaces)
    texts = [text for text, _ in sentences]
    parts = [part for pair in zip(spaces, [*texts, ""], strict=True) for part in pair]
    assert "".join("".join(parts).split()) == "".join(line.split())


def test_wide_spaces_that_sentencex_fails_at() -> None:
    """A capital letter, a space of several bytes and a full stop."""
    assert sentences_of("Plan B\u00a0. A\u3000.", "en")


def test_a_line_of_a_megabyte_is_cut_in_linear_time() -> None:
    line = "“ a. " * 200_000  # quotations that never end
    sentences = sentences_of(line, "en")
    assert "".join(text for text, _ in sentences).replace(" ", "") == line.replace(" ", "")


def test_no_word_is_cut_in_a_sentence_without_end() -> None:
    line = "abcdef " * 3000
    sentences = sentences_of(line, "en", whole_words=False)
    assert len(sentences) > 1
    assert " ".join(text for text, _ in sentences).split() == line.split()


def test_long_lines_are_cut_where_short_ones_are() -> None:
    line = "The dog sleeps. Mr. Smith left! " * 1000  # 32,000 characters, more than are looked at together
    assert {text for text, _ in sentences_of(line, "en")} == {"The dog sleeps.", "Mr. Smith left!"}


@pytest.mark.parametrize(
    ("line", "whole_words", "texts"),
    [
        ("狗。猫。 鸟。", False, ["狗。", "猫。", "鸟。"]),
        ("狗。猫。 鸟。", True, ["狗。猫。", "鸟。"]),
        ("狗 。猫 。鸟 。 鱼 。", True, ["狗 。猫 。鸟 。", "鱼 。"]),
    ],
)
def test_whole_words_are_not_cut(line, whole_words, texts) -> None:
    assert [text for text, _ in sentences_of(line, "zh", whole_words=whole_words)] == texts


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
    line = Line("\t A.\u00a0 B.\u2028C.\r\n ", [Sentence("A.", 2), Sentence("B.", 6), Sentence("C.", 9)])
    assert line.spaces() == ["\t ", "\u00a0 ", " ", "  "]


def test_what_is_no_sentence_is_no_space() -> None:
    """Such as a sentence of which the subword model makes no piece."""
    assert Line("A. \u200b B.", [Sentence("A.", 0), Sentence("B.", 5)]).spaces() == ["", "  ", ""]


@pytest.mark.parametrize(
    ("texts", "spaces", "line"),
    [
        (["A.", "B."], ["\t", "\u3000", " "], "\tA.\u3000B. "),
        (["A.", "B."], ["", "", ""], "A. B."),
        (["好。", "是。"], ["", "", ""], "好。是。"),
        (["好。", "Yes."], ["", "", ""], "好。 Yes."),
        (["ดี", "ใช่"], ["", "", ""], "ดีใช่"),
        (["A.", "", "C."], ["", " ", "\t", ""], "A. \tC."),
        (["", "B."], ["", "", ""], "B."),
        ([], [" "], " "),
    ],
)
def test_joining(texts, spaces, line) -> None:
    assert joined_sentences(texts, spaces) == line
