"""Table and JSON show the scores unchanged; there are warnings if, and only if, the text calls for them."""

import gzip
import json
from pathlib import Path

import pytest

from nmt.evaluation.metrics import Score
from nmt.evaluation.report import json_object, table, text_warnings

SCORES = {
    "bleu": Score(27.304, "nrefs:1|tok:13a"),
    "chrf": Score(100.00000000000004, "nrefs:1|nc:6"),
    "ter": Score(131.125, "nrefs:1|tok:tercom"),
}
RAW = ["Two dogs, one cat.", "A man eats soup.", "Three women sing."]
TOKENISED = ["Two dogs , one cat .", "A man eats soup .", "Three women sing ."]


def test_table_is_aligned_and_says_which_way_is_better() -> None:
    assert table(SCORES, sentences=7).splitlines() == [
        "metric   score  better  signature",
        "BLEU     27.30  higher  nrefs:1|tok:13a",
        "chrF2   100.00  higher  nrefs:1|nc:6",
        "TER     131.12  lower   nrefs:1|tok:tercom",
        "7 sentences",
    ]


def test_table_of_one_sentence() -> None:
    assert table(SCORES, sentences=1).endswith("\n1 sentence")


def test_json_object_has_scores_signatures_and_what_was_scored() -> None:
    assert json_object(SCORES, sentences=7, tokenize="13a", lowercase=False) == {
        "bleu": {"score": 27.304, "signature": "nrefs:1|tok:13a"},
        "chrf": {"score": 100.0, "signature": "nrefs:1|nc:6"},
        "ter": {"score": 131.125, "signature": "nrefs:1|tok:tercom"},
        "sentences": 7,
        "tokenize": "13a",
        "lowercase": False,
    }
    json.dumps(json_object(SCORES, sentences=7, tokenize="13a", lowercase=False))


@pytest.mark.parametrize("tokenize", ["13a", "intl", "char"])
def test_raw_text_has_no_warning(tokenize: str) -> None:
    assert text_warnings(RAW, RAW, tokenize=tokenize) == []


def test_tokenised_text_has_no_warning_without_tokenisation() -> None:
    assert text_warnings(TOKENISED, TOKENISED, tokenize="none") == []


def test_tokenised_text_is_warned_of_on_the_side_that_has_it() -> None:
    (warning,) = text_warnings(RAW, TOKENISED, tokenize="13a")

    assert warning.startswith("100% of the references look tokenized")
    assert "--tokenize none" in warning


def test_escapes_of_a_tokeniser_are_recognised() -> None:
    (warning,) = text_warnings(["The dog &apos;s well @-@ worn toy"], RAW[:1], tokenize="13a")

    assert warning.startswith("100% of the hypotheses look tokenized")


def test_ellipses_decimals_and_few_odd_lines_are_not_tokenised_text() -> None:
    lines = ["Well ... no.", "It costs .5 or 3.50 now.", "He said ,well, no.", "A typo here .", *RAW]

    assert text_warnings(lines, lines, tokenize="13a") == []


def test_untokenised_text_is_warned_of_without_tokenisation() -> None:
    hypotheses, references = text_warnings(RAW, ["他们 唱歌。"] * 3, tokenize="none")

    assert hypotheses.startswith("100% of the hypotheses look untokenized")
    assert references.startswith("100% of the references look untokenized")
    assert "--tokenize 13a" in hypotheses


@pytest.mark.parametrize("pieces", ["▁Two ▁do gs", "Two do@@ gs", "Two dogs sin@@"])
@pytest.mark.parametrize("tokenize", ["13a", "none"])
def test_subwords_are_warned_of_under_every_tokenisation(pieces: str, tokenize: str) -> None:
    (warning,) = text_warnings([pieces], ["Two dogs sing"], tokenize=tokenize)

    assert warning.startswith("100% of the hypotheses look split into subwords")


def test_an_address_is_not_a_subword() -> None:
    assert text_warnings(["Write to me@@home.org."], RAW[:1], tokenize="13a") == []


def test_empty_lines_are_counted() -> None:
    assert text_warnings(["", "A man.", " "], ["Two dogs.", "A man.", ""], tokenize="13a") == [
        "2 of 3 hypotheses are empty",
        "1 of 3 references is empty",
    ]


def test_lowercased_hypotheses_against_cased_references() -> None:
    lower = [line.lower() for line in RAW]

    (warning,) = text_warnings(lower, RAW, tokenize="13a")
    assert "--lowercase" in warning
    assert text_warnings(lower, RAW, tokenize="13a", lowercase=True) == []
    assert text_warnings(lower, lower, tokenize="13a") == []
    assert text_warnings(["他们唱歌"] * 7, ["他们唱歌"] * 6 + ["他们在 Berlin"], tokenize="zh") == []


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

    assert text_warnings(lines, lines, tokenize=fitting) == []
    assert len(text_warnings(lines, lines, tokenize="none" if fitting == "13a" else "13a")) == 2


def test_long_lines_are_warned_of_where_ter_is_wanted() -> None:
    """sacreBLEU's TER took 6 s for a line of 200 words and a minute for one of 800."""
    long, short = "word " * 800, "Two dogs"
    (warning,) = text_warnings([short, long], [short, long], tokenize="none")
    assert warning.startswith("line 2 has 800 words: TER")
    assert "--metrics bleu,chrf leaves it out" in warning
    (warning,) = text_warnings(["word " * 200] * 5, ["word " * 230] * 5, tokenize="none")
    assert warning.startswith("5 lines have up to 230 words: TER")
    assert text_warnings([short, long], [short, long], tokenize="none", metrics=("bleu", "chrf")) == []
    assert text_warnings([short, long], [long, short], tokenize="none") == []  # nothing to move in a short line
    assert text_warnings(["word " * 200] * 4, ["word " * 200] * 4, tokenize="none") == []


def test_no_warning_is_about_a_metric_that_is_left_out() -> None:
    assert text_warnings(TOKENISED, TOKENISED, tokenize="13a", metrics=("chrf",)) == []
    lower = [line.lower() for line in RAW]
    assert len(text_warnings(lower, RAW, tokenize="13a", metrics=("bleu",))) == 1
    assert text_warnings(lower, RAW, tokenize="13a", metrics=("ter",)) == []
