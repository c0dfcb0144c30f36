"""Wrapped text in, wrapped text out: what is one text, and that its lines are as they were."""

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.decoding.writing import Translation
from nmt.documents.paragraphs import WrappedText
from tests.documents.imitation import at_random, same, translated


def twice(line: str) -> Translation:
    return Translation(f"{line} {line}", 0.0, [], None)


@pytest.mark.parametrize(
    ("text", "lines", "written"),
    [
        (
            "One line.\n\nTwo\nlines.\n",
            ["One line.", "Two lines."],
            "One line. One line.\n\nTwo\nlines.\nTwo\nlines.\n",
        ),
        ("Title\n=====\na  b\n", ["Title", "a  b"], "Title Title\n=====\na  b a  b\n"),
        ("", [], ""),
        (" \n* * *\n> \n", [], " \n* * *\n> \n"),
        ("a\r\nbcd\r\n\r\n", ["a bcd"], "a\r\nbcd\r\na\r\nbcd\r\n\r\n"),
        ("  abc\nd e f", ["abc d e f"], "  abc\nd e f\nabc d\ne f"),
        ("    abc\ndef\n    ghi\njkl", ["abc def", "ghi jkl"], None),  # paragraphs by their indentation alone
        ("- a b\n  c d\n- e\n", ["a b c d", "e"], "- a b\n  c d\n  a b\n  c d\n- e e\n"),
        ("We need:\n1. one\n2. two\n   three\n", ["We need:", "one", "two three"], None),
        ("Es war am\n12. Mai.\n", ["Es war am 12. Mai."], None),
        ("> quoted\n> text\n>> more\nmine", ["quoted text", "more", "mine"], None),
        ("> ab cd\n> ef\n", ["ab cd ef"], "> ab cd\n> ef ab\n> cd ef\n"),
        ("a well-\nknown dog", ["a well-known dog"], None),
        ("私は犬が\n好きです。\n", ["私は犬が好きです。"], "私は犬が\n好きです。\n私は犬が\n好きです。\n"),
        ("\tab\n\tcd\n", ["ab cd"], "\tab\n\tcd\n\tab\n\tcd\n"),
    ],
)
def test_paragraphs(text: str, lines: list[str], written: str | None) -> None:
    document = WrappedText(text)
    assert document.lines == lines
    assert written is None or translated(document, twice) == written


WORDS = st.lists(st.text("abc.—12é", min_size=1, max_size=9), min_size=1, max_size=30).map(" ".join)


@given(st.lists(WORDS, max_size=4), st.integers(12, 40), st.sampled_from(["", "  ", "> ", "- "]))
def test_text_that_is_filled_stays_as_it_is(paragraphs: list[str], width: int, first: str) -> None:
    following = first.replace("-", " ")
    filled = [
        textwrap.fill(
            paragraph,
            width,
            initial_indent=first,
            subsequent_indent=following,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for paragraph in paragraphs
    ]
    text = "\n\n".join(filled)
    document = WrappedText(text)
    assert document.written(same(document.lines)) == text


@given(st.text("ab.12-*>é\t \r\n私\u3000", max_size=60), st.integers(0, 5))
def test_nothing_but_texts_changes(text: str, seed: int) -> None:
    """Whatever the translations are, what stands between the paragraphs stays."""
    document = WrappedText(text)
    written = translated(document, at_random(seed))
    assert list(filter(str.isalnum, document.written(same(document.lines)))) == list(filter(str.isalnum, text))
    kept = [line for line in text.split("\n") if not any(map(str.isalnum, line))]
    assert [line for line in kept if line not in written.split("\n")] == []
