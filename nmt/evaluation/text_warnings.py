"""Warnings about text whose score would be misleading.

It knows the form of texts; it reads no files and prints nothing. On Multi30k and WMT news, at most 0.1% of raw lines
look tokenized, and at most 8% of tokenized lines look untokenized.
"""

from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest

from nmt.evaluation.metrics import USUAL
from nmt.text_form import SUSPICIOUS, TextForm, disagreements, form_of, together

OTHER_FORM = 0.02  # of the lines, with characters that a model cannot write; 0.8% of WMT news at most
BY_SPACES = ("13a", "intl", "none")  # tokenizers for which words are what spaces separate
AGAIN = ("13a", "intl", "flores200")  # those to which tokenized text is another text, not only by its entities
NOT_BY_CASE = {"ter"}  # of the metrics
_HERE = {"cased": "; --lowercase ignores case", "tabbed": "; several references are several files"}


def text_warnings(
    systems: Mapping[str, Sequence[str]],
    references: Mapping[str, Sequence[str]],
    *,
    tokenize: str,
    lowercase: bool = False,
    metrics: Sequence[str] = USUAL,
) -> list[str]:
    """Complete messages about what makes these scores incomparable with published ones, or of little worth.

    `systems` and `references`: the lines of each, by what a message calls them, such as "hypotheses".
    """
    written = [form_of(lines, name=name) for name, lines in systems.items()]
    given = [form_of(lines, name=name) for name, lines in references.items()]
    right = together(given, name="references")
    if lowercase or NOT_BY_CASE.issuperset(metrics):
        right = right.without_case()
    found = [disagreements(form, right, same_sentences=True) for form in written]
    warnings = [message + _HERE.get(mark, "") for of_system in found for mark, message in of_system.items()]
    told, of_bleu = set(chain(*found)), tokenize if "bleu" in metrics else None
    warnings += brevity_warning(right, of_bleu)
    for form in (*written, *given):
        of_text = format_warnings(form, of_bleu)
        warnings += [message for mark, message in of_text.items() if mark not in told]
        if empty := form.counts["blank"]:
            missing = ", which counts as missing" if form in given and len(given) > 1 else ""
            have = "is" if empty == 1 else "are"
            warnings.append(f"{empty} of {form.counts['lines']} {form.name} {have} empty{missing}")
    return [*dict.fromkeys(warnings)]


def format_warnings(
    form: TextForm, tokenize: str | None, *, option: str = "--tokenize", cure: str = "join the pieces first"
) -> dict[str, str]:
    """A complete message for each mark of lines that are split into subwords, or that BLEU's tokenizer cannot take
    apart as it should.

    `tokenize` is None without BLEU; `option` is what sets it, and `cure` what mends lines that are split.
    """
    warnings = {}
    segmented, unspaced = map(form.share, ("segmented", "unspaced"))
    tokenized, untokenized = (form.counts[mark] / max(form.counts["text"], 1) for mark in ("tokenized", "untokenized"))
    if segmented >= SUSPICIOUS:
        warnings["segmented"] = (
            f"{segmented:.0%} of the {form.name} look split into subwords (marks such as "
            f"'\N{LOWER ONE EIGHTH BLOCK}' or '@@'): scores count pieces, not words; {cure}"
        )
    if tokenize in AGAIN and untokenized < SUSPICIOUS <= tokenized:
        warnings["tokenized"] = (
            f"{tokenized:.0%} of the {form.name} look tokenized (such as 'word .', '&apos;' or '@-@') and {option} "
            f"{tokenize} tokenizes again: BLEU is not comparable; detokenize the text, or set {option} to none"
        )
    if tokenize in BY_SPACES and form.has_no_spaces:
        warnings["unspaced"] = (
            f"{unspaced:.0%} of the {form.name} have no spaces between words, so BLEU is near 0 however good the "
            f"translation; set {option} to zh for Chinese, ja-mecab for Japanese, flores200 or char for others"
        )
    elif tokenize == "none" and tokenized < SUSPICIOUS <= untokenized:
        warnings["tokenized"] = (
            f"{untokenized:.0%} of the {form.name} look untokenized (such as 'word.') and {option} none leaves them "
            f"so: BLEU is not comparable; set {option} to 13a, or to another one that suits the language"
        )
    return warnings


def brevity_warning(references: TextForm, tokenize: str | None) -> list[str]:
    """Warn about references that are too short for BLEU with this tokenizer, which is None without BLEU."""
    if tokenize not in BY_SPACES or not references.is_word_list:
        return []
    message = (
        f"{references.share('brief'):.0%} of the {references.name} have fewer than the four words that BLEU counts "
        "together, so it is near 0 even where most lines are right; accuracy and cer, the character error rate, are "
        "metrics that suit words"
    )
    return [message]


def normalized_warning(name: str, lines: Sequence[str], written: Sequence[str]) -> list[str]:
    """Warn about references `lines` that a model cannot write: what becomes of each is in `written`.

    Neither capitals, which have an option of their own, nor the number of spaces count.
    """
    others = []
    for number, (line, normalized) in enumerate(zip(lines, written, strict=True), start=1):
        words = zip_longest(line.split(), normalized.split(), fillvalue="")
        differing = [both for both in words if both[0].casefold() != both[1].casefold()]
        others += [(number, *both) for both in differing[:1]]
    if not others or len(others) < OTHER_FORM * len(lines):
        return []
    number, there, here = others[0]
    message = (
        f"{len(others) / len(lines):.0%} of the {name} have characters that the model cannot write, as its subword "
        f"model normalizes them (line {number}: {here!r} instead of {there!r}), which scores count as errors; set "
        "subwords.normalization to identity for a new subword model, or normalize the text"
    )
    return [message]
