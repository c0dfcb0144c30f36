"""The tags, comments and texts of HTML, with their places, after the tokenizer of the HTML standard (section 13.2.5).

The tokens follow each other without a gap, so that joined they are the HTML, character by character, whatever it is;
parsers that build a tree lose quotes, entities and white space, and cut off what is nested too deeply. What is inside
<svg> and <math>, which have other rules, is one token. There are no mistakes: as in a browser, a "<" that begins no tag
is text, and a tag or comment that never ends goes on to the end. It takes time in proportion to the length. It knows
nothing of what elements mean, besides which hold no tags.
"""

import re
from collections.abc import Iterator, Sequence
from html import unescape
from typing import NamedTuple

START, END, TEXT, OTHER = "start", "end", "text", "other"  # kinds of tokens; OTHER: comments, doctype, raw text
# Elements that hold no tags, and those whose tags are others, with what they are together
RAW = frozenset(("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "plaintext"))
FOREIGN = frozenset(("svg", "math"))

DEEPEST = 100  # elements in each other that have their partners in one line


_SPACE = r"\t\n\f\r "  # what HTML calls white space
_NAME = re.compile(rf"</?([A-Za-z][^{_SPACE}/>]*)")
_ATTRIBUTE = re.compile(rf"[{_SPACE}/]*([^{_SPACE}/>][^{_SPACE}/>=]*)(?:[{_SPACE}]*(=)[{_SPACE}]*)?")
_UNQUOTED = re.compile(rf"[^{_SPACE}>]*")
_TAG_END = re.compile(rf"[{_SPACE}/]*>")
_COMMENT = re.compile(r"<!--(?:-?>|.*?--!?>)", re.DOTALL)
_RAW_ENDS = {name: re.compile(rf"</{name}(?=[{_SPACE}/>])", re.IGNORECASE) for name in RAW}
_FOREIGN_TAGS = {name: re.compile(rf"<(/?){name}(?=[{_SPACE}/>])[^>]*>", re.IGNORECASE) for name in FOREIGN}
_SCRIPT = re.compile(rf"(<!--)|(-->)|(<script(?=[{_SPACE}/>]))|</script(?=[{_SPACE}/>])", re.IGNORECASE)


class Attribute(NamedTuple):
    """An attribute of a tag."""

    name: str  # in lower case
    start: int  # of its value in the HTML, quotes included
    stop: int
    value: str  # without quotes and entities


class Token(NamedTuple):
    """A part of HTML."""

    kind: str
    start: int
    stop: int
    name: str = ""  # of the element, in lower case; of raw text the one it is in
    attributes: tuple[Attribute, ...] = ()


def tokens(html: str) -> Iterator[Token]:
    """The tokens of `html`, in order and without a gap."""
    place = begun = 0  # begun: where the text that has not been yielded yet begins
    holding = RAW | FOREIGN
    while (place := html.find("<", place)) >= 0:
        token = _markup(html, place)
        if token is None:
            place += 1
            continue
        if begun < place:
            yield Token(TEXT, begun, place)
        place = begun = token.stop
        if token.kind == START and token.name in holding:
            end = place if token.name in FOREIGN and html[place - 2] == "/" else _raw_end(html, place, token.name)
            if token.name in FOREIGN and end in (None, place):  # such as <svg/>
                token = token._replace(kind=OTHER)
            if end is None:
                holding = holding - {token.name}  # those that follow may be inside it
            else:
                place = begun = end
        yield token
        if place > token.stop:
            yield Token(OTHER, token.stop, place, token.name)
    if begun < len(html):
        yield Token(TEXT, begun, len(html))


def _raw_end(html: str, place: int, name: str) -> int | None:
    """Where the text of the element ends that holds raw text from `place` on; None: a forgotten </svg> or </math>.

    Inside of <!-- in a script, </script> that follows <script> ends no more than that one (13.2.5.20 to 31).
    """
    if name == "plaintext":
        return len(html)
    if name in FOREIGN:
        depth = 1
        for tag in _FOREIGN_TAGS[name].finditer(html, place):
            depth += -1 if tag[1] else not tag[0].endswith("/>")
            if not depth:
                return tag.start()
        return None
    if name != "script":
        end = _RAW_ENDS[name].search(html, place)
        return end.start() if end else len(html)
    is_comment = is_inner = False
    while mark := _SCRIPT.search(html, place):
        place = mark.end()
        if mark[1]:  # <!--, whose dashes may be those of -->
            is_comment, place = True, mark.end() - 2
        elif mark[2]:
            is_comment = is_inner = False
        elif mark[3]:
            is_inner = is_comment
        elif not is_inner:
            return mark.start()
        else:
            is_inner = False
    return len(html)


def partners(line: Sequence[Token]) -> dict[int, int]:
    """The end tag of each start tag and the other way round, of those elements that lie wholly in the line.

    A tag without a partner leaves all elements around it without theirs, and so do elements nested too deeply.
    """
    together: dict[int, int] = {}
    around: list[int] = []
    for index, token in enumerate(line):
        if token.kind == START:
            around.append(index)
            if len(around) > DEEPEST:
                around.clear()
        elif token.kind == END:
            if around and line[around[-1]].name == token.name:
                start = around.pop()
                together[start], together[index] = index, start
            else:
                around.clear()
    return together


def _markup(html: str, place: int) -> Token | None:
    """What begins with the "<" at `place`; None where it is text."""
    if name := _NAME.match(html, place):
        return _tag(html, name)
    if html.startswith("<!--", place):
        comment = _COMMENT.match(html, place)
        return Token(OTHER, place, comment.end() if comment else len(html))
    if html.startswith(("<!", "<?", "</"), place) and place + 2 < len(html):
        end = html.find(">", place)
        return Token(OTHER, place, len(html) if end < 0 else end + 1)
    return None


def _tag(html: str, name: re.Match[str]) -> Token:
    """The tag that begins with `name`."""
    attributes = []
    place = name.end()
    while attribute := _ATTRIBUTE.match(html, place):
        start = stop = attribute.end()
        if attribute[2]:
            quote = html[start : start + 1]
            if quote in ('"', "'"):
                stop = html.find(quote, start + 1) + 1
                if not stop:
                    return Token(OTHER, name.start(), len(html))
            else:
                unquoted = _UNQUOTED.match(html, start)
                assert unquoted
                stop = unquoted.end()
            value = html[start + 1 : stop - 1] if quote in ('"', "'") else html[start:stop]
            attributes.append(Attribute(attribute[1].lower(), start, stop, unescape(value)))
        place = stop
    end = _TAG_END.match(html, place)
    if end is None:
        return Token(OTHER, name.start(), len(html))
    kind = END if html[name.start() + 1] == "/" else START
    return Token(kind, name.start(), end.end(), name[1].lower(), tuple(attributes))
