"""The options of a translation: what each may be, and what does not go together. It knows no text.

Messages name an option between backticks, as `n_best`; an interface that has another name for it replaces that.
"""

from collections.abc import Mapping
from dataclasses import make_dataclass
from reprlib import repr as shortened
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    ModelWrapValidatorHandler,
    SkipValidation,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic.dataclasses import dataclass

from nmt.config.allowed import allowed, choices
from nmt.config.problems import joined, nearest_hint
from nmt.config.schema import AlignmentStep, DecodingConfig, EndLinks, SamplingConfig
from nmt.decoding.text.glossary import Dictionary, Glossary
from nmt.errors import UserError, first_of

_MOST_ENTRIES = 5  # that are reported of the wrong ones of a glossary


def _dictionary(value: Any) -> Any:
    """Refuse what is no dictionary of words. It is not copied: it may have millions of entries."""
    if not isinstance(value, Mapping | None):
        raise ValueError("must be a mapping of words to words")
    for entry in () if value is None or isinstance(value, Dictionary) else value.items():
        if not all(isinstance(text, str) and text.strip() for text in entry):
            raise ValueError(f"{entry[0]!r} is to be {entry[1]!r}; expected words on both sides")
    return value


def _glossary(value: Any) -> Any:
    if not isinstance(value, Glossary | Mapping | None):
        raise ValueError("must be a Glossary, or a mapping of terms to their translations")
    try:
        return Glossary(value) if isinstance(value, Mapping) else value
    except UserError as error:
        raise ValueError("; ".join(first_of(error.messages, _MOST_ENTRIES))) from None


_Decoding: Any = make_dataclass(
    "_Decoding",
    [(name, field.rebuild_annotation() | None, None) for name, field in DecodingConfig.model_fields.items()],
    frozen=True,
    kw_only=True,
)


