"""What a model was shown of a sentence and its translation should have as often: placeholders, numbers, and names.

A model writes these itself, in the place that it has learned, and loses some, or writes others. So the translation is
compared with the sentence. What is not there takes the place of what is there instead, by attention, or stands where
the words around it are translated; a placeholder that the sentence does not have is left out. A number or a name that
nothing was lost for stays: it may stand for a word. So do those that the user requires, and the 1200 of 1200万, for 12
million.

It knows text, marks, and links of words, and no models.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from nmt.data.words import Span, overlapping, words_of
from nmt.decoding.text.marks import Mark, Weighted
from nmt.decoding.text.protect import LATIN, Seen, Sight, is_shown, with_brackets
from nmt.protected import Literal, compared, is_number, is_of_another


class Difference(NamedTuple):
    """What of one kind a sentence and its translation do not share."""

    lost: dict[Span, Mark | None]  # characters of the sentence; None: of a number that may become others
    others: list[Span]  # of the translation
    are_literals: bool
    staying: frozenset[Span] = frozenset()  # of these; what is lost for one is neither written instead, nor put back


def differences(
    seen: Seen, text: str, sight: Sight, *, fixed: Sequence[Span], unknown: Sequence[Span]
) -> list[Difference]:
    """What the translation `text` of a sentence lacks, and has instead, but for what is `fixed`, as the user's is.

    An `unknown` word may stand for a number or a name.
    """
    shown = {(mark.start, mark.stop): mark for mark in seen.marks if is_shown(mark)}
    if not shown and not sight.carried:
        return []
    carried = sight.carried_spans(text)
    written = Counter(text[slice(*span)] for span in carried)
    lost: dict[Span, Mark | None] = {}
    for span, mark in shown.items():
        if mark.tags[0] in sight.carried:
            if written[mark.tags[0]] > 0:
                written[mark.tags[0]] -= 1
            else:
                lost[span] = mark
    others: list[Span] = []
    for span in reversed(carried):
        if written[text[slice(*span)]] > 0 and not overlapping(fixed, with_brackets(text, *span)):
            written[text[slice(*span)]] -= 1
            others.append(span)
    found = [Difference(lost, others[::-1], are_literals=False)] if lost or others else []
    if all(mark.tags[0] in sight.carried for mark in shown.values()):
        return found
    literals = [(one, sight.literals(one)) for one in (seen.text, text)]
    for are_numbers in (True, False):
        missing, left = (
            [(span, one[slice(*span)]) for span in spans if is_number(one[slice(*span)]) == are_numbers]
            for one, spans in literals
        )
        for instead in ({}, sight.forms):  # as it is first, then as what it often becomes
            here = [seen.cased(str(instead.get(literal, literal))) for _, literal in missing]
            same, places = compared(here, [literal for _, literal in left])
            missing = [one for place, one in enumerate(missing) if place not in same]
            left = [left[place] for place in places]
        # As 15 and 2024 of a date; one alone may just be wrong
        alone = {Literal.of(literal).value.lstrip("0") for _, literal in left if len(left) > 1}
        lost = {span: None if Literal.of(one).is_parted(alone) else shown.get(span) for span, one in missing}
        if any(lost.values()):
            others = sorted([*(span for span, _ in left), *unknown])
            staying = frozenset(span for span in others if overlapping(fixed, span) or is_of_another(text, *span))
            found.append(Difference(lost, others, are_literals=True, staying=staying))
    return found


def restored(
    difference: Difference, seen: Seen, text: str, sight: Sight, links: Sequence[Weighted], *, puts_back: bool = True
) -> tuple[dict[Span, Mark], list[Mark]]:
    """The marks for what is lost, and those for what is to be left out.

    `puts_back`: also numbers and names that nothing stands instead of.
    """
    instead = _exchanged(difference, seen.text, text, links)
    marks: dict[Span, Mark] = {}
    for span, mark in difference.lost.items():
        if mark is None or instead.get(span) in difference.staying:
            continue
        content, is_certain = sight.literal(mark.tags[0]) if difference.are_literals else (mark.tags[0], True)
        if span in instead:
            is_glued = difference.are_literals and LATIN.match(text, instead[span][0] - 1, instead[span][0])
            marks[span] = mark._replace(instead=f" {content}" if is_glued else content, replaces=instead[span])
        elif not difference.are_literals:
            marks[span] = mark._replace(stop=mark.start, instead=None, tags=(content, ""))
        elif is_certain and puts_back:  # a word of its own, although it may touch signs there
            marks[span] = mark._replace(start=mark.stop, before=True, after=True, instead=None, tags=(content, ""))
    left = [] if difference.are_literals else sorted({*difference.others} - {*instead.values()})
    return marks, [Mark(0, 0, instead="", replaces=with_brackets(text, *span)) for span in left]


def _exchanged(difference: Difference, line: str, text: str, links: Sequence[Weighted]) -> dict[Span, Span]:
    """What stands in the translation instead of what is lost: those that attend to each other most."""
    lost, others = sorted(difference.lost), difference.others
    if not (lost and others):
        return {}
    ours, theirs = (
        [[spans[place] for place in overlapping(spans, word)] for word in words_of(of)]
        for spans, of in ((lost, line), (others, text))
    )
    weights: dict[tuple[Span, Span], float] = {}
    for source, target, weight in links:
        for span in ours[source]:
            for other in theirs[target]:
                weights[span, other] = weights.get((span, other), 0.0) + weight
    exchanged: dict[Span, Span] = {}
    taken: set[Span] = set()
    for span, other in sorted(weights, key=lambda pair: (-weights[pair], pair)):
        if span not in exchanged and other not in taken:
            exchanged[span] = other
            taken.add(other)
    return exchanged if links else dict(zip(lost, others, strict=False))
