"""Scores for people and for programs, and warnings about text whose score would be misleading.

It knows scores and sentences; it reads no files and prints nothing. Warnings depend on the share of lines with a
telltale mark: on Multi30k and WMT news, at most 0.1% of raw lines and at least 77% of tokenized lines match
`TOKENIZED`; at least 76% of raw and at most 8% of tokenized lines match `UNTOKENIZED`.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from nmt.evaluation.metrics import METRICS, Score

SUSPICIOUS_SHARE = 0.2  # of the lines
LONG_WORDS = 200  # in both lines of a pair
SEGMENTED = re.compile("\N{LOWER ONE EIGHTH BLOCK}|@@(?:\\s|$)")  # marks of sentencepiece and subword-nmt
TOKENIZED = re.compile(r"\S [.,](?:\s|$)|&(?:apos|quot|amp|lt|gt|#\d+);|@-@")  # Moses: "word ." and its escapes
UNTOKENIZED = re.compile(r"\w(?:[.,!?](?:\s|$)|[。、,!?])")


def table(scores: Mapping[str, Score], *, sentences: int) -> str:
    """The scores as a table: metric, score to two decimals, which way is better, signature; the sentences last."""
    rows = [("metric", "score", "better", "signature")]
    for name, (score, signature) in scores.items():
        rows.append((METRICS[name].title, f"{score:.2f}", METRICS[name].better, signature))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:<{widths[2]}}  {signature}" for a, b, c, signature in rows]
    return "\n".join([*lines, f"{sentences} sentence{'' if sentences == 1 else 's'}"])


def json_object(scores: Mapping[str, Score], *, sentences: int, tokenize: str, lowercase: bool) -> dict[str, Any]:
    """The scores as an object for `json.dump`: {"score", "signature"} per metric, and what was scored how.

    Rounded to six decimals: a perfect translation has 100.0, not the 100.00000000000004 of floating point.
    """
    metrics = {name: {"score": round(score, 6), "signature": signature} for name, (score, signature) in scores.items()}
    return {**metrics, "sentences": sentences, "tokenize": tokenize, "lowercase": lowercase}


def text_warnings(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    tokenize: str,
    lowercase: bool = False,
    metrics: Sequence[str] = tuple(METRICS),
) -> list[str]:
    """Complete messages about what makes these scores slow, or incomparable with published ones."""
    warnings = []
    for name, lines in (("hypotheses", hypotheses), ("references", references)):
        warnings += _format_warnings(name, lines, tokenize if "bleu" in metrics else None)
        empty = sum(not line.strip() for line in lines)
        if empty:
            warnings.append(f"{empty} of {len(lines)} {name} {'is' if empty == 1 else 'are'} empty")
    cased = {"bleu", "chrf"} & set(metrics)
    if (
        cased
        and not lowercase
        and _cased(references) >= SUSPICIOUS_SHARE
        and any(hypotheses)
        and _cased(hypotheses) == 0
    ):
        warnings.append(
            "the hypotheses have no capital letters but the references do: BLEU and chrF count every capital as an "
            "error; --lowercase ignores case"
        )
    if "ter" in metrics:
        warnings += _slow_lines(hypotheses, references)
    return warnings


def _slow_lines(hypotheses: Sequence[str], references: Sequence[str]) -> list[str]:
    """Warn about pairs of lines for which sacreBLEU's TER takes half a minute or more in total.

    On one core it took 6 s for two lines of 200 words, one minute for 800 words, two for 3,000 words against 200.
    """
    pairs = [tuple(len(line.split()) for line in pair) for pair in zip(hypotheses, references, strict=True)]
    long = {number: words for number, words in enumerate(pairs, start=1) if min(words) >= LONG_WORDS}
    seconds = sum(6.0 * (math.prod(words) / LONG_WORDS**2) ** 0.8 for words in long.values())
    if seconds < 30.0:
        return []
    which = f"line {min(long)} has" if len(long) == 1 else f"{len(long):,} lines have up to"
    longest = max(map(max, long.values()))
    message = (
        f"{which} {longest:,} words: TER, which looks for phrases that were moved, may take minutes on such lines; "
        "--metrics bleu,chrf leaves it out"
    )
    return [message]


def _format_warnings(name: str, lines: Sequence[str], tokenize: str | None) -> list[str]:
    """Warn if a side is split into subwords, or if its tokenization conflicts with BLEU's tokenizer (None: no BLEU)."""
    warnings = []
    segmented, tokenized, untokenized = (_share(mark, lines) for mark in (SEGMENTED, TOKENIZED, UNTOKENIZED))
    if segmented >= SUSPICIOUS_SHARE:
        warnings.append(
            f"{segmented:.0%} of the {name} look split into subwords (marks such as '\N{LOWER ONE EIGHTH BLOCK}' or "
            "'@@'): these scores count pieces, not words; join the pieces first"
        )
    if tokenize not in ("none", None) and tokenized >= SUSPICIOUS_SHARE:
        warnings.append(
            f"{tokenized:.0%} of the {name} look tokenized (such as 'word .', '&apos;' or '@-@') and --tokenize "
            f"{tokenize} tokenizes again: BLEU is not comparable; score detokenized text, or use --tokenize none"
        )
    if tokenize == "none" and tokenized < SUSPICIOUS_SHARE <= untokenized:
        warnings.append(
            f"{untokenized:.0%} of the {name} look untokenized (such as 'word.') and --tokenize none leaves them so: "
            "BLEU is not comparable; use --tokenize 13a, or another one that suits the language"
        )
    return warnings


def _share(mark: re.Pattern[str], lines: Sequence[str]) -> float:
    """Share of the lines that contain the mark, 0 to 1."""
    return sum(mark.search(line) is not None for line in lines) / max(len(lines), 1)


def _cased(lines: Sequence[str]) -> float:
    """Share of the lines that lowercasing changes, 0 to 1."""
    return sum(line != line.lower() for line in lines) / max(len(lines), 1)
