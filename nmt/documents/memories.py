"""Memories of translators as pairs of texts: TMX and XLIFF, as a stream, and PO, as the Translate Toolkit reads it.

Codes of the format that a text was cut out of are left out, but words around one that breaks the line stay apart.
White space becomes one space.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unicodedata import normalize

from nmt.data.corpus import opened, read_text
from nmt.data.pairs import Pair, is_language, places_of
from nmt.errors import UserError

_UNITS = ("tu", "trans-unit", "segment")  # with a text in several languages
_FILES = ("xliff", "file")
_TEXTS = ("{*}tuv", "{*}source", "{*}target")
_DECLARED = {"source": ("source-language", "srcLang"), "target": ("target-language", "trgLang")}
_CODES = ("bpt", "ept", "it", "ph", "ut", "x", "prop", "note")
_BREAK = re.compile(r"(?i)\b(?:br|lb|pb)$|</?(?:br|p|div|h\d|li|tr|t[dh])\b|[\t\n]|\\[tn]\b")  # in a code
_SPACES = re.compile(r"[ \t\r\n]+")
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_DOCUMENT = ("file", "x-document", "x-file", "x-filename")  # properties of TMX that name one
OPEN = ("new", "initial", "needs-translation")  # states of what is not translated


def pairs_of_memory(path: Path, languages: Sequence[str]) -> Iterator[Pair]:
    """The texts of TMX or XLIFF, or the messages of PO.

    Of XML no tree is made beyond a unit, and nothing that it names is opened. Messages, and what is to be imported, are
    read at once. Raises UserError if the toolkit is not installed, or a file is broken or has entities of its own.
    """
    try:
        if path.name.lower().endswith((".po", ".po.gz")):
            from nmt.documents.messages import Messages, translated

            text = read_text(path)
            declared = found[0] if (found := Messages.language.code.search(text)) else languages[1]
            of_place = [languages[place - 1] for place in (1, 0) if is_language(declared, languages[place])]
            both = (*of_place, "")[0], declared  # no file says what its sources are in
            messages = [[*zip(both, pair, strict=True)] for pair in translated(text, name=str(path), form="po")]
            return (_pair(texts, languages, str(path), str(path)) for texts in messages)
        from lxml import etree
    except ModuleNotFoundError as error:
        install = "pip install 'nmt-toolkit[localization]'"
        raise UserError(f"{path}: needs {error.name}, which is not installed: {install}") from None
    return _pairs_of_xml(path, languages, etree)


def _pairs_of_xml(path: Path, languages: Sequence[str], etree: Any) -> Iterator[Pair]:
    usual = {"source": languages[0], "target": languages[1]}  # where texts do not say it
    file = str(path)
    for name, element in _elements(path, etree):
        if name in _FILES:
            for side, keys in _DECLARED.items():
                usual[side] = next(filter(None, map(element.get, keys)), usual[side])
            file = f"{path}: {element.get('original')}"
            continue
        where, texts = f"{path}, line {element.sourceline}", _texts(element, usual)
        named = [prop.text for prop in element.iterchildren("{*}prop") if prop.get("type") in _DOCUMENT]
        yield _pair(texts, languages, where, f"{path}: {named[0]}" if named else file)


def _pair(texts: Sequence[tuple[str, str]], languages: Sequence[str], where: str, document: str) -> Pair:
    """The two that are in these languages of texts, each with its language."""
    given = [language for language, _ in texts]
    if both := places_of(given, [[language] for language in languages]):
        source, target = (texts[place][1] for place in both)
        return Pair(source, target, where, document)
    others = ", ".join(sorted({*given} - {""})) or "no language"
    return Pair(f"is in {others}", "", where, document, fault="languages")


def _elements(path: Path, etree: Any) -> Iterator[tuple[str, Any]]:
    """The beginnings of files, and units, which are gone when the next one is asked for, by name."""
    with opened(path) as file:
        tags = [f"{{*}}{name}" for name in (*_FILES, *_UNITS)]
        try:
            for event, element in etree.iterparse(file, events=("start", "end"), tag=tags, resolve_entities=False):
                name = _name(element)
                if event == "start" and name in _FILES:
                    yield name, element
                if event == "start" or name in _FILES:
                    continue
                if next(element.iter(etree.Entity), None) is not None:
                    raise UserError(f"{path}, line {element.sourceline}: entities of a file's own are not read")
                yield name, element
                element.clear()
                while element.getprevious() is not None:
                    del element.getparent()[0]
        except etree.XMLSyntaxError as error:
            said = " ".join(str(error.msg).split())
            raise UserError(f"{path}, line {error.lineno}: cannot be read as XML ({said})") from None


def _texts(unit: Any, usual: Mapping[str, str]) -> list[tuple[str, str]]:
    """The texts of a unit, each with its language."""
    texts = []
    for element in unit.iterchildren(*_TEXTS):
        language = element.get(_LANGUAGE) or element.get("lang") or usual.get(_name(element), "")
        if element.get("state") not in OPEN:
            texts.append((language, _SPACES.sub(" ", normalize("NFC", "".join(_text_of(element)))).strip(" ")))
    return texts


def _text_of(element: Any) -> Iterator[str]:
    """The text of an element and those in it, with a space for each code that breaks the line."""
    if _name(element) in _CODES:
        yield " " if any(map(_BREAK.search, (*element.itertext(), *element.attrib.values()))) else ""
        return
    yield element.text or ""
    for child in element:
        if isinstance(child.tag, str):  # no comment
            yield from _text_of(child)
        yield child.tail or ""


def _name(element: Any) -> str:
    return str(element.tag.rpartition("}")[2])
