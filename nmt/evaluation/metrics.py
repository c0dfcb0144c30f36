"""Scores of detokenized translations, with signatures: BLEU, chrF2, chrF2++ and TER by sacreBLEU, accuracy and CER.

It knows sentences and sacreBLEU, but no files, models or subwords. Statistics, their sums and scores come from
sacreBLEU (Post, 2018, "A Call for Clarity in Reporting BLEU Scores"), so this toolkit reports the number that the
`sacrebleu` command gives for the same signature; accuracy and CER, which it lacks, have its interface. What a sentence,
a group of sentences, a corpus, or a bootstrap sample scores is computed from the same statistics: see `Counted`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple, get_args

from sacrebleu.metrics import BLEU, CHRF, TER, base

from nmt import __version__
from nmt.config.problems import unknown_choice
from nmt.config.schema import SentenceMetric, Tokenizer
from nmt.errors import UserError, refuse

TOKENIZERS: tuple[str, ...] = get_args(Tokenizer)
SentenceScore = Callable[[str, str], float]
"""The score, from 0 to 100, of a translation against its reference, both detokenized."""


class Metric(NamedTuple):
    """One metric: its printed name, which way is better, how to build it from (tokenize, lowercase), and, once it was
    built, the signature of how scores are computed."""

    title: str
    better: Literal["higher", "lower"]
    build: Callable[[str, bool], base.Metric]
    signature: str = ""


class _Rate(base.Metric):
    """100 Σ n / Σ m over sentences, where `counts` gives (n, m) of a translation and its references."""

    def __init__(
        self, title: str, lowercase: bool, counts: Callable[[str, Sequence[str]], tuple[float, float]]
    ) -> None:
        super().__init__()
        self.title, self.lowercase, self.counts = title, lowercase, counts

    def _preprocess_segment(self, sent: str) -> str:
        return (sent.lower() if self.lowercase else sent).strip()

    def _extract_reference_info(self, refs: Sequence[str]) -> dict[str, Any]:
        return {"references": refs}

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict[str, Any]) -> list[float]:
        return [*self.counts(hypothesis, ref_kwargs["references"])]

    def _aggregate_and_compute(self, stats: Any) -> base.Score:
        return self._compute_score_from_stats([sum(column) for column in zip(*stats, strict=True)])

    def _compute_score_from_stats(self, stats: Any) -> base.Score:
        part, whole = map(float, stats)
        return base.Score(self.title, 100.0 * (part / whole if whole else part > 0))

    def get_signature(self) -> base.Signature:
        signature = super().get_signature()
        signature.update("case", "lc" if self.lowercase else "mixed")
        signature.update("version", f"nmt-toolkit-{__version__}")
        return signature


def _is_equal(translation: str, references: Sequence[str]) -> tuple[float, float]:
    """Accuracy: of sentences, those that equal a reference, but for white space at both ends."""
    return float(translation in references), 1.0


def _edited(translation: str, references: Sequence[str]) -> tuple[float, float]:
    """Character error rate: edits to the nearest reference, per character of the references' mean length, as in TER."""
    fewest = min(_distance(translation, reference) for reference in references)
    return float(fewest), sum(map(len, references)) / len(references)


def _distance(first: str, second: str) -> int:
    """How many code points are inserted, deleted, or replaced (Levenshtein 1966).

    With D_ij for the first i and j code points: D_ij = min(D_{i-1,j-1} + [a_i ≠ b_j], D_{i-1,j} + 1, D_{i,j-1} + 1).
    """
    import numpy as np  # only here: scores of sacreBLEU do without

    codes, columns = np.array([ord(character) for character in second], dtype=np.int64), np.arange(len(second) + 1)
    row = columns
    for length, character in enumerate(first, 1):
        best = np.minimum(row[:-1] + (codes != ord(character)), row[1:] + 1)
        row = np.minimum.accumulate(np.concatenate(([length], best)) - columns) + columns
    return int(row[-1])


def _bleu(tokenize: str, lowercase: bool, name: str = "tokenize") -> BLEU:
    """Build BLEU. Raises UserError when the tokenizer, set by the option `name`, is unknown or a part is missing."""
    if tokenize not in TOKENIZERS:
        raise UserError(f"{name}: {unknown_choice(tokenize, TOKENIZERS)}")
    try:
        # force: sacreBLEU's notice about tokenized text would repeat those of text_warnings.py.
        return BLEU(tokenize=tokenize, lowercase=lowercase, force=True)
    except Exception as error:  # tokenizers raise all kinds: RuntimeError, URLError, LockException
        needs = {
            "ja-mecab": "MeCab with the IPA dictionary: pip install 'sacrebleu[ja]'",
            "flores200": "a sentencepiece model that sacreBLEU downloads once into models/ under $SACREBLEU (default "
            f"~/.sacrebleu), but that failed: {error}",
        }
        if tokenize not in needs:
            raise
        raise UserError(f"{name}: {tokenize!r} needs {needs[tokenize]}") from error


