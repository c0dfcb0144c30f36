"""Segments in, hypotheses out: segments of similar length share a batch, which is searched as the options say.

It knows models and searches; of segments it reads the ids, never the text. The hypotheses of a segment do not depend on
its batch, beyond rounding.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from nmt.config.schema import DecodingConfig
from nmt.data.padding import padded_with_end
from nmt.decoding.engines import AnyScorer, coverage_penalty
from nmt.decoding.options import TranslationOptions
from nmt.decoding.search.beam import Beam
from nmt.decoding.search.choices import NotNumbersError
from nmt.decoding.search.constrained import Banks
from nmt.decoding.search.diverse import Groups
from nmt.decoding.search.hypotheses import Array, Hypothesis, Scores
from nmt.decoding.search.loop import Policy, search
from nmt.decoding.search.phrases import Phrases
from nmt.decoding.search.rules import ForcedPrefix, NoForbidden, Rule, rules_of
from nmt.decoding.search.sampling import Draws, keys
from nmt.decoding.text.forbidden import Forbidden
from nmt.decoding.text.segments import Segment
from nmt.decoding.threads import FEWEST, check, number, side_by_side
from nmt.errors import UserError
from nmt.ops.memory import in_halves

if TYPE_CHECKING:
    from nmt.decoding.shortlist import Shortlist

USUAL_BEAM = 5  # the largest beam with which batches are as large as batch_tokens says


def longest_translation(source: int, decoding: DecodingConfig) -> int:
    """The most tokens, END counted, of a translation of `source` tokens, END counted.

    max(⌈max_length_ratio × source⌉ + max_length_extra, 2): there is room for a piece, so no line becomes blank by it.
    """
    return max(_times(decoding.max_length_ratio, source) + decoding.max_length_extra, 2)


def shortest_translation(source: int, decoding: DecodingConfig) -> int:
    """The fewest tokens of a translation of `source` tokens, END counted in neither; the maximum may be less.

    max(minimum_length, ⌈minimum_length_ratio × source⌉).
    """
    return max(decoding.minimum_length, _times(decoding.minimum_length_ratio, source))


def _times(ratio: float, source: int) -> int:
    """⌈ratio × source⌉ with the ratio as it is written: 1.1 × 50 is 55, not the 55.00000000000001 of floating point."""
    return math.ceil(Fraction(str(ratio)) * source)


@dataclass(frozen=True, kw_only=True)
class Search:
    """How segments are searched."""

    scorer: AnyScorer
    decoding: DecodingConfig  # as `options` change it
    options: TranslationOptions
    shortlist: "Shortlist | None" = None  # the pieces that may be written; those of prefixes and phrases may be besides
    continuing: Array | None = None  # (vocabulary,), the pieces that make a word longer; None: nothing is required
    forbidden: Forbidden | None = None

    def hypotheses(self, segments: Sequence[Segment]) -> list[list[Hypothesis]]:
        """The hypotheses of each segment, at least one, best first, or as they were drawn.

        Segments with phrases have batches of their own, so the others are searched as if there were none. A batch that
        the memory does not hold is halved. Raises UserError for a model that computes NaN, or gives no translation a
        probability above 0.
        """
        places = list(self._batches(segments))
        batches = [[segments[place] for place in batch] for batch in places]
        try:
            with self.scorer.inference():
                by_batch = side_by_side(partial(in_halves, self._of_batch), batches, most=self.scorer.most_batches)
            if not all(chain(*by_batch)):
                if self.forbidden is not None and any(segment.phrases for segment in segments):
                    hint = "raise `beam_size` or `max_length_extra`, or forbid less"
                    raise UserError(
                        f"constraints: no translation was found that has them and nothing forbidden; {hint}"
                    )
                raise NotNumbersError("the model gives every translation of a line the probability 0")
        except NotNumbersError as error:
            raise UserError(
                f"{error}: its weights are not finite, or far too large, as after a training that diverged; "
                "give an earlier model"
            ) from error
        by_place = dict(zip(chain(*places), chain(*by_batch), strict=True))
        return [by_place[place] for place in range(len(segments))]

    def _batches(self, segments: Sequence[Segment]) -> Iterator[list[int]]:
        """The places of segments that are searched together: of a few, there is a batch for each thread."""
        rows = self.decoding.beam_size if self.options.sampling is None else self.options.n_best  # of a segment
        batch_tokens = self.decoding.batch_tokens * USUAL_BEAM // max(USUAL_BEAM, rows)
        for constrained in (False, True):
            places = [place for place, segment in enumerate(segments) if bool(segment.phrases) == constrained]
            lengths = [len(segments[place].source) + 1 for place in places]
            share = max(FEWEST, math.ceil(len(places) / min(number(), self.scorer.most_batches)))
            for batch in by_length(lengths, batch_tokens, min(share, self.decoding.batch_sentences or share)):
                yield [places[index] for index in batch]

    def _of_batch(self, segments: Sequence[Segment]) -> list[list[Hypothesis]]:
        """The hypotheses of the segments of one batch."""
        source, lengths = padded_with_end([segment.source for segment in segments])
        scorer, continuing, columns, ids = self.scorer, self.continuing, None, None
        if self.shortlist is not None:
            ways_out = [] if self.forbidden is None else self.forbidden.ways_out
            required = [segment.required + ways_out for segment in segments]
            columns = self.shortlist.columns(source, required)
            ids = columns.ids
            if continuing is not None:
                places = {token: column for column, token in enumerate(ids.tolist())}
                continuing, segments = continuing[ids], [_in_columns(segment, places) for segment in segments]
        sizes = zip(segments, lengths.tolist(), strict=True)
        longest = [longest_translation(length, self.decoding) + len(segment.required) for segment, length in sizes]
        limits = np.array(longest)
        supplement = None
        if self.decoding.coverage_penalty and self.options.sampling is None:
            supplement = partial(
                coverage_penalty,
                beta=self.decoding.coverage_penalty,
                length_penalty=self.decoding.length_penalty,
            )
        never = [] if self.forbidden is None else [NoForbidden(self.forbidden, limits, ids)]

        def step(tokens: Array, state: Any, wanted: int | None) -> tuple[Scores, Any]:
            check()
            return scorer.step(tokens, state, wanted)

        with scorer.inference():  # of this thread
            hypotheses = search(
                step,
                scorer.start(source, lengths, coverage=supplement is not None, columns=columns),
                self._policy(segments, limits, continuing, ids),
                max_lengths=limits,
                length_penalty=self.decoding.length_penalty,
                n_best=self.options.n_best if self.options.sampling is None else 1,  # of a sample
                rules=[*never, *self._rules(segments, limits, continuing)],
                supplement=supplement,
            )
        if ids is None:
            return hypotheses
        pieces = ids.tolist()
        return [
            [hypothesis._replace(tokens=[pieces[column] for column in hypothesis.tokens]) for hypothesis in best]
            for best in hypotheses
        ]

    def _policy(
        self, segments: Sequence[Segment], limits: Array, continuing: Array | None, ids: Array | None
    ) -> Policy:
        """The policy that the options ask for; `ids`: (columns,), the pieces of a shortlist."""
        sampling, n_best = self.options.sampling, self.options.n_best
        if sampling is not None:
            places, steps = [segment.place for segment in segments], int(limits.max())
            return Draws(keys(sampling.seed, places, samples=n_best, steps=steps), sampling, ids)
        beam_size = self.decoding.beam_size
        if segments[0].phrases:  # and so have all
            assert continuing is not None
            required = [segment.phrases for segment in segments]
            phrases = Phrases(
                [[phrase.tokens for phrase in several] for several in required],
                [[phrase.complete for phrase in several] for several in required],
                continuing,
            )
            prefixes = [segment.prefix for segment in segments]
            closed = np.array([len(prefix.tokens) if prefix.complete else -1 for prefix in prefixes])
            return Banks(phrases, beam_size=beam_size, max_lengths=limits, closed=closed)
        if self.options.diversity:
            return Groups(n_best, beam_size // n_best, self.options.diversity)
        return Beam(beam_size)

    def _rules(self, segments: Sequence[Segment], limits: Array, continuing: Array | None) -> list[Rule]:
        """What may not be written. The maximal lengths, `limits` (segments,), prevail over the minimal length."""
        shortest = [shortest_translation(len(segment.source), self.decoding) for segment in segments]
        rules = rules_of(self.decoding, np.minimum(limits - 1, shortest))
        prefixes = [segment.prefix for segment in segments]
        if continuing is None or not any(prefix.tokens for prefix in prefixes):
            return rules
        complete = [prefix.complete for prefix in prefixes]
        return [*rules, ForcedPrefix([prefix.tokens for prefix in prefixes], complete, continuing)]


def _in_columns(segment: Segment, places: Mapping[int, int]) -> Segment:
    """The segment, with columns in place of target ids."""
    prefix, *phrases = (
        required._replace(tokens=[places[token] for token in required.tokens])
        for required in (segment.prefix, *segment.phrases)
    )
    return segment._replace(prefix=prefix, phrases=phrases)


def by_length(lengths: Sequence[int], batch_tokens: int, most: int) -> Iterator[list[int]]:
    """Indices that go together, longest first: at most `most`, and their number × the longest stays within
    `batch_tokens`, if it can."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if batch and ((len(batch) + 1) * lengths[batch[0]] > batch_tokens or len(batch) == most):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
