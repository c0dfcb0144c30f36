"""How training scores its model on the validation corpus: by the loss, and by translating the sources.

It joins training and search, which know nothing of each other.
"""

from collections.abc import Sequence
from itertools import chain

import torch

from nmt.cli.common import enough_memory
from nmt.config import Config
from nmt.data.batching import read_batch
from nmt.data.corpus import read_lines
from nmt.data.preparation import Prepared
from nmt.decoding.forced import forced_decoding
from nmt.decoding.text.segments import longest_segment
from nmt.decoding.translator import Translator
from nmt.evaluation.metrics import METRICS, corpus_scores
from nmt.models.seq2seq import Seq2Seq
from nmt.symbols import END, PIECES
from nmt.training.corpus_loss import Validate, Validation, corpus_loss, plan_validation
from nmt.training.distributed import ALONE, Processes
from nmt.training.samples import Sample, chosen


def build_validation(
    config: Config, prepared: Prepared, device: torch.device, processes: Processes = ALONE
) -> Validate:
    """The function that returns loss, perplexity and BLEU of a model on `device`, and some translations with their
    attention; the texts are read now, and kept.

    Each of several processes does its share of the sentences, and has the metrics of all.
    """
    settings = config.training.validation
    files = (config.data.valid.source, config.data.valid.target)
    sources, references = (
        list(read_lines(path, expected=digest)) for path, digest in zip(files, prepared.valid_digests, strict=True)
    )
    references = [prepared.vocabularies.target.whole_words(line) for line in references]
    valid = prepared.valid
    steering = [name for name, metric in METRICS.items() if metric.steers]
    plan = plan_validation(valid, batch_tokens=config.decoding.batch_tokens)
    places = chosen(valid.source_lengths, settings.samples)
    advice = _advice(config, prepared)

    def validate(model: Seq2Seq) -> Validation:
        translator = Translator(
            [model],
            prepared.vocabularies,
            decoding=config.decoding,
            device=device,
            longest_segment=longest_segment(config.data.max_length),  # as `Translator.load` has it
        )
        rank, size = processes.rank, processes.size
        with enough_memory(advice, what=" for validation"):
            metrics = corpus_loss(model, (read_batch(valid, rows) for rows in plan[rank::size]), processes)
            mine = [best for best, *_ in translator.translate(sources[rank::size], beam_size=settings.beam_size)]
        hypotheses = [""] * len(sources)
        for other, texts in enumerate(processes.gather([best.text for best in mine])):
            hypotheses[other::size] = texts
        shares = processes.gather([(place, mine[place // size].ids) for place in places if place % size == rank])
        scores = corpus_scores(
            hypotheses, references, tokenize=settings.tokenize, lowercase=settings.lowercase, metrics=steering
        )
        samples: list[Sample] = []
        if processes.is_first:
            lines = [(sources[place], references[place], hypotheses[place]) for place in places]
            ids = dict(chain.from_iterable(shares))
            with enough_memory(advice, what=" for validation"):
                samples = _samples(translator, lines, [ids[place] for place in places])
        return Validation({**metrics, **{name: score.score for name, score in scores.items()}}, samples)

    return validate


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
            weights=None if attention is None else attention.numpy(),
        )
        for texts, (source, target), attention in zip(lines, pairs, weights, strict=True)
    ]


def _advice(config: Config, prepared: Prepared) -> str:
    """What helps if there is not enough memory."""
    source, target = prepared.valid.source_lengths.max(initial=0), prepared.valid.target_lengths.max(initial=0)
    beam_size = config.training.validation.beam_size
    return (
        f"lower decoding.batch_tokens ({config.decoding.batch_tokens})"
        f"{f' or training.validation.beam_size ({beam_size})' if beam_size > 1 else ''}, or shorten the longest lines "
        f"of {config.data.valid.source} and {config.data.valid.target} ({source:,} and {target:,} pieces)"
    )
