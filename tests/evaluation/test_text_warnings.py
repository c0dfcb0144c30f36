"""There are warnings about a text if, and only if, it calls for them."""

import gzip
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nmt.data.corpus import read_lines
from nmt.evaluation.text_warnings import normalized_warning, text_warnings

RAW = ["Two dogs, one cat.", "A man eats soup.", "Three women sing."]
TOKENIZED = ["Two dogs , one cat .", "A man eats soup .", "Three women sing ."]


def warned(hypotheses: Sequence[str], references: Sequence[str], **options: Any) -> list[str]:
    return text_warnings({"hypotheses": hypotheses}, {"references": references}, **options)


def test_tokenized_text_is_warned_of() -> None:
    hypotheses, references = warned(TOKENIZED, TOKENIZED, tokenize="13a")

    assert hypotheses.startswith("100% of the hypotheses look tokenized")
    assert references.startswith("100% of the references look tokenized")
    assert references.endswith("detokenize the text, or set --tokenize to none")


def test_tokenized_text_on_one_side_is_told_once() -> None:
    (warning,) = warned(RAW, TOKENIZED, tokenize="13a")

    assert warning.startswith("references: 3 of 3 lines (100.0%) look tokenized")
    assert "(the first is line 1), but 0.0% of hypotheses; " in warning


def test_escapes_of_a_tokenizer_are_recognized() -> None:
    (warning,) = warned(["The dog &apos;s well @-@ worn toy"], RAW[:1], tokenize="13a")

    assert warning.startswith("hypotheses: 1 of 1 line (100.0%) look tokenized")


def test_ellipses_decimals_and_few_odd_lines_are_not_tokenized_text() -> None:
    lines = ["Well ... no.", "It costs .5 or 3.50 now.", "He said ,well, no.", "A typo here .", *RAW]

    assert warned(lines, lines, tokenize="13a") == []


def test_what_a_model_cannot_write_is_warned_of() -> None:
    """With the first example; capitals and spaces do not count."""
    lines = ["Two  dogs", "A CAT", "470 m² of …", "½"]
    (warning,) = normalized_warning("references", lines, ["Two dogs", "a cat", "470 m2 of ...", "1⁄2"])
    assert warning.startswith("50% of the references have characters that the model cannot write")
    assert "(line 3: 'm2' instead of 'm²')" in warning
    assert normalized_warning("references", lines, lines) == []
    assert normalized_warning("references", ["a"] * 99 + ["½"], ["a"] * 99 + ["1⁄2"]) == []
    assert normalized_warning("references", [], []) == []


def test_untokenized_text_is_warned_of_without_tokenization() -> None:
    hypotheses, references = warned(RAW, ["他们 在 公园 唱歌。"] * 3, tokenize="none")

    assert hypotheses.startswith("100% of the hypotheses look untokenized")
    assert references.startswith("100% of the references look untokenized")
    assert "set --tokenize to 13a" in hypotheses


@pytest.mark.parametrize("pieces", ["▁Two ▁do gs", "Two do@@ gs", "Two dogs sin@@"])
@pytest.mark.parametrize("tokenize", ["13a", "none"])
def test_subwords_are_warned_of_under_every_tokenization(pieces: str, tokenize: str) -> None:
    (warning,) = warned([pieces], ["Two dogs sing now"], tokenize=tokenize)

    assert warning.startswith("hypotheses: 1 of 1 line (100.0%) look split into subwords")


def test_a_short_sentence_may_be_translated_with_more_words() -> None:
    assert warned(["A dog is sleeping."], ["The dog sleeps."], tokenize="char") == []


def test_empty_lines_are_counted() -> None:
    assert warned(["", RAW[0], " "], [RAW[1], RAW[0], ""], tokenize="13a") == [
        "2 of 3 hypotheses are empty",
        "1 of 3 references is empty",
    ]


def test_lowercased_hypotheses_against_cased_references() -> None:
    lower = [line.lower() for line in RAW]

    (warning,) = warned(lower, RAW, tokenize="13a")
    assert "--lowercase" in warning
    assert warned(lower, RAW, tokenize="13a", lowercase=True) == []
    assert warned(lower, lower, tokenize="13a") == []
    assert warned(["他们唱歌"] * 7, ["他们唱歌"] * 6 + ["他们在 Berlin"], tokenize="zh") == []


@pytest.mark.parametrize(
    ("name", "fitting"),
    [
        ("multi30k/raw/test_2016_flickr.de.gz", "13a"),
        ("multi30k/raw/test_2017_flickr.fr.gz", "13a"),
        ("multi30k/tok/test_2017_flickr.lc.norm.tok.en.gz", "none"),
        ("wmt_news10k/test.de.gz", "none"),
    ],
)
def test_real_corpora_are_told_apart(shared_data: Path, name: str, fitting: str) -> None:
    path = shared_data / name
    lines = gzip.decompress(path.read_bytes()).decode("utf-8").splitlines()

    assert warned(lines, lines, tokenize=fitting) == []
    assert len(warned(lines, lines, tokenize="none" if fitting == "13a" else "13a")) == 2


@pytest.mark.parametrize(
    ("hypotheses", "references", "ending"),
    [
        (
            str.upper,
            str,
            " are in capitals only (the first is line 1), but 0.0% of references; give both in the usual ",
        ),
        (str, lambda line: f"{line}\t{line[:-1]} now.", "FILE > NEW writes it; several references are several files"),
    ],
)
def test_hypotheses_in_another_form(shared_data: Path, hypotheses: Any, references: Any, ending: str) -> None:
    lines = [*read_lines(shared_data / "multi30k/raw/test_2016_flickr.de.gz")]
    (warning,) = warned([*map(hypotheses, lines)], [*map(references, lines)], tokenize="13a")
    assert ending in warning


