"""Markdown in, Markdown out; markdown-it-py judges whether what is written has the elements that there were."""

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from nmt.documents.markdown import Markdown
from tests.documents.imitation import at_random, in_order, in_reverse, same, translated

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def elements(text: str) -> Counter[str]:
    return Counter(re.findall(r"</?[a-z][^<>]*>", READER.render(text)))


def words(text: str) -> str:
    return re.sub(r"<[^<>]*>|\s", "", READER.render(text))


@pytest.mark.parametrize(
    ("text", "lines", "backward"),
    [
        ("# a *b* ##\n", ["a b"], "# *B* A ##\n"),
        ("a\nb\n===\n", ["a b"], "B\nA\n===\n"),
        ("- a b\n  1. c\n     d\n", ["a b", "c d"], "- B A\n  1. D\n     C\n"),
        ("> a\n> b c\n", ["a b c"], "> C B\n> A\n"),
        ("> a\nlazy\n", ["a lazy"], "> LAZY\nA\n"),
        ("a **b c** ~~d~~", ["a b c d"], "~~D~~ **C B** A"),
        ("***a b***", ["a b"], "***B A***"),
        ("a [b](x.org 'a title') c", ["a b c"], "C [B](x.org 'a title') A"),
        ("a [b] [c][] [d][b]\n\n[b]: x\n[c]: y\n", ["a b c d"], "[D][b] [C][c] [B][b] A\n\n[b]: x\n[c]: y\n"),
        ("a `b  c` d", ["a d"], "`b  c` D A"),
        ("a <https://x.org> ![b](c) <b>d</b> &amp; \\*", ["a d & *"], None),
        ("a[^1] b\n\n[^1]: c d\n", ["a b", "c d"], "B A[^1]\n\n[^1]: D C\n"),
        ("- [x] a b\n", ["a b"], "- [x] B A\n"),
        ("| a b | c |\n|---|:-:|\n| `x \\| y` d | e \\| f |\n", ["a b", "c", "d", "e | f"], None),
        ("> [!NOTE]\n> a b\n", ["a b"], "> [!NOTE]\n> B A\n"),
        ("a b  \nc\\\nd", ["a b c d"], None),
        ("1. 1\n2. a b\n", ["a b"], "1. 1\n2. B A\n"),
        ("\ufeff# a b\r\n\r\nc\r\nd\r\n", ["a b", "c d"], "\ufeff# B A\r\n\r\nD\r\nC\r\n"),
    ],
)
def test_what_is_translated(text: str, lines: list[str], backward: str | None) -> None:
    document = Markdown(text)
    assert document.lines == lines
    written = translated(document, in_reverse)
    assert elements(written) == elements(text)
    if backward is not None:
        assert written == backward


@pytest.mark.parametrize(
    "text",
    [
        "---\ntitle: a\n---\n",
        "```py\na = b\n```\n",
        "    a = b\n",
        "<div>\na *b*\n</div>\n",
        "[a]: x.org 'b'\n",
        "![a](b)\n",
        "`a`\n",
        "<https://a.org>\n",
        "***\n",
        "42\n",
        "<!-- a -->\n",
        "",
    ],
)
def test_what_stays(text: str) -> None:
    document = Markdown(text)
    assert document.lines == []
    assert document.written([]) == text


@pytest.mark.parametrize(
    "line", ["1. a", "- a", "# a", "a *b* c", "a_b_ <i>", "[a]", "`a`", "> a", "a | b", "+ a", "&lt;"]
)
@pytest.mark.parametrize("text", ["a", "# a", "- *a*", "| a |\n|---|\n", "> a\n> b", "a\n="])
def test_a_translation_is_no_markup(text: str, line: str) -> None:
    document = Markdown(text)
    written = document.written([in_order("")._replace(text=line)])
    assert elements(written) == elements(text)
    shown = re.sub(r"</?(?!i&)[a-z0-9]+>|\s", "", READER.render(written))
    assert shown == re.sub(r"\s", "", line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))


def test_a_paragraph_is_broken_at_its_width() -> None:
    text = "- one two three\n  four five six\n  seven\n"
    document = Markdown(text)
    assert document.written(same(document.lines)) == text
    longer = [in_order("")._replace(text="eins zwei drei vier fünf sechs sieben acht")]
    assert document.written(longer) == "- eins zwei\n  drei vier\n  fünf sechs\n  sieben acht\n"


LEFT_OUT = ("br /", "del", "em", "s", "strong")  # emphasis around nothing, and a break before it
FRAGMENTS = """a B. * ** _ ` [ ] (x) [x]:y <b> </b> \\n \\n\\n >_ -_ 1._ #_ | \\n|-|\\n __\\n \\ &amp; _ \\t ```\\n ~~
![ <a@b.c> ____ 我们 :a:"""
PARTS = st.sampled_from(
    [part.replace("_", " ").replace("\\n", "\n").replace("\\t", "\t") for part in FRAGMENTS.split()] + ["_"]
)


@settings(max_examples=200)
@given(st.lists(PARTS, max_size=20).map("".join), st.integers(0, 99))
def test_any_markdown(text: str, seed: int) -> None:
    document = Markdown(text)
    written = document.written(same(document.lines))
    assert not elements(written) - elements(text)
    assert set(elements(text) - elements(written)) <= {f"<{end}{name}>" for end in ("", "/") for name in LEFT_OUT}
    assert sorted(words(written)) == sorted(words(text))
    translated(document, at_random(seed))
    if not document.lines:
        assert document.written([]) == text
