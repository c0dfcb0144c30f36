"""Warnings about text whose score would be misleading.

It knows sentences; it reads no files and prints nothing. Warnings depend on the share of lines with a telltale mark: on
Multi30k and WMT news, at most 0.1% of raw lines and at least 77% of tokenized lines match `TOKENIZED`; at least 76% of
raw and at most 8% of tokenized lines match `UNTOKENIZED`.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest

from nmt.evaluation.metrics import USUAL, is_too_short

SUSPICIOUS_SHARE = 0.2  # of the lines
OTHER_FORM = 0.02  # of the lines, with characters that a model cannot write; 0.8% of WMT news at most
SEGMENTED = re.compile("\N{LOWER ONE EIGHTH BLOCK}|@@(?:\\s|$)")  # marks of sentencepiece and subword-nmt
TOKENIZED = re.compile(r"\S [.,](?:\s|$)|&(?:apos|quot|amp|lt|gt|#\d+);|@-@")  # Moses: "word ." and its escapes
UNTOKENIZED = re.compile(r"\w(?:[.,!?](?:\s|$)|[。、,!?])")
# Hiragana, Han; Thai, Lao, Tibetan, Burmese, Khmer; and katakana, of which a whole word counts as one letter
_SIGNS, _KATAKANA = "\u3040-\u309f\u3400-\u9fff\uf900-\ufaff\u0e00-\u109f\u1780-\u17ff", "\u30a0-\u30ff"
UNSPACED = re.compile(f"[{_SIGNS}]|[{_KATAKANA}]+")
SPACES = re.compile(rf"(?<=[{_SIGNS}{_KATAKANA}])\s+(?=[{_SIGNS}{_KATAKANA}])")  # between two of these
HANGUL = re.compile("[\uac00-\ud7a3]")  # Korean, which has spaces, also between words in Han
LETTERS = re.compile(r"[^\W\d_]")
MOST = 10  # of these to a space, in text that is cut into words
FEWEST = 4  # of these in a line, on average: shorter ones may be single words
BY_SPACES = ("13a", "intl", "none")  # tokenizers for which words are what spaces separate
AGAIN = ("13a", "intl", "flores200")  # those to which tokenized text is another text, not only by its entities


def text_warnings(
    systems: Mapping[str, Sequence[str]],
    references: Mapping[str, Sequence[str]],
    *,
    tokenize: str,
    lowercase: bool = False,
    metrics: Sequence[str] = USUAL,
) -> list[str]:
    """Complete messages about what makes these scores incomparable with published ones.

    `systems` and `references`: the lines of each, by what a message calls them, such as "hypotheses".
    """
    warnings = []
    for name, lines in [*systems.items(), *references.items()]:
        warnings += format_warnings(name, lines, tokenize if "bleu" in metrics else None)
        if empty := sum(not line.strip() for line in lines):
            warnings.append(f"{empty} of {len(lines)} {name} {'is' if empty == 1 else 'are'} empty")
    cased = not lowercase and not {"bleu", "chrf", "chrf++"}.isdisjoint(metrics)
    for name, lines in systems.items():
        if cased and any(lines) and _cased(lines) == 0 and max(map(_cased, references.values())) >= SUSPICIOUS_SHARE:
            warnings.append(
                f"the {name} have no capital letters but the references do: BLEU and chrF count every capital as an "
                "error; --lowercase ignores case"
            )
    return [*dict.fromkeys(warnings)]


def too_short_warnings(
    systems: Mapping[str, Sequence[str]], references: Mapping[str, Sequence[str]], *, tokenize: str
) -> list[str]:
    """Warn about text without a line of the four words that BLEU counts together."""
    if not all(is_too_short(lines, tokenize=tokenize) for lines in references.values()):
        return []  # or it is the system that is too short
    short = [name for name, lines in systems.items() if is_too_short(lines, tokenize=tokenize)]
    return [f"no line of the {name} or the references has four words: BLEU is 0 by definition" for name in short]


def format_warnings(
    name: str,
    lines: Sequence[str],
    tokenize: str | None,
    *,
    option: str = "--tokenize",
    cure: str = "join the pieces first",
) -> list[str]:
    """Complete messages about lines that are split into subwords, or that BLEU's tokenizer cannot take apart as it
    should.

    `tokenize` is None without BLEU; `option` is what sets it, and `cure` what mends lines that are split.
    """
    warnings = []
    segmented, tokenized, untokenized = (_share(mark, lines) for mark in (SEGMENTED, TOKENIZED, UNTOKENIZED))
    if segmented >= SUSPICIOUS_SHARE:
        warnings.append(
            f"{segmented:.0%} of the {name} look split into subwords (marks such as '\N{LOWER ONE EIGHTH BLOCK}' or "
            f"'@@'): scores count pieces, not words; {cure}"
        )
    if tokenize in AGAIN and untokenized < SUSPICIOUS_SHARE <= tokenized:
        warnings.append(
            f"{tokenized:.0%} of the {name} look tokenized (such as 'word .', '&apos;' or '@-@') and {option} "
            f"{tokenize} tokenizes again: BLEU is not comparable; detokenize the text, or set {option} to none"
        )
    if tokenize in BY_SPACES and (unspaced := _unspaced(lines)) >= SUSPICIOUS_SHARE:
        warnings.append(
            f"{unspaced:.0%} of the {name} have no spaces between words, so BLEU is near 0 however good the "
            f"translation; set {option} to zh for Chinese, ja-mecab for Japanese, flores200 or char for others"
        )
    elif tokenize == "none" and tokenized < SUSPICIOUS_SHARE <= untokenized:
        warnings.append(
            f"{untokenized:.0%} of the {name} look untokenized (such as 'word.') and {option} none leaves them so: "
            f"BLEU is not comparable; set {option} to 13a, or to another one that suits the language"
        )
    return warnings


def normalized_warning(name: str, lines: Sequence[str], written: Sequence[str]) -> list[str]:
    """Warn about references `lines` that a model cannot write: what becomes of each is in `written`.

    Neither capitals, which have an option of their own, nor the number of spaces count.
    """
    pairs = enumerate(zip(lines, written, strict=True), start=1)
    others = [(number, *words) for number, both in pairs if (words := _first_other_word(*both)) is not None]
    if not others or len(others) < OTHER_FORM * len(lines):
        return []
    number, there, here = others[0]
    message = (
        f"{len(others) / len(lines):.0%} of the {name} have characters that the model cannot write, as its subword "
        f"model normalizes them (line {number}: {here!r} instead of {there!r}), which scores count as errors; set "
        "subwords.normalization to identity for a new subword model, or normalize the text"
    )
    return [message]


def _first_other_word(first: str, second: str) -> tuple[str, str] | None:
    """The first words in which two lines differ, apart from capitals; None if there are none."""
    words = zip_longest(first.split(), second.split(), fillvalue="")
    return next((both for both in words if both[0].casefold() != both[1].casefold()), None)


def _unspaced(lines: Sequence[str]) -> float:
    """Share of the lines that have no spaces between words, 0 to 1; 0 if those lines may be single words.

    Such a line is mostly in a script without spaces between words, of which a letter says as much as three.
    """
    unspaced = []
    for line in lines:
        signs = 0 if line.isascii() or HANGUL.search(line) else sum(map(len, UNSPACED.findall(line)))
        if signs and 3 * signs > len(LETTERS.findall(line)):
            unspaced.append(line)
    letters, spaces = (sum(len(mark.findall(line)) for line in unspaced) for mark in (UNSPACED, SPACES))
    if letters < FEWEST * len(unspaced) or spaces * MOST > letters:
        return 0.0
    return len(unspaced) / max(len(lines), 1)


def _share(mark: re.Pattern[str], lines: Sequence[str]) -> float:
    """Share of the lines that contain the mark, 0 to 1."""
    return sum(mark.search(line) is not None for line in lines) / max(len(lines), 1)


def _cased(lines: Sequence[str]) -> float:
    """Share of the lines that lowercasing changes, 0 to 1."""
    return sum(line != line.lower() for line in lines) / max(len(lines), 1)
