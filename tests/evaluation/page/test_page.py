"""The report in a real Chromium, opened from disk: pointed at, moved through by keys, sorted, filtered, searched; dark,
narrow, right to left, and with hostile text. Whatever a test does, the console stays empty.

With TAKE_PICTURES=FOLDER in the environment it leaves pictures there, for a person to look at.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nmt.evaluation.comparison import Comparison, compare
from nmt.evaluation.metrics import METRICS
from nmt.evaluation.page.contents import contents, packed
from nmt.evaluation.page.render import page
from tests.evaluation.page import examples
from tests.serving.browser import CHROMIUM, DRIVER, Browser

pytestmark = pytest.mark.skipif(None in (CHROMIUM, DRIVER), reason="needs chromium and chromedriver")

RIGHT, LEFT, ENTER, ESCAPE = "\ue014", "\ue012", "\ue007", "\ue00c"
LINES = "return [...document.querySelectorAll('#list .sentence')].map((one) => Number(one.dataset.line))"
SAID = "return document.querySelector('#said').textContent"
COUNT = "return document.querySelector('#count').textContent"

Open = Callable[..., Browser]


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("profile"), "--force-prefers-reduced-motion", "--window-size=1400,1000")
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def opened(window: Browser, tmp_path: Path) -> Iterator[Open]:
    """Write the report of a comparison and open it from disk."""

    def open_(comparison: Comparison, attention: dict[str, list[str | None]] | None = None) -> Browser:
        text = page(contents(comparison, attention=attention))
        path = tmp_path / "report.html"
        path.write_text(text, encoding="utf-8")
        window.resize(1400, 1000)
        window.open(path.as_uri())
        window.until("return document.querySelectorAll('#list .sentence').length > 0")
        return window

    yield open_
    assert window.console() == []


def choose(browser: Browser, field: str, value: str) -> None:
    """Set a field as its user does."""
    script = (
        "const field = document.querySelector(arguments[0]); field.value = arguments[1];"
        "for (const kind of ['input', 'change']) field.dispatchEvent(new Event(kind, {bubbles: true}))"
    )
    browser.run(script, field, value)


def picture(browser: Browser, name: str) -> None:
    if folder := os.environ.get("TAKE_PICTURES"):
        browser.picture(Path(folder) / f"{name}.png")


def test_attention(opened: Open) -> None:
    browser = opened(examples.small(), examples.attention())
    first = "#list .sentence:first-child .heard .word"
    browser.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", first)
    browser.point(f"{first}:nth-of-type(2)")
    browser.until(f"{SAID} != ''")
    assert browser.run(SAID) == "Hund ← dog 80%, runs 20%"
    assert browser.run("return document.querySelector('#list .source .chosen').textContent") == "dog"
    percents = "return [...document.querySelectorAll('#list .source .word')].map((one) => one.dataset.percent || '')"
    assert browser.run(percents) == ["", "80", "20", ""]
    picture(browser, "attention")

    browser.run("document.querySelector(arguments[0]).focus()", first)
    browser.press(RIGHT, RIGHT)
    assert browser.run("return document.activeElement.textContent") == "rennt"
    assert browser.run(SAID) == "rennt ← </s> 60%, runs 40%"
    browser.press(LEFT, ENTER)
    assert browser.run("return document.querySelector('#map').open") is True
    cells = (
        "return [...document.querySelectorAll('#map tr')].map((row) => [...row.cells].map((one) => one.textContent))"
    )
    assert browser.run(cells) == [
        ["", "the", "dog", "runs", "</s>"],
        ["der", "90", "10", "", ""],
        ["Hund", "", "80", "20", ""],
        ["rennt", "", "", "40", "60"],
    ]
    assert browser.run("return document.querySelector('#map .here th').textContent") == "Hund"
    picture(browser, "map")
    browser.press(ESCAPE)
    assert browser.run("return document.querySelector('#map').open") is False
    assert browser.run("return document.activeElement.textContent") == "Hund"  # where it was
    browser.click("[data-map]")
    assert browser.run("return document.querySelector('#map').open") is True
    browser.click("#close")


def test_a_word_is_a_button_that_is_heard(opened: Open) -> None:
    """One word of a text at a time: a reader to whom all were buttons would hear no sentence."""
    browser = opened(examples.small(), examples.attention())
    assert browser.run("return getComputedStyle(document.querySelector('#said')).display") != "none"  # or it is silent
    buttons = "return [...document.querySelectorAll('#list .heard [role=button]')].map((one) => one.textContent)"
    assert browser.run(buttons) == ["der"]
    browser.run("document.querySelector('#list .heard .word').focus()")
    browser.press(RIGHT)
    assert browser.run(buttons) == ["Hund"]
    assert browser.run(SAID) == "Hund ← dog 80%, runs 20%"
    browser.press(" ")
    assert browser.run("return document.querySelector('#map').open") is True
    browser.press(ESCAPE)


def test_search_filter_and_order(opened: Open) -> None:
    browser = opened(examples.small())
    assert browser.run(LINES) == [1, 2, 3, 4]
    assert browser.run(COUNT) == "4 sentences"
    choose(browser, "#query", "KATZE")
    browser.until(f"{COUNT} == '1 of 4 sentences'")
    assert browser.run(LINES) == [2]
    choose(browser, "#query", "nothing at all")
    browser.until(f"{COUNT} == 'No sentence matches.'")
    browser.click("#clear")
    assert browser.run(LINES) == [1, 2, 3, 4]

    choose(browser, "#order", "chrf1")
    lowest = browser.run(LINES)
    assert lowest[0] == 4  # "nein" for "ja" shares no letters
    browser.click("#direction")
    assert browser.run(LINES) == lowest[::-1]
    choose(browser, "#order", "line")
    browser.click("#direction")
    choose(browser, "#filter", "repeated1")
    assert browser.run(LINES) == [2]
    choose(browser, "#filter", "unknown1")
    assert browser.run(LINES) == [3]
    choose(browser, "#filter", "right0")
    assert browser.run(LINES) == [1, 2, 4]
    browser.click("[data-grouping='0'][data-group='1']")  # 3 words
    assert browser.run(LINES) == [1, 2]
    assert browser.run("return document.activeElement.id") == "sentences"
    browser.click("#clear")

    marks = "return [...document.querySelectorAll(`#list .sentence:nth-child(2) mark`)].map((one) => one.textContent)"
    assert browser.run(marks) == ["eine"]


def test_where_systems_differ(opened: Open) -> None:
    browser = opened(examples.small())
    script = (
        "return [...document.querySelectorAll('#extremes > div')].map((one) =>"
        "[one.querySelector('h3').textContent, ...[...one.querySelectorAll('.sentence')].map((s) => s.dataset.line)])"
    )
    better, worse = browser.run(script)
    assert better[0] == "A is better in 3 sentences"
    assert better[1] == "4"
    assert worse == ["B is better in 1 sentence", "3"]
    choose(browser, "#second", "0")
    assert browser.run("return document.querySelector('#extremes').textContent").startswith(
        "These are one and the same"
    )


def test_filters_know_the_end_of_a_text_that_is_cut(opened: Open) -> None:
    start = " ".join(["wort"] * 230)
    right, wrong = [f"{start} ende", "ja"], [f"{start} falsch", "ja"]
    browser = opened(compare({"a": wrong, "b": right}, [right], metrics=("bleu",)))
    facts = "return document.querySelector('#list .sentence dd:last-child .facts:last-child').textContent"
    assert "none marked in what is shown" in browser.run(facts)
    ending = opened(compare({"a": ["ende"]}, [right[:1]], metrics=("bleu",)))  # a word that the reference has, unshown
    assert "1 marked in what is shown" in ending.run(facts)
    browser = opened(compare({"a": wrong, "b": right}, [right], metrics=("bleu",)))
    for name, lines in (("differ", [1]), ("wrong0", [1]), ("right0", [2]), ("right1", [1, 2])):
        choose(browser, "#filter", name)
        assert browser.run(LINES) == lines


@pytest.mark.slow
def test_ten_thousand_sentences(opened: Open, tmp_path: Path) -> None:
    """Of 13 words, of two systems, with attention as spread as it gets: open within 3 seconds, and under 20 MB."""
    words = ["a", "young", "man", "in", "a", "green", "shirt", "is", "climbing", "up", "the", "wall"]
    lines = [" ".join([*words[number % 12 :], *words[: number % 12], str(number)]) for number in range(10_000)]
    row = [0.6, 0.1, 0.05, 0.05, 0.02]
    weights = [[row[min(abs(target - source), 4)] for source in range(14)] for target in range(13)]
    comparison = compare({"a": lines, "b": lines[::-1]}, [lines], source=lines, metrics=("bleu",))
    one = packed(weights)
    browser = opened(comparison, {"a": [one] * 10_000, "b": [one] * 10_000})
    assert (tmp_path / "report.html").stat().st_size < 20_000_000
    assert 0 < browser.run("return performance.getEntriesByType('navigation')[0].loadEventEnd") < 3000
    assert len(browser.run(LINES)) == 25
    choose(browser, "#page", "400")
    assert browser.run(LINES)[-1] == 10_000
    assert browser.run("return document.querySelector('#next').disabled") is True
    choose(browser, "#order", "bleu1")
    choose(browser, "#page", "99999")
    browser.click("#previous")
    assert len(browser.run(LINES)) == 25
    choose(browser, "#query", "9876")  # number 9876 is in line 9877, and the reversed system has it for line 124
    browser.until(f"{COUNT} == '2 of 10,000 sentences'")
    assert sorted(browser.run(LINES)) == [124, 9877]


def test_hostile_text_is_shown_and_never_run(opened: Open) -> None:
    browser = opened(examples.hostile())
    assert browser.run("return document.title").startswith("Translation report: <b>&one")
    texts = "return [...document.querySelectorAll('#list .sentence:nth-child(1) .text')].map((one) => one.textContent)"
    assert browser.run(texts)[0] == examples.HOSTILE[0]
    assert browser.run("return document.querySelectorAll('main img, main script, main b').length") == 0
    assert "… cut here: " in browser.run("return document.querySelector('#list').textContent")
    for width in (1400, 400):
        browser.resize(width, 900)
        assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth")
    picture(browser, "hostile")


def test_right_to_left_narrow_and_dark(opened: Open) -> None:
    comparison = compare(
        {"one": [examples.HEBREW], "two": [examples.HEBREW[:8]]},
        [[examples.HEBREW]],
        source=[examples.ARABIC],
        metrics=tuple(METRICS),  # more columns than there is room for
    )
    browser = opened(comparison, {"one": [packed(examples.WEIGHTS)]})
    for css in ("#list .source", "#list .heard"):
        assert browser.run("return getComputedStyle(document.querySelector(arguments[0])).direction", css) == "rtl"
    first = "#list .heard .word"
    browser.run("document.querySelector(arguments[0]).focus()", first)
    browser.press(LEFT)
    assert browser.run("return document.activeElement.textContent") == examples.HEBREW.split()[1]
    picture(browser, "right_to_left")
    browser.press(ENTER)
    assert browser.run("return document.querySelector('#map table').dir") == "rtl"
    picture(browser, "right_to_left_map")
    browser.press(ESCAPE)
    light = browser.run("return getComputedStyle(document.body).backgroundColor")
    browser.prefer("dark")
    assert browser.run("return getComputedStyle(document.body).backgroundColor") != light
    browser.resize(400, 900)
    assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth")
    ends = (
        "return [...document.querySelectorAll('.groups thead th')].map((one) => { const range = document.createRange();"
        "range.selectNodeContents(one); return [range.getBoundingClientRect(), one.getBoundingClientRect()]"
        ".map((box) => box.right) })"
    )
    assert all(text <= cell for text, cell in browser.run(ends)), "a heading is wider than its column"
    picture(browser, "narrow_dark")
    browser.prefer("light")


def test_everything_has_a_name(opened: Open) -> None:
    browser = opened(examples.small(), examples.attention())
    fields = "return [...document.querySelectorAll('select, input')].filter((one) => !one.labels.length).length"
    buttons = "return [...document.querySelectorAll('button')].filter((one) => !one.textContent.trim()).length"
    headers = "return [...document.querySelectorAll('main th')].filter((one) => !one.scope).length"
    assert [browser.run(script) for script in (fields, buttons, headers)] == [0, 0, 0]
    assert browser.run("return document.querySelectorAll('h1').length") == 1
