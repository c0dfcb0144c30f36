"""From hypotheses to texts, with prefixes as the user wrote them, unknown words replaced, and words aligned.

The translations of the segments of a line are joined here. Attention comes from one forced pass for all hypotheses that
need it. It knows hypotheses, the models that write them again, and text; it knows no policies and no files.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, compress
from typing import NamedTuple

import numpy as np

from nmt.config.schema import DecodingConfig
from nmt.data.segmentation import WORD_START
from nmt.data.subwords import UNKNOWN_TEXT, Subwords, Vocabularies
from nmt.data.words import UNKNOWN_MARK, PieceWords, Span, has_finer, overlapping, spans_of_parts, words_of_parts
from nmt.decoding.engines import AnyScorer
from nmt.decoding.forced import forced_decoding
from nmt.decoding.options import TranslationOptions
from nmt.decoding.search.hypotheses import Hypothesis, penalty, source_penalty
from nmt.decoding.text.alignment import (
    Block,
    SoftAlignment,
    Weights,
    WordScores,
    attended_by_marks,
    in_words_of,
    joined,
    joined_scores,
    soft_alignment,
    weighted_links,
    word_scores,
)
from nmt.decoding.text.carried import Difference, differences, restored
from nmt.decoding.text.forbidden import Forbidden
from nmt.decoding.text.glossary import count_words
from nmt.decoding.text.marks import ROOT, Mark, Weighted, moved, pieces
from nmt.decoding.text.protect import Seen, Sight, is_blank, is_shown, joined_spans, paired_tags
from nmt.decoding.text.required import as_given
from nmt.decoding.text.segments import SENTENCE_END, Segment
from nmt.decoding.text.sentences import FULL_STOPS, LINE_END, joined_sentences
from nmt.decoding.text.unknown_words import replacements
from nmt.pharaoh import Link
from nmt.protected import HYPHENATED, literals_of
from nmt.symbols import UNKNOWN

UNSEEN = "\ufffc"  # stands for what the model has not seen, and so has not written


class Translation(NamedTuple):
    """One translation of a line.

    `text`: on one line; `score`: log-probability / length penalty + coverage penalty, by default nats per token, and 0
    for a blank line; `tokens`: the pieces, and `ids` theirs; `alignment`: (source word, target word), from 0, and
    `soft_alignment`: how much each target word attends to each source word; `finer_alignment`: the same of finer words,
    if there is a script without spaces; `word_scores`: of each word. None where they were not asked for.
    """

    text: str
    score: float
    tokens: list[str]
    alignment: list[Link] | None = None
    soft_alignment: SoftAlignment | None = None
    ids: Sequence[int] = ()
    finer_alignment: SoftAlignment | None = None
    word_scores: WordScores | None = None


class Written(NamedTuple):
    """A translation of a segment."""

    segment: Segment
    hypothesis: Hypothesis
    text: str
    alignment: SoftAlignment | None
    finer: SoftAlignment | None = None  # the same, except in scripts without spaces
    scores: WordScores | None = None


class _Draft(NamedTuple):
    """The text of a hypothesis, before marks are placed in it."""

    segment: Segment
    hypothesis: Hypothesis
    given: str  # as the model has written it, with UNKNOWN_MARK
    text: str
    replaces: bool  # whether there are unknown words to replace
    parts: Sequence[str] = ()  # of its pieces
    required: Sequence[Span] = ()
    marks: Sequence[Mark] = ()  # to be placed, and those that it was shown
    differences: Sequence[Difference] = ()  # of these

    @property
    def needs_links(self) -> bool:
        return any(not is_shown(mark) for mark in self.marks) or any(one.lost for one in self.differences)


class _LineWords(NamedTuple):
    """The words of a line."""

    text: str  # the line with whole words
    both: Sequence[PieceWords]  # words as pieces are parts of them, and finer ones; the same where there are none
    places: Sequence[list[Span]]  # where both are in the text


def _line_words(segment: Segment, source: Subwords) -> _LineWords:
    text = source.whole_words(segment.line)
    if source.joiner:
        spans = spans_of_parts(source.line_parts(segment.line), text)
    else:
        spans = [seen.span(*span) for seen in segment.of_line for span in source.spans(seen.text)]
    words = words_of_parts(text, spans)
    both = words, words_of_parts(text, spans, finer=True) if has_finer(text) else words
    return _LineWords(text, both, [spans_of_parts(several.words, text) for several in both])


@dataclass(frozen=True, kw_only=True)
class Writer:
    """Writes the texts of the hypotheses that `scorer` has led to."""

    scorer: AnyScorer
    vocabularies: Vocabularies
    decoding: DecodingConfig  # as `options` change it
    options: TranslationOptions
    sight: Sight
    forbidden: Forbidden | None = None

    def translations(
        self,
        lines: Sequence[str],
        segments: Sequence[Sequence[Segment]],
        hypotheses: Sequence[Sequence[Hypothesis]],
    ) -> Iterator[list[Translation]]:
        """The translations of each line, best first, from its `segments` and the `hypotheses` of all segments."""
        found = [
            [(segment, self._as_title(segment, one)) for one in several]
            for segment, several in zip(chain(*segments), hypotheses, strict=True)
        ]
        drafts = [[self._draft(*one) for one in several] for several in found]
        weights, of_segments = iter(self._attention([*chain(*drafts)])), iter(drafts)
        for line, parts in zip(lines, segments, strict=True):
            if not parts:
                yield [self._nothing(line)]
                continue
            words = cache(partial(_line_words, parts[0], self.vocabularies.source))  # where they are asked for
            yield self._whole_line(
                [[self._written(draft, next(weights), words) for draft in next(of_segments)] for _ in parts]
            )

    def _as_title(self, segment: Segment, hypothesis: Hypothesis) -> Hypothesis:
        """Without a period at its end, where the source ends with none, and is in capitals, as titles are, or goes on
        with a sign that is kept, such as a colon."""
        seen = segment.seen
        goes_on = seen.marks and seen.marks[-1].start == len(seen.text) and not re.search(r"\w", seen.marks[-1].tags[0])
        if not (seen.in_capitals or goes_on) or SENTENCE_END.search(seen.text):
            return hypothesis
        pieces = self.vocabularies.target.pieces(hypothesis.tokens)
        length = len(pieces)
        while length > len(segment.prefix.tokens) and pieces[length - 1].strip(WORD_START) in ("", *FULL_STOPS):
            length -= 1
        totals = [0.0, *hypothesis.totals]
        return hypothesis._replace(
            tokens=hypothesis.tokens[:length],
            totals=totals[1 : length + 1],
            log_probability=hypothesis.log_probability - totals[-1] + totals[length],
        )

    def _nothing(self, line: str) -> Translation:
        """The translation of a line of which the model sees nothing: the line, if it is protected; else nothing."""
        protects = bool(self.decoding.protect) and not self.vocabularies.source.joiner and not is_blank(line)
        text = LINE_END.sub(" ", line) if protects else ""
        scores = WordScores(text.split(), [0.0] * len(text.split()), 0.0) if self.options.word_scores else None
        nothing = Translation(text, 0.0, [], word_scores=scores)
        if not self.options.alignments:
            return nothing
        words = self.vocabularies.source.whole_words(line).split()
        same = words if protects else []
        blocks = [Block(np.array([[1.0, 0.0]], dtype=np.float32), place) for place in range(len(same))]
        alignment = SoftAlignment(words, same, blocks, [(place, place) for place in range(len(same))])
        return _aligned(nothing, alignment, alignment)

    def _attention(self, drafts: Sequence[_Draft]) -> list[Weights | None]:
        """The attention with which each was written, from one forced pass; None where none is needed."""
        needed = [
            self.options.alignments or draft.replaces or (draft.needs_links and self.scorer.without_attention is None)
            for draft in drafts
        ]
        if not any(needed):
            return [None] * len(drafts)
        forced = iter(
            forced_decoding(
                self.scorer,
                [(draft.segment.source, draft.hypothesis.tokens) for draft in compress(drafts, needed)],
                batch_tokens=self.decoding.batch_tokens,
                attention=True,
                alignment_step=self.options.alignment_step,
            )
        )
        return [next(forced).weights if needs else None for needs in needed]

    def _draft(self, segment: Segment, hypothesis: Hypothesis) -> _Draft:
        target, tokens, seen, begin = self.vocabularies.target, hypothesis.tokens, segment.seen, segment.prefix
        replaces = self.options.replace_unknown is not None and UNKNOWN in tokens[len(begin.tokens) :]
        marked = None if replaces else len(begin.tokens)
        spelled = target.decode_marked(tokens, UNKNOWN_MARK, marked)
        given = as_given(spelled, begin, target)
        text = _shown(given, seen)
        if not (seen.marks or self.sight.carried or self.options.alignments or self.options.word_scores or replaces):
            return _Draft(segment, hypothesis, given, text, replaces)
        beginning = begin.parts if given != spelled else []
        parts = [*beginning, *target.text_parts(tokens, UNKNOWN_MARK, marked)[len(beginning) :]]
        required, marks = self._required_spans(segment, text), self._to_place(segment, text)
        terms = [mark.instead for mark in seen.marks if mark.instead is not None and not is_shown(mark)]
        there = (match.span() for term in terms for match in re.finditer(re.escape(term), text))
        unknown = [match.span() for match in re.finditer(UNKNOWN_TEXT, text)] if not replaces else []
        found = differences(seen, text, self.sight, fixed=joined_spans([*required, *there]), unknown=unknown)
        return _Draft(segment, hypothesis, given, text, replaces, parts, required, marks, found)

    def _written(self, draft: _Draft, weights: Weights | None, words: Callable[[], _LineWords]) -> Written:
        """The hypothesis with its text; `words` gives those of the line."""
        segment, hypothesis, text, seen = draft.segment, draft.hypothesis, draft.text, draft.segment.seen
        if weights is None and not (draft.needs_links or draft.differences or self.options.word_scores):
            return Written(segment, hypothesis, text, None)
        spans = spans_of_parts((_shown(part, seen) for part in draft.parts), text)
        of_text, links = words_of_parts(text, spans, finer=True), []
        if draft.needs_links and weights is not None:
            of_seen = words_of_parts(seen.text, segment.spans, finer=True)
            attention = soft_alignment(weights, of_seen, of_text, end_links=self.options.end_links)
            links = weighted_links(attention, seen.text, text)
        marks = self._all_marks(draft, links)
        hyphenated = (match.span() for match in HYPHENATED.finditer(text))
        unbroken = joined_spans([*self.sight.carried_spans(text), *literals_of(text), *hyphenated])
        parts = pieces(seen.text, marks, text, links, fixed=draft.required, whole=unbroken)
        if draft.replaces and weights is not None:
            source = words().both[1].part(segment.first, len(segment.source))
            attention = soft_alignment(weights, source, of_text, end_links="best")
            dictionary, begin = self.options.replace_unknown or {}, len(segment.prefix.text)
            kept = [mark.place for mark in seen.marks if not is_shown(mark)]
            for mark, word in replacements(seen.cased(draft.given), text, attention, dictionary, begin=begin):
                assert mark.replaces is not None
                place = words().places[1][word]
                if not (overlapping(draft.required, mark.replaces) or overlapping(kept, place)):
                    marks.append(mark._replace(instead=seen.cased(mark.instead or ""), place=place))
            replaced = pieces(seen.text, marks, text, links, fixed=draft.required, whole=unbroken)
            own = (UNSEEN if part.mark is not None and marks[part.mark].tags[0] else part.text for part in replaced)
            if self.forbidden is None or not self.forbidden.found_in("".join(own)):
                parts = replaced
        whole, spans = "".join(part.text for part in parts), moved(spans, parts)
        found = Written(segment, hypothesis, whole, None)
        if self.options.word_scores:
            of_words = words_of_parts(whole, spans)
            found = found._replace(scores=word_scores(hypothesis.totals, hypothesis.log_probability, of_words))
        if weights is None or not self.options.alignments:
            return found

        def aligned(*, finer: bool) -> SoftAlignment:
            source = words().both[finer].part(segment.first, len(segment.source))
            target, sources = words_of_parts(whole, spans, finer=finer), words().places[finer]
            places = spans_of_parts(target.words, whole)
            attended = attended_by_marks(parts, places, marks=marks, line=words().text, sources=sources)
            return soft_alignment(weights, source, target, end_links=self.options.end_links, attended=attended)

        has_others = words().both[0] is not words().both[1] or has_finer(whole)
        alignment = aligned(finer=False)
        return found._replace(alignment=alignment, finer=aligned(finer=True) if has_others else alignment)

    def _required_spans(self, segment: Segment, text: str) -> list[Span]:
        """Where a text has the prefix and the phrases that the user requires of it; those that overlap are one."""
        prefix, decode = segment.prefix.text, self.vocabularies.target.decode
        places = [(0, len(prefix))] if prefix and text.startswith(prefix) else []
        for phrase in segment.phrases:
            places += [match.span() for match in re.finditer(re.escape(decode(phrase.tokens)), text)]
        return joined_spans(places)

    def _to_place(self, segment: Segment, text: str) -> list[Mark]:
        """The marks that the text of a segment does not have yet, and those that the model was shown.

        It has what the user requires of it, and perhaps terms as the glossary has them.
        """
        seen = segment.seen
        required = "\n".join([segment.prefix.text, *(phrase.text for phrase in segment.phrases)])
        had = Counter[str]()  # what of it stands for a mark
        terms = Counter(mark.instead for mark in seen.marks if mark.instead is not None and not is_shown(mark))
        there = {term for term, count in terms.items() if count_words(term, text) >= count}
        marks: list[Mark] = []
        for mark in seen.marks:
            content, is_there = mark.tags[0], False
            if mark.instead is None:
                is_there = len(re.findall(rf"(?<!\w){re.escape(content)}(?!\w)", required)) > had[content]
                had[content] += is_there
            elif not is_shown(mark):
                is_there = mark.instead in there
                mark = mark._replace(instead=seen.cased(mark.instead))
            if not is_there:
                marks.append(mark)
        return marks

    def _all_marks(self, draft: _Draft, links: Sequence[Weighted]) -> list[Mark]:
        """The marks to be placed, with those for what the text should have, or should not have."""
        lost: dict[Span, Mark] = {}
        surplus: list[Mark] = []
        for difference in draft.differences:
            taken = [mark.replaces for mark in lost.values()]
            difference = difference._replace(others=[span for span in difference.others if span not in taken])
            seen, puts_back = draft.segment.seen, not draft.replaces  # an unknown word will be the source's
            marks, others = restored(difference, seen, draft.text, self.sight, links, puts_back=puts_back)
            lost, surplus = lost | marks, surplus + others
        if (forbidden := self.forbidden) is not None:
            lost = {span: mark for span, mark in lost.items() if not forbidden.found_in(mark.instead or mark.tags[0])}
        placed = (lost.get((mark.start, mark.stop)) if is_shown(mark) else mark for mark in draft.marks)
        return [*_nested([mark for mark in placed if mark is not None]), *surplus]

    def _whole_line(self, segments: Sequence[Sequence[Written]]) -> list[Translation]:
        """The translations of a line with segments: the best, second best … hypotheses, each joined to one.

        A segment that has fewer than another, as a short one, gives its last one again. They are sorted by score; but
        where they were searched for, the best ones joined come first, whatever their score as a line is, which depends
        on the lengths, and of those with the same text, in other pieces or once it is put right, there is the first.
        """
        translations = [
            self._joined([several[min(rank, len(several) - 1)] for several in segments])
            for rank in range(max(map(len, segments)))
        ]
        first = 0 if self.options.sampling is not None else 1
        ranked = [*translations[:first], *sorted(translations[first:], key=lambda translation: -translation.score)]
        of_text = {translation.text: translation for translation in reversed(ranked)}
        return ranked if not first else [one for one in ranked if of_text[one.text] is one]

    def _joined(self, parts: Sequence[Written]) -> Translation:
        """The parts of a line as one: sentences with the line's white space."""
        spaces = [parts[0].segment.before, *(part.segment.space or "" for part in parts)]
        scores = [part.scores for part in parts if part.scores is not None]
        hypotheses = [part.hypothesis for part in parts]
        length = sum(len(hypothesis.tokens) + 1 for hypothesis in hypotheses)
        log_probability = sum(hypothesis.log_probability for hypothesis in hypotheses)
        tokens = [len(part.segment.source) + 1 for part in parts]
        per_source = partial(source_penalty, length_penalty=self.decoding.length_penalty)
        supplements = (per_source(of) * one.supplement for of, one in zip(tokens, hypotheses, strict=True))
        ids = [token for hypothesis in hypotheses for token in hypothesis.tokens]
        text = joined_sentences([part.text for part in parts], spaces)
        translation = Translation(
            text,
            log_probability / penalty(length, self.decoding.length_penalty)
            + sum(supplements) / per_source(sum(tokens)),
            self.vocabularies.target.pieces(ids),
            ids=ids,
            word_scores=joined_scores(scores, text) if scores else None,
        )
        alignments = [part.alignment for part in parts if part.alignment is not None]
        finer = [part.finer for part in parts if part.finer is not None]
        if not alignments:
            return translation
        return _aligned(translation, in_words_of(joined(alignments), text, self.options.end_links), joined(finer))