# All other settings are sacreBLEU's defaults. chrF counts characters, chrF++ words and pairs of words too, and TER
# splits at spaces, so only BLEU has a tokenizer. TER always ignores case, as published TER does, and its signature says
# case:lc.
METRICS = {
    "bleu": Metric("BLEU", "higher", _bleu),
    "chrf": Metric("chrF2", "higher", lambda tokenize, lowercase: CHRF(lowercase=lowercase)),
    "chrf++": Metric("chrF2++", "higher", lambda tokenize, lowercase: CHRF(word_order=2, lowercase=lowercase)),
    "ter": Metric("TER", "lower", lambda tokenize, lowercase: TER()),
    "accuracy": Metric("accuracy", "higher", lambda tokenize, lowercase: _Rate("accuracy", lowercase, _is_equal)),
    "cer": Metric("CER", "lower", lambda tokenize, lowercase: _Rate("CER", lowercase, _edited)),
}
USUAL = ("bleu", "chrf", "ter")  # unless others are asked for


def chosen_metrics(names: str) -> list[str]:
    """The keys of METRICS in a list such as "bleu,chrf". Raises UserError for unknown or repeated names."""
    chosen = [name.strip().lower() for name in names.split(",")]
    problems = [f"--metrics: {unknown_choice(name, list(METRICS))}" for name in chosen if name not in METRICS]
    problems += [f"--metrics: {name} is given more than once" for name in METRICS if chosen.count(name) > 1]
    refuse(problems)
    return chosen


def check_tokenizer(tokenize: str, name: str = "--tokenize") -> None:
    """Raise UserError unless this tokenizer works here: a check for before hours of work, not after.

    `name` is the option or key that set it; the message begins with it.
    """
    _bleu(tokenize, False, name)


def corpus_scores(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    tokenize: str = TOKENIZERS[0],
    lowercase: bool = False,
    metrics: Sequence[str] = USUAL,
) -> "dict[str, Counted]":
    """Score a corpus: hypothesis i against the single reference i, both detokenized text.

    `tokenize` is BLEU's tokenizer, one of TOKENIZERS. `metrics` are keys of METRICS; the result has the same keys in
    the same order. Higher is better for BLEU and chrF, lower for TER and CER (edits per 100
    words or characters of the references).

    Raises UserError when the tokenizer is unknown or unavailable, ValueError when there are no sentences or the two
    lists differ in length.
    """
    if not hypotheses or len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} hypotheses and {len(references)} references cannot be scored")
    return {name: counted(METRICS[name].build(tokenize, lowercase), hypotheses, [references]) for name in metrics}


def sentence_score(metric: SentenceMetric, *, tokenize: Tokenizer, lowercase: bool) -> SentenceScore:
    """The score that `sacrebleu --sentence-level` gives a line.

    bleu: BLEU of one sentence, with the settings that sacreBLEU has for it: a precision of 0 counts as 1/2, 1/4, … of
    one match (smoothing exp), and n-grams that are longer than the translation do not count (effective order).
    chrf: chrF2, which `tokenize` does not change. The mean of sentence scores is not the score of a corpus.
    """
    scorer = METRICS[metric].build(tokenize, lowercase)
    return lambda translation, reference: counted(scorer, [translation], [[reference]]).sentences(1)[0]


class Counted(NamedTuple):
    """A metric's statistics of each sentence of one system; every score is computed from sums of them."""

    metric: Any  # as sacreBLEU's
    statistics: Sequence[Sequence[float]]

    @property
    def score(self) -> float:
        """The score of all sentences, from 0 to 100; TER and CER may exceed that."""
        return float(self.metric._aggregate_and_compute(self.statistics).score)

    @property
    def signature(self) -> str:
        """How it was computed."""
        return str(self.metric.get_signature())

    def parts(self) -> dict[str, Any]:
        """What BLEU is made of, lengths in tokens; nothing for other metrics."""
        if not isinstance(self.metric, BLEU):
            return {}
        statistics: Any = self.statistics
        bleu = self.metric._aggregate_and_compute(statistics)
        lengths = {"length": bleu.sys_len, "reference_length": bleu.ref_len}
        return {"precisions": [round(share, 6) for share in bleu.precisions], "brevity_penalty": bleu.bp, **lengths}

    def of(self, indices: Iterable[int]) -> float:
        """The score of these sentences as a corpus."""
        return self._replace(statistics=[self.statistics[index] for index in indices]).score

    def sentences(self, most: int | None = None) -> list[float]:
        """The score of each sentence by itself, of at most so many; None: of all."""
        compute = _sentence_bleu if isinstance(self.metric, BLEU) else self.metric._compute_score_from_stats
        return [float(compute(row).score) for row in self.statistics[:most]]


def counted(metric: Any, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Counted:
    """Count the statistics of hypotheses; `references`: one list or several, with a line for each hypothesis.

    A blank line beside another reference is a reference that is missing, which sacreBLEU has as None.
    """
    rows: list[Sequence[str | None]] = []
    for row in zip(*references, strict=True):
        given = [line if line.strip() else None for line in row]
        rows.append(given if any(given) else row)
    return Counted(metric, metric._extract_corpus_statistics(hypotheses, [*zip(*rows, strict=True)]))


def _sentence_bleu(statistics: Sequence[Any]) -> Any:
    """BLEU of the n-gram orders that the sentence is long enough for, as sacreBLEU's `sentence_bleu`."""
    translation, reference, *counts = statistics
    orders = len(counts) // 2
    return BLEU.compute_bleu(
        counts[:orders], counts[orders:], translation, reference, smooth_method="exp", effective_order=True
    )
