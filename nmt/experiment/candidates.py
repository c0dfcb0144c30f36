"""The candidates of minimum risk training: how the present model translates the sources of a batch, at what cost.

It joins training, search and metrics, which know nothing of one another.
"""

from functools import cache

from nmt.config.schema import Config, SamplingConfig
from nmt.data.batch import Batch, Candidates, make_candidates
from nmt.data.subwords import Vocabularies
from nmt.decoding.batched_search import Search
from nmt.decoding.options import TranslationOptions
from nmt.decoding.scorer import Scorer
from nmt.decoding.text.segments import Segment
from nmt.errors import UserError
from nmt.evaluation.metrics import sentence_score
from nmt.models.seq2seq import Seq2Seq
from nmt.training.divergence import Diverged
from nmt.training.trainer import MakeCandidates


def build_candidates(config: Config, vocabularies: Vocabularies) -> MakeCandidates | None:
    """The function that gives a batch its candidates as `training.minimum_risk` says; None without it.

    They are searched or sampled as `decoding` has it, without dropout. What is sampled for a pair depends on the model,
    the seed, the update, and the place of the pair in the corpus, and on nothing else beyond the rounding of float32.
    The costs compare the texts of pieces, so that what no piece stands for, such as an unknown word, costs nothing.
    """
    settings, validation = config.training.minimum_risk, config.training.validation
    if settings is None:
        return None
    is_sampled, size, subwords = settings.candidates == "sampled", settings.size, vocabularies.target
    sampling = SamplingConfig(temperature=settings.temperature, seed=config.seed) if is_sampled else None
    decoding = config.decoding if is_sampled else config.decoding.model_copy(update={"beam_size": size})
    options = TranslationOptions(n_best=size, sampling=sampling)
    score = sentence_score(settings.metric, tokenize=validation.tokenize, lowercase=validation.lowercase)

    def translations(model: Seq2Seq, batch: Batch, update: int) -> list[list[list[int]]]:
        """Of each source the ids of what was sampled, or of its n-best list."""
        sources = [ids[: length - 1] for ids, length in zip(batch.source.tolist(), batch.source_lengths, strict=True)]
        places = [(update, int(index)) for index in batch.indices]
        segments = [Segment(ids, place) for ids, place in zip(sources, places, strict=True)]
        search = Search(scorer=Scorer([model]), decoding=decoding, options=options)
        try:
            return [[hypothesis.tokens for hypothesis in several] for several in search.hypotheses(segments)]
        except UserError as error:
            raise Diverged("the model computes no numbers to choose candidates by") from error

    def candidates(model: Seq2Seq, batch: Batch, update: int) -> Candidates:
        rows: list[list[list[int]]] = []
        costs: list[list[float]] = []
        targets = zip(batch.target.tolist(), batch.target_lengths.tolist(), strict=True)
        for (ids, length), written in zip(targets, translations(model, batch, update), strict=True):
            reference = ids[1:length]
            text = subwords.decode(reference)
            cost = cache(lambda translation, text=text: 1.0 - score(translation, text) / 100.0)
            others = list(map(list, dict.fromkeys(map(tuple, written))))
            if settings.include_reference:
                others = [translation for translation in others if translation != reference]
            rows.append([reference, *others])
            costs.append([0.0, *(cost(subwords.decode(translation)) for translation in others)])
        return make_candidates(rows, costs)

    return candidates
