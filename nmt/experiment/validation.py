"""How training scores its model on the validation corpus: by the loss, and by translating the sources.

It joins training and search, which know nothing of each other.
"""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import torch

from nmt.config.schema import Config
from nmt.data.batch import Indices
from nmt.data.batching import read_batch
from nmt.data.prepare import Prepared
from nmt.data.store import PairedIds
from nmt.data.subwords import Subwords
from nmt.decoding.doubts import Doubts
from nmt.decoding.forced import forced_decoding
from nmt.decoding.text.segments import longest_segment
from nmt.decoding.translator import Translator
from nmt.decoding.writing import Translation
from nmt.evaluation.metrics import corpus_scores
from nmt.models.seq2seq import Seq2Seq
from nmt.ops.memory import enough_memory
from nmt.processes import ALONE, Processes
from nmt.symbols import END, PIECES
from nmt.training.corpus_loss import Validate, Validation, corpus_loss, plan_validation
from nmt.training.optim import measured_metrics
from nmt.training.samples import Sample, chosen


class _Scored(NamedTuple):
    """A corpus that every validation scores: the texts are read at the beginning, and kept."""

    ids: PairedIds
    sources: list[str]
    references: list[str]
    plan: list[Indices]


def build_validation(
    config: Config, prepared: Prepared, device: torch.device, processes: Processes = ALONE
) -> Validate:
    """The function that returns loss, perplexity, BLEU, and what else steers, of a model on `device`, and some
    translations with their attention; for watched corpora the same numbers by their names, such as old.bleu.

    Each of several processes does its share of the sentences, and has the metrics of all.
    """
    settings, batch_tokens = config.training.validation, config.decoding.batch_tokens
    subwords = prepared.vocabularies.target
    valid = _scored(prepared.valid, subwords, batch_tokens)
    watched = {name: _scored(ids, subwords, batch_tokens) for name, ids in prepared.watched.items()}
    measured = measured_metrics(config.training)
    places = chosen(valid.ids.source_lengths, settings.samples)
    advice = (
        "lower decoding.batch_tokens or training.validation.beam_size, or shorten the longest lines of data.valid and "
        "data.watch"
    )

    def score(
        model: Seq2Seq, translator: Translator, corpus: _Scored
    ) -> tuple[dict[str, float], list[str], list[Translation]]:
        """The metrics, the translations of all processes as texts, and those of this one."""
        rank, size = processes.rank, processes.size
        with enough_memory(advice, what=" for validation"):
            metrics = corpus_loss(model, (read_batch(corpus.ids, rows) for rows in corpus.plan[rank::size]), processes)
            translations = translator.translate(
                corpus.sources[rank::size],
                beam_size=settings.beam_size,
                split_sentences=False,  # so that nobody looks for sentences
                doubts=Doubts(),  # which are no news here
            )
            mine = [best for best, *_ in translations]
        hypotheses = [""] * len(corpus.sources)
        for other, texts in enumerate(processes.gather([best.text for best in mine])):
            hypotheses[other::size] = texts
        scores = corpus_scores(
            hypotheses, corpus.references, tokenize=settings.tokenize, lowercase=settings.lowercase, metrics=measured
        )
        return {**metrics, **{name: score.score for name, score in scores.items()}}, hypotheses, mine

    def validate(model: Seq2Seq) -> Validation:
        translator = Translator(
            [model],
            prepared.vocabularies,
            decoding=config.decoding,
            device=device,
            longest_segment=longest_segment(config.data.max_length),  # as `Translator.load` has it
            learned=prepared.learned,
        )
        metrics, hypotheses, mine = score(model, translator, valid)
        rank, size = processes.rank, processes.size
        shares = processes.gather([(place, mine[place // size].ids) for place in places if place % size == rank])
        samples: list[Sample] = []
        if processes.is_first:
            lines = [(valid.sources[place], valid.references[place], hypotheses[place]) for place in places]
            ids = dict(chain.from_iterable(shares))
            with enough_memory(advice, what=" for validation"):
                samples = _samples(translator, lines, [ids[place] for place in places])
        for name, corpus in watched.items():
            numbers, *_ = score(model, translator, corpus)
            metrics |= {f"{name}.{metric}": value for metric, value in numbers.items()}
        return Validation(metrics, samples, hypotheses)

    return validate


def _scored(ids: PairedIds, subwords: Subwords, batch_tokens: int) -> _Scored:
    texts = [ids.text(row) for row in range(len(ids))]
    sources, references = [source for source, _ in texts], [subwords.whole_words(target) for _, target in texts]
    return _Scored(ids, sources, references, plan_validation(ids, batch_tokens=batch_tokens))


def _samples(
    translator: Translator, lines: Sequence[tuple[str, str, str]], translations: Sequence[Sequence[int]]
) -> list[Sample]:
    """What is shown of source, reference and translation of some sentences: the attention with which the
    `translations`, as the search wrote them, are written when the model is made to write them again."""
    source_subwords, target_subwords = translator.vocabularies
    sources = [source_subwords.encode(source) for source, _, _ in lines]
    pairs = list(zip(sources, translations, strict=True))
    aligns = translator.scorer.without_attention is None
    forced = forced_decoding(
        translator.scorer, pairs if aligns else [], batch_tokens=translator.decoding.batch_tokens, attention=True
    )
    weights = [one.weights for one in forced] if aligns else [None] * len(pairs)
    return [
        Sample(
            *texts,
            source_pieces=[*source_subwords.pieces(source), PIECES[END]],
            target_pieces=target_subwords.pieces(target),
            weights=attention,
        )
        for texts, (source, target), attention in zip(lines, pairs, weights, strict=True)
    ]
