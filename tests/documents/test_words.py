"""Words of scripts with and without spaces: where lines may be broken, and links between them."""

import pytest

from nmt.decoding.text.alignment import SoftAlignment
from nmt.decoding.writing import Translation
from nmt.documents.words import spread, unbroken, word_links, words_of


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


def test_finer_links_are_those_of_the_words_in_them() -> None:
    """Of every source word in a part, and of target words in proportion; white space may have changed."""
    finer = SoftAlignment(["the", "cat", "sees", "dogs"], ["猫は", "犬を", "見", "!"], [], [(1, 0), (3, 1), (2, 2)])
    translation = Translation("猫は犬を 見!", 0.0, [], [(3, 0)], finer_alignment=finer)
    links = word_links(translation, "the cat sees dogs", "猫は犬を\n見!")
    assert links == [(1, 0), (1, 1), (3, 2), (3, 3), (2, 4)]
    finer = SoftAlignment(["老", "学生们"], ["old", "学", "生"], [], [(0, 0), (1, 1), (1, 2)])
    translation = Translation("old 学生", 0.0, [], finer_alignment=finer)
    assert word_links(translation, "老学生们", "old 学生") == [
        (0, 0),
        *((word, place) for place in (1, 2) for word in (1, 2, 3)),
    ]
    finer = SoftAlignment(["学生们"], ["学生"], [], [(0, 0)])
    translation = Translation("学生", 0.0, [], finer_alignment=finer)
    assert word_links(translation, "学生们", "学生") == [(0, 0), (1, 1), (2, 1)]
    sentences = ["好!", '"', "好"]
    merged = SoftAlignment(sentences, ["好", "!", '"', "好"], [], [(0, 0), (0, 1), (1, 2), (2, 3)])
    translation = Translation('好!"好', 0.0, [], finer_alignment=merged)
    assert word_links(translation, '好!"好', '好!"好') == [(0, 0), (1, 0), (0, 1), (1, 1), (2, 2)]
    plain = Translation("b a", 0.0, [], [(1, 0), (0, 1)])
    assert word_links(plain, "a b", "b a") == [(1, 0), (0, 1)]