def test_a_mark_of_the_few_lines_that_could_have_it_is_no_sign() -> None:
    titles = ["Zwei Hunde auf einer Wiese"] * 20
    assert warned([*titles, "Ende."], [*titles, "Ende ."], tokenize="13a") == []


def test_words_are_no_text_for_bleu(shared_data: Path) -> None:
    """70% of the lines are right, and BLEU is 0.00."""
    words = [*read_lines(shared_data / "histnorm/german-anselm/dev.norm.gz")][:1000]
    written = [word if number % 10 < 7 else "x" for number, word in enumerate(words)]

    (warning,) = warned(written, words, tokenize="13a")
    assert warning.startswith("100% of the references have fewer than the four words that BLEU counts together")
    assert warning.endswith("; accuracy and cer, the character error rate, are metrics that suit words")
    assert warned(written, words, tokenize="char") == []
    assert warned(written, words, tokenize="13a", metrics=["chrf"]) == []


def test_no_warning_is_about_a_metric_that_is_left_out() -> None:
    assert warned(TOKENIZED, TOKENIZED, tokenize="13a", metrics=("chrf",)) == []
    lower = [line.lower() for line in RAW]
    assert len(warned(lower, RAW, tokenize="13a", metrics=("bleu",))) == 1
    assert warned(lower, RAW, tokenize="13a", metrics=("ter",)) == []


def test_several_systems_and_references_are_told_apart() -> None:
    lower = [line.lower() for line in RAW]
    systems = {"hypotheses of old": RAW, "hypotheses of new": lower, "hypotheses of odd": TOKENIZED}
    references = {"references of r1": lower, "references of r2": [*RAW[:2], ""]}

    warnings = text_warnings(systems, references, tokenize="13a")

    assert [re.split(r" \((?:such|the)|, but", warning)[0] for warning in warnings] == [
        "references: 2 of 5 lines (40.0%) have capital letters",
        "hypotheses of odd: 3 of 3 lines (100.0%) look tokenized",
        "1 of 3 references of r2 is empty, which counts as missing",
    ]


CHINESE = [
    "今天天气很好，我们去公园散步。",
    "两只狗在绿色的田野上奔跑。",
    "三位女士坐在长椅上唱歌。",
]
JAPANESE = ["二匹の犬が緑の野原を走っている。", "男性がスープを飲んでいます。"]
THAI = ["สุนัขสองตัวกำลังวิ่งข้ามทุ่งหญ้า", "ผู้ชายคนหนึ่งกำลังกินซุป"]


@pytest.mark.parametrize("lines", [CHINESE, JAPANESE, THAI], ids=["zh", "ja", "th"])
@pytest.mark.parametrize("tokenize", ["13a", "intl", "none"])
def test_text_without_spaces_needs_another_tokenizer(lines: list[str], tokenize: str) -> None:
    hypotheses, references = warned(lines, lines, tokenize=tokenize)
    assert hypotheses.startswith("100% of the hypotheses have no spaces between words")
    assert references.startswith("100% of the references have no spaces between words")
    assert "zh for Chinese" in references
    assert warned(lines, lines, tokenize=tokenize, metrics=["chrf"]) == []


@pytest.mark.parametrize(
    "lines",
    [
        ["一个男人在喝汤。", "我不知道。", "好的，谢谢你。"],
        ["我喜欢用 Python 编写程序，因为它很简单。", "她在 Google 工作了三年，现在在 Berlin 学习。"],
        ["你好，我的朋友　今天天气很好，我们去公园散步", "三位女士坐在长椅上唱歌"],
    ],
    ids=["subtitles", "Latin words", "a space between clauses"],
)
def test_short_lines_and_latin_words_in_text_without_spaces(lines: list[str]) -> None:
    warning, _ = warned(lines, lines, tokenize="none")
    assert warning.startswith("100% of the hypotheses have no spaces between words")


@pytest.mark.parametrize(
    "lines",
    [
        ["他", "北京", "长椅"],
        ["Peking heißt auf Chinesisch 北京市朝阳区."],
        ["コミュニケーション", "インターフェース"],
        ["两 只 狗 在 绿色 的 田野 上 奔跑 。", "全国人民代表大会常务委员会 委員長"],
        ["今天天气　很好", "我们　去　公园　散步"],
        ["大韓民國은 民主共和國이다.", "主權은 國民에게 있고, 權力은 國民으로부터 나온다."],
    ],
    ids=["words", "German", "katakana", "a long word", "ideographic spaces", "Korean"],
)
def test_what_has_spaces_where_it_needs_them(lines: list[str]) -> None:
    assert not any("spaces" in message for message in warned(lines, lines, tokenize="none"))


@pytest.mark.parametrize("tokenize", ["13a", "none"])
def test_text_cut_into_words_has_no_warning(tokenize: str) -> None:
    cut = [
        "两 只 狗 在 绿色 的 田野 上 奔跑 。",
        "สุนัข สอง ตัว กำลัง วิ่ง ข้าม ทุ่งหญ้า",
        "全国人民代表大会常务委员会 委員長 说",
    ]
    cut += ["コミュニケーション サーバー の インターフェース を ダウンロード する 。", "Peking heißt 北京 ."]
    assert warned(cut, cut, tokenize=tokenize, metrics=["ter"]) == []
    assert not any("spaces" in message for message in warned(cut, cut, tokenize=tokenize))
