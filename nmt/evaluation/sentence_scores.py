"""The scores of single sentences by sacreBLEU, where a translation is compared with other translations of its source.

It knows text only. A corpus is scored by `metrics`: the mean of sentence scores is not the score of a corpus.
"""

from collections.abc import Callable

from sacrebleu.metrics import BLEU, CHRF

from nmt.config.schema import SentenceMetric, Tokenizer

SentenceScore = Callable[[str, str], float]
"""The score, from 0 to 100, of a translation against its reference, both detokenized."""


def sentence_score(metric: SentenceMetric, *, tokenize: Tokenizer, lowercase: bool) -> SentenceScore:
    """The score that `sacrebleu --sentence-level` gives a line.

    bleu: BLEU of one sentence, with the settings that sacreBLEU has for it: a precision of 0 counts as 1/2, 1/4, … of
    one match (smoothing exp), and n-grams that are longer than the translation do not count (effective order).
    chrf: chrF2, which `tokenize` does not change.
    """
    if metric == "bleu":
        scorer: BLEU | CHRF = BLEU(tokenize=tokenize, lowercase=lowercase, effective_order=True, force=True)
    else:
        scorer = CHRF(lowercase=lowercase)
    return lambda translation, reference: float(scorer.sentence_score(translation, [reference]).score)
