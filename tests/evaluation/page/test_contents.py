"""What the report says, by hand, and that the page says no more: hostile text is text, and nothing is loaded."""

import base64
import hashlib
import html
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from nmt.evaluation.alignments import AlignmentScores
from nmt.evaluation.comparison import Comparison, compare
from nmt.evaluation.page import contents as contents_module
from nmt.evaluation.page.contents import Contents, contents, letter
from nmt.evaluation.page.render import counted, page
from tests.evaluation.page import examples


def made(comparison: Comparison, **more: Any) -> Contents:
    return contents(comparison, tokenize="13a", lowercase=False, **more)


def test_systems_that_are_identical_have_no_p_and_no_star() -> None:
    text = page(made(compare({"a": examples.GOOD, "b": examples.GOOD}, [examples.REFERENCE], methods=("bootstrap",))))
    assert "<small>p: – (nothing to test)</small>" in text
    assert "(best)" not in text
    assert "marks the best score" not in text
    assert "marks the best score" in page(made(examples.small()))


def test_p_is_explained() -> None:
    methods = ("bootstrap", "randomization")
    text = page(made(compare({"a": examples.GOOD, "b": examples.BAD}, [examples.REFERENCE], methods=methods)))
    said = html.unescape(text.partition("<details>")[0])
    assert "p: how probable a difference from A at least as large would be" in said
    assert "seed 12345. p (boot.): by paired bootstrap resampling with 1,000 resamples. It is one-sided" in said
    assert "p (rand.): by paired approximate randomization with 10,000 trials, so that about one" in said
    assert "how probable" not in page(made(compare({"a": examples.GOOD}, [examples.REFERENCE])))


def test_the_best_mean_has_the_star_where_there_are_runs() -> None:
    """Not the best seed: that is chance."""
    systems = {"a1": examples.REFERENCE, "a2": examples.BAD, "b1": examples.GOOD, "b2": examples.GOOD}
    runs = {"a": ["a1", "a2"], "b": ["b1", "b2"]}
    text = page(made(compare(systems, [examples.REFERENCE], metrics=("chrf",), runs=runs)))
    rows = re.findall(r'<tr><th scope="row">.*?</tr>', text.partition("<details>")[0], re.DOTALL)
    assert [("(best)" in row, "★" in row) for row in rows] == [(False, False)] * 5 + [(True, False)]
    assert "★ marks the best mean." in text
    assert re.search(r"<small>diff. [+-]\d+\.\d\d ± \d+\.\d\d, p = (0\.3333|0\.6667|1\.0000)</small>", rows[-1])
    assert "<small>" not in rows[-2].partition("<td")[2]
    assert "p (perm.): the share of all ways to divide the runs" in text
    assert "marks the best score" not in text


def test_groups_and_habits() -> None:
    report = made(examples.small())
    by_length, by_frequency = report.groupings
    assert [(group.label, group.size) for group in by_length.groups] == [("1–2", 1), ("3", 2), ("4", 1)]
    assert by_length.title == "By source length"
    assert by_length.groups[0].scores["chrf"] == pytest.approx([100.0, 0.0])
    assert [(group.label, group.size) for group in by_frequency.groups] == [("1", 4)]
    assert "in the references" in by_frequency.about
    rows = {row.title: (row.values, row.reference) for row in report.habits}
    assert rows["Length ratio"] == ([pytest.approx(10 / 11, abs=1e-3), pytest.approx(12 / 11, abs=1e-3)], 1.0)
    assert rows["Repetition"] == ([0.0, pytest.approx(100 / 7)], 0.0)  # "eine eine", of 2 + 2 + 3 + 0 pairs
    assert rows["Unknown words"] == ([0.0, pytest.approx(100 / 12)], 0.0)
    assert report.letters == ["A", "B"]
    assert "Alignment error rate" not in rows
    assert "New words" not in rows


def test_training_text_and_gold_alignments() -> None:
    scores = AlignmentScores(None, None, 0.25)
    report = made(examples.small(), training=["der Hund", "der große Hund ist alt"], alignments={"bad.txt": scores})
    assert "in the training text" in report.groupings[1].about
    assert [(group.label, group.size) for group in report.groupings[1].groups] == [("0", 4)]
    rows = {row.title: (row.values, row.reference) for row in report.habits}
    assert rows["Alignment error rate"] == ([None, 25.0], None)
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
    assert data["translations"][1]["marks"] == [[9, 14], [5, 9], [20, 21], [0, 4]]
    assert data["groupings"][0] == {"labels": ["1–2", "3", "4"], "of": [1, 1, 2, 0]}
    assert [system["repeated"] for system in data["systems"]] == [[0, 0, 0, 0], [0, 1, 0, 0]]
    assert data["systems"][1]["unknown"] == [0, 0, 1, 0]
    assert data["systems"][0]["ratios"] == [1.0, 1.0, 0.75, 1.0]
    assert data["systems"][1]["attention"] is None
    assert data["rarest"][0] == ["der", 1]


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


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (letter(0), "A"),
        (letter(25), "Z"),
        (letter(26), "27"),
        (counted(1, "sentence"), "1 sentence"),
        (counted(1200, "sentence"), "1,200 sentences"),
    ],
)
def test_small_words(shown: str, expected: str) -> None:
    assert shown == expected
