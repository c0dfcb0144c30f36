"""Words of scripts with and without spaces: where lines may be broken, and links between them."""

import pytest

from nmt.documents.words import spread, unbroken, words_of


@pytest.mark.parametrize(
    "parts",
    [
        "He| said:| “No!”",
        "Il| dit :| « Non ! »",
        "他|说：|“你|好，|世|界！”|「真|的|吗？」",
        "使|用|Docker，|iPhone| 15|手|机|（约|3,000|元）。",
        "スーパーマーケットへ|行っ|て、|ちょっ|と|待っ|て",  # small kana, katakana, and grammar behind Han
        "ใน|ส|ว|น|ณะ| และ|กำ|ลั|ง|เล่|น",  # vowels before and behind their consonant
        "ပြန်|ကြ|မယ်။",
        "ခွင့်",
        "ปี|๒๕๖๓",
        '他|说"好"。',
        "乔|治·|布|什|5％",
        "བཀྲ་|ཤིས་|བདེ་|ལེགས།",
        "ផ្ទះ។",
        "한국어는| 띄어쓰기가| 있습니다.",
    ],
)
def test_where_a_line_may_be_broken(parts: str) -> None:
    text = parts.replace("|", "")
    assert [text[start:stop] for start, stop in unbroken(text)] == [part.strip() for part in parts.split("|")]


def test_words() -> None:
    text = "我喜欢 red dogs，“好”。"
    assert "|".join(text[start:stop] for start, stop in words_of(text)) == "我|喜|欢|red|dogs|，|“|好|”|。"


def test_links_are_spread_in_proportion() -> None:
    assert spread([(0, 0), (2, 1), (9, 0), (0, 9)], "the old dog", "那只 狗") == [(0, 0), (0, 1), (2, 2)]
    assert spread([(0, 0)], "老狗", "old") == [(0, 0)]
    assert spread([(0, 0)], "我喜欢", "ab我们") == [(0, 0), (1, 1), (2, 2)]
    assert spread([(1, 0), (0, 0), (0, 1)], "a b", "c d") == [(1, 0), (0, 1)]  # of several the first
