"""HTML: which of it is text to translate, and the HTML with the translations in its place.

Everything else stays as it is, character by character. Block-level tags delimit texts; inline tags stand in them as
marks (see `inline`). A tag without its partner in the same text, as in broken HTML or where a link encloses paragraphs,
delimits texts too, so what was well nested stays so, and what was not is broken in the same places.

It knows elements and attributes by their names, by the rendering section of the HTML standard; no style sheets.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from html import unescape
from itertools import accumulate
from typing import NamedTuple

from nmt.decoding.text.marks import Mark, written
from nmt.decoding.writing import Translation
from nmt.documents.inline import Line
from nmt.documents.tags import END, OTHER, RAW, START, TEXT, Token, names, partners, tokens
from nmt.documents.words import attention_links

# Elements whose start tags end an open paragraph (HTML standard, 13.2.6.4.7)
ENDING_PARAGRAPHS = names(
    """address article aside blockquote center dd details dialog dir div dl dt fieldset figcaption figure footer form
    h1 h2 h3 h4 h5 h6 header hgroup hr li listing main menu nav ol p plaintext pre search section summary table ul
    xmp"""
)
# Elements that are not part of a line of text, so that none goes on behind their tags
BLOCKS = ENDING_PARAGRAPHS | names(
    """audio base body button canvas caption col colgroup frame frameset head html iframe legend link meta noembed
    noframes noscript object optgroup option param select source tbody td template textarea tfoot th thead title tr
    track video"""
)
VOID = names("area base br col embed frame hr img input link meta param source track wbr")
# Elements whose content stays as it is, as in the translators of browsers; pre, too, is code more often than text
UNTRANSLATED = names("code iframe kbd math noembed noframes plaintext pre rp rt samp script style svg textarea var xmp")
ATTRIBUTES = ("alt", "aria-label", "placeholder", "title")  # that are translated
KINDS = {"input": "type", "meta": "name"}  # attributes that say what kind of element it is
# Attributes that are translated in some elements, and in which kind of these
OTHER_ATTRIBUTES = {
    *((name, "label", None) for name in ("optgroup", "option", "track")),
    *(("input", "value", kind) for kind in ("button", "reset", "submit")),
    ("meta", "content", "description"),
}
SEPARATING = (UNTRANSLATED | {"br", "embed", "img", "input"}) - {"script", "style"}  # words on both sides are two
SEPARATORS = ("|", "/", "·", "•", "›", "»", "→")  # of links in a menu
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")  # any of their end tags ends any of them
# Start tags that end open elements of these names, whose end tags may be left out (HTML standard, 13.1.2.4)
_CELLS = ("caption", "colgroup", "td", "th")
_ROWS = (*_CELLS, "tbody", "tfoot", "thead", "tr")
ENDED = {
    "caption": _ROWS,
    "col": tuple(name for name in _ROWS if name != "colgroup"),
    "colgroup": _ROWS,
    "dd": ("dd", "dt"),
    "dt": ("dd", "dt"),
    "hr": ("optgroup", "option"),
    "li": ("li",),
    "optgroup": ("optgroup", "option"),
    "option": ("option",),
    "rb": ("rb", "rp", "rt", "rtc"),
    "rp": ("rb", "rp", "rt"),
    "rt": ("rb", "rp", "rt"),
    "rtc": ("rb", "rp", "rt", "rtc"),
    "tbody": _ROWS,
    "td": _CELLS,
    "tfoot": _ROWS,
    "th": _CELLS,
    "thead": _ROWS,
    "tr": (*_CELLS, "tr"),
    **dict.fromkeys(HEADINGS, HEADINGS),
}
# What may stand in <head>; all else ends it, as words do (13.2.6.4.4)
IN_HEAD = names("base basefont bgsound link meta noframes noscript script style template title")
_ADDRESS = re.compile(r"@|://|\bwww\.", re.IGNORECASE)
_SPACES = ("&nbsp;", "&#160;", "&#xa0;", "&#xA0;")


class _Value(NamedTuple):
    """The value of an attribute, which is translated."""

    start: int
    stop: int
    line: int  # its number among the lines


class _Text(NamedTuple):
    """A text between tags that delimit it."""

    line: int
    marks: list[Mark]
    tags: list[tuple[Sequence[Token], Sequence[Token]]]  # what each mark begins and ends with


class _Flow(NamedTuple):
    """What stands between two block-level tags."""

    tokens: list[Token]
    partners: dict[int, int]
    words: list[int]  # how many of the tokens before each one are texts with words

    def has_words(self, first: int, last: int) -> bool:
        """Whether any of the tokens from `first` to `last` has."""
        return self.words[last + 1] > self.words[first]


class HtmlDocument:
    """HTML with its texts: `lines` are to be translated."""

    def __init__(self, html: str) -> None:
        self.html = html
        self.lines: list[str] = []
        self.is_marked = False  # whether word alignments are needed to put tags back
        self._values: dict[int, list[_Value]] = {}  # by the beginnings of their tags
        self._parts: list[Token | _Text] = []
        elements = _Elements()
        flow: list[Token] = []
        for token in tokens(html):
            if self._has_words(token):
                elements.end_head()
            translates = elements.translates
            if token.kind in (START, END):
                translates = elements.after(token)
                self._read_attributes(token, translates=translates)
                if token.name in BLOCKS and not token.foreign:
                    self._read_flow(flow)
                    self._parts.append(token)
                    flow = []
                    continue
                if token.name in RAW or (token.kind == START and (token.closed or token.name in VOID)):
                    token = token._replace(kind=OTHER)
            elif token.kind == OTHER and token.name == "title" and translates:
                token = token._replace(kind=TEXT)
            elif token.kind == TEXT and not translates:
                token = token._replace(kind=OTHER, name="code")
            flow.append(token)
        self._read_flow(flow)

    def written(self, translations: Sequence[Translation]) -> str:
        """The HTML with a translation for each of the lines."""
        pieces = []
        for part in self._parts:
            if isinstance(part, _Text):
                line, translation = self.lines[part.line], translations[part.line]
                tags = [
                    (self._source(before, translations), self._source(after, translations))
                    for before, after in part.tags
                ]
                links = attention_links(translation, line, translation.text) if part.marks else ()
                pieces.append(written(line, part.marks, tags, translation.text, links, escape=_escaped))
            else:
                pieces.append(self._source([part], translations))
        return "".join(pieces)

    def _source(self, parts: Iterable[Token], translations: Sequence[Translation]) -> str:
        """The source of tokens, with the translations of their attributes."""
        pieces = []
        for token in parts:
            at = token.start
            # A token without a character, for a forgotten </svg>, begins where the next one does
            for start, stop, line in self._values.get(token.start, ()) if token.start < token.stop else ():
                quote = "'" if self.html[start] == "'" else '"'
                text = _escaped(translations[line].text).replace(quote, "&#39;" if quote == "'" else "&quot;")
                pieces += [self.html[at:start], quote, text, quote]
                at = stop
            pieces.append(self.html[at : token.stop])
        return "".join(pieces)

    def _read_attributes(self, token: Token, *, translates: bool) -> None:
        if token.kind != START or not translates or token.name in ("link", "style"):
            return
        kind = {one.name: one.value.lower() for one in token.attributes}.get(KINDS.get(token.name, ""))
        values = []
        for attribute in token.attributes:
            is_read = attribute.name in ATTRIBUTES or (token.name, attribute.name, kind) in OTHER_ATTRIBUTES
            if is_read and _has_letters(attribute.value):
                values.append(_Value(attribute.start, attribute.stop, len(self.lines)))
                self.lines.append(" ".join(_without_hyphens(attribute.value).split()))
        if values:
            self._values[token.start] = values

    def _read_flow(self, parts: Sequence[Token]) -> None:
        """Read what stands between two block-level tags."""
        begun = 0
        for index in range(1, len(parts)):
            if self._begins_text(parts, index):
                self._read_part(parts[begun:index])
                begun = index
        self._read_part(parts[begun:])

    def _begins_text(self, parts: Sequence[Token], index: int) -> bool:
        """Whether a text begins inside a flow: at the second of two line breaks, which make a paragraph, and at a link
        right behind another one, or what separates the two, as in a menu."""
        token, before = parts[index], parts[index - 1]
        if token.name == "br":
            blank = before.kind == TEXT and not self._has_words(before)
            return parts[max(index - 1 - blank, 0)].name == "br"
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
        before, after = (self._decoded(part) if part.kind == TEXT else "" for part in (parts[first], parts[last]))
        ended, begun = ({part.name for part in side} for side in (parts[first + 1 : index], parts[index:last]))
        if "a" in ended & begun:
            return _has_letters(before) and _has_letters(after)
        return _are_two_words(before, after) and not (ended | begun) & {"sub", "sup"}

    def _separates(self, parts: Sequence[Token], index: int) -> bool:
        """Whether it is a sign between two links."""
        around = [(part.kind, part.name) for part in parts[max(index - 1, 0) : index + 2]]
        return around == [(END, "a"), (TEXT, ""), (START, "a")] and self._decoded(parts[index]).strip() in SEPARATORS

    def _read_part(self, parts: Sequence[Token]) -> None:
        flow = _Flow(list(parts), partners(parts), [])
        flow.words[:] = accumulate((self._has_words(token) for token in parts), initial=0)
        start = 0
        for index, token in enumerate(parts):
            if token.kind in (START, END) and index not in flow.partners:
                self._read_text(flow, start, index)
                self._parts.append(token)
                start = index + 1
        self._read_text(flow, start, len(parts))

    def _read_text(self, flow: _Flow, start: int, stop: int) -> None:
        """Read the tokens [start, stop) of a flow, in which every tag has its partner, as one text.

        What stands at its edges stays there: white space, comments, tags around all of it.
        """
        ending: list[Token] = []
        while start < stop:
            first, last = flow.tokens[start], flow.tokens[stop - 1]
            if first.kind == OTHER or (first.kind == START and not flow.has_words(start, flow.partners[start])):
                following = flow.partners.get(start, start) + 1
                self._parts += flow.tokens[start:following]
                start = following
            elif last.kind == OTHER or (last.kind == END and not flow.has_words(flow.partners[stop - 1], stop - 1)):
                before = flow.partners.get(stop - 1, stop - 1)
                ending += reversed(flow.tokens[before:stop])
                stop = before
            elif first.kind == TEXT and (cut := self._leading_space(first)) > first.start:
                self._parts.append(first._replace(stop=cut))
                flow.tokens[start] = first._replace(start=cut)
                start += cut == first.stop
            elif last.kind == TEXT and (cut := self._trailing_space(last)) < last.stop:
                ending.append(last._replace(start=cut))
                flow.tokens[stop - 1] = last._replace(stop=cut)
                stop -= cut == last.start
            elif first.kind == START and flow.partners[start] == stop - 1:
                self._parts.append(first)
                ending.append(last)
                start, stop = start + 1, stop - 1
            else:
                break
        if any(_has_letters(self._decoded(token)) for token in flow.tokens[start:stop] if token.kind == TEXT):
            self._parts.append(self._text(flow, start, stop))
        else:
            self._parts += flow.tokens[start:stop]
        self._parts += reversed(ending)

    def _text(self, flow: _Flow, start: int, stop: int) -> _Text:
        line = Line()
        tags: list[tuple[Sequence[Token], Sequence[Token]]] = []
        enclosing: list[int] = []  # the numbers of the open marks
        index = start
        while index < stop:
            token = flow.tokens[index]
            last = flow.partners[index] if token.kind == START else index
            if token.kind == TEXT:
                line.write(self._decoded(token))
            elif token.kind == END:
                line.close()
                number = enclosing.pop()
                tags[number] = (tags[number][0], [token])
            elif flow.has_words(index, last) and not self._is_note(flow, index, last):
                line.open()
                enclosing.append(len(tags))
                tags.append(([token], []))
                last = index
            else:
                last = self._end_of_others(flow, last, stop)
                together = flow.tokens[index : last + 1]
                inside = {one.name for one in together}
                spaced = any(one.kind == TEXT and not self._has_words(one) for one in together)
                line.put(separates=spaced or not inside.isdisjoint(SEPARATING), breaks=spaced or "br" in inside)
                tags.append((together, []))
            index = last + 1
        line.end()
        self.is_marked = self.is_marked or bool(line.marks)
        self.lines.append(line.text)
        return _Text(len(self.lines) - 1, line.marks, tags)

    def _end_of_others(self, flow: _Flow, last: int, stop: int) -> int:
        """The last token without words right behind a token without words: they stay together, in their order.

        So do the tags of a script and what is between them, where a word of the translation would break the page.
        """
        while last + 1 < stop and flow.tokens[last + 1].kind in (OTHER, START):
            following = flow.partners.get(last + 1, last + 1)
            if flow.has_words(last + 1, following) and not self._is_note(flow, last + 1, following):
                break
            last = following
        return last

    def _is_note(self, flow: _Flow, first: int, last: int) -> bool:
        """Whether the tokens are an index such as the 1 of a footnote, which is no part of the word before it.

        Also in elements that have nothing else, such as a link. What is below the line belongs to the word, as in CO2.
        """
        while flow.tokens[first].name != "sup" and first + 1 < last and flow.partners.get(first + 1) == last - 1:
            first, last = first + 1, last - 1
        if flow.tokens[first].name != "sup":
            return False
        if any(_has_letters(self._decoded(token)) for token in flow.tokens[first:last] if token.kind == TEXT):
            return False
        stop = flow.tokens[last].stop
        return not self.html[stop : stop + 1].isalnum()

    def _has_words(self, token: Token) -> bool:
        return token.kind == TEXT and self._leading_space(token) < token.stop

    def _leading_space(self, token: Token) -> int:
        """Where the white space at the beginning of a text ends."""
        place = token.start
        while place < token.stop:
            if _is_space(self.html[place]):
                place += 1
            elif self.html.startswith(_SPACES, place):
                place += len(_SPACES[0])
            else:
                break
        return min(place, token.stop)

    def _trailing_space(self, token: Token) -> int:
        """Where the white space at the end of a text begins."""
        place = token.stop
        while place > token.start:
            if _is_space(self.html[place - 1]):
                place -= 1
            elif self.html.endswith(_SPACES, token.start, place):
                place -= len(_SPACES[0])
            else:
                break
        return place

    def _decoded(self, token: Token) -> str:
        return _without_hyphens(unescape(self.html[token.start : token.stop]))


class _Elements:
    """The open elements, as far as it matters for whether text is to be translated."""

    def __init__(self) -> None:
        self._open: list[tuple[str, bool]] = []
        self._names: Counter[str] = Counter()

    @property
    def translates(self) -> bool:
        """Whether the text after the last tag is to be translated."""
        return self._open[-1][1] if self._open else True

    def after(self, token: Token) -> bool:
        """Read a tag; returns whether its attributes are to be translated."""
        if token.kind == END:
            together = HEADINGS if token.name in HEADINGS else (token.name,)
            if any(self._names[name] for name in together):
                while self._pop() not in together:
                    pass
            return False
        if token.name not in IN_HEAD:
            self.end_head()
        ended = ENDED.get(token.name, ())
        if self._open and self._open[-1][0] == "p":
            around = self._open[-2][0] if len(self._open) > 1 else ""
            if token.name in ENDING_PARAGRAPHS or around in ended:  # as </p> is left out in front of the next cell
                self._pop()
        while self._open and self._open[-1][0] in ended:
            self._pop()
        translates = self.translates
        for attribute in token.attributes:
            if attribute.name == "translate":
                translates = {"no": False, "yes": True, "": True}.get(attribute.value.lower(), translates)
            elif attribute.name == "class" and "notranslate" in attribute.value.split():
                translates = False
        if token.name not in VOID and not token.closed:
            self._open.append((token.name, translates and token.name not in UNTRANSLATED))
            self._names[token.name] += 1
        return translates

    def end_head(self) -> None:
        """End <head> where its end tag was left out."""
        if self._open and self._open[-1][0] == "head":
            self._pop()

    def _pop(self) -> str:
        name, _ = self._open.pop()
        self._names[name] -= 1
        return name


def _without_hyphens(text: str) -> str:
    """The text without soft hyphens, which vocabularies lack, and which say where words of another language break."""
    return text.replace("\u00ad", "")


def _is_space(character: str) -> bool:
    """Whether nothing is to be seen of it: white space, the byte order mark, and a place for a line break."""
    return character.isspace() or character in "\ufeff\u200b"


def _has_letters(text: str) -> bool:
    """Whether there is something to translate; addresses of the web and of mail are not."""
    return any(any(map(str.isalpha, word)) for word in text.split() if not _ADDRESS.search(word))


def _are_two_words(before: str, after: str) -> bool:
    """Whether words that touch are two, as "Home" and "News", "Stars" and "125"; not "micro" and "wave", "H" and "TML".

    The second begins with a capital, or one alone is a number; both have more than one character.
    """
    if not (before[-2:].strip() == before[-2:] and after[:2].strip() == after[:2] and len(before) > 1 < len(after)):
        return False
    end, start = before[-1], after[0]
    return f"{end}{start}".isalnum() and (start.isupper() or end.isdigit() != start.isdigit())


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
