"""How a training scores its model on the validation corpus: by loss, and by translating the sources.

It joins training and search, which know nothing of each other.
"""

import torch

from nmt.config import Config
from nmt.data.batching import batches, plan_batches
from nmt.data.corpus import read_lines
from nmt.data.preparation import Prepared
from nmt.decoding.segments import longest_segment
from nmt.decoding.translator import Translator
from nmt.evaluation.metrics import corpus_scores
from nmt.models.seq2seq import Seq2Seq
from nmt.training.distributed import ALONE, Processes
from nmt.training.trainer import Validate
from nmt.training.validation import corpus_loss


def build_validation(
    config: Config, prepared: Prepared, device: torch.device, processes: Processes = ALONE
) -> Validate:
    """The function that returns loss, perplexity and BLEU of a model on `device`; the texts are read now, and kept.

    Each of several processes does its share of the sentences, and has the result of all.
    """
    settings = config.training.validation
    sources = list(read_lines(config.data.valid.source))
    references = list(read_lines(config.data.valid.target))
    valid = prepared.valid
    plan = plan_batches(  # by tokens: validation is not filtered, and one huge line must not pad its neighbours
        valid.source_lengths,
        valid.target_lengths,
        batch_size=config.decoding.batch_tokens,
        batch_by="tokens",
        seed=0,
        epoch=0,
    )

    def validate(model: Seq2Seq) -> dict[str, float]:
        translator = Translator(
            model,
            prepared.vocabularies,
            decoding=config.decoding,
            device=device,
            longest_segment=longest_segment(config.data.max_length),  # as `Translator.load` has it
        )
        rank, size = processes.rank, processes.size
        metrics = corpus_loss(model, batches(valid, plan[rank::size]), processes)
        mine = [best.text for best, *_ in translator.translate(sources[rank::size], beam_size=settings.beam_size)]
        hypotheses = [""] * len(sources)
        for other, texts in enumerate(processes.gather(mine)):
            hypotheses[other::size] = texts
        scores = corpus_scores(
            hypotheses, references, tokenize=settings.tokenize, lowercase=settings.lowercase, metrics=("bleu",)
        )
        return {**metrics, "bleu": scores["bleu"].score}

    return validate
