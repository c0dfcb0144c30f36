"""Messages of programs, as the Translate Toolkit reads and writes them: PO, XLIFF, Qt's TS, Java properties, JSON.

What is translated already stays, also where it is marked as fuzzy; what is written here is marked as in need of a
review where the format has a mark for that. All plural forms get a translation: the first that of the singular, the
others that of the plural. Lines, and texts between tabs, are texts of their own, and tags in them are marks, as are the
elements of XLIFF. Access keys (&File, _Open) are taken out and given to translations. The toolkit may wrap files anew.
"""

import json
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from gettext import c2py
from html import escape, unescape
from typing import Any, NamedTuple

import regex

from nmt.data.corpus import excerpt
from nmt.decoding.writing import Translation
from nmt.documents.cutting import uncut
from nmt.documents.formats import Language, declared_as_utf8
from nmt.documents.memories import OPEN
from nmt.documents.tagged import Notation, Part, have_marks, part_of, piece_of, tags_by, written_parts
from nmt.errors import UserError

logging.getLogger("translate").setLevel(logging.CRITICAL)  # it guesses at encodings

_TAG = r"<(/?)([A-Za-z][\w:.-]*)(?:\s[^<>]*?)?/?>"
_ESCAPED = _TAG.replace("<(", "&lt;(").replace("/?>", "/?&gt;")  # of HTML in XML
_NATIVE = r"<(?:ph|bpt|ept|it|ut)\b[^<>]*[^/<>]>[^<>]*</[a-z]+>"  # what stands for code of the converted format
_AS_WRITTEN = Notation(tags_by(re.compile(_TAG)))
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # which XML does not have
_XML = Notation(
    tags_by(regex.compile(rf"{_NATIVE}|(?|{_TAG}|{_ESCAPED})")),
    unescape,
    lambda text: escape(_CONTROL.sub("", text), quote=False),
)
_PLACEHOLDER = re.compile(r"%\(\w+\)|%\d*\$?[a-zA-Z]|\{\w*\}")
_BESIDE_MESSAGE = re.compile(r"\.(?:description|placeholders\..*)$")  # of a message of a browser's extension
_SIGN = r"(?=[&_])(?<=(?<![^\s>]){})(?:&(?:amp;)?|_)(?=\w)(?![^\W_]*(?:[_;=(]|\.\w))"  # before a letter of a word
_SIGNS = map(_SIGN.format, ("", r"(?:|[^\W_]+(?=[&_](?:amp;)?+[^A-Z]))"))  # the first letter, or any
_ACCESS_KEYS = [regex.compile(rf"(?s)\A(?:(?!{sign}).)*+\K{sign}(?!.*{sign})") for sign in _SIGNS]  # one alone
_LETTER = re.compile(r"<[^<>]*>|&#?\w+;|[%{$]\S*|(?<!\w)([^\W_])")  # the first of a word, but of no placeholder
_ROW = re.compile(r"[^\n\t]*[\n\t]|[^\n\t]+")
_PAIR = re.compile(r"(?<!\\)((?:\\\\)*)\\u(d[89ab][\da-f]{2})\\u(d[c-f][\da-f]{2})", re.IGNORECASE)
"""A character as two escaped surrogates, of which the toolkit makes two characters."""


class _Kind(NamedTuple):
    """How texts of a format are read and written."""

    mark: Callable[[Any], object] | None = None  # as to be reviewed; None: the file has one language
    notation: Notation = _AS_WRITTEN


_KINDS = {
    "po": _Kind(lambda unit: unit.markfuzzy()),
    "ts": _Kind(lambda unit: unit.markfuzzy()),
    "xliff": _Kind(lambda unit: unit.markreviewneeded(), _XML),
    "xliff2": _Kind(lambda unit: unit.xmlelement.set("state", "translated"), _XML),
    "properties": _Kind(),
    "json": _Kind(),
}


