"""Messages of programs: which entries get a translation, which are left alone, and what is said about broken files."""

import json
import re

import pytest
from translate.storage import pypo

from nmt.documents.messages import Messages
from nmt.documents.messages import translated as pairs
from nmt.errors import UserError
from tests.documents.imitation import at_random, in_order, in_reverse, same, translated

HEADER = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Plural-Forms: {}\\n"\n\n'
PLURAL = 'msgid "%d dog"\nmsgid_plural "%d dogs"\n'


def po(text: str) -> Messages:
    return Messages(text, name="a.po", form="po")


def test_what_is_translated_is_left_alone_and_what_is_written_is_fuzzy() -> None:
    text = '# ours\n#. theirs\n#: a.c:3\nmsgid "one"\nmsgstr ""\n\n'
    text += '#, fuzzy\nmsgid "two"\nmsgstr "zwei"\n\nmsgid "three"\nmsgstr "drei"\n'
    assert po(text).lines == ["one"]
    written = translated(po(text), in_order)
    assert written == text.replace('#: a.c:3\nmsgid "one"\nmsgstr ""', '#: a.c:3\n#, fuzzy\nmsgid "one"\nmsgstr "ONE"')
    assert po(written).lines == []


@pytest.mark.parametrize(
    ("header", "forms"),
    [
        ("nplurals=1; plural=0;", ["%D DOGS"]),
        ("nplurals=2; plural=n != 1;", ["%D DOG", "%D DOGS"]),
        ("nplurals=3; plural=n%3;", ["%D DOGS", "%D DOG", "%D DOGS"]),
        ("nplurals=INTEGER; plural=EXPRESSION;", ["%D DOG", "%D DOGS"]),  # of a template
    ],
)
def test_every_plural_form_gets_a_translation(header: str, forms: list[str]) -> None:
    empty = "".join(f'msgstr[{number}] ""\n' for number in range(len(forms)))
    store = pypo.pofile()
    store.parse(translated(po(HEADER.format(header) + PLURAL + empty), in_order).encode())
    assert store.units[1].target.strings == forms
    assert store.units[1].isfuzzy()


def test_a_form_that_is_not_only_of_one_has_all_placeholders() -> None:
    header = HEADER.format("nplurals=2; plural=n%10==1 ? 0 : 1;")
    entry = 'msgid "a dog"\nmsgid_plural "%d dogs"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    assert po(header + entry).lines == ["%d dogs", "%d dogs"]
    assert po(header.replace("n%10==1", "n==1") + entry).lines == ["a dog", "%d dogs"]


@pytest.mark.parametrize(
    ("message", "lines", "expected"),
    [
        (r"<b>Two dogs</b> play\n  in <a href='x'>a</a> park.\n", ["Two dogs play", "in a park."], None),
        (r"\tOpen\t\tCtrl+O\n", ["Open", "Ctrl+O"], "\tOpen\t\tCtrl+O\n"),
        (r"a < b & c %s {n}", ["a < b & c %s {n}"], None),
        ("42", [], ""),
    ],
)
def test_lines_and_tags(message: str, lines: list[str], expected: str | None) -> None:
    document = po(f'msgid "{message}"\nmsgstr ""\n')
    assert document.lines == lines
    store = pypo.pofile()
    store.parse(document.written(same(document.lines)).encode())
    assert store.units[0].target == (message.replace(r"\n", "\n") if expected is None else expected)


@pytest.mark.parametrize(
    ("message", "line", "backward"),
    [
        ("_Open", "Open", "_OPEN"),
        ("Save &As...", "Save As...", "&AS... SAVE"),  # the same letter
        ("&Reload {name} %s now", "Reload {name} %s now", "NOW %S {NAME} &RELOAD"),
        ("&Bold %s", "Bold %s", "%S &BOLD"),
        ("<b>&amp;Bold</b> x", "Bold x", "X <b>&amp;BOLD</b>"),
        ("Qui_t now", "Quit now", "_NOW QUIT"),  # or the first of a word; within one, as here others begin one
        *(
            (kept, kept, " ".join(reversed(kept.upper().split())))
            for kept in ("{file_name} KP_End a_b_c", "_f() a&b=c")
        ),
    ],
)
def test_an_access_key_is_taken_out_and_given_to_the_translation(message: str, line: str, backward: str) -> None:
    others = "".join(f'msgid "_{word}"\nmsgstr "{word}"\n\n' for word in "abcd")
    document = po(f'{others}msgid "{message}"\nmsgstr ""\n')
    assert document.lines == [line]
    assert f'msgstr "{backward}"' in translated(document, in_reverse)
    assert document.written(same(document.lines)).count(f'"{message}"') == 2
    assert [*pairs(f'{others}msgid "{message}"\nmsgstr "{message}"', name="", form="po")][-1] == (line, line)


