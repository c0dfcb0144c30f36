"""Pairs of lines in, log-probabilities out, one for each pair in order; with word alignments where they are asked for.

It knows models, subwords and lines; it knows no files. Lines are read a chunk at a time, so texts larger than memory
stream. A score does not depend on the lines around it, beyond rounding.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from nmt.data.words import words_of_line
from nmt.decoding.engines import Ids
from nmt.decoding.forced import Forced, forced_decoding
from nmt.decoding.options import TranslationOptions
from nmt.decoding.text.alignment import SoftAlignment, soft_alignment
from nmt.decoding.translator import Translator
from nmt.errors import UserError

_CHUNK_PAIRS = 2000  # read at once: enough to sort by length with little padding

Pair = tuple[str, str]  # source, target


class Scored(NamedTuple):
    """The score of one pair of lines."""

    log_probability: float  # nats, summed over the pieces of the target and END
    tokens: int  # the pieces and END; 0 for a pair of blank lines
    alignment: SoftAlignment | None = None  # between the words of the two lines, where it was asked for


def score(translator: Translator, pairs: Iterable[Pair], options: TranslationOptions | None = None) -> Iterator[Scored]:
    """The log-probability of each target line given its source line, in their order, and what `options` say of
    alignments.

    A pair of two blank lines scores 0 without asking the model, as `Translator.translate` has it. Of a blank target
    alone the model says how probable it is to write nothing; of a blank source alone, it reads END and nothing else.
    The log-probability of an ensemble is that of its `scorer`, its attention the mean of its models'.

    Raises UserError when the model computes no finite numbers, or has no attention and alignments are asked for.
    """
    how, scorer, vocabularies = options or TranslationOptions(), translator.scorer, translator.vocabularies
    if how.alignments and (why := scorer.without_alignments):
        raise UserError(why)

    def scored(chunk: Sequence[Pair]) -> Iterator[Scored]:
        sources = vocabularies.source.encode_batch([source for source, _ in chunk])
        targets = vocabularies.target.encode_batch([target for _, target in chunk])
        ids: list[tuple[Ids, Ids]] = list(zip(sources, targets, strict=True))
        forced = iter(
            forced_decoding(
                scorer,
                [pair for pair in ids if any(pair)],
                batch_tokens=how.decoding(translator.decoding).batch_tokens,
                attention=how.alignments,
                alignment_step=how.alignment_step,
            )
        )
        for lines, pair in zip(chunk, ids, strict=True):
            log_probability, tokens, weights = next(forced) if any(pair) else Forced(0.0, 0, None)
            alignment = None
            if how.alignments:
                source, target = (words_of_line(*side) for side in zip(lines, vocabularies, strict=True))
                alignment = soft_alignment(weights, source, target, end_links=how.end_links)
            yield Scored(log_probability, tokens, alignment)

    rest = iter(pairs)
    return chain.from_iterable(map(scored, iter(lambda: list(islice(rest, _CHUNK_PAIRS)), [])))
