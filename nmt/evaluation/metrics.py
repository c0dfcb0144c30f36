"""Corpus scores of detokenised translations, by sacreBLEU: BLEU, chrF2 and TER on the 0 to 100 scale with signatures.

It knows two lists of sentences and sacreBLEU; not files, not models, not subwords. Nothing is computed here: each
metric's statistics, their sum and the score are sacreBLEU's one path (Post, 2018, "A Call for Clarity in Reporting
BLEU Scores"), so a number from this toolkit is the number that the `sacrebleu` command gives for the same signature.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, get_args

from sacrebleu.metrics import BLEU, CHRF, TER

from nmt.config.allowed import nearest
from nmt.config.schema import Tokenizer
from nmt.errors import UserError

TOKENIZERS: tuple[str, ...] = get_args(Tokenizer)


class Score(NamedTuple):
    """A corpus score between 0 and 100 (TER may exceed 100) and sacreBLEU's signature of how it was computed."""

    score: float
    signature: str


def _bleu(tokenize: str, lowercase: bool, name: str = "tokenize") -> BLEU:
    """Build BLEU; raises UserError when the tokeniser, given as `name`, is unknown or its parts cannot be had."""
    if tokenize not in TOKENIZERS:
        close = nearest(tokenize, TOKENIZERS)
        hint = f"; did you mean {close!r}?" if close else ""
        raise UserError(f"{name}: {tokenize!r} is unknown; choose one of {', '.join(TOKENIZERS)}{hint}")
    try:
        # force: sacreBLEU's own notice about tokenised text would double the warnings of report.py.
        return BLEU(tokenize=tokenize, lowercase=lowercase, force=True)
    except Exception as error:  # the tokenisers raise whatever their parts do: RuntimeError, URLError, LockException
        if tokenize == "ja-mecab":
            raise UserError(
                f"{name}: 'ja-mecab' needs MeCab with the IPA dictionary: pip install 'sacrebleu[ja]'"
            ) from error
        if tokenize == "flores200":
            raise UserError(
                f"{name}: 'flores200' needs a sentencepiece model that sacreBLEU downloads once into the folder "
                f"$SACREBLEU (default ~/.sacrebleu) under models/, and it could not be had: {error}"
            ) from error
        raise


class _Watched(TER):
    """TER that calls `begin` before each sentence; all it computes is sacreBLEU's."""

    def __init__(self, begin: Callable[[], object]) -> None:
        super().__init__()
        self._begin = begin

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict[str, Any]) -> list[float]:
        self._begin()
        return super()._compute_segment_statistics(hypothesis, ref_kwargs)


class Metric(NamedTuple):
    """One metric: its name in print, which way is better, and how to build it from (tokenize, lowercase, begin)."""

    title: str
    better: Literal["higher", "lower"]
    build: Callable[[str, bool, Callable[[], object]], BLEU | CHRF | TER]


# Each is otherwise sacreBLEU's default. chrF counts characters and TER splits at spaces, so only BLEU has a tokeniser.
# TER ignores case always, as published TER does, and its signature says case:lc.
METRICS = {
    "bleu": Metric("BLEU", "higher", lambda tokenize, lowercase, begin: _bleu(tokenize, lowercase)),
    "chrf": Metric("chrF2", "higher", lambda tokenize, lowercase, begin: CHRF(lowercase=lowercase)),
    "ter": Metric("TER", "lower", lambda tokenize, lowercase, begin: _Watched(begin)),
}


def chosen_metrics(names: str) -> list[str]:
    """The keys of METRICS in a list such as "bleu,chrf". Raises UserError for what is none, is repeated, or nothing."""
    chosen = [name.strip().lower() for name in names.split(",")]
    problems = []
    for name in dict.fromkeys(chosen):
        if name not in METRICS:
            close = nearest(name, list(METRICS))
            hint = f"; did you mean {close}?" if close else ""
            problems.append(f"--metrics: {name!r} is unknown; choose from {', '.join(METRICS)}{hint}")
        elif chosen.count(name) > 1:
            problems.append(f"--metrics: {name} is given more than once")
    if problems:
        raise UserError(*problems)
    return chosen


def check_tokenizer(tokenize: str, name: str = "--tokenize") -> None:
    """Raise UserError unless BLEU can tokenise so here; to be asked before hours of work, not after.

    `name` is the option or key that it was given as; the message begins with it.
    """
    _bleu(tokenize, False, name)


def corpus_scores(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    tokenize: str = "13a",
    lowercase: bool = False,
    metrics: Sequence[str] = tuple(METRICS),
    begin: Callable[[], object] = lambda: None,
) -> dict[str, Score]:
    """Score a corpus: hypothesis i against the one reference i, both detokenised text.

    `tokenize` is BLEU's tokeniser, one of TOKENIZERS. `metrics` are keys of METRICS; the result has the same keys in
    the same order. `begin` is called before each sentence of TER, which may take minutes for one.
    Higher is better for BLEU and chrF, lower for TER (edits per 100 reference words).

    Raises UserError when the tokeniser is unknown or cannot be had, ValueError when there are no sentences or the
    two lists differ in length.
    """
    if not hypotheses or len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} hypotheses and {len(references)} references cannot be scored")
    scores = {}
    for name, metric in [(name, METRICS[name].build(tokenize, lowercase, begin)) for name in metrics]:
        score = metric.corpus_score(hypotheses, [references]).score
        scores[name] = Score(score, str(metric.get_signature()))
    return scores
