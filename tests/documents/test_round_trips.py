"""A translation that is its source changes nothing that the library of a format sees, but where a line is broken."""

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pysubs2
import pytest
import webvtt
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree, html
from markdown_it import MarkdownIt
from translate.storage import properties, pypo, ts2, xliff

from nmt.documents.document import read_document
from nmt.documents.formats import FORMATS
from nmt.errors import UserError
from tests.documents.imitation import at_random, same, translated

FIXTURES = Path(__file__).parent / "fixtures"


def by_lxml(text: str) -> Any:
    root = etree.fromstring(text.encode()) if text.startswith("<?xml") else html.document_fromstring(text)
    return [(one.tag, sorted(one.items()), (one.text or "").split(), (one.tail or "").split()) for one in root.iter()]


def by_pysubs2(form: str) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        file = pysubs2.SSAFile.from_string(text.removeprefix("\ufeff"), format_=form)
        events = [(event.start, event.end, event.style, event.name, event.type) for event in file]
        return file.info, file.styles, events, [event.text.replace("\\N", " ").split() for event in file]

    return read


def by_webvtt(form: str) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        captions = webvtt.from_buffer(StringIO(text.replace("\r\n", "\n")), format=form)
        return [(cue.start, cue.end, cue.raw_text.split()) for cue in captions]

    return read


def by_toolkit(store_of_format: Callable[[], Any]) -> Callable[[str], Any]:
    """The entries; where there is no translation, the text itself."""

    def read(text: str) -> Any:
        store = store_of_format()
        store.parse(text.encode())
        entries = [(unit.getid(), str(unit.source), str(unit.target or "")) for unit in store.units]
        notes = [(unit.getnotes(), unit.getlocations(), unit.isobsolete()) for unit in store.units]
        return [(name, source, target or source) for name, source, target in entries], notes

    return read


SAMPLES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "text": ("page.md", str),
    "paragraphs": ("page.md", str.split),
    "html": ("page.html", by_lxml),
    "markdown": ("page.md", lambda text: MarkdownIt("commonmark").enable("table").render(text).split()),
    "srt": ("subtitles.srt", by_pysubs2("srt")),
    "vtt": ("subtitles.vtt", by_webvtt("vtt")),
    "ass": ("subtitles.ass", by_pysubs2("ass")),
    "sbv": ("subtitles.sbv", by_webvtt("sbv")),
    "ttml": ("subtitles.ttml", by_lxml),
    "po": ("messages.po", by_toolkit(pypo.pofile)),
    "xliff": ("messages.xlf", by_toolkit(xliff.xlifffile)),
    "ts": ("messages.ts", by_toolkit(ts2.tsfile)),
    "properties": ("messages.properties", by_toolkit(properties.javautf8file)),
    "json": ("messages.json", json.loads),
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_round_trip(form: str, end: str) -> None:
    name, read = SAMPLES[form]
    text = (FIXTURES / name).read_bytes().decode().replace("\r\n", "\n").replace("\n", end)
    document = read_document(text, format=form)
    written = document.written(same(document.lines))
    assert read(written) == read(text)
    again = read_document(written, format=form)
    if form in ("po", "xliff", "ts"):  # what is translated is left alone
        assert again.lines == []
        assert again.written([]) == written
    else:
        assert again.lines == document.lines
        assert again.written(same(again.lines)) == written


PIECES = (
    "",
    "<",
    "</",
    "<!--",
    ">",
    "&#1;",
    "&",
    '"',
    "\\",
    "\\N",
    "\0",
    "\r",
    "\n\n",
    "\u2028",
    "{",
    "}",
    "[",
    "--> ",
    "|",
    "*",
    "=",
)
EDITS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), st.sampled_from(PIECES)), min_size=1, max_size=6)


@settings(max_examples=60)
@given(st.sampled_from(list(FORMATS)), EDITS, st.integers(0, 99))
def test_damaged_files_are_translated_or_refused(form: str, edits: list[tuple[float, int, str]], seed: int) -> None:
    text = (FIXTURES / SAMPLES[form][0]).read_bytes().decode()
    for share, length, piece in edits:
        place = int(share * len(text))
        text = text[:place] + piece + text[place + length :]
    try:
        document = read_document(text, format=form)
    except UserError:
        return
    assert not any("\n" in line for line in document.lines)
    assert translated(document, at_random(seed)) or not text.strip()
