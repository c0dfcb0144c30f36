"""The text side of a search: hypotheses → texts, with prefixes as given, unknown words replaced and words aligned.

A line that was cut is put together again here: the translations of its segments are joined to one. It knows models,
where they are asked for attention, subwords and text; it knows no search and no files.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch

from nmt.data.subwords import Subwords, Vocabularies
from nmt.decoding.ensemble import Model
from nmt.decoding.search.hypotheses import Hypothesis, LengthPenalty, penalty
from nmt.decoding.text.alignment import SoftAlignment, Written, align_written, joined
from nmt.decoding.text.constraints import Phrase
from nmt.decoding.text.prefixes import Prefix, as_given
from nmt.decoding.text.unknown_words import WithUnknown, replace_unknown_words
from nmt.evaluation.alignments import Link
from nmt.symbols import UNKNOWN


class Translation(NamedTuple):
    """One translation of a line."""

    text: str  # detokenised, on one line
    score: float  # log-probability / length penalty + coverage penalty; 0.0 for a blank line
    tokens: list[str]  # the pieces of the translation
    alignment: list[Link] | None = None  # (source word, target word), from 0; None where it was not asked for
    soft_alignment: SoftAlignment | None = None  # how much each target word attends to each source word, likewise


class Segment(NamedTuple):
    """What is translated at once: a line, or a part of one."""

    line: str
    first: int  # the place of its first piece in the line
    ids: list[int]


class Spelled(NamedTuple):
    """A translation of a segment, with its text."""

    text: str
    hypothesis: Hypothesis
    alignment: SoftAlignment | None


def spelled(
    model: Model,
    vocabularies: Vocabularies,
    segments: Sequence[Segment],
    prefixes: Sequence[Prefix],
    phrases: Sequence[Sequence[Phrase]],
    found: Sequence[Sequence[Hypothesis]],
    *,
    replace_unknown: Mapping[str, str] | None,
    alignments: bool,
    batch_tokens: int,
) -> list[list[Spelled]]:
    """The hypotheses `found` of each segment with their texts; the options are those of `Translator.translate`.

    A translation keeps its unknown words where one of its segment's `phrases` would be replaced with them.
    """
    target = vocabularies.target
    texts = [[target.decode(hypothesis.tokens) for hypothesis in best] for best in found]
    counts: dict[tuple[int, int], list[int]] = {}  # of words, where unknown ones were replaced
    places = [(index, rank) for index, best in enumerate(found) for rank in range(len(best))]
    if replace_unknown is not None:
        unknown = [
            (index, rank)
            for index, rank in places
            if UNKNOWN in found[index][rank].tokens[len(prefixes[index].tokens) :]
        ]
        replaced = replace_unknown_words(
            model,
            vocabularies,
            [WithUnknown(*segments[index], found[index][rank].tokens) for index, rank in unknown],
            dictionary=replace_unknown,
            batch_tokens=batch_tokens,
        )
        for (index, rank), (text, words) in zip(unknown, replaced, strict=True):
            if all(target.decode(phrase.tokens) in text for phrase in phrases[index]):
                texts[index][rank], counts[index, rank] = text, words
    for index, rank in places:  # alignments know the words of the pieces
        texts[index][rank] = as_given(texts[index][rank], prefixes[index], target, same_words=alignments)
    aligned: dict[tuple[int, int], SoftAlignment] = {}
    if alignments:
        written = [
            Written(*segments[index], found[index][rank].tokens, texts[index][rank], counts.get((index, rank)))
            for index, rank in places
        ]
        aligned = dict(zip(places, align_written(model, vocabularies, written, batch_tokens=batch_tokens), strict=True))
    return [
        [Spelled(texts[index][rank], hypothesis, aligned.get((index, rank))) for rank, hypothesis in enumerate(best)]
        for index, best in enumerate(found)
    ]


def whole_line(
    segments: Sequence[Sequence[Spelled]], target: Subwords, *, length_penalty: LengthPenalty, alignments: bool
) -> list[Translation]:
    """The translations of a line: its segments' best, second best … hypotheses, each joined to one."""
    if not segments:
        nothing = Translation("", 0.0, [])
        return [_aligned(nothing, SoftAlignment([], [], torch.zeros(0, 0))) if alignments else nothing]
    translations = [_joined(parts, target, length_penalty) for parts in zip(*segments, strict=False)]
    return sorted(translations, key=lambda translation: -translation.score)


def _joined(parts: Sequence[Spelled], target: Subwords, length_penalty: LengthPenalty) -> Translation:
    hypotheses = [part.hypothesis for part in parts]
    length = sum(len(each.tokens) + 1 for each in hypotheses)
    translation = Translation(
        " ".join(part.text for part in parts if part.text),
        sum(each.log_probability for each in hypotheses) / penalty(length, length_penalty)
        + sum(each.supplement for each in hypotheses),
        [piece for each in hypotheses for piece in target.pieces(each.tokens)],
    )
    alignments = [part.alignment for part in parts if part.alignment is not None]
    return _aligned(translation, joined(alignments)) if alignments else translation


def _aligned(translation: Translation, alignment: SoftAlignment) -> Translation:
    return translation._replace(alignment=alignment.links, soft_alignment=alignment)
