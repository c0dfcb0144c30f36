"""What the report says: the figures of its tables, and the data from which the browser makes the list of sentences.

It knows the outcome of a comparison, attention that is packed already, and alignment scores; it knows no models, no
files and no HTML.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from nmt.errors import counted
from nmt.evaluation import buckets, sentences
from nmt.evaluation.alignments import AlignmentScores
from nmt.evaluation.comparison import Comparison
from nmt.evaluation.metrics import METRICS
from nmt.evaluation.page.texts import in_browser, shown
from nmt.evaluation.sentences import Share
from nmt.symbols import END, PIECES

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

LISTED = 10_000  # sentences that the list has, the first ones
LONGEST_WORD = 40  # characters of a rare word
METRICS_BY_GROUP = ("bleu", "chrf")


class Row(NamedTuple):
    """A line of a table: a value for each system, and one for the references; None where there is none."""

    title: str
    about: str
    values: list[float | None]
    reference: float | None


class Group(NamedTuple):
    """Sentences that are alike, and their scores by metric and system."""

    label: str
    size: int
    scores: dict[str, list[float]]


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
    titles: dict[str, str]  # of METRICS_BY_GROUP
    groupings: list[Grouping]
    habits: list[Row]
    notes: list[str]
    data: dict[str, Any]  # for script.js


def contents(
    comparison: Comparison,
    *,
    tokenize: str,
    lowercase: bool,
    attention: Mapping[str, Sequence[str | None]] | None = None,
    alignments: Mapping[str, AlignmentScores] | None = None,
    training: Iterable[str] | None = None,
) -> Contents:
    """The report of a comparison; `tokenize` and `lowercase` as it was made with.

    `attention`: for systems with a model, by name, the `packed` weights of each translation, or None. `alignments`: for
    such systems the scores of their alignments of the references. `training`: lines of the target language in which
    the words of the references are counted, instead of in the references themselves.
    """
    counted = _counted(comparison, tokenize=tokenize, lowercase=lowercase, training=training)
    return Contents(
        comparison=comparison,
        letters=[letter(index) for index in range(len(comparison.systems))],
        titles={name: METRICS[name].title for name in METRICS_BY_GROUP},
        groupings=_groupings(counted),
        habits=[*_habits(counted), *_alignment_errors(alignments or {}, [one.name for one in comparison.systems])],
        notes=_notes(comparison, attention or {}),
        data=_data(counted, attention or {}),
    )


@dataclass(frozen=True, kw_only=True)
class _Counted:
    """What is counted once, for tables and list: the words of the first reference and of each system's translations,
    line by line, and the statistics of metrics."""

    comparison: Comparison
    words: list[list[str]]
    written: list[list[list[str]]]
    frequencies: dict[str, int]
    in_training: bool  # where the frequencies were counted, instead of in the references
    rarest: list[tuple[str, int] | None]
    lengths: list[int]  # of sources, if there are any, else of references
    by_length: list[buckets.Bucket]
    by_frequency: list[buckets.Bucket]
    scored: dict[str, list[buckets.Scored]]  # by metric, for each system
    repeated: list[list[Share]]
    unknown: list[list[Share]]

    @property
    def side(self) -> str:
        """Whose lengths they are."""
        return "reference" if self.comparison.source is None else "source"

    @property
    def ratios(self) -> "list[npt.NDArray[np.int64]]":
        """For each system (lines, 2): the tokens of a translation and of its closest reference, as BLEU has them."""
        return [of_system.statistics[:, :2] for of_system in self.scored["bleu"]]


def _counted(comparison: Comparison, *, tokenize: str, lowercase: bool, training: Iterable[str] | None) -> _Counted:
    references = comparison.references[0]
    words = [sentences.words(line) for line in references]
    written = [[sentences.words(line) for line in candidate.hypotheses] for candidate in comparison.systems]
    counted_in = references if training is None else training
    frequencies = sentences.frequencies(counted_in, chain.from_iterable(chain(words, *written)))
    rarest = [sentences.rarest(line, frequencies) for line in words]
    measured = words if comparison.source is None else [sentences.words(line) for line in comparison.source]
    lengths = [len(line) for line in measured]
    metrics = {name: METRICS[name].build(tokenize, lowercase, nullcontext) for name in METRICS_BY_GROUP}
    return _Counted(
        comparison=comparison,
        words=words,
        written=written,
        frequencies=frequencies,
        in_training=training is not None,
        rarest=rarest,
        lengths=lengths,
        by_length=buckets.by_length(lengths),
        by_frequency=buckets.by_frequency([None if word is None else word[1] for word in rarest]),
        scored={
            name: [buckets.Scored(metric, one.hypotheses, comparison.references) for one in comparison.systems]
            for name, metric in metrics.items()
        },
        repeated=[[sentences.repetition(line) for line in lines] for lines in written],
        unknown=[[sentences.unknown(line) for line in candidate.hypotheses] for candidate in comparison.systems],
    )


def letter(index: int) -> str:
    """What stands for a system where its name is too long: A, B, …, Z, then 27, 28, …"""
    return chr(ord("A") + index) if index < 26 else str(index + 1)


def _groupings(counted: _Counted) -> list[Grouping]:
    text = "training text" if counted.in_training else "references"
    return [
        _grouping(
            f"By {counted.side} length",
            f"Words of the {counted.side}; punctuation is not counted.",
            "words",
            counted.by_length,
            counted.scored,
        ),
        _grouping(
            "By the rarest word of the reference",
            f"How often the rarest word of the reference occurs in the {text}; case is ignored.",
            "occurrences",
            counted.by_frequency,
            counted.scored,
        ),
    ]


def _grouping(
    title: str, about: str, unit: str, groups: Sequence[buckets.Bucket], scored: Mapping[str, Sequence[buckets.Scored]]
) -> Grouping:
    return Grouping(
        title,
        about,
        unit,
        [
            Group(
                bucket.label,
                len(bucket.indices),
                {name: [candidate.of(bucket.indices) for candidate in systems] for name, systems in scored.items()},
            )
            for bucket in groups
        ],
    )


def _habits(counted: _Counted) -> list[Row]:
    """What the systems make longer, repeat, or do not know, and the same of the references."""
    references = counted.comparison.references[0]
    rows = [
        Row(
            "Length ratio",
            "Tokens of the translations, as BLEU counts them, for each token of the closest references.",
            [_ratio(*ratio.sum(axis=0).tolist()) for ratio in counted.ratios],
            1.0,
        ),
        Row(
            "Repetition",
            "Pairs of neighboring words that are one word twice, or that the sentence already had, in percent.",
            [_percent(shares) for shares in counted.repeated],
            _percent(map(sentences.repetition, counted.words)),
        ),
        Row(
            "Unknown words",
            "Words with a mark for what the vocabulary lacks (⁇ or <unk>), in percent.",
            [_percent(shares) for shares in counted.unknown],
            _percent(map(sentences.unknown, references)),
        ),
    ]
    if counted.in_training:
        *values, reference = (
            _percent(sentences.unseen(line, counted.frequencies) for line in lines)
            for lines in (*counted.written, counted.words)
        )
        rows.append(Row("New words", "Words that never occur in the training text, in percent.", values, reference))
    return rows


def _data(counted: _Counted, attention: Mapping[str, Sequence[str | None]]) -> dict[str, Any]:
    """What script.js makes the list of sentences from."""
    comparison = counted.comparison
    source = comparison.source
    references = [*zip(*(_split(lines) for lines in comparison.references), strict=True)]
    translations = [_split(one.hypotheses) for one in comparison.systems]
    return {
        "end": PIECES[END],
        "metrics": [{"title": METRICS[name].title, "key": name} for name in METRICS_BY_GROUP],
        "source": None if source is None else _texts(source[:LISTED]),
        **_marked(comparison),
        "sentences": comparison.sentences,
        "lengths": counted.lengths[:LISTED],
        "lengthOf": counted.side,
        "rarest": [None if word is None else [word[0][:LONGEST_WORD], word[1]] for word in counted.rarest[:LISTED]],
        "groupings": [_places(made, len(counted.lengths)) for made in (counted.by_length, counted.by_frequency)],
        "differ": [any(one != first for one in others) for first, *others in zip(*translations, strict=True)],
        "systems": [
            {
                "letter": letter(index),
                "name": shown(candidate.name).text,
                "scores": {
                    name: [round(score, 1) for score in counted.scored[name][index].sentences(LISTED)]
                    for name in METRICS_BY_GROUP
                },
                "ratios": [_ratio(*ratio) for ratio in counted.ratios[index][:LISTED].tolist()],
                "repeated": [share.part for share in counted.repeated[index][:LISTED]],
                "unknown": [share.part for share in counted.unknown[index][:LISTED]],
                "right": [line in right for line, right in zip(translations[index], references, strict=True)],
                "attention": list(attention.get(candidate.name, ()))[:LISTED] or None,
            }
            for index, candidate in enumerate(comparison.systems)
        ],
    }


def _split(lines: Sequence[str]) -> list[list[str]]:
    """The words of the lines that are listed, whole and with punctuation: what a translation is compared by."""
    return [line.split() for line in lines[:LISTED]]


def _places(groups: Sequence[buckets.Bucket], count: int) -> dict[str, Any]:
    """The labels of the groups, and the group of each sentence, -1 for none."""
    places = [-1] * count
    for place, bucket in enumerate(groups):
        for index in bucket.indices:
            places[index] = place
    return {"labels": [bucket.label for bucket in groups], "of": places[:LISTED]}


def _alignment_errors(alignments: Mapping[str, AlignmentScores], names: Sequence[str]) -> list[Row]:
    if not alignments:
        return []
    rates = [alignments[name].error_rate if name in alignments else None for name in names]
    about = (
        "Links of the attention of a model that is made to write the reference, against gold alignments, in percent."
    )
    return [Row("Alignment error rate", about, [None if rate is None else 100 * rate for rate in rates], None)]


def _ratio(translation: int, reference: int) -> float | None:
    return round(translation / reference, 3) if reference else None


def _percent(shares: Iterable[Share]) -> float | None:
    rate = sentences.total(shares).rate
    return None if rate is None else 100 * rate


def _texts(lines: Sequence[str]) -> dict[str, Any]:
    """Texts to be shown; by place, how many characters were omitted."""
    cut = [shown(line) for line in lines]
    omitted = {str(place): text.omitted for place, text in enumerate(cut) if text.omitted}
    return {"texts": [text.text for text in cut], "omitted": omitted}


def _marked(comparison: Comparison) -> dict[str, Any]:
    """The references, with the words that no system wrote marked, and the translations, with those of no reference."""
    sides = [[_texts(lines[:LISTED]) for lines in comparison.references]]
    sides.append([_texts(candidate.hypotheses[:LISTED]) for candidate in comparison.systems])
    for column in chain(*sides):
        column["marks"] = []
    for place in range(min(comparison.sentences, LISTED)):
        lines = [[column["texts"][place] for column in side] for side in sides]
        for side, texts, marked in zip(sides, lines, sentences.differing(lines[0], lines[1]), strict=True):
            for column, text, marks in zip(side, texts, marked, strict=True):
                column["marks"].append(in_browser(text, marks))
    return {"references": sides[0], "translations": sides[1]}


def _notes(comparison: Comparison, attention: Mapping[str, Sequence[str | None]]) -> list[str]:
    notes = []
    if comparison.sentences > LISTED:
        notes.append(
            f"The list has the first {LISTED:,} of {comparison.sentences:,} sentences; scores and tables are of all."
        )
    for candidate in comparison.systems:
        without = sum(one is None for one in attention.get(candidate.name, ())[:LISTED])
        if without:
            notes.append(
                f"{counted(without, 'translation')} of {candidate.name} {'is' if without == 1 else 'are'} shown "
                "without attention: blank, too long, or beyond what fits on a page."
            )
    if len(comparison.references) > 1:
        notes.append("Lengths and rare words are those of the first reference.")
    return notes
