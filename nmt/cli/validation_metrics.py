"""How training scores its model on the validation corpus: by the loss, and by translating the sources.

It joins training and search, which know nothing of each other.
"""

import torch

from nmt.cli.common import enough_memory
from nmt.config import Config
from nmt.data.batching import read_batch
from nmt.data.corpus import read_lines
from nmt.data.preparation import Prepared
from nmt.decoding.text.segments import longest_segment
from nmt.decoding.translator import Translator
from nmt.evaluation.metrics import METRICS, corpus_scores
from nmt.models.seq2seq import Seq2Seq
from nmt.training.corpus_loss import Validate, corpus_loss, plan_validation
from nmt.training.distributed import ALONE, Processes


def build_validation(
    config: Config, prepared: Prepared, device: torch.device, processes: Processes = ALONE
) -> Validate:
    """The function that returns loss, perplexity and BLEU of a model on `device`; the texts are read now, and kept.

    Each of several processes does its share of the sentences, and has the result of all.
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
    advice = _advice(config, prepared)

    def validate(model: Seq2Seq) -> dict[str, float]:
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
            mine = [best.text for best, *_ in translator.translate(sources[rank::size], beam_size=settings.beam_size)]
        hypotheses = [""] * len(sources)
        for other, texts in enumerate(processes.gather(mine)):
            hypotheses[other::size] = texts
        scores = corpus_scores(
            hypotheses, references, tokenize=settings.tokenize, lowercase=settings.lowercase, metrics=steering
        )
        return {**metrics, **{name: score.score for name, score in scores.items()}}

    return validate


def _advice(config: Config, prepared: Prepared) -> str:
    """What helps if there is not enough memory."""
    source, target = prepared.valid.source_lengths.max(initial=0), prepared.valid.target_lengths.max(initial=0)
    beam_size = config.training.validation.beam_size
    return (
        f"lower decoding.batch_tokens ({config.decoding.batch_tokens})"
        f"{f' or training.validation.beam_size ({beam_size})' if beam_size > 1 else ''}, or shorten the longest lines "
        f"of {config.data.valid.source} and {config.data.valid.target} ({source:,} and {target:,} pieces)"
    )
