"""Words of scripts with and without spaces: where lines may be broken, and what they attend to."""

import numpy as np
import pytest

from nmt.data.words import words_of
from nmt.decoding.text.alignment import Block, SoftAlignment
from nmt.decoding.text.marks import Weighted
from nmt.decoding.writing import Translation
from nmt.documents.cutting import cut_among, unbroken


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


def attention(source: list[str], target: list[str], rows: list[list[float]], *texts: str) -> list[Weighted]:
    """From soft alignments of these words, the last column of which is the end of the source."""
    alignment = SoftAlignment(source, target, [Block(np.array(rows, dtype=np.float32))], [])
    [(_, links)] = cut_among([texts[0]], Translation(texts[1], 0.0, [], [], None, (), alignment))
    return links


def test_attention_to_the_words_of_both_texts() -> None:
    """That to the end is shared by the words, what is hardly any is left out, and white space may have changed."""
    rows = [[0.4, 0.0, 0.4, 0.2], [0.0, 0.495, 0.005, 0.5]]
    found = attention(["the", "old", "dog"], ["猫は", "犬"], rows, "the old dog", "猫は\n犬")
    assert [(word, place, round(weight, 3)) for word, place, weight in found] == [
        (0, 0, 0.5),
        (0, 1, 0.5),
        (2, 0, 0.5),
        (2, 1, 0.5),
        (1, 2, 0.99),
    ]
    parts = attention(["老", "学生们"], ["old", "学生"], [[1.0, 0, 0], [0, 1.0, 0]], "老学生们", "old 学生")
    assert parts == [(0, 0, 1.0), (1, 1, 1.0), (2, 2, 0.5), (3, 2, 0.5)]