class Messages:
    """A file of messages: `lines` are to be translated."""

    language = Language(
        regex.compile(
            # In PO, of the header alone; its lines are read once
            r"(?m)(?:^msgid \"\"\s*\nmsgstr (?:\"(?!(?:.*\\n)?Language: ).*+\n)*+\"(?>(?:.*\\n)?Language: )\K|"
            r"(?<=\"@@locale\"\s*:\s*\"|<(?:TS|file|xliff)\b[^<>]*\s(?:target-)?(?:language|trgLang)\s*=\s*[\"']))[\w-]+"
        )
    )

    def __init__(self, text: str, *, name: str, form: str) -> None:
        """Raises UserError, which calls the file `name`, where the toolkit cannot read it."""
        self.lines: list[str] = []
        self._text = text
        if form == "xliff" and re.search(r"<xliff\b[^>]*\bversion=[\"']2", text):
            form = "xliff2"
        self._form, self._kind = form, _KINDS[form]
        self._units: list[tuple[Any, list[list[Part]]]] = []
        with _refused(name, form):
            self._store = _parsed(text, name, form)
            self._plurals = _plurals(self._store, text, name) if form == "po" else None
            names = {unit.getid() for unit in self._store.units} if form == "json" else set()
            self._access_key = _access_key(self._store)
            for unit in self._store.units:
                if self._is_open(unit, names):
                    messages = [self._read(message) for message in self._messages(unit)]
                    if not all(isinstance(part, str) for parts in messages for part in parts):
                        self._units.append((unit, messages))
            self.is_marked = any(have_marks(parts) for _, messages in self._units for parts in messages)
            bytes(self._store)  # what cannot be written is to be known before it is translated

    def _is_open(self, unit: Any, names: set[str]) -> bool:
        """Whether an entry is to be translated; `names` are those of all values of a JSON file."""
        if unit.isheader() or unit.isobsolete() or not unit.istranslatable() or unit.isblank():
            return False
        if self._form == "json":
            path = unit.getid()
            beside = _BESIDE_MESSAGE.sub(".message", path)
            return isinstance(unit.target, str) and ".@" not in path and (beside == path or beside not in names)
        if self._kind.notation is _XML and (target := unit.target_dom) is not None:
            states = (target.get("state"), unit.xmlelement.get("state"))
            return not unit.target or not {*states}.isdisjoint(OPEN)
        return self._kind.mark is None or not any(getattr(unit.target, "strings", [unit.target]))

    def _messages(self, unit: Any) -> list[str]:
        """What is to be translated of an entry: for each plural form the message that it is the translation of."""
        if self._kind.notation is _XML:
            return [_around_and_inside(unit.source_dom)[1]]
        if not unit.hasplural():
            return [str(unit.source)]
        one, many = str(unit.source.strings[0]), str(unit.source.strings[-1])
        forms, form_of_one, is_alone = self._plurals or (len(getattr(unit.target, "strings", ())) or 2, 0, True)
        if not is_alone and _PLACEHOLDER.findall(one) != _PLACEHOLDER.findall(many):  # one also stands for 21
            one = many
        return [one if form == form_of_one and forms > 1 else many for form in range(forms)]

    def _read(self, message: str) -> list[Part]:
        message = self._access_key.sub("", message)
        rows = [message] if self._kind.notation is _XML else _ROW.findall(message)
        return [part_of(row, self._kind.notation, self.lines) for row in rows]

    def written(self, translations: Sequence[Translation]) -> str:
        """The file with a translation for each of the lines."""
        cuts = uncut(self.lines, translations)
        for unit, messages in self._units:
            strings = [written_parts(parts, cuts, self._kind.notation) for parts in messages]
            both = zip(strings, self._messages(unit), strict=True)
            strings = [_with_access_key(string, message, self._access_key) for string, message in both]
            if self._kind.notation is _XML:
                _set_content(unit, strings[0])
            else:
                unit.target = strings if len(strings) > 1 else strings[0]
            if self._kind.mark is not None:
                self._kind.mark(unit)
        written = bytes(self._store).decode("utf-8").removeprefix("\ufeff")
        if self._form == "properties" and self._text.isascii():  # as older Javas need it
            written = re.sub(r"[^\x00-\x7f]", lambda character: json.dumps(character[0])[1:-1], written)
        return f"\ufeff{written}" if self._text.startswith("\ufeff") else written


def translated(text: str, *, name: str, form: str) -> Iterator[tuple[str, str]]:
    """Each message of a file that has both languages, and its translation, without tags and access keys; of plural
    forms the first and the last. The translation of what is not translated, or is marked as fuzzy, is blank.

    Raises UserError, which calls the file `name`, where the toolkit cannot read it.
    """
    with _refused(name, form):
        access_key = _access_key(store := _parsed(text, name, form))
        for unit in store.units:
            if unit.isheader() or unit.isobsolete():
                continue
            is_done = unit.istranslated() and not unit.isfuzzy()
            sources, targets = (getattr(side, "strings", [side]) for side in (unit.source, unit.target))
            for pair in dict.fromkeys(((sources[0], targets[0]), (sources[-1], targets[-1]))):
                pieces = [piece_of(access_key.sub("", str(side)), _AS_WRITTEN) for side in pair]
                source, target = (piece.text if piece else "" for piece in pieces)
                yield source, target if is_done else ""


