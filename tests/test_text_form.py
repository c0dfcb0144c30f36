"""Two texts that must agree in form: what is told where they do not, and nothing where they do."""

import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import regex

from nmt.data.corpus import read_lines
from nmt.text_form import (
    DIRECTIONS,
    ENOUGH,
    FORMS,
    INVISIBLE,
    TextForm,
    disagreements,
    form_of,
    source_form,
    together,
)

RAW = "multi30k/raw/{}.{}.gz"
TOKENIZED = "multi30k/tok/{}.lc.norm.tok.{}.gz"


def lines_of(folder: Path, name: str, most: int = 1000) -> list[str]:
    return [*islice(read_lines(folder / name), most)]


def found(one: Sequence[str], other: Sequence[str]) -> dict[str, str]:
    return disagreements(form_of(one, name="one"), form_of(other, name="other"))


def test_tokenized_training_text_and_raw_validation_text(shared_data: Path) -> None:
    train, valid = (lines_of(shared_data, name) for name in (TOKENIZED.format("train", "en"), RAW.format("val", "en")))
    assert found(train, valid) == {
        "cased": "other: 996 of 1,000 lines (99.6%) have capital letters (the first is line 1), but 0.0% of one; "
        "give both in the same case",
        "tokenized": "one: 945 of 945 lines (100.0%) look tokenized (such as 'word .', '&apos;' or '@-@') (the first "
        "is line 1), but 0.0% of other; give both tokenized alike, or neither",
    }


def test_the_first_line_that_is_odd_is_told() -> None:
    (message,) = found(["a dog"] * 50, ["", *["a cat"] * 24, *["A cat"] * 25]).values()
    assert message.startswith("other: 25 of 49 lines (51.0%) have capital letters (the first is line 26), but 0.0% of ")


@pytest.mark.parametrize(
    ("change", "mark"),
    [
        (str.lower, "cased"),
        (str.upper, "capitals"),
        (lambda line: line.replace(".", " ."), "tokenized"),
        (lambda line: "▁" + line.replace(" ", " ▁"), "segmented"),
        (lambda line: line.replace("er ", "@@ er "), "segmented"),
        (lambda line: f"{line}\t{line}", "tabbed"),
        (lambda line: f"{line} ||| {line}", "barred"),
        (lambda line: line.replace("e", "&nbsp;"), "escaped"),
        (lambda line: f"<unk> {line}", "unknown"),
        (lambda line: line.split()[0], "brief"),
    ],
)
def test_a_change_of_form_is_found(shared_data: Path, change: Any, mark: str) -> None:
    """In one of two texts of 200 lines, whichever it is."""
    one = lines_of(shared_data, RAW.format("val", "de"), 200)
    other = lines_of(shared_data, RAW.format("test_2016_flickr", "de"), 200)
    assert found(one, other) == {}
    assert set(found(one, [*map(change, other)])) == set(found([*map(change, one)], other)) == {mark}


def test_spaces_in_scripts_without_them() -> None:
    whole = ["两只狗在绿色的田野上奔跑。", "三位女士坐在长椅上唱歌。"] * ENOUGH
    cut = [" ".join(line) for line in whole]
    assert set(found(whole, cut)) == {"spaced"}
    assert set(found([*whole, *["是的。"] * ENOUGH], cut)) == {"spaced"}, "these have no words to be counted"
    assert found(whole, ["Two dogs, running", "Three women"] * ENOUGH) == {}, "another language has another form"


@pytest.mark.parametrize("lines", range(0, ENOUGH + 2, 3))
def test_few_lines_are_no_sign(lines: int) -> None:
    """Of 25 lines of a text without capitals, 20 would have one if they were as the other text, 80% of whose have."""
    cased = ["A dog"] * 80 + ["a dog"] * 20
    assert found(["a cat"] * lines, cased) == {}
    assert found(["a cat"] * (ENOUGH + 4), cased) == {}
    assert set(found(["a cat"] * (ENOUGH + 5), cased)) == {"cased"}


CORPORA = [
    *((RAW.format("train", "de"), RAW.format(name, "de")) for name in ("val", "test_2016_flickr", "test_2017_flickr")),
    *((TOKENIZED.format("train", "fr"), TOKENIZED.format(name, "fr")) for name in ("val", "test_2017_flickr")),
    ("wmt_news10k/train.en.gz", "wmt_news10k/test.en.gz"),
    ("iwslt14-deen/lowres/train.de.gz", "iwslt14-deen/test.tok.de.gz"),
    ("hansard36-enfr/train.fr.gz", "hansard36-enfr/test.fr.gz"),
    ("histnorm/german-ridges/train.orig.gz", "histnorm/german-ridges/dev.orig.gz"),
    ("sigmorphon2016-task1/german/train.tgt.gz", "sigmorphon2016-task1/german/test.tgt.gz"),
]


@pytest.mark.parametrize(("train", "other"), CORPORA)
def test_texts_of_a_corpus_agree(shared_data: Path, train: str, other: str) -> None:
    """As a whole, and in parts of 20 and 100 lines."""
    trained, lines = form_of(lines_of(shared_data, train), name="train"), lines_of(shared_data, other)
    assert disagreements(form_of(lines, name="other"), trained) == {}
    for size in (20, 100):
        for start in range(0, len(lines), size):
            assert disagreements(form_of(lines[start : start + size], name="part"), trained) == {}


def test_what_a_model_file_says() -> None:
    form = form_of(["A dog .", "a cat"], name="train.en")
    kept = source_form({FORMS: [form.counts, TextForm().counts]})
    assert kept == TextForm("the model's training text", form.counts)
    for other in ({}, {FORMS: None}, {FORMS: []}, {FORMS: [3]}, {FORMS: [{"cased": "many"}]}):
        assert source_form(other) is None
    before = source_form({FORMS: [{"lines": 1000, "text": 1000, "short": 5}]})  # which counted in another way
    assert before is not None
    assert disagreements(form_of(["dog"] * 1000, name="other"), before) == {}


def test_several_texts_count_as_one() -> None:
    one, other = form_of(["A dog"], name="one"), form_of(["a cat", "a\tb"], name="other")
    both = together([one, other], name="both")
    assert (both.counts["lines"], both.counts["cased"], both.counts["tabbed"], both.first) == (3, 1, 1, {})
    assert together([other], name="same").first["tabbed"] == 2


def test_characters_that_nobody_sees() -> None:
    """Of all characters they are those of Unicode's own list (DerivedCoreProperties.txt)."""
    listed = (
        "AD 34F 61C 115F-1160 17B4-17B5 180B-180F 200B-200F 202A-202E 2060-206F 3164 FE00-FE0F FEFF FFA0 FFF0-FFF8 "
        "1BCA0-1BCA3 1D173-1D17A E0000-E0FFF"
    )
    ranges = [[int(end, 16) for end in part.split("-")] for part in listed.split()]
    expected = {chr(code) for ends in ranges for code in range(ends[0], ends[-1] + 1)}
    every = "".join(chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000)
    assert set(regex.findall(f"[{INVISIBLE}]", every)) == expected
    assert regex.findall(r"\p{Bidi_Control}", every) == [*DIRECTIONS]
