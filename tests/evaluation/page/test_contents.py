"""What the report says, by hand, and that the page says no more: hostile text is text, and nothing is loaded."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from nmt.evaluation.comparison import Comparison, compare
from nmt.evaluation.page import contents as contents_module
from nmt.evaluation.page.contents import (
    MOST_CHARACTERS,
    MOST_WORDS,
    Contents,
    Group,
    by_frequency,
    by_length,
    contents,
    in_browser,
    packed,
    shown,
)
from nmt.evaluation.page.render import page
from tests.evaluation.page import examples


def made(comparison: Comparison, **more: Any) -> Contents:
    return contents(comparison, **more)


def test_systems_that_are_identical_have_no_p_and_no_star() -> None:
    text = page(made(compare({"a": examples.GOOD, "b": examples.GOOD}, [examples.REFERENCE], tested=True)))
    assert "<small>p: –</small>" in text
    assert "(best)" not in text
    assert "p (boot.): 1,000 resamples, one-sided, seed 12345, significant below 0.025" in text
    assert "★ best; baseline: good.txt" in page(made(examples.small()))


def test_the_best_mean_has_the_star_where_there_are_runs() -> None:
    """Not the best seed: that is chance."""
    systems = {"a1": examples.REFERENCE, "a2": examples.BAD, "b1": examples.GOOD, "b2": examples.GOOD}
    runs = {"a": ["a1", "a2"], "b": ["b1", "b2"]}
    text = page(made(compare(systems, [examples.REFERENCE], metrics=("chrf",), runs=runs)))
    rows = re.findall(r'<tr><th scope="row">.*?</tr>', text.partition("<details>")[0], re.DOTALL)
    assert [("(best)" in row, "★" in row) for row in rows] == [(False, False)] * 5 + [(True, False)]


def test_groups_and_habits() -> None:
    report = made(examples.small())
    lengths, rarity = report.groupings
    assert lengths.groups == [("1–2", [3]), ("3", [0, 1]), ("4", [2])]
    assert lengths.title == "By source length"
    assert rarity.groups == [("1", [0, 1, 2, 3])]
    assert "in the references" in rarity.about
    rows = {row.title: (row.values, row.reference) for row in report.habits}
    assert rows["Length ratio"] == ([pytest.approx(10 / 11, abs=1e-3), pytest.approx(12 / 11, abs=1e-3)], 1.0)
    assert rows["Repetition"] == ([0.0, pytest.approx(100 / 7)], 0.0)  # "eine eine", of 2 + 2 + 3 + 0 pairs
    assert rows["Unknown words"] == ([0.0, pytest.approx(100 / 12)], 0.0)
    assert report.letters == ["A", "B"]
    assert "New words" not in rows


def test_training_text() -> None:
    report = made(examples.small(), training=["der Hund", "der große Hund ist alt"])
    assert "in the training text" in report.groupings[1].about
    assert report.groupings[1].groups == [("0", [0, 1, 2, 3])]
    rows = {row.title: (row.values, row.reference) for row in report.habits}
    # All but der, Hund, große of 10 and 11 words, and of the 11 of the reference
    assert rows["New words"] == ([pytest.approx(70.0), pytest.approx(100 * 8 / 11)], pytest.approx(100 * 8 / 11))


def test_without_a_source_lengths_are_those_of_the_reference() -> None:
    report = made(compare({"one": examples.GOOD}, [examples.REFERENCE], metrics=("bleu",)))
    assert report.groupings[0].title == "By reference length"
    assert report.data["source"] is None
    assert "Where two systems differ most" not in page(report)


def test_data_of_the_list() -> None:
    data = made(examples.small(), attention=examples.attention()).data
    assert data["lengths"] == [3, 3, 4, 1]
    assert data["references"][0]["marks"] == [[], [], [], []]  # one of the two has each word
    assert data["translations"][1]["marks"] == [[9, 14], [0, 4], [20, 21], [0, 4]]
    assert data["groupings"][0] == {"labels": ["1–2", "3", "4"], "of": [1, 1, 2, 0]}
    assert [system["repeated"] for system in data["systems"]] == [[0, 0, 0, 0], [0, 1, 0, 0]]
    assert data["systems"][1]["unknown"] == [0, 0, 1, 0]
    assert data["systems"][0]["ratios"] == [1.0, 1.0, 0.75, 1.0]
    assert data["systems"][1]["attention"] is None
    assert data["rarest"][0] == ["der", 1]


def test_single_words_are_compared_by_letters_and_metrics_are_those_asked_for() -> None:
    right, wrong = ["kitap", "ʻev'er", "kap"], ["kitab", "ʻev'er", "ka"]
    report = made(compare({"a": wrong, "b": right}, [right], metrics=("accuracy", "cer", "chrf")))
    assert report.groupings[0].about == "Characters of the reference."
    assert report.groupings[0].groups == [("3–4", [2]), ("5", [0]), ("6", [1])]
    assert report.data["translations"][0]["marks"] == [[4, 5], [], []]
    assert [(one["key"], one["better"]) for one in report.data["metrics"]] == [("accuracy", "higher"), ("cer", "lower")]
    assert report.data["systems"][0]["scores"] == {"accuracy": [0.0, 100.0, 0.0], "cer": [20.0, 0.0, 33.3]}
    assert "Marked are characters of a translation" in page(report)


def test_sentences_without_spaces_are_no_single_words() -> None:
    report = made(compare({"a": ["两只狗在绿色的田野上奔跑。"]}, [["三只狗在绿色的田野上奔跑。"]]))
    assert report.groupings[0].about == "Words of the reference; punctuation is not counted."


def test_what_differs_behind_the_end_of_a_text_that_is_cut() -> None:
    """Lines are compared whole, word by word: not as the page shows them, and without regard to white space."""
    start = " ".join(["wort"] * 230)
    right, wrong = [f"{start} ende", "ja\u2028nein", "ja\x01"], [f"{start} falsch", "ja nein", "ja\x02"]
    data = made(compare({"a": right, "b": wrong}, [right], metrics=("bleu",))).data
    texts = [column["texts"] for column in data["translations"]]
    assert texts[0][0] == texts[1][0]
    assert texts[0][2] == texts[1][2]
    assert data["differ"] == [True, False, True]
    assert [system["right"] for system in data["systems"]] == [[True, True, True], [False, True, False]]


def test_a_long_list_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents_module, "LISTED", 3)
    report = made(examples.small(), attention=examples.attention())
    assert report.notes[0] == "The list has the first 3 of 4 sentences; scores and tables are of all."
    assert report.notes[1].startswith("2 translations of good.txt are shown without attention")
    assert {len(column) for column in (report.data["lengths"], report.data["systems"][0]["scores"]["bleu"])} == {3}
    assert len(report.data["translations"][0]["texts"]) == 3
    assert report.data["sentences"] == 4


class Elements(HTMLParser):
    """The elements of a page, with their attributes, and the text within each script and style."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag in ("script", "style"):
            self.inside.append("")

    def handle_endtag(self, tag: str) -> None:
        self.tags.append((f"/{tag}", {}))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] in ("script", "style"):
            self.inside[-1] += data


