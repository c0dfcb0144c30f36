"""The page in a real Chromium: typed, pointed at, moved through by keys, resized, dark and light; no console error.

With TAKE_PICTURES=FOLDER in the environment it leaves pictures there, for a person to look at.
"""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

pytest.importorskip("uvicorn", reason="the server needs the extra serve")

import uvicorn

from nmt.serving.api import Service, application
from nmt.serving.limits import Limits
from nmt.serving.server import listening
from tests.serving.browser import CHROMIUM, DRIVER, Browser
from tests.serving.doubles import Backwards

pytestmark = pytest.mark.skipif(None in (CHROMIUM, DRIVER), reason="needs chromium and chromedriver")

RIGHT_ARROW, TAB = "\ue014", "\ue004"
TARGET = "return document.querySelector('#target').textContent"
ARABIC = "كلب يركض"


@pytest.fixture(scope="module")
def models() -> Backwards:
    return Backwards(("en", "de"), ("ar", "he"))


@pytest.fixture(scope="module")
def url(models: Backwards) -> Iterator[str]:
    """A server in a thread of this process."""
    service = Service(models, limits=Limits(characters=200))  # type: ignore[arg-type]
    config = uvicorn.Config(
        application(service), log_config=None, lifespan="off", http="h11", loop="asyncio", ws="none"
    )
    server = uvicorn.Server(config)
    opened = listening("127.0.0.1", 0)
    thread = Thread(target=lambda: asyncio.run(server.serve(sockets=[opened])))
    thread.start()
    yield f"http://127.0.0.1:{opened.getsockname()[1]}/"
    server.should_exit = True
    thread.join()
    service.batcher.close()


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("profile"), "--force-prefers-reduced-motion", "--window-size=1100,700")
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def browser(url: str, window: Browser) -> Iterator[Browser]:
    """The page, opened anew; whatever a test does, its console stays empty."""
    window.resize(1100, 700)
    window.open(url)
    window.until("return document.querySelector('#pair').options.length == 2")
    yield window
    assert window.console() == []


def picture(browser: Browser, name: str) -> None:
    if folder := os.environ.get("TAKE_PICTURES"):
        browser.picture(Path(folder) / f"{name}.png")


def shades(browser: Browser) -> list[bool]:
    """Which words of the source are marked."""
    script = "return [...document.querySelectorAll('#read .word')].map((word) => word.style.backgroundColor != '')"
    return list(browser.run(script))


def test_the_page(browser: Browser) -> None:
    picture(browser, "empty")
    browser.type("#source", "stop the <b>tap</b>\nnow .\n")
    browser.until(f"{TARGET} == 'pots eht >b/<pat>b<\\nwon .\\n'")
    assert browser.run("return document.querySelector('#target').querySelectorAll('b').length") == 0
    alternatives = browser.run(
        "return [...document.querySelectorAll('#alternatives li')].map((one) => one.textContent)"
    )
    assert alternatives == ["pots eht >b/<pat>b<!\nwon .!\n", "pots eht >b/<pat>b<!!\nwon .!!\n"]

    assert not any(shades(browser))
    browser.point("#target .word:nth-of-type(2)")
    browser.until("return document.querySelectorAll('#read .chosen').length == 1")
    assert browser.run("return document.querySelector('#read .chosen').textContent") == "the"
    assert shades(browser) == [True, True, True, True, False, False, False]  # three words and their end; others
    assert browser.run("return document.querySelector('#read .chosen').title") == "75%"
    picture(browser, "light")

    browser.run("document.querySelector('#target .word').focus()")
    browser.press(RIGHT_ARROW, RIGHT_ARROW, RIGHT_ARROW)
    assert browser.run("return document.activeElement.textContent") == "won"
    assert browser.run("return document.querySelector('#read .chosen').textContent") == "now"
    browser.press(RIGHT_ARROW)
    assert browser.run("return document.querySelector('#read .chosen').textContent") == "end"
    read = "[...document.querySelectorAll('#read .word')].map((word) => parseInt(word.title || 0))"
    assert browser.run(f"return {read}") == [0, 0, 0, 0, 13, 13, 75]
    picture(browser, "end")

    before = browser.run("return getComputedStyle(document.body).backgroundColor")
    browser.click("#theme")
    assert browser.run("return getComputedStyle(document.body).backgroundColor") != before
    assert browser.run("return document.querySelector('#theme').getAttribute('aria-pressed')") == "true"
    picture(browser, "dark")
    browser.resize(400, 800)
    assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth")
    picture(browser, "narrow")
    browser.run("location.reload()")
    browser.until("return document.querySelector('#theme').getAttribute('aria-pressed') == 'true'")


def test_what_the_page_says_when_it_cannot(browser: Browser, models: Backwards) -> None:
    status = "return document.querySelector('#status').textContent"
    browser.run("document.querySelector('#source').value = 'x'.repeat(201)")
    browser.type("#source", "y")
    browser.until(f"{status} == 'The text is too long: at most 200 characters.'")
    browser.run("document.querySelector('#source').value = ''")
    browser.type("#source", "one")
    browser.until(f"{TARGET} == 'eno'")
    assert browser.run(status) == ""
    assert browser.run("return document.querySelector('#others').hidden") is False


def test_right_to_left(browser: Browser) -> None:
    browser.type("#source", "one")
    browser.until("return document.querySelector('#read').hidden == false")
    browser.run("document.querySelector('#source').value = ''")
    browser.run("document.querySelector('#pair').selectedIndex = 1")
    browser.type("#source", ARABIC)
    browser.until(f"{TARGET} == arguments[0]", " ".join(word[::-1] for word in ARABIC.split()))
    for css in ("#source", "#target", "#alternatives li"):
        assert browser.run("return getComputedStyle(document.querySelector(arguments[0])).direction", css) == "rtl"
    assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth")
    assert browser.run("return document.querySelector('#read').hidden") is True  # this model has no alignments
    picture(browser, "right_to_left")


def test_every_field_has_a_name_and_the_keyboard_reaches_it(browser: Browser) -> None:
    unnamed = (
        "return [...document.querySelectorAll('select, textarea, input')].filter((one) => !one.labels.length).length"
    )
    assert browser.run(unnamed) == 0
    assert browser.run("return document.activeElement.id") == "source"
    browser.run("document.querySelector('#pair').focus()")
    browser.press(TAB)
    assert browser.run("return document.activeElement.id") == "theme"
    browser.press(TAB)
    assert browser.run("return document.activeElement.id") == "source"
