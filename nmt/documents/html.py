"""HTML: which of it is text to translate, and the HTML with the translations in its place.

Everything else stays as it is, character by character. Block-level tags delimit texts; inline tags stand in them as
marks (see `tagged`). A tag without its partner in the same text, as in broken HTML or where a link encloses paragraphs,
delimits texts too, so what was well nested stays so, and what was not is broken in the same places.

It knows elements and attributes by their names, by the rendering section of the HTML standard; no style sheets.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from html import escape, unescape
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import regex

from nmt.decoding.writing import Translation
from nmt.documents.cutting import uncut
from nmt.documents.formats import Language
from nmt.documents.tagged import BREAK, CODE, SPACES, Notation, Part, have_marks, part_of, written_parts
from nmt.documents.tags import END, FOREIGN, OTHER, RAW, START, TEXT, Attribute, Token, partners, tokens, with_attribute

BLOCK = "block"  # a kind of tokens: tags that are not part of a line of text, so that none goes on behind them


def _names(text: str) -> frozenset[str]:
    """Names of elements, from a text with spaces between them."""
    return frozenset(text.split())


# Elements whose start tags end an open paragraph (HTML standard, 13.2.6.4.7)
ENDING_PARAGRAPHS = _names(
    """address article aside blockquote center dd details dialog dir div dl dt fieldset figcaption figure footer form
    h1 h2 h3 h4 h5 h6 header hgroup hr li listing main menu nav ol p pre search section summary table ul xmp"""
)
BLOCKS = ENDING_PARAGRAPHS | _names(
    """audio base body button canvas caption col colgroup frame frameset head html iframe legend link meta noembed
    noframes noscript object optgroup option param select source tbody td template textarea tfoot th thead title tr
    track video"""
)
VOID = _names("area base br col embed frame hr img input link meta param source track wbr")
_ALONE = RAW | VOID  # elements that no words of a translation are in
# Elements whose content stays as it is, as in the translators of browsers; pre, too, is code more often than text
UNTRANSLATED = FOREIGN | _names("code iframe kbd noembed noframes pre rp rt samp script style textarea var xmp")
ATTRIBUTES = ("alt", "aria-label", "placeholder", "title")  # that are translated
KINDS = {"input": "type", "meta": "name"}  # attributes that say what kind of element it is
# Attributes that are translated in some elements, and in which kind of these
OTHER_ATTRIBUTES = {
    *((name, "label", None) for name in ("optgroup", "option", "track")),
    *(("input", "value", kind) for kind in ("button", "reset", "submit")),
    ("meta", "content", "description"),
}
# Between words that are two
SEPARATING = (UNTRANSLATED | {BREAK, CODE, "embed", "img", "input"}) - {"script", "style"}
SEPARATORS = ("|", "/", "·", "•", "›", "»", "→")  # of links in a menu
_SECTIONS, _CELLS = "caption colgroup thead tbody tfoot", "td th"
# Start tags that end elements whose end tags may be left out (HTML standard, 13.1.2.4)
_ENDING = {
    "head": _names("body"),
    "p": ENDING_PARAGRAPHS | _names(f"{_SECTIONS} tr {_CELLS}"),
    "li": _names("li"),
    **dict.fromkeys(("dd", "dt"), _names("dd dt")),
    "option": _names("option optgroup hr"),
    "optgroup": _names("optgroup hr"),
    **dict.fromkeys(("thead", "tbody", "tfoot"), _names(_SECTIONS)),
    "tr": _names(f"{_SECTIONS} tr"),
    **dict.fromkeys(("caption", "colgroup", "td", "th"), _names(f"{_SECTIONS} tr {_CELLS}")),
    **dict.fromkeys(("rb", "rp", "rt", "rtc"), _names("rb rp rt rtc")),
}
_LONGEST_NOTE = 100  # characters of the index of a footnote, with its tags
_NOTATION = Notation(
    tokens=tokens,
    read=unescape,
    write=partial(escape, quote=False),
    before=f"{SPACES}\ufeff\u200b",
    behind=f"{SPACES}\ufeff\u200b",
    separating=SEPARATING,
    keeps_rows=False,
)
_SLOT = re.compile("([\"'])\ud800(\\d+)\udfff\\1")  # the value of an attribute that is translated; no text can hold it


class HtmlDocument:
    """HTML with its texts: `lines` are to be translated."""

    language = Language(
        regex.compile(r"(?i)(?<=<html\b[^<>]*[\s:]lang\s*=\s*[\"'])[\w-]+"),
        lambda html, direction: with_attribute(html, "html", "dir", direction),
    )

    def __init__(self, html: str) -> None:
        self.lines: list[str] = []
        self._values: list[str] = []  # of attributes, as they are written; these are the first lines
        self._parts: list[Part] = []
        for is_block, together in groupby(self._with_slots(html), key=lambda token: token.kind == BLOCK):
            if is_block:
                self._parts += [self._html[token.start : token.stop] for token in together]
            else:
                self._read_flow([*together])
        self.is_marked = have_marks(self._parts)

    def written(self, translations: Sequence[Translation]) -> str:
        """The HTML with a translation for each of the lines."""

        def value(slot: re.Match[str]) -> str:
            number, quote = int(slot[2]), slot[1]
            text = translations[number].text
            if text == self.lines[number]:
                return self._values[number]
            text = _NOTATION.write(text).replace(quote, "&#39;" if quote == "'" else "&quot;")
            return f"{quote}{text}{quote}"

        first = len(self._values)
        cuts = uncut(self.lines[first:], translations[first:])
        return _SLOT.sub(value, written_parts(self._parts, cuts, _NOTATION))

    def _with_slots(self, html: str) -> list[Token]:
        """Make the HTML one with a slot for each value of an attribute that is translated, which becomes a line.

        Returns the tokens with their places in it.
        """
        pieces, place, shift, moved = [], 0, 0, []
        for token in _prepared(html):
            start = token.start + shift
            kind = {one.name: one.value.lower() for one in token.attributes}.get(KINDS.get(token.name, ""))
            for one in token.attributes:
                is_read = one.name in ATTRIBUTES or (token.name, one.name, kind) in OTHER_ATTRIBUTES
                if is_read and any(map(str.isalpha, one.value)):
                    quote = "'" if html[one.start] == "'" else '"'
                    slot = f"{quote}\ud800{len(self.lines)}\udfff{quote}"
                    pieces += [html[place : one.start], slot]
                    place, shift = one.stop, shift + len(slot) - (one.stop - one.start)
                    self.lines.append(" ".join(one.value.split()))
                    self._values.append(html[one.start : place])
            moved.append(token._replace(start=start, stop=token.stop + shift))
        self._html = "".join([*pieces, html[place:]])
        return moved

    def _read_flow(self, flow: Sequence[Token]) -> None:
        """Read what stands between two block-level tags: a text for each part in which every tag has its partner."""
        begins = [index for index in range(1, len(flow)) if self._begins_text(flow, index)]
        for begin, end in zip([0, *begins], [*begins, len(flow)], strict=True):
            part = flow[begin:end]
            paired = partners(part)
            lonely = [token.kind in (START, END) and index not in paired for index, token in enumerate(part)]
            for is_lonely, group in groupby(zip(lonely, part, strict=True), key=itemgetter(0)):
                text = [token for _, token in group]
                if is_lonely:
                    self._parts += [self._html[token.start : token.stop] for token in text]
                else:
                    self._parts.append(part_of(self._html, _NOTATION, self.lines, text))

    def _begins_text(self, parts: Sequence[Token], index: int) -> bool:
        """Whether a text begins inside a flow: at the second of two line breaks, which make a paragraph, and at a link
        right behind another one, or what separates the two, as in a menu."""
        token, before = parts[index], parts[index - 1]
        if token.name == BREAK:
            is_blank = before.kind == TEXT and not self._text(before).strip()
            return parts[max(index - 1 - is_blank, 0)].name == BREAK
        if self._separates(parts, index) or self._separates(parts, index - 1):
            return True
        return (before.kind, token.kind) == (END, START) and self._are_apart(parts, index)

    def _are_apart(self, parts: Sequence[Token], index: int) -> bool:
        """Whether two elements that touch at an index have a text each, as two links have or Home and News.

        Others are parts of one word.
        """
        first, last = index - 1, index
        while first > 0 and parts[first].kind == END:
            first -= 1
        while last < len(parts) - 1 and parts[last].kind == START:
            last += 1
        before, after = (self._text(part) if part.kind == TEXT else "" for part in (parts[first], parts[last]))
        ended, begun = ({part.name for part in side} for side in (parts[first + 1 : index], parts[index:last]))
        if "a" in ended & begun:
            return any(map(str.isalpha, before)) and any(map(str.isalpha, after))
        return _are_two_words(before, after) and not (ended | begun) & {"sub", "sup"}

    def _separates(self, parts: Sequence[Token], index: int) -> bool:
        """Whether it is a sign between two links."""
        around = [(part.kind, part.name) for part in parts[max(index - 1, 0) : index + 2]]
        return around == [(END, "a"), (TEXT, ""), (START, "a")] and self._text(parts[index]).strip() in SEPARATORS

    def _text(self, token: Token) -> str:
        return unescape(self._html[token.start : token.stop])


class _Element(NamedTuple):
    """An open element in which something else is translated than around it."""

    last: int  # its last token
    translates: bool
    is_note: bool = False


def _prepared(html: str) -> list[Token]:
    """The tokens with the kinds and names that matter here, and those attributes that may be translated.

    BLOCK delimits texts. OTHER is what has no words: its name is CODE where it is a text that is not translated.
    """
    parts = tokens(html)
    ends = _ends(parts)
    found: list[Token] = []
    elements = [_Element(len(parts), True)]
    for index, token in enumerate(parts):
        while elements[-1].last < index:
            elements.pop()
        last, translates, is_note = elements[-1]
        inside = is_read = translates
        if token.kind == START:
            is_read = _is_translated(token.attributes, translates)
            inside = is_read and token.name not in UNTRANSLATED
            begins_note = token.name == "sup" and inside and _is_note(html, parts, index, ends[index])
            if inside != translates or begins_note:
                inside = inside and not begins_note
                elements.append(_Element(ends[index], inside, begins_note))
        is_tag = token.kind in (START, END)
        if not is_read or token.name in ("link", "style"):
            token = token._replace(attributes=())
        if is_tag and token.name in BLOCKS and (translates or index == last):
            token = token._replace(kind=BLOCK)
        elif translates and (token.kind == TEXT or (token.kind == OTHER and token.name == "title")):
            token = token._replace(kind=TEXT, name="")
        elif not (translates and inside and index != last and is_tag and token.name not in _ALONE):
            token = token._replace(kind=OTHER, name=CODE if token.kind == TEXT and not is_note else token.name)
        found.append(token)
    return found


def _is_translated(attributes: Sequence[Attribute], otherwise: bool) -> bool:
    """Whether an element with these attributes is to be translated."""
    for attribute in attributes:
        if attribute.name == "translate":
            otherwise = {"no": False, "yes": True, "": True}.get(attribute.value.lower(), otherwise)
        elif attribute.name == "class" and "notranslate" in attribute.value.split():
            otherwise = False
    return otherwise


def _is_note(html: str, parts: Sequence[Token], start: int, last: int) -> bool:
    """Whether an element is an index such as the 1 of a footnote, which is no part of the word before it.

    What is below the line belongs to the word, as in CO2.
    """
    begin, end = parts[start].start, parts[last].stop
    if end - begin > _LONGEST_NOTE or html[end : end + 1].isalnum():
        return False
    texts = (html[token.start : token.stop] for token in parts[start:last] if token.kind == TEXT)
    return not any(map(str.isalpha, unescape("".join(texts))))


def _ends(parts: Sequence[Token]) -> dict[int, int]:
    """The last token of each element, by its start tag; its end tag may have been left out.

    One of another language without its end tag is the start tag alone.
    """
    ends: dict[int, int] = {}
    around: list[int] = []
    names: Counter[str] = Counter()

    def end(last: int) -> None:
        start = around.pop()
        name = parts[start].name
        is_closed = (parts[last].kind, parts[last].name) == (END, name)
        ends[start] = last if is_closed or name not in FOREIGN else start
        names[name] -= 1

    for index, token in enumerate(parts):
        if token.kind == START:
            while around and token.name in _ENDING.get(parts[around[-1]].name, ()):
                end(index - 1)
            ends[index] = index
            if token.name not in VOID:
                around.append(index)
                names[token.name] += 1
        elif token.kind == END and names[token.name]:
            while parts[around[-1]].name != token.name:
                end(index - 1)
            end(index)
    while around:
        end(len(parts) - 1)
    return ends


def _are_two_words(before: str, after: str) -> bool:
    """Whether words that touch are two, as "Home" and "News", "Stars" and "125"; not "micro" and "wave", "H" and "TML".

    The second begins with a capital, or one alone is a number; both have more than one character.
    """
    if not (before[-2:].strip() == before[-2:] and after[:2].strip() == after[:2] and len(before) > 1 < len(after)):
        return False
    end, start = before[-1], after[0]
    return f"{end}{start}".isalnum() and (start.isupper() or end.isdigit() != start.isdigit())
