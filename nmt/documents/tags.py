"""The tags, comments and texts of HTML, with their places, after the tokenizer of the HTML standard (section 13.2.5).

The tokens follow each other without a gap, so that joined they are the HTML, character by character, whatever it is;
parsers that build a tree lose quotes, entities and white space, and cut off what is nested too deeply. There are no
mistakes: as in a browser, a "<" that begins no tag is text, and a tag or comment that never ends goes on to the end. It
takes time in proportion to the length. It knows nothing of what elements mean, besides which hold no tags.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from html import unescape
from typing import NamedTuple

import regex

START, END, TEXT, OTHER = "start", "end", "text", "other"  # kinds of tokens; OTHER: comments, doctype, raw text
# Elements that hold no tags; those that hold the tags of another language, which may close themselves
RAW = frozenset(("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"))
FOREIGN = frozenset(("svg", "math"))

DEEPEST = 100  # elements in each other that have their partners in one line

_SPACE = r"\t\n\f\r "  # what HTML calls white space
_KEY, _IS = rf"[^{_SPACE}/>][^{_SPACE}/>=]*+", rf"[{_SPACE}]*+=[{_SPACE}]*+"
_VALUE = rf"\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|[^{_SPACE}>]*+"
_ATTRIBUTE = regex.compile(rf"({_KEY})(?:{_IS}({_VALUE}))?")
_MARKUP = regex.compile(
    r"<!--(?:-?>|.*?--!?>|.*)|"
    rf"<(?P<slash>/?)(?P<name>[A-Za-z][^{_SPACE}/>]*+)"
    rf"(?P<inside>(?:[{_SPACE}/]*+{_KEY}(?:{_IS}(?:{_VALUE}))?)*+[{_SPACE}/]*+)(?P<end>>?)|"
    r"<[!?/](?!\Z)[^>]*+>?",
    regex.DOTALL,
)
_RAW_ENDS = {name: re.compile(rf"</{name}(?=[{_SPACE}/>])", re.IGNORECASE) for name in RAW}
_SCRIPT = re.compile(rf"(<!--)|(-->)|(<script(?=[{_SPACE}/>]))|</script(?=[{_SPACE}/>])", re.IGNORECASE)


class Attribute(NamedTuple):
    """An attribute of a tag."""

    name: str  # in lower case
    begin: int  # in the HTML
    start: int  # of its value, quotes included; stop is the end of both
    stop: int
    value: str  # without quotes and entities


class Token(NamedTuple):
    """A part of HTML."""

    kind: str
    start: int
    stop: int
    name: str = ""  # of the element, in lower case; of raw text the one it is in
    attributes: tuple[Attribute, ...] = ()


def tokens(html: str) -> list[Token]:
    """The tokens of `html`, in order and without a gap."""
    return with_texts(_markup(html), html)


def with_texts(found: Iterable[Token], source: str) -> list[Token]:
    """The tokens that were found in a source, and what is between them as texts."""
    whole: list[Token] = []
    place = 0
    for token in found:
        if place < token.start:
            whole.append(Token(TEXT, place, token.start))
        whole.append(token)
        place = token.stop
    return [*whole, Token(TEXT, place, len(source))] if place < len(source) else whole


def _markup(html: str) -> Iterator[Token]:
    """What is no text, in order."""
    place = depth = 0  # depth: of elements of another language
    while match := _MARKUP.search(html, place):
        place, name = match.end(), (match["name"] or "").lower() if match["end"] else ""
        closes_itself = match[0].endswith("/>") and (name in FOREIGN or depth > 0)
        if not name or (closes_itself and name in RAW | FOREIGN):
            yield Token(OTHER, match.start(), place, name if name in FOREIGN else "")
            continue
        kind = END if match["slash"] else START
        if name in FOREIGN:
            depth = max(depth + (1 if kind == START else -1), 0)
        attributes = map(_attribute, _ATTRIBUTE.finditer(html, *match.span("inside")))
        yield Token(kind, match.start(), place, name, tuple(attributes))
        if kind == START and name in RAW and place < (end := _raw_end(html, place, name)):
            yield Token(OTHER, place, end, name)
            place = end


def _attribute(match: "regex.Match[str]") -> Attribute:
    value = match[2] or ""
    is_quoted = value.startswith(("'", '"'))
    value = unescape(value[1:-1] if is_quoted else value)
    return Attribute(match[1].lower(), match.start(), match.start(2), match.end(), value)


def _raw_end(html: str, place: int, name: str) -> int:
    """Where the text of the element ends that holds raw text from `place` on.

    Inside of <!-- in a script, </script> that follows <script> ends no more than that one (13.2.5.20 to 31).
    """
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


def with_attribute(html: str, element: str, name: str, value: str) -> str:
    """The HTML with this value of an attribute in the first start tag of an element, if there is one."""
    tag = next((token for token in _markup(html) if (token.kind, token.name) == (START, element)), None)
    if tag is None:
        return html
    start, stop = next(((one.begin, one.stop) for one in tag.attributes if one.name == name), (tag.stop - 1,) * 2)
    return f'{html[:start]}{" " if start == stop else ""}{name}="{value}"{html[stop:]}'


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
