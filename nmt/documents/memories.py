"""Memories of translators as pairs of texts: TMX and XLIFF, as a stream, and PO, as the Translate Toolkit reads it.

Codes of the format that a text was cut out of are left out, and white space becomes one space.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.data.corpus import opened, read_text
from nmt.data.pairs import Pair, is_language
from nmt.errors import UserError

_ELEMENTS = ("{*}xliff", "{*}file", "{*}tu", "{*}trans-unit", "{*}segment")  # the last three: texts in both languages
_TEXTS = ("{*}tuv", "{*}source", "{*}target")
_DECLARED = {"source": ("source-language", "srcLang"), "target": ("target-language", "trgLang")}
_CODES = ("bpt", "ept", "it", "ph", "ut", "prop", "note")
_NODES = f".//text()[not(ancestor::*[{' or '.join(f'local-name()={name!r}' for name in _CODES)}])]"
_SPACES = re.compile(r"[ \t\r\n]+")
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_DOCUMENT = ("file", "x-document", "x-file", "x-filename")  # properties of TMX that name one
_OPEN = ("new", "initial", "needs-translation")  # states of what is not translated
_MOST = 20  # languages in a message


def pairs_of_memory(path: Path, languages: Sequence[str]) -> Iterator[Pair]:
    """The texts of TMX or XLIFF, or what is translated in a file of PO.

    Of XML no tree is made beyond a unit, and nothing that it names is opened. Raises UserError if it is broken, has
    entities of its own, or no text in both languages, and if the toolkit is not installed.
    """
    try:
        is_po = path.name.lower().endswith((".po", ".po.gz"))
        yield from _pairs_of_po(path) if is_po else _pairs_of_xml(path, languages)
    except ModuleNotFoundError as error:
        install = "pip install 'nmt-toolkit[localization]'"
        raise UserError(f"{path}: needs {error.name}, which is not installed: {install}") from None


def _pairs_of_po(path: Path) -> Iterator[Pair]:
    from nmt.documents.messages import translated

    for source, target in translated(read_text(path), name=str(path), form="po"):
        yield Pair(source, target, str(path), document=str(path))


def _pairs_of_xml(path: Path, languages: Sequence[str]) -> Iterator[Pair]:
    from lxml import etree

    usual = {"source": languages[0], "target": languages[1]}  # where texts do not say it
    document, there, has_pairs = str(path), set[str](), False
    with opened(path) as file:
        try:
            reader = etree.iterparse(
                file, events=("start", "end"), tag=_ELEMENTS, resolve_entities=False, no_network=True
            )
            for event, element in reader:
                name = etree.QName(element).localname
                if name in ("xliff", "file"):
                    for side, keys in _DECLARED.items():
                        usual[side] = next(filter(None, map(element.get, keys)), usual[side])
                    document = f"{path}: {element.get('original')}"
                elif event == "end":
                    where = f"{path}, line {element.sourceline}"
                    if next(element.iter(etree.Entity), None) is not None:
                        raise UserError(f"{where}: entities of a file's own are not read; write their text")
                    texts = _texts(element, usual)
                    there |= {*texts} if len(there) < _MOST else set()
                    found = [[texts[code] for code in texts if is_language(code, one)] for one in languages]
                    if name == "tu":
                        named = [prop.text for prop in element.iterchildren("{*}prop") if prop.get("type") in _DOCUMENT]
                        document = ": ".join([str(path), *filter(None, named)])
                    has_pairs = has_pairs or all(found)
                    source, target = (side[0] if side else "" for side in found)
                    yield Pair(source, target, where, document, "" if all(found) else "languages")
                    element.clear()
                    while element.getprevious() is not None:
                        del element.getparent()[0]
        except etree.XMLSyntaxError as error:
            raise UserError(f"{path}, line {error.lineno}: cannot be read as XML ({error.msg})") from None
    if not has_pairs:
        raise UserError(
            f"{path}: has no text in {' and '.join(languages)}; its languages: {', '.join(sorted(there)) or 'none'}"
        )


def _texts(unit: Any, usual: Mapping[str, str]) -> dict[str, str]:
    """The texts of a unit by language."""
    from lxml import etree

    texts: dict[str, str] = {}
    for element in unit.iterchildren(*_TEXTS):
        language = element.get(_LANGUAGE) or element.get("lang") or usual.get(etree.QName(element).localname, "")
        if element.get("state") not in _OPEN:
            texts.setdefault(language, _SPACES.sub(" ", "".join(element.xpath(_NODES))).strip(" "))
    return texts
