"""The options of a translation, and how they may contradict each other or the model. It knows no text."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, make_dataclass
from typing import Any, get_args

from pydantic import ValidationError

from nmt.config import checked_value
from nmt.config.allowed import allowed
from nmt.config.problems import joined, nearest_hint
from nmt.config.schema import AlignmentStep, DecodingConfig, EndLinks, SamplingConfig
from nmt.data.dictionary import Dictionary
from nmt.decoding.scorer import Scorer
from nmt.decoding.text.glossary import Glossary
from nmt.errors import Checking, UserError, caught, first_of

_MOST_ENTRIES = 5  # told of, of the wrong ones of a dictionary

_Decoding: Any = make_dataclass(
    "_Decoding", [(name, Any, None) for name in DecodingConfig.model_fields], frozen=True, kw_only=True
)


@dataclass(frozen=True, kw_only=True)
class TranslationOptions(_Decoding):
    """How to translate.

    Besides those below, the options are the keys of `DecodingConfig`, such as `beam_size`, which says what they do;
    None: what the model's configuration has. Where its rules, `minimum_length` to `suppress_unknown`, leave nothing to
    go on with, the translation ends. The maximum of `max_length_ratio` and `max_length_extra` leaves room for one piece
    and the end mark, however low it is. For a line that is cut into segments, or sentences, they hold for each of them.
    """

    n_best: int = 1
    """Translations of a line; there are fewer where fewer exist."""

    diversity: float = 0.0
    """How much the translations of an n-best list must differ from each other; 0: not at all. The beam is divided into
    `n_best` groups, and each gives its best; fewer where they find the same. Neither with sampling nor with
    constraints. See `search.diverse`."""

    sampling: SamplingConfig | Mapping[str, Any] | None = None
    """Draw `n_best` translations from the model's distribution instead of searching for the best, with the settings of
    a `SamplingConfig`, such as {"temperature": 0.7, "top_k": 10}; {} draws from all that the model gives. They are
    independent of each other and may be equal. What is drawn for a line depends on the seed and the line's place in the
    text only. `beam_size` and `coverage_penalty` then have no effect."""

    split_sentences: bool | str = False
    """Cut lines into sentences, translate these one by one, and join them with the white space of the line; lines stay
    lines. True: by the rules of the model's source language; or the code of a language, such as "en". It needs
    sentencex (`pip install 'nmt-toolkit[text]'`). See `Translator.translate` for what is required of such a line."""

    replace_unknown: Mapping[str, str] | None = None
    """A dictionary, which may be empty, with which unknown words are replaced by the source words that they attend to
    (see `text.unknown_words`); None leaves them as "⁇". White space in its translations becomes single spaces.
    `Translation.tokens` stay what the model wrote."""

    glossary: Glossary | None = None
    """Terms that have to be translated in a certain way, in whichever sentence of a line they occur; together with the
    constraints of the line, and without those that cannot be met there, of which the glossary warns. Neither with
    sampling nor with diversity. See `text.glossary`."""

    alignments: bool = False
    """Fill in `alignment` and `soft_alignment`, from the attention with which the model writes each word when it is
    made to write the translation again. Words are those of the line and of the text, `str.split()`, joined where the
    vocabulary has a `joiner`. `finer_alignment` has the links of what pieces stand for in scripts without spaces."""

    alignment_step: AlignmentStep = "this"
    """Whose attention is a word's, for `replace_unknown` and `alignments`. this: that of the step that writes the word,
    a_t; next: that of the step after it, which reads the word, a_{t+1}. Luong, Pham & Manning (2015), footnote 14, take
    the latter for scores that look at the annotations."""

    end_links: EndLinks = "last"
    """The link, for `alignments`, of a word that attends to the end of the source more than to any word. last: to the
    last source word, often the period that was not looked at; none: no link; best: to the word with the most weight,
    however little it is. `soft_alignment` shows the end's weight."""

    def decoding(self, default: DecodingConfig) -> DecodingConfig:
        """The section `decoding` of the configuration as these options change it; `default` where one is None.

        Raises UserError for values that the configuration does not allow.
        """
        options = {name: getattr(self, name) for name in DecodingConfig.model_fields}
        changes = {name: value for name, value in options.items() if value is not None}
        try:
            return DecodingConfig.model_validate({**dict(default), **changes})
        except ValidationError:
            raise UserError(*_not_allowed(changes)) from None

    def drawing(self) -> SamplingConfig | None:
        """How translations are drawn; None: they are searched for.

        Raises UserError for a setting that there is not, or for a value that it may not have.
        """
        if not isinstance(self.sampling, Mapping):
            return self.sampling
        try:
            return SamplingConfig.model_validate(dict(self.sampling))
        except ValidationError:
            raise UserError(*_not_drawn(self.sampling)) from None


def check_kind(options: object) -> None:
    """Raise UserError for options that are no TranslationOptions, nor None."""
    if not isinstance(options, TranslationOptions | None):
        raise UserError(f"options is {options!r}; it must be TranslationOptions")


