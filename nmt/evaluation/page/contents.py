"""What the report says: the figures of its tables, and the data from which the browser makes the list of sentences.

It knows the outcome of a comparison, and attention that is packed already; it knows no models, no files and no HTML.
"""

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nmt.errors import counted
from nmt.evaluation import sentences
from nmt.evaluation.comparison import Comparison
from nmt.evaluation.metrics import METRICS, Counted
from nmt.evaluation.sentences import Share, Span
from nmt.symbols import END, PIECES
from nmt.text_form import form_of

if TYPE_CHECKING:
    import numpy.typing as npt

LISTED = 10_000  # sentences that the list has, the first ones
LONGEST_WORD = 40  # characters of a rare word
MOST_WORDS, MOST_CHARACTERS = 200, 2000  # of a text that are shown
LENGTHS = 6  # groups of sentences of similar length
FREQUENCIES = (0, 1, 2, 5, 10, 100, 1000)  # where the groups of rare words begin

Attention = Mapping[str, Sequence[str | None]]
"""For systems with a model, by name, the `packed` weights of each translation, or None."""

_ZEROS = re.compile(rb"\0{1,255}")
_SPACE = re.compile(r"\s")
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")  # control characters, halves of surrogate pairs, …


class Row(NamedTuple):
    """A line of a table: a value for each system, and one for the references; None where there is none."""

    title: str
    about: str
    values: list[float | None]
    reference: float | None


class Group(NamedTuple):
    """Sentences that are alike."""

    label: str
    indices: list[int]


class Grouping(NamedTuple):
    """All sentences in groups."""

    title: str
    about: str
    unit: str  # what the labels count
    groups: list[Group]


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What the template needs."""

    comparison: Comparison
    letters: list[str]  # of the systems
    groupings: list[Grouping]
    scored: dict[str, list[Counted]]  # by metric, the first two, for each system
    habits: list[Row]
    notes: list[str]
    data: dict[str, Any]  # for script.js


def contents(
    comparison: Comparison, *, attention: Attention | None = None, training: Iterable[str] | None = None
) -> Contents:
    """The report of a comparison.

    `training`: lines of the target language in which the words of the references are counted, instead of in the
    references themselves.
    """
    first, source = comparison.references[0], comparison.source
    references = [sentences.words(line) for line in first]
    written = [[sentences.words(line) for line in candidate.hypotheses] for candidate in comparison.systems]
    every = chain.from_iterable(chain(references, *written))
    frequencies = sentences.frequencies(first if training is None else training, every)
    is_list = form_of(first, name="references").is_word_list
    unit, about = ("character", "") if is_list else ("word", "; punctuation is not counted")
    side, measured = ("reference", first) if source is None else ("source", source)
    words = _Words(
        references=references,
        written=written,
        frequencies=frequencies,
        in_training=training is not None,
        rarest=[sentences.rarest(line, frequencies) for line in references],
        side=side,
        unit=unit,
        lengths=[len(line if is_list else sentences.words(line)) for line in measured],
    )
    text = "references" if training is None else "training text"
    groupings = [
        Grouping(f"By {side} length", f"{unit.title()}s of the {side}{about}.", f"{unit}s", by_length(words.lengths)),
        Grouping(
            "By the rarest word of the reference",
            f"How often the rarest word of the reference occurs in the {text}; case is ignored.",
            "occurrences",
            by_frequency([None if word is None else word[1] for word in words.rarest]),
        ),
    ]
    scored, bleu = {name: comparison.counted(name) for name in [*comparison.measures][:2]}, comparison.counted("bleu")
    return Contents(
        comparison=comparison,
        letters=[letter(index) for index in range(len(comparison.systems))],
        groupings=groupings,
        scored=scored,
        habits=_habits(words, comparison, bleu),
        notes=_notes(comparison, attention or {}),
        data=_data(words, comparison, scored, bleu, groupings, attention or {}),
    )


def letter(index: int) -> str:
    """What stands for a system where its name is too long: A, B, …, Z, then 27, 28, …"""
    return chr(ord("A") + index) if index < 26 else str(index + 1)


@dataclass(frozen=True, kw_only=True)
class _Words:
    """The words of the first reference and of each system's translations, line by line, and how rare they are."""

    references: list[list[str]]
    written: list[list[list[str]]]
    frequencies: dict[str, int]
    in_training: bool  # where the frequencies were counted, instead of in the references
    rarest: list[tuple[str, int] | None]
    side: str  # whose lengths they are
    unit: str  # of lengths and marks: word, or character where lines are single words
    lengths: list[int]


