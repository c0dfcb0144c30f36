"""The form of a text, such as its capitals or its tokens: measured in reading, and compared where texts must agree.

A line has marks of its form. Two texts disagree in a mark that SUSPICIOUS or more of the lines of one have (of short
lines WORD_LIST), and of the other at most a TIMES-th of that share, if that is no chance: ENOUGH of its lines would
have it. Only lines that could have a mark count, so that Chinese text lacks no capitals, and a list of words no space
before its periods.

Between training, validation and test text of the same corpus and side no two disagree, and neither do 40,000 parts of
them, from a line to 1,000, with the training text: Multi30k raw and tokenized, WMT news, IWSLT 2014, Hansards, help of
LibreOffice, historical spelling in 15 corpora, inflection in 10 languages (SIGMORPHON 2016), XL-WA in 11. In a corpus
with capitals 98% or more of the lines have one (of single words 2% to 27%), in others none; tokenized are 99% or more
of those with a period or the like, or 3% or less. In lists of words 99% or more of the
lines have less than four words, in the others 4% or less.

It knows lines; it reads no files and prints nothing.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, NamedTuple

from nmt.errors import counted

SUSPICIOUS = 0.2  # of the lines
TIMES = 10
ENOUGH = 20  # lines
WORD_LIST = 0.95  # of the lines, with fewer words than BLEU counts together
FORMS = "forms"  # in what a model file says of its training: the counts of both sides

_SEGMENTED = re.compile("\N{LOWER ONE EIGHTH BLOCK}|@@(?:\\s|$)")  # marks of sentencepiece and subword-nmt
_TOKENIZED = re.compile(r"\S [.,](?:\s|$)|&(?:apos|quot|amp|lt|gt|#\d+);|@-@")  # Moses: "word ." and its escapes
_UNTOKENIZED = re.compile(r"\w(?:[.,!?](?:\s|$)|[。、,!?])")
_NAME = r"(?:quot|amp|lt|gt|nbsp|#\d+|#[xX][0-9a-fA-F]+);"
_ESCAPED = re.compile(rf"\w&(?:{_NAME}|apos;\w)|&{_NAME}\w")
# Characters that nobody sees: all, as a class of the package `regex` has them, such as soft hyphens and joiners; and
# those of them that mark a direction, which Unicode calls Bidi_Control
INVISIBLE = r"\p{Default_Ignorable_Code_Point}"
DIRECTIONS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
HAN_OR_KANA = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# The letters of scripts without spaces: Thai to Tibetan and Burmese, Khmer, kana, Han
UNSPACED = f"\u0e00-\u109f\u1780-\u17ff{HAN_OR_KANA}"
_UNSPACED = re.compile(f"[\u30a0-\u30ff]+|[{UNSPACED}]")  # a whole word of katakana counts as one letter
_SPACES = re.compile(rf"(?<=[{UNSPACED}])\s+(?=[{UNSPACED}])")  # between two of these
_HANGUL = re.compile("[\uac00-\ud7a3]")  # Korean, which has spaces, also between words in Han
_LETTERS = re.compile(r"[^\W\d_]")
_MOST = 10  # of these to a space, in a line that is cut into words
_FEWEST = 4  # of these in a line: a shorter one may be a single word


class Mark(NamedTuple):
    """What shows how a line is written."""

    among: tuple[str, ...]  # counts of lines that could have it
    what: str  # after "12% of the lines of FILE "
    advice: str
    alone: float = inf  # share of the lines from which a text is odd by itself
    least: float = SUSPICIOUS  # share of the lines from which it is compared with another
    of_words: bool = False  # how many a line has: no form where spaces part none, or of a translation


_TEXT = ("text",)
MARKS = {
    "cased": Mark(("lettered",), "have capital letters", "give both in the same case"),
    "capitals": Mark(("lettered",), "are in capitals only", "give both in the usual case"),
    "tokenized": Mark(
        ("tokenized", "untokenized"),
        "look tokenized (such as 'word .', '&apos;' or '@-@')",
        "give both tokenized alike, or neither",
    ),
    "segmented": Mark(
        _TEXT,
        "look split into subwords (marks such as '\N{LOWER ONE EIGHTH BLOCK}' or '@@')",
        "join the pieces, or cut both alike",
    ),
    "spaced": Mark(
        ("spaced", "unspaced"),
        "have spaces between words of a script without spaces",
        "give both cut into words, or neither",
    ),
    "brief": Mark(
        ("brief", "long"),
        "have fewer than four words",
        "give a model such lines as it is trained on: sentences, or words with all their tags, or single words, as "
        "tr -s ' ' '\\n' < FILE > NEW writes them",
        least=WORD_LIST,
        of_words=True,
    ),
    "tabbed": Mark(
        _TEXT,
        "have a tab",
        "as in a table with both languages, and what a tab separates is one text to a model; give one of the columns, "
        "as cut -f1 FILE > NEW writes it",
        alone=0.5,
    ),
    "barred": Mark(
        _TEXT, "have |||", "with which aligners and n-best lists separate texts; give only one of these", alone=0.5
    ),
    "unknown": Mark(
        _TEXT, "have <unk>", "which stands for words that a vocabulary lacked; give the text itself", alone=0.001
    ),
    "escaped": Mark(
        _TEXT,
        "have HTML entities such as &quot; in words",
        "which belong only in text that Moses has tokenized, as words of their own; this puts characters in their "
        # joined by single spaces, for an entity may stand for a line end
        "place: python3 -X utf8 -c \"import html; [print(' '.join(html.unescape(line).split())) "
        "for line in open(0, newline='\\n')]\" < FILE > NEW",
        alone=0.01,
    ),
}
_OTHERS = ("lines", "blank", "text", "lettered", "untokenized", "unspaced", "long")


@dataclass
class TextForm:
    """What was counted in a text: lines by their marks, and of each mark the number of the first.

    Besides MARKS: `blank` lines and `text`; lines that are `lettered` in two cases, `untokenized`, `unspaced` (mostly
    in a script without spaces, of which they have none), `long` (of others, with four words or more between spaces).
    """

    name: str = "the text"
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys((*_OTHERS, *MARKS), 0))
    first: dict[str, int] = field(default_factory=dict)

    def add(self, line: str) -> None:
        """Count the next line."""
        counts, first = self.counts, self.first
        counts["lines"] += 1
        for mark in _marks(line):
            counts[mark] += 1
            if mark not in first:
                first[mark] = counts["lines"]

    def share(self, mark: str) -> float:
        """Of the lines that could have a mark, those that have it, from 0 to 1."""
        return self.counts[mark] / max(self.among(mark), 1)

    def described(self, mark: str) -> str:
        """How many lines have a mark, and which is the first."""
        first = f" (the first is line {self.first[mark]:,})" if mark in self.first else ""
        lines = f"{self.counts[mark]:,} of {counted(self.among(mark), 'line')} ({self.share(mark):.1%})"
        return f"{self.name}: {lines} {MARKS[mark].what}{first}"

    @property
    def is_word_list(self) -> bool:
        """Whether the lines are words rather than sentences."""
        return self.share("brief") >= WORD_LIST and self.share("unspaced") < SUSPICIOUS

    @property
    def has_no_spaces(self) -> bool:
        """Whether its words have no spaces between them, as in Chinese that is not cut."""
        return self.share("unspaced") >= SUSPICIOUS > self.share("spaced")

    def among(self, mark: str) -> int:
        """How many lines could have a mark."""
        return sum(self.counts[name] for name in (MARKS[mark].among if mark in MARKS else _TEXT))

    def lowercased(self) -> "TextForm":
        """The form of the text in lower case."""
        return replace(self, counts={**self.counts, "cased": 0, "capitals": 0})

    def without_case(self) -> "TextForm":
        """The form of a text whose case does not matter."""
        return replace(self, counts={**self.counts, "lettered": 0, "cased": 0, "capitals": 0})

    def oddities(self) -> list[str]:
        """A complete message for each mark that no text should have."""
        odd = [mark for mark in MARKS if self.counts[mark] and self.share(mark) >= MARKS[mark].alone]
        return [f"{self.described(mark)}, {MARKS[mark].advice}" for mark in odd]


def form_of(lines: Iterable[str], *, name: str) -> TextForm:
    """The form of lines that messages call `name`."""
    form = TextForm(name)
    for line in lines:
        form.add(line)
    return form


def together(forms: Sequence[TextForm], *, name: str) -> TextForm:
    """The form of a text that is one or several, of which the first line with a mark is not known."""
    counts = {mark: sum(form.counts[mark] for form in forms) for mark in TextForm().counts}
    return TextForm(name, counts, forms[0].first if len(forms) == 1 else {})


def source_form(training: Mapping[str, Any]) -> TextForm | None:
    """The form of the source text that a model was trained on, by what its file says of its training, if it does."""
    forms = training.get(FORMS)
    counts = forms[0] if isinstance(forms, list) and forms else None
    if not isinstance(counts, dict) or not all(type(count) is int for count in counts.values()):
        return None
    return TextForm("the model's training text", {**TextForm().counts, **counts})


def disagreements(one: TextForm, other: TextForm, *, same_sentences: bool = False) -> dict[str, str]:
    """A complete message for each mark in which two texts disagree; translations of the same sentences need fewer
    lines for it than others, and may differ in their words."""
    messages = {}
    enough = min(ENOUGH, SUSPICIOUS * other.counts["lines"]) if same_sentences else ENOUGH
    counts_words = not (same_sentences or one.has_no_spaces or other.has_no_spaces)
    for mark in (mark for mark in MARKS if counts_words or not MARKS[mark].of_words):
        having, lacking = (one, other) if one.share(mark) >= other.share(mark) else (other, one)
        share, rest = having.share(mark), lacking.share(mark)
        expected = min(having.counts[mark], share * lacking.among(mark))
        if share >= MARKS[mark].least and rest * TIMES <= share and expected >= enough:
            messages[mark] = f"{having.described(mark)}, but {rest:.1%} of {lacking.name}; {MARKS[mark].advice}"
    return messages


def _marks(line: str) -> list[str]:
    """The marks of a line; most lines need no regular expression to show them."""
    if not line or line.isspace():
        return ["blank"]
    marks = ["text"]
    lower = line.lower()
    if lower != line.upper():
        marks.append("lettered")
        if line != lower:
            marks.append("cased")
        if line.isupper():
            marks.append("capitals")
    if (" ." in line or " ," in line or "&" in line or "@-@" in line) and _TOKENIZED.search(line):
        marks.append("tokenized")
    elif _UNTOKENIZED.search(line, len(line) - 2) or _UNTOKENIZED.search(line):  # most lines end so
        marks.append("untokenized")
    if ("\N{LOWER ONE EIGHTH BLOCK}" in line or "@@" in line) and _SEGMENTED.search(line):
        marks.append("segmented")
    if "\t" in line:
        marks.append("tabbed")
    if "<unk>" in line:
        marks.append("unknown")
    if "|||" in line:
        marks.append("barred")
    if "&" in line and _ESCAPED.search(line):
        marks.append("escaped")
    if not line.isascii() and (words := _UNSPACED.findall(line)) and not _HANGUL.search(line):
        is_sentence = len(words) >= _FEWEST and 3 * sum(map(len, words)) > len(_LETTERS.findall(line))
        if is_sentence:  # mostly in such scripts, of which a letter says as much as three
            marks.append("spaced" if len(_SPACES.findall(line)) * _MOST > len(words) else "unspaced")
    return marks if "unspaced" in marks else [*marks, "brief" if line.count(" ") < 3 else "long"]
