"""Corpus scores of detokenized translations by sacreBLEU: BLEU, chrF2, chrF2++ and TER, from 0 to 100, with signatures.

It knows two lists of sentences and sacreBLEU, but no files, models or subwords. Nothing is computed here: statistics,
their sums and scores all come from sacreBLEU (Post, 2018, "A Call for Clarity in Reporting BLEU Scores"), so this
toolkit reports the number that the `sacrebleu` command gives for the same signature.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, NamedTuple, get_args

from sacrebleu.metrics import BLEU, CHRF, TER

from nmt.config.problems import unknown_choice
from nmt.config.schema import Tokenizer
from nmt.errors import UserError

TOKENIZERS: tuple[str, ...] = get_args(Tokenizer)
Watched = Callable[[], AbstractContextManager[object]]  # a new block for each sentence


class Score(NamedTuple):
    """A corpus score between 0 and 100 (TER may exceed 100) and sacreBLEU's signature of how it was computed."""

    score: float
    signature: str


def _bleu(tokenize: str, lowercase: bool, name: str = "tokenize") -> BLEU:
    """Build BLEU. Raises UserError when the tokenizer, set by the option `name`, is unknown or a part is missing."""
    if tokenize not in TOKENIZERS:
        raise UserError(f"{name}: {unknown_choice(tokenize, TOKENIZERS)}")
    try:
        # force: sacreBLEU's notice about tokenized text would repeat those of text_warnings.py.
        return BLEU(tokenize=tokenize, lowercase=lowercase, force=True)
    except Exception as error:  # tokenizers raise all kinds: RuntimeError, URLError, LockException
        if tokenize == "ja-mecab":
            raise UserError(
                f"{name}: 'ja-mecab' needs MeCab with the IPA dictionary: pip install 'sacrebleu[ja]'"
            ) from error
        if tokenize == "flores200":
            raise UserError(
                f"{name}: 'flores200' needs a sentencepiece model that sacreBLEU downloads once into models/ under "
                f"$SACREBLEU (default ~/.sacrebleu), but that failed: {error}"
            ) from error
        raise


class _WatchedTER(TER):
    """sacreBLEU's TER, which here computes each sentence inside of `watched()`."""

    def __init__(self, watched: Watched) -> None:
        super().__init__()
        self._watched = watched

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict[str, Any]) -> list[float]:
        with self._watched():
            return super()._compute_segment_statistics(hypothesis, ref_kwargs)


class Metric(NamedTuple):
    """One metric: its printed name, which way is better, and how to build it from (tokenize, lowercase, watched)."""

    title: str
    better: Literal["higher", "lower"]
    steers: bool  # whether training measures it at every validation, so that it may choose models, rates and the end
    build: Callable[[str, bool, Watched], BLEU | CHRF | TER]


# All other settings are sacreBLEU's defaults. chrF counts characters, chrF++ words and pairs of words too, and TER
# splits at spaces, so only BLEU has a tokenizer. TER always ignores case, as published TER does, and its signature says
# case:lc.
METRICS = {
    "bleu": Metric("BLEU", "higher", True, lambda tokenize, lowercase, watched: _bleu(tokenize, lowercase)),
    "chrf": Metric("chrF2", "higher", False, lambda tokenize, lowercase, watched: CHRF(lowercase=lowercase)),
    "chrf++": Metric(
        "chrF2++", "higher", False, lambda tokenize, lowercase, watched: CHRF(word_order=2, lowercase=lowercase)
    ),
    "ter": Metric("TER", "lower", False, lambda tokenize, lowercase, watched: _WatchedTER(watched)),
}
USUAL = ("bleu", "chrf", "ter")  # unless others are asked for


def chosen_metrics(names: str) -> list[str]:
    """The keys of METRICS in a list such as "bleu,chrf". Raises UserError for unknown or repeated names."""
    chosen = [name.strip().lower() for name in names.split(",")]
    problems = []
    for name in dict.fromkeys(chosen):
        if name not in METRICS:
            elsewhere = "; the scores of COMET are read with --comet FILE" if name == "comet" else ""
            problems.append(f"--metrics: {unknown_choice(name, list(METRICS))}{elsewhere}")
        elif chosen.count(name) > 1:
            problems.append(f"--metrics: {name} is given more than once")
    if problems:
        raise UserError(*problems)
    return chosen


def check_tokenizer(tokenize: str, name: str = "--tokenize") -> None:
    """Raise UserError unless this tokenizer works here: a check for before hours of work, not after.

    `name` is the option or key that set it; the message begins with it.
    """
    _bleu(tokenize, False, name)


def is_too_short(lines: Sequence[str], *, tokenize: str) -> bool:
    """Whether no line has the four words that BLEU counts together; of such hypotheses it is 0."""
    bleu = _bleu(tokenize, False)
    return not any(len(bleu.tokenizer(line.rstrip()).split()) >= bleu.max_ngram_order for line in lines)


def corpus_scores(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    tokenize: str = TOKENIZERS[0],
    lowercase: bool = False,
    metrics: Sequence[str] = USUAL,
    watched: Watched = nullcontext,
) -> dict[str, Score]:
    """Score a corpus: hypothesis i against the single reference i, both detokenized text.

    `tokenize` is BLEU's tokenizer, one of TOKENIZERS. `metrics` are keys of METRICS; the result has the same keys in
    the same order. Each sentence of TER, which may take minutes, is computed inside of `watched()`.
    Higher is better for BLEU and chrF, lower for TER (edits per 100 reference words).

    Raises UserError when the tokenizer is unknown or unavailable, ValueError when there are no sentences or the two
    lists differ in length.
    """
    if not hypotheses or len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} hypotheses and {len(references)} references cannot be scored")
    scores = {}
    for name, metric in [(name, METRICS[name].build(tokenize, lowercase, watched)) for name in metrics]:
        score = metric.corpus_score(hypotheses, [references]).score
        scores[name] = Score(score, str(metric.get_signature()))
    return scores