# ----------------------------------------------------------------------------------------------------------- the tables


def by_length(lengths: Sequence[int], *, groups: int = LENGTHS) -> list[Group]:
    """About equally many sentences in each of at most so many groups, shortest first; equal lengths stay together."""
    ordered = sorted(lengths)
    begins = sorted({ordered[len(ordered) * group // groups] for group in range(groups)})
    return _ranges(lengths, [*begins, ordered[-1] + 1])


def by_frequency(counts: Sequence[int | None]) -> list[Group]:
    """Groups by how often a word occurs: never, once, 2 to 4 times, 5 to 9, 10 to 99, …; none for None."""
    known = [-1 if count is None else count for count in counts]
    often = [index for index, count in enumerate(known) if count >= FREQUENCIES[-1]]
    return _ranges(known, FREQUENCIES) + [Group(f"{FREQUENCIES[-1]:,} or more", often)] * bool(often)


def _ranges(values: Sequence[int], edges: Sequence[int]) -> list[Group]:
    """The places of the values in [edge, next edge), for each edge but the last; only those where something is."""
    groups = []
    for begin, end in pairwise(edges):
        label = f"{begin:,}" if end == begin + 1 else f"{begin:,}–{end - 1:,}"
        groups.append(Group(label, [index for index, value in enumerate(values) if begin <= value < end]))
    return [group for group in groups if group.indices]


def _habits(words: _Words, comparison: Comparison, bleu: Sequence[Counted]) -> list[Row]:
    """What the systems make longer, repeat, or do not know, and the same of the references."""
    lines = [*(one.hypotheses for one in comparison.systems), comparison.references[0]]
    in_words = [*words.written, words.references]
    ratios: list[float | None] = []
    for one in bleu:
        translation, reference, *_ = np.sum(one.statistics, axis=0).tolist()
        ratios.append(_ratio(translation, reference))
    rows = [
        Row(
            "Length ratio",
            "Tokens of the translations, as BLEU counts them, for each token of the closest references.",
            ratios,
            1.0,
        ),
        _percents(
            "Repetition",
            "Pairs of neighboring words that are one word twice, or that the sentence already had, in percent.",
            [map(sentences.repetition, text) for text in in_words],
        ),
        _percents(
            "Unknown words",
            "Words with a mark for what the vocabulary lacks (⁇ or <unk>), in percent.",
            [map(sentences.unknown, text) for text in lines],
        ),
    ]
    if words.in_training:
        new = [[sentences.unseen(line, words.frequencies) for line in text] for text in in_words]
        rows.append(_percents("New words", "Words that never occur in the training text, in percent.", new))
    return rows


def _percents(title: str, about: str, texts: Sequence[Iterable[Share]]) -> Row:
    """A row of shares of all sentences of each system, and last of the references."""
    rates = [sentences.total(shares).rate for shares in texts]
    *values, reference = (None if rate is None else 100 * rate for rate in rates)
    return Row(title, about, values, reference)


def _ratio(translation: float, reference: float) -> float | None:
    return round(translation / reference, 3) if reference else None


def _notes(comparison: Comparison, attention: Attention) -> list[str]:
    notes = []
    if comparison.sentences > LISTED:
        notes.append(
            f"The list has the first {LISTED:,} of {comparison.sentences:,} sentences; scores and tables are of all."
        )
    for candidate in comparison.systems:
        if without := sum(one is None for one in attention.get(candidate.name, ())[:LISTED]):
            notes.append(
                f"{counted(without, 'translation')} of {candidate.name} {'is' if without == 1 else 'are'} shown "
                "without attention: blank, too long, or beyond what fits on a page."
            )
    if len(comparison.references) > 1:
        notes.append("Lengths and rare words are those of the first reference.")
    return notes


# --------------------------------------------------------------------------------------------------- data for script.js


def _data(
    words: _Words,
    comparison: Comparison,
    scored: Mapping[str, Sequence[Counted]],
    bleu: Sequence[Counted],
    groupings: Sequence[Grouping],
    attention: Attention,
) -> dict[str, Any]:
    """What script.js makes the list of sentences from. Lines are compared whole, by what stands between spaces."""
    references = [*zip(*([line.split() for line in text[:LISTED]] for text in comparison.references), strict=True)]
    translations = [[line.split() for line in one.hypotheses[:LISTED]] for one in comparison.systems]
    systems = []
    for index, candidate in enumerate(comparison.systems):
        lines = candidate.hypotheses[:LISTED]
        scores = {name: [round(score, 1) for score in scored[name][index].sentences(LISTED)] for name in scored}
        systems.append(
            {
                "letter": letter(index),
                "name": shown(candidate.name).text,
                "scores": scores,
                "ratios": [_ratio(*row[:2]) for row in bleu[index].statistics[:LISTED]],
                "repeated": [sentences.repetition(line).part for line in words.written[index][:LISTED]],
                "unknown": [sentences.unknown(line).part for line in lines],
                "right": [line in right for line, right in zip(translations[index], references, strict=True)],
                "attention": list(attention.get(candidate.name, ()))[:LISTED] or None,
            }
        )
    return {
        "end": PIECES[END],
        "metrics": [{"key": name, "title": METRICS[name].title, "better": METRICS[name].better} for name in scored],
        "source": None if comparison.source is None else _texts(comparison.source),
        **_marked(comparison, by_letters=words.unit != "word"),
        "sentences": comparison.sentences,
        "lengths": words.lengths[:LISTED],
        "lengthOf": words.side,
        "unit": words.unit,
        "rarest": [None if word is None else [word[0][:LONGEST_WORD], word[1]] for word in words.rarest[:LISTED]],
        "groupings": [_places(grouping.groups, len(words.lengths)) for grouping in groupings],
        "differ": [any(one != first for one in others) for first, *others in zip(*translations, strict=True)],
        "systems": systems,
    }


def _places(groups: Sequence[Group], count: int) -> dict[str, Any]:
    """The labels of the groups, and the group of each sentence, -1 for none."""
    places = [-1] * count
    for place, group in enumerate(groups):
        for index in group.indices:
            places[index] = place
    return {"labels": [group.label for group in groups], "of": places[:LISTED]}


def _texts(lines: Sequence[str]) -> dict[str, Any]:
    """The first texts, fit to be shown; by place, how many characters were omitted; and places for marks."""
    cut = [shown(line) for line in lines[:LISTED]]
    omitted = {str(place): text.omitted for place, text in enumerate(cut) if text.omitted}
    return {"texts": [text.text for text in cut], "omitted": omitted, "marks": []}


def _marked(comparison: Comparison, *, by_letters: bool) -> dict[str, Any]:
    """The references, with what no system wrote marked, and the translations, with what is in no reference."""
    references = [_texts(lines) for lines in comparison.references]
    translations = [_texts(candidate.hypotheses) for candidate in comparison.systems]
    for place in range(min(comparison.sentences, LISTED)):
        texts = [[column["texts"][place] for column in side] for side in (references, translations)]
        missing, extra = sentences.differing(*texts, by_letters=by_letters)
        for column, marks in zip([*references, *translations], [*missing, *extra], strict=True):
            column["marks"].append(in_browser(column["texts"][place], marks))
    return {"references": references, "translations": translations}


class Shown(NamedTuple):
    """A text to be shown."""

    text: str
    omitted: int  # characters at its end that are not

    @property
    def is_whole(self) -> bool:
        """Whether it has words, and all of them are shown."""
        return bool(self.text) and not self.omitted


def shown(text: str) -> Shown:
    """The text on one line, its first words if there are many; words stay what stands between white space."""
    fit = _UNFIT.sub("\N{REPLACEMENT CHARACTER}", _SPACE.sub(" ", text[: MOST_CHARACTERS + 1])).rstrip()
    end = min(len(fit), MOST_CHARACTERS)
    for number, word in enumerate(re.finditer(r"[^ ]+", fit)):
        if number == MOST_WORDS:
            end = min(end, word.start())
            break
    if end < len(fit):
        fit = fit[:end].rstrip()
    return Shown(fit, len(text.rstrip()) - len(fit))


def in_browser(text: str, spans: Sequence[Span]) -> list[int]:
    """The begins and ends of spans in the units in which JavaScript counts: characters beyond U+FFFF are two."""
    places = [place for span in spans for place in span]
    if text.isascii() or max(text) <= "\uffff":
        return places
    return [place + sum(character > "\uffff" for character in text[:place]) for place in places]


def packed(weights: "npt.ArrayLike") -> str:
    """`weights` (target words, source words + 1), from 0 to 1, row by row, in base64: w as the byte round(255 w); after
    a byte 0 the number of zeros that it stands for, 1 to 255. Attention is sharp, so most weights are zeros; script.js
    unpacks them."""
    rounded = np.rint(np.clip(np.asarray(weights, dtype=np.float64), 0.0, 1.0) * 255).astype(np.uint8)
    return base64.b64encode(_ZEROS.sub(lambda run: bytes([0, len(run[0])]), rounded.tobytes())).decode("ascii")