@dataclass(
    frozen=True,
    kw_only=True,
    config=ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, arbitrary_types_allowed=True),
)
class TranslationOptions(_Decoding):
    """How to translate.

    Besides those below, the options are the keys of `DecodingConfig`, such as `beam_size`, which says what they do;
    None: what the model's configuration has. Where its rules, `minimum_length` to `suppress_unknown`, leave nothing to
    go on with, the translation ends. The maximum of `max_length_ratio` and `max_length_extra` leaves room for one piece
    and the end mark, however low it is, and for a prefix and constraints, of 200 pieces at most. For a line that is cut
    into segments, or sentences, they hold for each of them.

    Raises UserError for unknown options, and for values that an option may not have.
    """

    n_best: Annotated[int, Field(ge=1)] = 1
    """Translations of a line; there are fewer where fewer exist."""

    diversity: Annotated[float, Field(ge=0.0)] = 0.0
    """How much the translations of an n-best list must differ from each other; 0: not at all. The beam is divided into
    `n_best` groups, and each gives its best; fewer where they find the same. Neither with sampling nor with
    constraints. See `search.diverse`."""

    sampling: SamplingConfig | None = None
    """Draw `n_best` translations from the model's distribution instead of searching for the best, with the settings of
    a `SamplingConfig`, such as {"temperature": 0.7, "top_k": 10}; {} draws from all that the model gives. They are
    independent of each other and may be equal. What is drawn for a line depends on the seed and the line's place in the
    text only. It goes neither with `beam_size` nor with `coverage_penalty`."""

    split_sentences: bool | str | None = None
    """Cut lines into sentences, translate these one by one, and join them with the white space of the line; lines stay
    lines. True: by the rules of the model's source language; or the code of a language, such as "en". It needs
    sentencex (`pip install 'nmt-toolkit[text]'`). None: lines stay whole, and those of several sentences are warned of;
    but texts and documents are cut. See `Translator.translate` for what is required of such a line."""

    replace_unknown: Annotated[
        SkipValidation[Mapping[str, str] | None], BeforeValidator(_dictionary), WithJsonSchema({})
    ] = None
    """A dictionary, which may be empty, with which unknown words are replaced by the source words that they attend to
    (see `text.unknown_words`); None leaves them as "⁇". White space in its translations becomes single spaces.
    `Translation.tokens` stay what the model wrote."""

    glossary: Annotated[
        Glossary | None,
        BeforeValidator(_glossary),
        WithJsonSchema({"type": "object", "additionalProperties": {"type": "string"}}),
    ] = None
    """Terms that have to be translated in a certain way: where one occurs, its translation takes the place of the words
    that are aligned with it. A mapping of terms to translations becomes a `text.glossary.Glossary`."""

    forbidden: Annotated[
        tuple[Annotated[str, Field(pattern=r"\S", max_length=100)], ...],
        FailFast(),
        Field(strict=False, max_length=10_000),
    ] = ()
    """Words and phrases that no translation has, as whole words in whatever pieces, and also with a capital first
    letter; nor may a prefix, a constraint or a term of the glossary have them; what is protected may. Within a segment,
    or sentence, of a line that is cut into several. See `text.forbidden`."""

    alignments: bool = False
    """Fill in `alignment` and `soft_alignment`, from the attention with which the model writes each word when it is
    made to write the translation again. Words are those of the line and of the text, `str.split()`, joined where the
    vocabulary has a `joiner`. `finer_alignment` has the links of what pieces stand for in scripts without spaces."""

    word_scores: bool = False
    """Fill in `word_scores`: the model's log-probability of each word. A number close to 0 means that it was sure. What
    stands in the place of its own words, as a term or a replaced word does, has theirs; what it has not seen has 0."""

    alignment_step: AlignmentStep = "this"
    """Whose attention is a word's, for `replace_unknown` and `alignments`. this: that of the step that writes the word,
    a_t; next: that of the step after it, which reads the word, a_{t+1}. Luong, Pham & Manning (2015), footnote 14, take
    the latter for scores that look at the annotations."""

    end_links: EndLinks = "last"
    """The link, for `alignments`, of a word that attends to the end of the source more than to any word. last: to the
    last source word, often the period that was not looked at; none: no link; best: to the word with the most weight,
    however little it is. `soft_alignment` shows the end's weight."""

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, values: Any, handler: ModelWrapValidatorHandler[Any]) -> Any:
        try:
            return handler(values)
        except ValidationError as error:
            raise UserError(*_not_allowed(error)) from None

    def decoding(self, default: DecodingConfig) -> DecodingConfig:
        """The section `decoding` of the configuration as these options change it; `default` where one is None."""
        options = {name: getattr(self, name) for name in DecodingConfig.model_fields}
        return default.model_copy(update={name: value for name, value in options.items() if value is not None})

    def contradictions(self, decoding: DecodingConfig | None = None, *, constraints: bool = False) -> list[str]:
        """What does not go together, or has no effect; `constraints`: whether there are any for the lines.

        `decoding` is the configuration as these options change it; None: it is not known yet, and only what these
        options say counts.
        """
        known = self if decoding is None else decoding
        searches = self.sampling is None
        draws = "`sampling`, which draws instead of searching"
        rules = [
            (
                searches and known.beam_size is not None and self.n_best > known.beam_size,
                f"`n_best` is {self.n_best}; it must be at most `beam_size`, which is {known.beam_size}",
            ),
            (not searches and self.beam_size is not None, f"`beam_size` has no effect with {draws}"),
            (not searches and self.coverage_penalty is not None, f"`coverage_penalty` has no effect with {draws}"),
            (
                bool(self.coverage_penalty) and known.beam_size == 1 and searches,
                "`coverage_penalty` has no effect with `beam_size` 1, which has nothing to choose from",
            ),
            (constraints and not searches, f"`constraints` do not go with {draws}"),
            (
                self.diversity > 0 and self.n_best < 2,
                "`diversity` has an effect only on n-best lists: ask for `n_best` of at least 2",
            ),
            (self.diversity > 0 and not searches, f"`diversity` does not go with {draws}"),
            (
                self.diversity > 0 and constraints,
                "`diversity` does not go with `constraints`, which share out the beam too; choose one",
            ),
            (
                self.replace_unknown is not None and bool(known.suppress_unknown),
                "`suppress_unknown` leaves no unknown word for `replace_unknown`; choose one of the two",
            ),
        ]
        return [problem for is_wrong, problem in rules if is_wrong]


def _not_allowed(error: ValidationError) -> list[str]:
    """What pydantic found, with the names of options and what these may be."""
    schema = TypeAdapter(TranslationOptions).json_schema()
    problems: dict[str, str] = {}
    for problem in error.errors():
        place = problem["loc"][: 2 if problem["loc"][0] == "sampling" else 1]  # below it are alternatives of its type
        keys = schema["properties"] if len(place) == 1 else schema["$defs"][SamplingConfig.__name__]["properties"]
        name, key = ".".join(map(str, place)), place[-1]
        value = f"`{name}` is {shortened(problem['input'])}"
        if key not in keys:
            hint = joined("unknown", nearest_hint(key, list(keys)), f"allowed: {', '.join(keys)}")
            problems[name] = f"`{name}`: {hint}"
        elif problem["type"] in ("value_error", "is_instance_of", "model_type", "too_long", "string_too_long"):
            problems[name] = f"{value}; {problem['msg'].removeprefix('Value error, ')}"
        else:
            rule = allowed(keys[key]).removesuffix(", or null")  # which is to leave it out
            problems[name] = joined(value, nearest_hint(problem["input"], choices(keys[key])), f"allowed: {rule}")
    return list(problems.values())