def test_without_access_keys_an_underscore_within_a_word_stays() -> None:
    assert po('msgid "of for_user"\nmsgstr ""\n').lines == ["of for_user"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('msgid "a"\nmsgstr "b\n', "a.po, line 2: cannot be read as po (end-of-line within string on line 2"),
        ('msgid "a"\nmsgid "b"\n', "a.po, line 2: cannot be read as po (Syntax error on line 2"),
        (
            HEADER.format("nplurals=2; plural=n +;"),
            "a.po, line 4: 'nplurals=2; plural=n +' is damaged; expected such as",
        ),
        (HEADER.format("nplurals=2; plural=n;"), "a.po, line 4: 'nplurals=2; plural=n' is damaged; expected such as"),
        (
            f'{HEADER.format("nplurals=x;")}{PLURAL}msgstr[0] ""\n',
            "a.po, line 4: 'nplurals=x; plural=None' is damaged; expected such as nplurals=2; plural=n != 1;",
        ),
    ],
)
def test_broken_po(text: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        po(text)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("form", ["xliff", "ts", "json"])
def test_what_is_no_such_file(form: str) -> None:
    with pytest.raises(UserError, match=f"^a, line 1: cannot be read as {form} "):
        Messages("no", name="a", form=form)


def xliff(source: str, attributes: str = "", target: str = "") -> str:
    return (
        '<?xml version="1.0"?>\n<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" xmlns:my="my" version="1.2"><file>'
        f'<body><trans-unit id="1"{attributes}><source xml:lang="en">{source}</source>{target}</trans-unit></body>'
        "</file></xliff>"
    )


@pytest.mark.parametrize(
    ("source", "line", "backward"),
    [
        ('a <g id="1">b c</g> d', "a b c d", 'D <g id="1">C B</g> A'),
        ("1 &lt; a &amp; b", "1 < a & b", "B &amp; A &lt; 1"),
        ("a &lt;b&gt;b&lt;/b&gt;&lt;br/&gt;c", "a b c", "&lt;br/&gt;C &lt;b&gt;B&lt;/b&gt; A"),  # HTML as text
        ('a &lt;a x="y"&gt;b&lt;/a&gt; c &lt;d', "a b c <d", '&lt;D C &lt;a x="y"&gt;B&lt;/a&gt; A'),
        ('a <x id="1" equiv-text="&lt;b&gt;"/> b', "a b", '<x id="1" equiv-text="&lt;b&gt;"/> B A'),
        ('a <ph id="1">&lt;br/&gt;</ph><my:x n="1"/> b', "a b", '<ph id="1">&lt;br/&gt;</ph><my:x n="1"/> B A'),
    ],
)
def test_elements_of_xliff_are_marks(source: str, line: str, backward: str) -> None:
    document = Messages(xliff(source), name="", form="xliff")
    assert document.lines == [line]
    written = re.findall(r'<target state="needs-review-translation">(.*)</target>', translated(document, in_reverse))
    assert written == [backward]
    for seed in range(20):
        again = translated(Messages(xliff(source), name="", form="xliff"), at_random(seed))
        target = again.partition("</source>")[2]
        assert sorted(re.findall(r"<(?!target)[^<>\s/]+", target)) == sorted(re.findall(r"<[^<>\s/]+", source))


@pytest.mark.parametrize(
    ("attributes", "target", "lines"),
    [
        (' translate="no"', "", []),
        ("", "<target>b</target>", []),
        ("", '<target state="translated">b</target>', []),
        ("", '<target state="needs-translation">a</target>', ["a"]),
        ("", "<target/>", ["a"]),
    ],
)
def test_which_units_of_xliff_are_translated(attributes: str, target: str, lines: list[str]) -> None:
    assert Messages(xliff("a", attributes, target), name="", form="xliff").lines == lines


def test_xliff_2() -> None:
    text = (
        '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="de"><file id="f">'
        '<unit id="1"><segment><source>a <pc id="1">b</pc></source></segment></unit></file></xliff>'
    )
    document = Messages(text, name="", form="xliff")
    assert document.lines == ["a b"]
    written = translated(document, in_reverse)
    assert '<segment state="translated">' in written
    assert '<target><pc id="1">B</pc> A</target>' in written


def test_no_file_is_read_for_another() -> None:
    text = xliff("a").replace("?>\n", '?>\n<!DOCTYPE x [<!ENTITY b SYSTEM "file:///etc/passwd">]>\n')
    with pytest.raises(UserError, match=r"^a\.xlf, line 2: entities of a file's own are not read"):
        Messages(text, name="a.xlf", form="xliff")


def test_json_has_its_numbers_its_indentation_and_its_keys() -> None:
    text = '{\n  "a.b": "x",\n  "n": 1.5,\n  "t": [true, null, "", {}, []],\n  "@a": {"type": "no"},\n  '
    text += '"k": {"l": "y\\u00e9"}\n}\n'
    document = Messages(text, name="", form="json")
    assert document.lines == ["x", "yé"]
    written = translated(document, in_order)
    expected = {"a.b": "X", "n": 1.5, "t": [True, None, "", {}, []], "@a": {"type": "no"}, "k": {"l": "YÉ"}}
    assert json.loads(written) == expected
    assert written.isascii()
    assert written.startswith('{\n  "a.b": "X",\n')


@pytest.mark.parametrize("text", ['{"a": "x", "b": 1}\n', '{"a":"x","b":[1]}\n', '{"a": "x, y"}\n'])
def test_json_on_one_line_has_its_spaces(text: str) -> None:
    assert translated(Messages(text, name="", form="json"), in_order) == text.replace("x", "X").replace("y", "Y")


def test_json_has_numbers_that_it_can_write() -> None:
    with pytest.raises(UserError, match=r"^a: cannot be read as json \(Out of range float values"):
        Messages('{"a": "b", "c": 1e400}', name="a", form="json")


@pytest.mark.parametrize("text", ["[]", '{"a": {}}', "42", '"a"'])
def test_json_without_texts_is_written_as_it_is(text: str) -> None:
    assert json.loads(Messages(text, name="", form="json").written([])) == json.loads(text)


def test_blank_lines_of_properties_stay() -> None:
    text = "# dogs\n\na=x\n\nb=y\n\n\n# cats\nc=z\n"
    assert translated(Messages(text, name="", form="properties"), in_order) == text.replace("=x", "=X").replace(
        "=y", "=Y"
    ).replace("=z", "=Z")


@pytest.mark.parametrize("word", ["dog", "grün"])
def test_a_character_that_properties_write_as_two_is_one(word: str) -> None:
    """Java's own tool writes it so; the toolkit would make halves of it, which no model reads."""
    messages = Messages(f"a={word} \\ud83d\\uDE00\nb={word} \\\\ud83d\\\\ude00\n", name="", form="properties")
    assert messages.lines == [f"{word} 😀", f"{word} \\ud83d\\ude00"]
    emoji = "\\ud83d\\ude00" if word.isascii() else "😀"
    written = messages.written([in_order("")._replace(text=text) for text in ("x 😀", "y")])
    assert written == f"a=x {emoji}\nb=y\n"


def test_a_backslash_before_half_of_a_character_stays() -> None:
    assert Messages("a=x \\\\ud83d\\ude00\n", name="", form="properties").lines == ["x \\ud83d\ude00"]


@pytest.mark.parametrize("text", ["a = dog \\\n  runs\n", "a : dog é\n"])
def test_properties_are_ascii_if_they_were(text: str) -> None:
    written = Messages(text, name="", form="properties").written([in_order("")._replace(text="läuft 😀")])
    if text.isascii():
        assert written == "a=l\\u00e4uft \\ud83d\\ude00\n"
    else:
        assert written == "a:läuft 😀\n"