def _access_key(store: Any) -> "regex.Pattern[str]":
    """What stands before a letter that is an access key: within words, as also in for_user, only if most begin one."""
    at_words, both = (sum(key.search(str(unit.source)) is not None for unit in store.units) for key in _ACCESS_KEYS)
    return _ACCESS_KEYS[2 * at_words > both]


def _with_access_key(text: str, source: str, access_key: "regex.Pattern[str]") -> str:
    """With a key if the source has one: the same letter if a word begins with it, as people mostly do, or the first."""
    key = access_key.search(source)
    if key is None or text == access_key.sub("", source):
        return source if key else text
    letters = [match.start(1) for match in _LETTER.finditer(text) if match[1]]
    place = min(letters, key=lambda at: text[at].lower() != source[key.end()].lower(), default=0)
    return f"{text[:place]}{key[0]}{text[place:]}"


def _parsed(text: str, name: str, form: str) -> Any:
    """The file as the toolkit reads it, in UTF-8 whatever it says of itself, for so it is written."""
    from translate.storage import jsonl10n, properties, pypo, ts2, xliff, xliff2

    store = {
        "po": pypo.pofile,
        "ts": ts2.tsfile,
        "xliff": xliff.xlifffile,
        "xliff2": xliff2.Xliff2File,
        "properties": properties.javautf8file,
        "json": jsonl10n.JsonNestedFile,
    }[form]()
    if (entity := re.search(r"<!ENTITY", text)) and form in ("ts", "xliff", "xliff2"):
        line = text.count("\n", 0, entity.start()) + 1
        raise UserError(f"{name}, line {line}: entities of a file's own are not read")
    properties.DialectJavaUtf8.preserve_blank_lines = True  # of which it would leave out some
    if form == "json":
        indent = re.search(r"\n([ \t]+)\"", text)
        store.dump_args["indent"] = indent[1] if indent else None
        between = ", " if not indent and re.search(r"[\w\"\]}], \"", text) else ","
        store.dump_args["separators"] = (between, ": " if '": ' in text else ":")
        store.dump_args["ensure_ascii"] = text.isascii() and "\\u" in text
        store.dump_args["allow_nan"] = False  # as of 1e400
        store.get_root_node = lambda: store._file  # what was read, so that what has no texts, as {}, stays
    content = declared_as_utf8(text.removeprefix("\ufeff"))
    if form == "properties":
        content = _PAIR.sub(lambda pair: pair[1] + bytes.fromhex(pair[2] + pair[3]).decode("utf-16-be"), content)
    store.parse(content if form == "json" else content.encode("utf-8"))
    return store


@contextmanager
def _refused(name: str, form: str) -> Iterator[None]:
    """Turn an exception of the toolkit in the block, which has many types, those of bugs among them, into UserError."""
    try:
        yield
    except (ImportError, UserError):
        raise
    except Exception as error:
        said = (str(error) or type(error).__name__).splitlines()[0]
        place = re.search(r"\bline (\d+)", said)
        where = f"{name}, line {place[1]}" if place else name
        raise UserError(f"{where}: cannot be read as {form} ({said})") from None


def _plurals(store: Any, text: str, name: str) -> tuple[int, int, bool] | None:
    """How many plural forms a header of PO tells of, which is that of 1, and whether of 1 alone; None without one."""
    count, rule = store.getheaderplural()
    if not count:
        return None
    try:
        forms = [c2py(rule or "")(number) for number in range(200)]
    except (ValueError, RecursionError):
        forms = [-1]
    if not (count.isdecimal() and 0 <= min(forms) <= max(forms) < int(count) < 10):
        line = text.count("\n", 0, max(text.find("nplurals"), 0)) + 1
        given = excerpt(f"nplurals={count}; plural={rule}")
        raise UserError(f"{name}, line {line}: {given} is damaged; expected such as nplurals=2; plural=n != 1;")
    return int(count), forms[1], forms.count(forms[1]) == 1


def _around_and_inside(element: Any) -> tuple[str, str, str]:
    """The start tag of an element, its content, and the end tag."""
    from lxml import etree

    whole = etree.tostring(element, encoding="unicode", with_tail=False)
    start, stop = whole.index(">") + 1, whole.rfind("</")
    return whole[:start], whole[start:stop], whole[stop:]


def _set_content(unit: Any, content: str) -> None:
    """Make this the content of the target of an entry, whose attributes stay."""
    from lxml import etree

    before, _, after = _around_and_inside(unit.source_dom)
    unit.target = "-"  # makes the element where there is none
    made = etree.fromstring(f"{before}{content}{after}")
    unit.target_dom.text, unit.target_dom[:] = made.text, list(made)