def _nested(marks: Sequence[Mark]) -> list[Mark]:
    """The marks, where each start tag and its end tag, with something between them, are one that encloses it."""
    pairs = paired_tags(mark.tags[0] if mark.instead is None else "" for mark in marks)
    pairs = {start: end for start, end in pairs.items() if marks[start].start < marks[end].start}
    nested: list[Mark] = []
    around: list[tuple[int, int]] = []  # the numbers of the mark, and of its end tag
    for number, mark in enumerate(marks):
        if around and around[-1][1] == number:
            around.pop()
            continue
        parent = around[-1][0] if around else ROOT
        if (end := pairs.get(number)) is not None:
            around.append((len(nested), end))
            mark = Mark(mark.start, marks[end].start, tags=(mark.tags[0], marks[end].tags[0]))
        nested.append(mark._replace(parent=parent) if mark.instead is None else mark)
    return nested


def _shown(text: str, seen: Seen) -> str:
    """What is written for a text with UNKNOWN_MARK in it."""
    return seen.cased(text).replace(UNKNOWN_MARK, UNKNOWN_TEXT)


def _aligned(translation: Translation, alignment: SoftAlignment, finer: SoftAlignment) -> Translation:
    is_finer = has_finer("".join(chain(finer.source_words, finer.target_words)))
    return translation._replace(
        alignment=alignment.links,
        soft_alignment=alignment,
        finer_alignment=finer if is_finer else None,
    )