def _not_allowed(changes: Mapping[str, Any]) -> Iterator[str]:
    for name, value in changes.items():
        try:
            checked_value(DecodingConfig, name, value)
        except UserError as error:
            yield f"{name} is {value!r}; {error}"


def _not_drawn(settings: Mapping[str, Any]) -> Iterator[str]:
    rules = SamplingConfig.model_json_schema()["properties"]
    names = list(rules)
    for name, value in settings.items():
        if name not in rules:
            yield joined(f"sampling: {name!r} is unknown", nearest_hint(name, names), f"allowed: {', '.join(names)}")
            continue
        try:
            SamplingConfig.model_validate({name: value})
        except ValidationError:
            yield f"sampling: {name} is {value!r}; allowed: {allowed(rules[name])}"


_KINDS: Mapping[str, tuple[Any, str]] = {
    "n_best": (int, "a whole number"),
    "diversity": (int | float, "a number"),
    "sampling": (SamplingConfig | Mapping | None, "a mapping, such as {'temperature': 0.7}, or a SamplingConfig"),
    "split_sentences": (bool | str, "True, False, or the code of a language"),
    "replace_unknown": (Mapping | None, "a mapping of words to words"),
    "glossary": (Glossary | None, "a Glossary, such as read_glossary gives"),
    "alignments": (bool, "True or False"),
}


def contradictions(
    options: TranslationOptions, decoding: DecodingConfig, scorer: Scorer, *, constraints: bool
) -> Checking[None]:
    """What is wrong with options that turn the configuration into `decoding`; `constraints`: whether there are any."""
    for name, (kind, words) in _KINDS.items():
        if not isinstance(value := getattr(options, name), kind):
            raise UserError(f"{name} is {value!r}; it must be {words}")
    if options.n_best < 1:
        yield f"n_best is {options.n_best}; it must be at least 1"
    if options.sampling is None and options.n_best > decoding.beam_size:
        yield f"n_best is {options.n_best}; it must be at most beam_size, which is {decoding.beam_size}"
    yield from caught(options.drawing, None)
    yield from _wrong_entries(options.replace_unknown or {})
    if options.replace_unknown is not None and decoding.suppress_unknown:
        yield "suppress_unknown leaves no unknown word to replace; choose one of the two"
    if not decoding.max_length_ratio and (extra := decoding.max_length_extra) < 2:
        yield f"max_length_extra: {extra} with max_length_ratio: 0 has no effect: a piece and the end mark always fit"
    if options.glossary is not None and options.sampling is not None:
        yield "a glossary needs a search; leave out either it or the sampling"
    if options.glossary is not None and options.diversity:
        yield "diversity does not go with a glossary; leave out one of the two"
    if constraints and options.sampling is not None:
        yield "constraints need a search; leave out either them or the sampling"
    if not 0 <= options.diversity < math.inf:
        yield f"diversity is {options.diversity}; it must be a number of at least 0"
    elif options.diversity:
        if options.n_best < 2:
            yield "diversity has an effect only on n-best lists: ask for at least 2 translations"
        if options.sampling is not None:
            yield "diversity does not go with sampling; leave out one of the two"
        if constraints:
            yield "diversity does not go with constraints; leave out one of the two"
    if options.coverage_penalty and decoding.beam_size == 1 and options.sampling is None:
        yield "coverage_penalty has no effect on greedy search, which has nothing to choose from; use a larger beam"
    if decoding.coverage_penalty and (lacking := scorer.without_attention):
        yield f"coverage_penalty needs attention, and {lacking}; set it to 0"
    if options.replace_unknown is not None and (lacking := scorer.without_attention):
        yield f"unknown words cannot be replaced: {lacking}, which would say what source word each stands for"
    if options.alignments:
        yield from scorer.no_alignments()
    yield from unknown_choices(options)
    if options.alignment_step == "next" and not options.alignments and options.replace_unknown is None:
        yield "alignment_step has an effect only on alignments and on unknown words that are replaced"
    if options.end_links in ("none", "best") and not options.alignments:
        yield "end_links has an effect only on alignments"


def _wrong_entries(dictionary: Mapping[Any, Any]) -> Iterator[str]:
    """Which words of a dictionary, or which of their translations, are no text or have no words; the first of many."""
    if isinstance(dictionary, Dictionary):
        return
    wrong = [
        f"replace_unknown: {word!r} is to be {translation!r}; expected words on both sides"
        for word, translation in dictionary.items()
        if not all(isinstance(text, str) and text.strip() for text in (word, translation))
    ]
    yield from first_of(wrong, _MOST_ENTRIES, before="replace_unknown: ", after=" without words on both sides")


def unknown_choices(options: TranslationOptions) -> Checking[None]:
    """Which options have a value that is not among those that they may have."""
    for name, choices in (("alignment_step", get_args(AlignmentStep)), ("end_links", get_args(EndLinks))):
        if (value := getattr(options, name)) not in choices:
            yield f"{name} is {value!r}; it must be one of {', '.join(choices)}"