def test_hostile_text_stays_text_and_nothing_is_loaded() -> None:
    harmless = Elements(page(made(examples.small())))
    text = page(made(examples.hostile()))
    text.encode("utf-8")
    elements = Elements(text)
    names = [tag for tag, _ in elements.tags]
    assert names.count("script") == [tag for tag, _ in harmless.tags].count("script") == 2
    assert {"img", "link", "iframe", "object", "base"} & set(names) == set()
    assert not any(name.startswith("on") or name in ("src", "style") for _, names in elements.tags for name in names)
    assert [names["href"] for _, names in elements.tags if "href" in names] == ["#sentences"]
    style, data, script = elements.inside
    loaded = json.loads(data)
    assert loaded["translations"][0]["texts"][:4] == examples.HOSTILE[:4]
    assert loaded["translations"][0]["texts"][4] == "half \ufffd a pair, and NUL \ufffd"
    assert loaded["translations"][0]["omitted"].keys() == {"5", "6"}
    assert loaded["systems"][1]["name"] == "two\ufffd</title>"
    (policy,) = (names["content"] for _, names in elements.tags if "Content-Security-Policy" in names.values())
    allowed = re.findall(r"'sha256-([^']+)'", policy or "")
    assert allowed == [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (style, script)]
    assert (policy or "").startswith("default-src 'none';")


# --------------------------------------------------------------------------------------- groups, texts, and weights


@pytest.mark.parametrize(
    ("lengths", "groups", "expected"),
    [
        ([5, 1, 2, 4, 3, 6], 3, [("1–2", [1, 2]), ("3–4", [3, 4]), ("5–6", [0, 5])]),
        ([7, 7, 7], 3, [("7", [0, 1, 2])]),
        ([7, 2, 7, 7], 2, [("2–6", [1]), ("7", [0, 2, 3])]),  # equal lengths stay together
        ([0, 1200], 2, [("0–1,199", [0]), ("1,200", [1])]),
    ],
)
def test_groups_by_length(lengths: list[int], groups: int, expected: list[Group]) -> None:
    assert by_length(lengths, groups=groups) == expected


def test_groups_by_frequency() -> None:
    counts = [0, 1, 3, None, 4, 9, 10, 999, 1000, 5_000_000]
    assert by_frequency(counts) == [
        ("0", [0]),
        ("1", [1]),
        ("2–4", [2, 4]),
        ("5–9", [5]),
        ("10–99", [6]),
        ("100–999", [7]),
        ("1,000 or more", [8, 9]),
    ]
    assert by_frequency([7, None]) == [("5–9", [0])]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A  dog.", "A  dog."),
        ("tab\there\u2028and\xa0there\x1cends  ", "tab here and there ends"),
        ("\x00\ud800\x9f", "\N{REPLACEMENT CHARACTER}" * 3),
        ("", ""),
    ],
)
def test_texts_fit_to_be_shown(text: str, expected: str) -> None:
    assert shown(text) == (expected, 0)


def test_long_texts_are_cut() -> None:
    line = " ".join(f"w{number:04}" for number in range(10_000))
    text, omitted = shown(line)
    assert text.split() == line.split()[:MOST_WORDS]
    assert len(text) + omitted == len(line)
    assert shown("x" * 1_000_000) == ("x" * MOST_CHARACTERS, 1_000_000 - MOST_CHARACTERS)
    assert shown("x" * MOST_CHARACTERS) == ("x" * MOST_CHARACTERS, 0)


def test_places_as_javascript_counts_them() -> None:
    text = "a 😀 b𝔘"
    assert in_browser(text, [(0, 1), (2, 3), (4, 5), (5, 6)]) == [0, 1, 2, 4, 5, 6, 6, 8]
    assert in_browser("aö狗", [(1, 2), (2, 3)]) == [1, 2, 2, 3]


def test_packed_weights() -> None:
    assert base64.b64decode(packed([[0.0, 1.0, 0.0], [0.0, 0.2, 0.001]])) == bytes([0, 1, 255, 0, 2, 51, 0, 1])
    assert base64.b64decode(packed(np.zeros((3, 200)))) == bytes([0, 255, 0, 255, 0, 90])
    assert base64.b64decode(packed([[1.0000001, -1e-9]])) == bytes([255, 0, 1])
    assert packed(np.zeros((0, 4))) == ""
