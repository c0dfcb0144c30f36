"""Segments in, hypotheses out: segments of similar length share a batch, which is searched as the options say.

It knows models and searches; of segments it reads the ids, never the text. The hypotheses of a segment do not depend on
its batch, beyond the rounding of float32.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

import torch
from torch import Tensor

from nmt.config.schema import DecodingConfig, SamplingConfig
from nmt.data.batching import pad_with_end
from nmt.decoding.batches import batches
from nmt.decoding.scorer import Scorer, ScorerState, coverage_penalty
from nmt.decoding.search.beam import beam_search
from nmt.decoding.search.choices import NotNumbersError
from nmt.decoding.search.constrained import Bounds, constrained_search
from nmt.decoding.search.diverse import diverse_search
from nmt.decoding.search.hypotheses import Hypothesis
from nmt.decoding.search.phrases import Phrases
from nmt.decoding.search.rules import (
    ForcedPrefix,
    MinimumLength,
    NoLongerWord,
    NoRepeatedNgrams,
    NoUnknown,
    Rule,
)
from nmt.decoding.search.sampling import numbers, sample
from nmt.decoding.shortlist import Columns, Shortlist
from nmt.decoding.text.segments import Segment
from nmt.decoding.threads import MOST, check, side_by_side
from nmt.errors import UserError
from nmt.ops.memory import in_halves
from nmt.symbols import PAD, UNKNOWN

USUAL_BEAM = 5  # the largest beam with which batches are as large as batch_tokens says


def longest_translation(source: int, decoding: DecodingConfig) -> int:
    """The most tokens, END counted, of a translation of `source` tokens, END counted."""
    return math.ceil(decoding.max_length_ratio * source) + 10


@dataclass(frozen=True, kw_only=True)
class Search:
    """How segments are searched."""

    scorer: Scorer
    decoding: DecodingConfig
    n_best: int = 1
    sampling: SamplingConfig | None = None  # to draw n_best translations instead of searching for them
    diversity: float = 0.0  # of n-best lists, more than 0 for a diverse search; neither for sampling nor with phrases
    shortlist: Shortlist | None = None  # the pieces that may be written; those of prefixes and phrases may be besides
    continuing: Tensor | None = None  # (vocabulary,), the pieces that make a word longer; for prefixes and phrases
    device: torch.device | str = "cpu"

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
                most = MOST if self.scorer.is_packed else 1  # else several would read the same weights, each for itself
                by_batch = side_by_side(partial(in_halves, self._of_batch), batches, most=most)
            if not all(chain(*by_batch)):
                raise NotNumbersError("the model gives every translation of a line the probability 0")
        except NotNumbersError as error:
            raise UserError(
                f"{error}: its weights are not finite, or far too large, as after a training that diverged; "
                "give an earlier model"
            ) from error
        by_place = dict(zip(chain(*places), chain(*by_batch), strict=True))
        return [by_place[place] for place in range(len(segments))]

    def _batches(self, segments: Sequence[Segment]) -> Iterator[list[int]]:
        """The places of segments that are searched together."""
        rows = self.decoding.beam_size if self.sampling is None else self.n_best  # of a segment
        batch_tokens = self.decoding.batch_tokens * USUAL_BEAM // max(USUAL_BEAM, rows)
        for constrained in (False, True):
            places = [place for place, segment in enumerate(segments) if bool(segment.phrases) == constrained]
            lengths = [len(segments[place].source) + 1 for place in places]
            for batch in batches(lengths, batch_tokens, self.decoding.batch_sentences):
                yield [places[index] for index in batch]

    def _of_batch(self, segments: Sequence[Segment]) -> list[list[Hypothesis]]:
        """The hypotheses of the segments of one batch."""
        source, lengths = pad_with_end([segment.source for segment in segments])
        scorer, continuing, columns = self.scorer, self.continuing, None
        if self.shortlist is not None:
            columns = self.shortlist.columns(source, [_required(segment) for segment in segments], self.device)
            scorer, segments = Scorer(scorer.models, columns), [_in_columns(segment, columns) for segment in segments]
            continuing = None if continuing is None else continuing.to(self.device)[columns.ids]
        longest = [longest_translation(length, self.decoding) for length in lengths.tolist()]
        limits = torch.tensor(longest, device=self.device)
        covers = bool(self.decoding.coverage_penalty) and self.sampling is None
        state = scorer.start(source.to(self.device), lengths.to(self.device), coverage=covers)

        def step(tokens: Tensor, state: ScorerState) -> tuple[Tensor, ScorerState]:
            check()
            return scorer.step(tokens, state)

        search, rules = self._kind(segments, limits, continuing), self._rules(segments, limits, continuing)
        hypotheses = search(step, state, length_penalty=self.decoding.length_penalty, max_lengths=limits, rules=rules)
        if columns is None:
            return hypotheses
        ids = columns.ids.tolist()
        return [[_of_ids(hypothesis, ids) for hypothesis in best] for best in hypotheses]

    def _kind(
        self, segments: Sequence[Segment], limits: Tensor, continuing: Tensor | None
    ) -> Callable[..., list[list[Hypothesis]]]:
        """The kind of search that the options ask for, with the arguments that it alone takes."""
        if self.sampling is not None:
            places, steps = [segment.place for segment in segments], int(limits.max())
            drawn = numbers(self.sampling.seed, places, samples=self.n_best, steps=steps)
            return partial(sample, numbers=drawn, sampling=self.sampling)
        beam_size, n_best = self.decoding.beam_size, self.n_best
        covers = partial(coverage_penalty, beta=self.decoding.coverage_penalty)
        supplement = covers if self.decoding.coverage_penalty else None
        if segments[0].phrases:
            bounds = self._bounds(segments, continuing)
            return partial(constrained_search, bounds=bounds, beam_size=beam_size, n_best=n_best, supplement=supplement)
        if self.diversity:
            size = beam_size // n_best
            return partial(
                diverse_search, groups=n_best, group_size=size, strength=self.diversity, supplement=supplement
            )
        return partial(beam_search, beam_size=beam_size, n_best=n_best, supplement=supplement)

    def _rules(self, segments: Sequence[Segment], limits: Tensor, continuing: Tensor | None) -> list[Rule]:
        """What may not be written. The maximal lengths, `limits` (segments,), prevail over the minimal length."""
        rules: list[Rule] = []
        if self.decoding.minimum_length:
            rules.append(MinimumLength((limits - 1).clamp(max=self.decoding.minimum_length)))
        if self.decoding.no_repeat_ngram_size:
            rules.append(NoRepeatedNgrams(self.decoding.no_repeat_ngram_size))
        if self.decoding.suppress_unknown:
            rules.append(NoUnknown())
        prefixes = [segment.prefix for segment in segments]
        if continuing is None or not any(prefix.tokens for prefix in prefixes):
            return rules
        lengths = torch.tensor([len(prefix.tokens) for prefix in prefixes], device=self.device)
        padded = [prefix.tokens + [PAD] * (int(lengths.max()) - len(prefix.tokens)) for prefix in prefixes]
        complete = torch.tensor([prefix.complete for prefix in prefixes], device=self.device)
        forced = ForcedPrefix(torch.tensor(padded, device=self.device), lengths)
        return [*rules, NoLongerWord(lengths, complete, continuing.to(self.device)), forced]

    def _bounds(self, segments: Sequence[Segment], continuing: Tensor | None) -> Bounds:
        """The phrases of `segments`, which all have some, and what may follow them."""
        assert self.continuing is not None
        assert continuing is not None
        phrases = Phrases([[phrase.tokens for phrase in segment.phrases] for segment in segments], self.device)
        complete = torch.zeros_like(phrases.lengths, dtype=torch.bool)
        for row, segment in enumerate(segments):
            ends = [phrase.complete for phrase in segment.phrases]
            complete[row, : len(ends)] = torch.tensor(ends, device=self.device)
        continuing = continuing.to(self.device).clone()
        # Where any piece does, UNKNOWN may make a word longer; not in a word model.
        continuing[UNKNOWN] = bool(self.continuing.any())
        return Bounds(phrases, complete, continuing)


def _of_ids(hypothesis: Hypothesis, ids: Sequence[int]) -> Hypothesis:
    """The hypothesis, with the `ids` of columns in place of columns."""
    return hypothesis._replace(tokens=[ids[column] for column in hypothesis.tokens])


def _required(segment: Segment) -> list[int]:
    """The ids that its prefix and phrases need."""
    return segment.prefix.tokens + [token for phrase in segment.phrases for token in phrase.tokens]


def _in_columns(segment: Segment, columns: Columns) -> Segment:
    """The segment, with columns in place of target ids."""
    if not _required(segment):
        return segment
    phrases = [phrase._replace(tokens=columns.places(phrase.tokens)) for phrase in segment.phrases]
    return segment._replace(
        prefix=segment.prefix._replace(tokens=columns.places(segment.prefix.tokens)), phrases=phrases
    )
