"""The typed configuration: every section, key, default and range, in one place.

It knows values, not files: `loading.py` reads YAML, applies overrides and reports mistakes. Checks of a single key are
field constraints here; checks between keys are in `contradictions.py`.
"""

import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import regex
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationInfo,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from nmt.errors import nearest


class NameOf(NamedTuple):
    """A key whose value names a member of a family, such as "score".

    The names are defined with the members, in a layer above: where they are given, as `families` of the validation's
    context, other names are refused.
    """

    family: str

    def _checked(self, name: str, info: ValidationInfo) -> str:
        names = (info.context or {}).get("families", {}).get(self.family)
        if names is not None and name not in names:
            raise ValueError(f"must be one of the {self.family}s")
        return name

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), "x-family": self.family, "$comment": f"one of the {self.family}s"}


def default_variant(name: str) -> BeforeValidator:
    """Give a section with variants, where it has no `name`, this one."""

    def named(section: Any) -> Any:
        return {"name": name, **section} if isinstance(section, dict) and "name" not in section else section

    return BeforeValidator(named)


_MOST_WRITTEN_OUT = 1000
_REPEAT, _VERBOSE = re.compile(r"(\\.|.)\{(\d+)", re.DOTALL), re.compile(r"\(\?[a-zA-Z0-9]*x")


def _patterns(texts: list[str]) -> list[str]:
    """Refuse the first of a client's patterns that cannot be meant; all of them may take a second."""
    ends = time.process_time() + 1.0
    for text in texts:
        if text not in PROTECTED:
            _check_pattern(text, ends)
    return texts


def _check_pattern(text: str, ends: float) -> None:
    """Refuse what is no regular expression of what is to be kept alone."""
    if text.isalpha() and (name := nearest(text, PROTECTED)):
        raise ValueError(f"{text!r} is none of {', '.join(PROTECTED)}; nearest: {name}; as a pattern: '(?:{text})'")
    if _written_out(text) > _MOST_WRITTEN_OUT or _VERBOSE.search(text):
        raise ValueError(f"{text!r} must not repeat anything more than {_MOST_WRITTEN_OUT:,} times, or have (?x)")
    try:
        pattern = regex.compile(text, cache_pattern=False)
        left = max(0.0, ends - time.process_time())
        matches_all = pattern.match("", timeout=left) or pattern.fullmatch("Some words, 2 or 3.", timeout=left)
    except (regex.error, RecursionError) as error:
        raise ValueError(f"{text!r} is none of {', '.join(PROTECTED)}, and no regular expression: {error}") from None
    except TimeoutError:
        raise ValueError(f"{text!r} takes too long: what may be repeated in it repeats something itself") from None
    if matches_all:
        raise ValueError(f"{text!r} matches empty text or whole sentences; it must match what is to be kept alone")


def _written_out(pattern: str) -> int:
    """How many times, at most, compiling a pattern writes out a part of it: aaaaa for a{5}, and so memory is used up.

    (?x), in which a number may be written in many ways, is not seen through.
    """
    inner, outer = 1, 1  # of characters and sets; of groups, and of what is repeated already
    for repeated, count in _REPEAT.findall(pattern):
        if repeated in ")}*+?":
            outer *= max(1, int(count))
        else:
            inner = max(inner, int(count))
    return inner * outer


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, dict) else value


Metric = Annotated[str, NameOf("metric")]
CellName = Annotated[str, NameOf("cell")]
DirectionsName = Literal["concatenate", "sum"]
SortBy = Literal["source", "target", "longer"]
Shuffle = Literal["every_epoch", "once", "never"]
BatchOrder = Literal["shuffled", "shuffled_by_part", "sorted"]
OrderName = Literal["paper", "authors"]
PositionScale = Literal["last_position", "length"]
PositionLogit = Literal["scaled", "unscaled"]
Tokenizer = Literal["13a", "none", "intl", "char", "zh", "ja-mecab", "flores200"]
SentenceMetric = Literal["bleu", "chrf"]
PROTECTED = ("placeholders", "addresses", "symbols", "numbers")  # see `nmt.decoding.text.protect`
# Not part of a configuration file:
AlignmentStep = Literal["this", "next"]  # see `TranslationOptions.alignment_step`
EndLinks = Literal["last", "none", "best"]  # see `TranslationOptions.end_links`
EnsembleName = Literal["log-probabilities", "probabilities", "logits"]  # see `nmt.decoding.engines`


class Section(BaseModel):
    """A part of the configuration: immutable, no implicit conversions, no unknown keys.

    The text below a key is what the reference, the JSON schema, and help texts say of it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def changed(section: Section, *keys: str) -> list[str]:
    """The keys among these whose values differ from their defaults."""
    fields = type(section).model_fields
    return [key for key in keys if getattr(section, key) != fields[key].get_default(call_default_factory=True)]


ODD = "an odd whole number, at least 1 and less than 1,000,000"


def _odd(number: int) -> int:
    """Refuse even numbers: a window of even width has no center."""
    if number % 2 == 0:
        raise ValueError(f"must be {ODD}")
    return number


class CommandLineText(str):
    """A text that was typed on the command line: as a path, it is relative to the current folder."""


def _located_path(path: Any, info: ValidationInfo) -> Any:
    """Resolve a path against the folder of the configuration file, which the loader passes as context.

    Empty text, which would mean that folder itself, is refused.
    """
    if not isinstance(path, str | Path):
        return path
    if isinstance(path, str) and not path.strip():
        raise ValueError("a path must not be empty")
    base = Path.cwd() if isinstance(path, CommandLineText) else (info.context or {}).get("base")
    with suppress(RuntimeError):  # ~somebody without a home folder here: an ordinary name
        path = Path(path).expanduser()
    # realpath, as resolve() raises RuntimeError for a link to itself
    return Path(os.path.realpath(Path(base) / path)) if base is not None else path


FilePath = Annotated[Path, Field(strict=False), BeforeValidator(_located_path)]
Probability = Annotated[float, Field(ge=0.0, lt=1.0)]
# The upper bounds are far beyond any use, and low enough that no library overflows instead of giving a message.
Size = Annotated[int, Field(ge=1, le=1_000_000)]
Depth = Annotated[int, Field(ge=1, le=100)]
Count = Annotated[int, Field(ge=1, le=1_000_000_000)]
CountOrZero = Annotated[int, Field(ge=0, le=1_000_000_000)]
BeamSize = Annotated[int, Field(ge=1, le=1000)]
PositiveFloat = Annotated[float, Field(gt=0.0, le=1e9)]


INTERVAL = re.compile(r"\s*([1-9][0-9]*)\s*(updates?|epochs?)?\s*")


class Interval(str):
    """How often something happens, or how long it lasts: "N updates", "N epochs" or a bare number of updates."""

    count: int  # type: ignore[assignment]  # hides str.count, which nobody needs here
    unit: Literal["updates", "epochs"]

    def __new__(cls, text: object) -> "Interval":
        match = INTERVAL.fullmatch(str(text))
        if match is None or isinstance(text, bool):
            raise ValueError('must be a number of updates such as 500, or text such as "1 epoch" or "500 updates"')
        count = int(match.group(1))
        unit: Literal["updates", "epochs"] = "epochs" if (match.group(2) or "").startswith("epoch") else "updates"
        self = super().__new__(cls, f"{count} {unit[:-1] if count == 1 else unit}")
        self.count, self.unit = count, unit
        return self

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            cls,
            core_schema.union_schema([core_schema.int_schema(ge=1, strict=True), core_schema.str_schema(strict=True)]),
            serialization=core_schema.plain_serializer_function_ser_schema(str),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, source: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        text = {
            "type": "string",
            "pattern": f"^{INTERVAL.pattern}$",
            "$comment": 'text such as "1 epoch" or "500 updates"',
        }
        return {"anyOf": [{"type": "integer", "minimum": 1}, text]}


# ---------------------------------------------------------------------------------------------------------------- data


class ParallelFiles(Section):
    source: FilePath
    """Source text: UTF-8, one sentence per line, plain or .gz."""
    target: FilePath
    """Target text: line i translates line i of `source`."""
    alignments: FilePath | None = None
    """Word alignments for training.guided_alignment: line i has the links of pair i, such as "0-0 2-1", counted from
    0. Those of `data.valid` are only measured."""


class TrainingFiles(ParallelFiles):
    weight: float = Field(default=1.0, gt=0.0, le=1000.0)
    """How often an epoch reads these pairs: 1 is once; 0.25 is a quarter of them, another quarter in every epoch."""
    pair_weights: FilePath | None = None
    """A number for each pair, from 0 to 1000, which multiplies `weight`: line i says how often, on average, an epoch
    reads pair i. null: 1 for each."""
    tag: str | None = Field(
        default=None,
        pattern=r"^<[^\s<>▁]{1,40}>$",
        json_schema_extra={"$comment": "text such as <BT>: up to 40 characters in angle brackets, without white space"},
    )
    """A symbol that is put in front of every source sentence, such as <BT> for back-translations; null: none."""


class WatchedFiles(ParallelFiles):
    name: str = Field(
        pattern=r"^[A-Za-z][A-Za-z0-9_-]*$",
        json_schema_extra={"$comment": 'text of letters, digits, "_" and "-" that begins with a letter'},
    )
    """What the measurements of this corpus are called: old.loss, old.bleu, … for the name old."""


class DataConfig(Section):
    source_language: str = Field(min_length=1)
    """Name of the source language, such as en."""
    target_language: str = Field(min_length=1)
    """Name of the target language, such as de."""
    train: Annotated[list[TrainingFiles], Field(min_length=1), BeforeValidator(_as_list)]
    """Training corpus: a pair of files, or a list of pairs, which are mixed as their weights say."""
    valid: ParallelFiles
    """Validation corpus: scored during training, never trained on, never filtered."""
    watch: Annotated[list[WatchedFiles], BeforeValidator(_as_list)] = []
    """Further validation corpora, scored and shown at every validation by their names. They choose nothing."""
    max_length: Count = 100
    """Training pairs with more pieces than this on either side are dropped; the log says how many."""
    max_length_ratio: float | None = Field(default=None, ge=1.0)
    """Training pairs are dropped if one side has more than this many times the pieces of the other; null: off."""
    cache_folder: FilePath | None = None
    """Where subword models and token ids are kept between runs; null: `.cache` next to the run folder."""

    def corpora(self) -> dict[str, ParallelFiles]:
        """All corpora by their keys: data.train.0, …, data.valid, data.watch.0, …"""
        train = {f"data.train.{index}": files for index, files in enumerate(self.train)}
        watch = {f"data.watch.{index}": files for index, files in enumerate(self.watch)}
        return {**train, "data.valid": self.valid, **watch}


class SubwordSampling(Section):
    alpha: float = Field(gt=0.0, le=1.0)
    """bpe: probability of skipping a merge (BPE-dropout). unigram: smoothing of the segmentation probabilities."""


class SubwordsConfig(Section):
    type: Literal["bpe", "unigram", "char", "word"] = "bpe"
    """How text is split into pieces; sentencepiece trains the model on the training corpus."""
    size: int = Field(default=8000, ge=5, le=1_000_000)
    """Number of pieces, including the four special symbols; fewer where the text has no more."""
    joint: bool = True
    """One model and vocabulary for both languages (true), or one for each (false)."""
    lowercase: bool = False
    """Fold case before segmentation, so that everything the model reads and writes is lowercase."""
    normalization: Literal["nmt_nfkc", "nfkc", "identity"] = "nmt_nfkc"
    """Unicode normalization before segmentation, by its name in sentencepiece."""
    character_coverage: float = Field(default=1.0, ge=0.98, le=1.0)
    """Share of the corpus's characters that the vocabulary covers; the rest become unknown."""
    byte_fallback: bool = False
    """Write unknown characters as UTF-8 bytes (256 pieces) instead of the unknown symbol."""
    model: FilePath | None = None
    """An existing joint sentencepiece model to use instead of training one."""
    source_model: FilePath | None = None
    """An existing sentencepiece model of the source language; requires `target_model`."""
    target_model: FilePath | None = None
    """An existing sentencepiece model of the target language; requires `source_model`."""
    vocabulary: FilePath | None = None
    """A file with the words of both languages to use instead of training a model: one word a line, or a word and its
    count."""
    source_vocabulary: FilePath | None = None
    """The same for the source language; requires `target_vocabulary`."""
    target_vocabulary: FilePath | None = None
    """The same for the target language; requires `source_vocabulary`."""
    joiner: str | None = Field(
        default=None,
        pattern=r"^\S{1,20}$",
        json_schema_extra={"$comment": "text of 1 to 20 characters without white space"},
    )
    """How a piece of text that was cut beforehand ends if the next one continues it, such as "@@" (subword-nmt).
    Requires vocabularies."""
    symbols: list[Annotated[str, Field(pattern=r"^[^\s▁]{1,40}$")]] = []
    """Words of one's own that become a piece each, in addition to `size`, and are never cut."""
    sampling: SubwordSampling | None = None
    """Subword regularization: segment training sentences at random, differently in every epoch; null: off."""


# The keys that decide how a subword model is trained
TRAINED_SUBWORDS = ("type", "size", "lowercase", "normalization", "character_coverage", "byte_fallback")


MODELS = ("model", "source_model", "target_model")
VOCABULARIES = ("vocabulary", "source_vocabulary", "target_vocabulary")


def existing_models(subwords: SubwordsConfig) -> dict[str, Path]:
    """The paths of the sentencepiece models, or vocabularies, that are named instead of training any, by their keys."""
    keys = (*MODELS, *VOCABULARIES)
    return {key: path for key in keys if (path := getattr(subwords, key)) is not None}


# --------------------------------------------------------------------------------------------------------------- model


class EncoderConfig(Section):
    cell: CellName = "gru"
    """The recurrent cell. gru_reset_first has the reset gate before the product with the state, as the papers do."""
    hidden_size: Size = 256
    """Units per layer and direction."""
    layers: Depth = 1
    """Number of stacked layers."""
    residual: bool = False
    """Residual connections: each layer above the first adds what it reads to what it gives (Wu et al. 2016)."""
    bidirectional: bool = True
    """Read the source in both directions."""
    directions: DirectionsName = "concatenate"
    """How the two directions become one memory: concatenated, 2 × hidden_size units per position, or summed,
    hidden_size units. Between layers they are always concatenated."""
    reverse_source: bool = False
    """Read each sentence from its last word to its first, but still the end mark last. Positions and alignments refer
    to the text as written."""
    end_mark: bool = True
    """Read the end mark </s> as the last source token. false: only words are read and attended to."""
    layer_normalization: bool = False
    """Layer normalization of the annotations before attention reads them."""
    dropout: Probability = 0.0
    """Dropout on the source embeddings and between layers."""
    output_dropout: Probability = 0.0
    """Dropout on the annotations that attention reads."""
    word_dropout: Probability = 0.0
    """Probability that a source word is left out in training, its whole embedding set to 0 at this place."""
    locked_dropout: bool = False
    """One dropout mask for all words of a sentence (Gal & Ghahramani 2016), instead of a new one for each."""


class AttentionConfig(Section):
    score: Annotated[str, NameOf("score")] = "additive"
    """The function that scores how well a query matches a source position; see nmt/models/scores.py."""
    scope: Annotated[str, NameOf("scope")] = "global"
    """Which source positions get attention. global: all; local-m: a window around the target position; local-p: one
    around a predicted position."""
    half_width: Size = 10
    """D of the local scopes: the window holds the positions s with |s - p_t| ≤ D; σ of the Gaussian is D / 2."""
    gaussian: bool = False
    """local-m: multiply the weights by a Gaussian around the target position, as local-p does."""
    position_scale: PositionScale = "last_position"
    """local-p: the factor that turns the predicted share into a position. last_position: S - 1; length: S, as in the
    paper."""
    position_logit: PositionLogit = "scaled"
    """local-p: what the sigmoid of that share gets. scaled: v_pᵀ tanh(W_p q) / √d; unscaled: without √d, as in the
    paper, for SGD."""
    renormalize: bool = False
    """local-p: rescale the weights to sum to 1 after the Gaussian, which the paper does not do."""
    size: Size | None = None
    """Units of the hidden layer inside the score; null: the decoder's hidden_size."""
    bias: bool = False
    """Whether the hidden layer inside the score has a bias."""
    coverage: bool = False
    """Show the score how much attention each source position has received so far (Tu et al. 2016)."""
    temperature: Literal["learned"] | PositiveFloat = "learned"
    """cosine: what the cosine, at most 1, is multiplied by: a number, or one that is learned, from 10 on."""
    positions: Size = 101
    """location: source positions that the score knows, including the end mark; later ones get no attention."""
    filters: Size = 10
    """location_sensitive: filters of the convolution over the weights of the previous step."""
    filter_width: Annotated[Size, AfterValidator(_odd)] = Field(default=5, json_schema_extra={"$comment": ODD})
    """location_sensitive: positions that each filter covers, an odd number."""


class DecoderConfig(Section):
    type: Annotated[str, NameOf("decoder")] = "bahdanau"
    """bahdanau: a cell that reads the context, and a maxout layer. luong: attention with the cell's new state, and a
    tanh layer. conditional_gru: attention between two cells."""
    cell: CellName = "gru"
    """The recurrent cell. gru_reset_first has the reset gate before the product with the state, as the papers do."""
    hidden_size: Size = 512
    """Units per layer."""
    layers: Depth = 1
    """Number of stacked layers."""
    residual: bool = False
    """Residual connections: each layer above the first adds what it reads to what it gives (Wu et al. 2016)."""
    input_feeding: bool = True
    """luong: feed the attentional vector of each step into the first layer at the next."""
    attentional_activation: Literal["tanh", "none"] = "tanh"
    """luong: what the attentional vector is computed with; tensorflow/nmt has none."""
    order: OrderName = "authors"
    """bahdanau: authors, as in their code: attention with the new state. paper: attention with the old state, then the
    cell."""
    output_size: Size | None = None
    """Units of the vector that the output layer reads: the attentional vector, or the output of the maxout or tanh
    layer; null: hidden_size."""
    layer_normalization: bool = False
    """Layer normalization inside the cells, of the input's part and of the previous state's part separately."""
    initial_state: Annotated[str, NameOf("initial state")] = "final"
    """The first state. final: tanh(W h), h the encoder's last state; mean: tanh(W mean of the memory); copy: the
    encoder's last states, layer by layer; forward: its last forward state, in every layer; alternate: forward and
    backward in turn."""
    dropout: Probability = 0.0
    """Dropout on the target embeddings and between layers."""
    output_dropout: Probability | None = None
    """Dropout on the vector that the output layer reads; null: the same as dropout."""
    fed_dropout: Probability = 0.0
    """luong: dropout on the attentional vector where it is fed, with a mask of its own."""
    attentional_dropout: Probability = 0.0
    """luong: dropout on the context and the state that the attentional vector is computed from, as in JoeyNMT."""
    word_dropout: Probability = 0.0
    """Probability that a previous target word is left out in training, its whole embedding set to 0 at this place."""
    locked_dropout: bool = False
    """One dropout mask for all words of a sentence (Gal & Ghahramani 2016), instead of a new one for each."""


class InitializationSection(Section):
    forget_bias: float = Field(default=0.0, ge=-100.0, le=100.0)
    """lstm: what the bias of every forget gate starts at. tensorflow/nmt has 1, JoeyNMT 2."""


class UniformInitialization(InitializationSection):
    name: Literal["uniform"]
    """Uniform weights."""
    range: float | None = Field(default=None, gt=0.0, le=1000.0)
    """Every weight is drawn from [-range, range]; biases start at 0. null: 0.1, as Luong et al. (2015) have it,
    where the decoder has 512 hidden units or more, 51.2 / n for n from 256 on, and 0.2 below."""


class XavierInitialization(InitializationSection):
    name: Literal["xavier"]
    """Xavier-uniform matrices, orthogonal recurrent matrices, embeddings N(0, 1), or N(0, 1/size) where the output
    layer shares them, biases 0."""
    recurrent: Literal["orthogonal", "xavier"] = "orthogonal"
    """How recurrent matrices are drawn, gate by gate; in JoeyNMT as all others are."""
    embedding_deviation: PositiveFloat | None = None
    """The standard deviation of embeddings, which is 0.01 in JoeyNMT; null: 1, or 1/√size, as above."""


class BahdanauInitialization(InitializationSection):
    name: Literal["bahdanau"]
    """Bahdanau et al. (2014), B.1: orthogonal recurrent matrices, N(0, 0.001²) in the score with its vector 0,
    N(0, 0.01²) elsewhere, biases 0."""


class LeCunInitialization(InitializationSection):
    name: Literal["lecun"]
    """N(0, 1/inputs) for every matrix, orthogonal where it is recurrent or square, biases 0: LeCun et al. (1998)."""


Initialization = UniformInitialization | XavierInitialization | BahdanauInitialization | LeCunInitialization


class EmbeddingsConfig(Section):
    source: FilePath | None = None
    """Vectors of source words, in the text format of word2vec, fastText, or GloVe, plain or .gz; null: none."""
    target: FilePath | None = None
    """Vectors of target words; null: none."""
    freeze: bool = False
    """Keep the embeddings that start from a file as they are; rows that are not in the file then stay random."""


class ModelConfig(Section):
    embedding_size: Size = 256
    """Units of the source and target embeddings."""
    embeddings: EmbeddingsConfig | None = None
    """Files of pretrained vectors that embeddings start from; null: all are drawn as `initialization` says."""
    tie_embeddings: Literal["none", "target", "all"] = "none"
    """target: output layer and target embeddings are one; all: source embeddings too (needs a joint vocabulary)."""
    initialization: Annotated[Initialization, Field(discriminator="name"), default_variant("uniform")] = (
        UniformInitialization(name="uniform")
    )
    """How the weights are initialized; uniform if no name is given."""
    encoder: EncoderConfig = EncoderConfig()
    """The network that reads the source."""
    attention: AttentionConfig = AttentionConfig()
    """How the decoder looks at the source."""
    decoder: DecoderConfig = DecoderConfig()
    """The network that writes the target."""


def memory_size(model: ModelConfig) -> int:
    """Units of an annotation, the vector that attention reads for a source position."""
    concatenated = model.encoder.bidirectional and model.encoder.directions == "concatenate"
    return model.encoder.hidden_size * (2 if concatenated else 1)


# ------------------------------------------------------------------------------------------------------------ training


class OptimizerSection(Section):
    weight_decay: float = Field(default=0.0, ge=0.0, le=1e9)
    """Weights times this are added to the gradient (L2); adamw: decoupled, multiplied by the learning rate."""
    decayed: Literal["all", "matrices"] = "all"
    """Which weights decay: all, or only matrices, which leaves out biases, gains and the vector of a score."""


class SGDConfig(OptimizerSection):
    name: Literal["sgd"]
    """Stochastic gradient descent."""
    learning_rate: PositiveFloat = 1.0
    """Step size before the schedule changes it."""
    momentum: Probability = 0.0
    """μ of v ← μ v + gradient, θ ← θ - rate · v. 0: off."""


class AdamConfig(OptimizerSection):
    name: Literal["adam", "adamw"]
    """Adam, with the weight decay as part of the gradient (adam) or decoupled from it (adamw)."""
    learning_rate: PositiveFloat = 1e-3
    """Step size before the schedule changes it."""
    beta1: Probability = 0.9
    """Decay of the running mean of the gradient."""
    beta2: Probability = 0.999
    """Decay of the running mean of the squared gradient."""
    epsilon: PositiveFloat = 1e-8
    """Added to the denominator."""


class AdadeltaConfig(OptimizerSection):
    name: Literal["adadelta"]
    """Adadelta."""
    learning_rate: PositiveFloat = 1.0
    """Factor on the step that Adadelta computes, before the schedule changes it."""
    rho: Probability = 0.95
    """Decay of the running means of the squared gradient and the squared step."""
    epsilon: PositiveFloat = 1e-6
    """Added under both square roots."""


class ConstantSchedule(Section):
    name: Literal["constant"]
    """The learning rate never changes."""


class LinearSchedule(Section):
    name: Literal["linear"]
    """The rate falls in a straight line, to 0 where max_epochs or max_updates ends training."""


class WarmupSchedule(Section):
    name: Literal["warmup_inverse_sqrt"]
    """A linear rise, then a decay with the inverse square root of the number of updates."""
    warmup_updates: Count = 4000
    """Length of the linear rise to learning_rate, followed by learning_rate × sqrt(warmup_updates / update)."""


class PlateauSchedule(Section):
    name: Literal["plateau"]
    """The rate is cut when validation stops improving."""
    metric: Metric = "bleu"
    """The validation metric to watch, without it that of `validation`; ties, such as two BLEU scores of 0, go to the
    lower loss."""
    patience: CountOrZero = 2
    """Validations in a row without a new best that are tolerated; the next one cuts the rate."""
    factor: float = Field(default=0.5, gt=0.0, lt=1.0)
    """The rate is multiplied by this."""
    minimum_learning_rate: float = Field(default=1e-6, ge=0.0)
    """The rate is never cut below this."""
    stop_below_minimum: bool = False
    """Where a cut would go below minimum_learning_rate, training ends instead, as in JoeyNMT."""


class HalvingSchedule(Section):
    name: Literal["halving"]
    """The full rate at first, then a cut at intervals."""
    after: Interval = Interval("5 epochs")
    """How long the full rate lasts, in epochs or updates; then comes the first cut."""
    every: Interval = Interval("1 epoch")
    """From one cut to the next, in the unit of `after`."""
    factor: float = Field(default=0.5, gt=0.0, lt=1.0)
    """At a cut, the rate is multiplied by this."""


Optimizer = SGDConfig | AdamConfig | AdadeltaConfig
Schedule = ConstantSchedule | LinearSchedule | WarmupSchedule | PlateauSchedule | HalvingSchedule


class GuidedAlignment(Section):
    weight: PositiveFloat = 1.0
    """The loss is the cross-entropy of the words plus this times that of the attention with the alignments."""


class RDrop(Section):
    weight: PositiveFloat = 5.0
    """α of Liang et al., who use 5 for translation: α/4 times both divergences is added to the loss."""


class WordReplacement(Section):
    source: Probability = 0.0
    """Probability that a piece of the source becomes a random one."""
    target: Probability = 0.0
    """Probability that a previous piece that the decoder reads becomes a random one; what it has to predict stays."""


class ScheduledSampling(Section):
    probability: float = Field(default=0.25, gt=0.0, le=1.0)
    """P, what the probability of a word of the model's own rises to."""
    schedule: Literal["linear", "inverse_sigmoid"] = "linear"
    """How it rises with the updates u. linear: P min(1, u / U). inverse_sigmoid: P (1 - U / (U + exp(u / U)))."""
    updates: Count = 10_000
    """U. linear: P is reached after so many. inverse_sigmoid: half of it, after U ln U."""


class MinimumRisk(Section):
    candidates: Literal["sampled", "n-best"] = "sampled"
    """Where the candidates of a source come from: sampled from the model, or the n-best list of its beam search."""
    size: int = Field(default=20, ge=2, le=1000)
    """Candidates that are sampled for each source, or the beam size; Shen et al. sample 100. Equal ones count once."""
    temperature: float = Field(default=1.0, gt=0.0, le=100.0)
    """sampled: log-probabilities are divided by this; below 1 favors probable pieces."""
    alpha: PositiveFloat = 0.005
    """α of Shen et al.: candidates are weighted by their probabilities to the power of this."""
    metric: SentenceMetric = "bleu"
    """The cost of a candidate is 1 - its score / 100: sentence BLEU, tokenized as validation says, or chrF2."""
    include_reference: bool = True
    """Whether the reference, whose cost is 0, is one of the candidates."""
    cross_entropy: float = Field(default=0.0, ge=0.0, le=1e9)
    """What the cross-entropy of the reference, summed over its pieces, is multiplied by before it is added to the risk
    of a sentence; 0: none."""


class MovingAverageConfig(Section):
    decay: float = Field(default=0.999, gt=0.0, lt=1.0)
    """d of θ' ← d θ' + (1 - d) θ; after t updates it is at most (1 + t) / (10 + t)."""


class EarlyStopping(Section):
    metric: Metric = "bleu"
    """The validation metric to watch, without it that of `validation`; ties, such as two BLEU scores of 0, go to the
    lower loss."""
    patience: Count = 5
    """Training ends after this many validations in a row without a new best."""
    share: float = Field(default=0.0, ge=0.0, lt=1.0)
    """They must also be at least this share of all validations so far, so that longer trainings wait longer."""


class Divergence(Section):
    loss_factor: float = Field(default=2.0, ge=1.0, le=1e9)
    """A validation loss above this factor × ln(target pieces), that of an untrained model, counts as diverged."""
    patience: Count = 3
    """Training fails after this many diverged validations in a row, or if its last validation has diverged."""


class ValidationConfig(Section):
    metric: Metric = "bleu"
    """The metric that chooses the best checkpoints; of equal values, such as a BLEU of 0, that with the lower loss.
    accuracy: of sentences, those that equal the reference; cer: edits per 100 characters. BLEU is always computed."""
    beam_size: BeamSize = 1
    """Beam size of the translations that validation scores; 1 is greedy search."""
    tokenize: Tokenizer = "13a"
    """sacreBLEU's tokenization for the validation BLEU. Where words have no spaces between them, it takes zh (Chinese),
    ja-mecab (Japanese), flores200, or char."""
    lowercase: bool = False
    """Whether validation ignores case in BLEU, chrF, accuracy, and CER; TER always does."""
    samples: int = Field(default=4, ge=0, le=100)
    """Sentences of the validation corpus, always the same, whose translations and attention TensorBoard shows at every
    validation; 0: none."""


class TrainingConfig(Section):
    optimizer: Annotated[Optimizer, Field(discriminator="name"), default_variant("adam")] = AdamConfig(name="adam")
    """How gradients become steps; adam if no name is given."""
    schedule: Annotated[Schedule, Field(discriminator="name"), default_variant("constant")] = ConstantSchedule(
        name="constant"
    )
    """How the learning rate changes; constant if no name is given."""
    batch_size: Count = 80
    """Sentence pairs or tokens per batch, depending on batch_by."""
    batch_by: Literal["sentences", "tokens"] = "sentences"
    """tokens: sentences × the longest sentence of either side stays within batch_size; a longer pair is a batch of its
    own."""
    sort_by: SortBy = "source"
    """The length that pairs are sorted by: source (then target), target (then source), or the longer of the two."""
    sort_pairs: Count | None = None
    """Pairs that are sorted by length together, after shuffling; null: the whole corpus. Fewer make more varied
    batches and more padding. No batch has more pairs than this."""
    shuffle: Shuffle = "every_epoch"
    """When pairs are shuffled, before they are sorted."""
    batch_order: BatchOrder = "shuffled"
    """The order of batches. shuffled: all of an epoch; shuffled_by_part: those of the first sort_pairs pairs first, in
    random order; sorted: the same, from short pairs to long ones."""
    accumulate: Count = 1
    """Batches whose gradients are added up for one update."""
    max_epochs: Count | None = None
    """Training ends after this many passes over the corpus; null: no limit."""
    max_updates: Count | None = None
    """Training ends after this many updates; null: no limit. Without this, max_epochs, and early_stopping,
    validate_every is 500 updates, and early_stopping {share: 0.25} of the validation's metric: training ends once its
    last quarter, and at least 2,500 updates, have brought nothing better."""
    validate_every: Interval = Interval("1 epoch")
    """When to validate: "1 epoch", or a number of updates."""
    validation: ValidationConfig = ValidationConfig()
    """How checkpoints are compared."""
    early_stopping: EarlyStopping | None = None
    """When to stop before max_epochs or max_updates; null: never."""
    divergence: Divergence | None = Divergence()
    """When a validation loss far worse than an untrained model's stops training; null: never."""
    skip_non_finite: CountOrZero = 0
    """How many updates of a run may be skipped because their loss or gradient is not finite; one more stops it."""
    label_smoothing: Probability = 0.0
    """Share of the target probability that is spread evenly over the vocabulary."""
    recurrent_dropout: Probability = 0.0
    """Dropout on the weights that multiply the last state, in the encoder and in the decoder, with one mask for all
    steps of an update (Merity et al. 2018)."""
    guided_alignment: GuidedAlignment | None = None
    """Pull the attention to the alignments of the training corpus (Chen et al. 2016); null: off."""
    r_drop: RDrop | None = None
    """R-Drop (Liang et al. 2021): every batch is computed twice, and the two distributions of each target word are
    pulled together; null: off."""
    word_replacement: WordReplacement | None = None
    """In training, random pieces replace some that are read, as in SwitchOut (Wang et al. 2018); null: off."""
    scheduled_sampling: ScheduledSampling | None = None
    """In training, replace some of the previous words that the decoder reads by words that it draws itself (Bengio et
    al. 2015); null: off."""
    minimum_risk: MinimumRisk | None = None
    """Minimum risk training (Shen et al. 2016), to fine-tune with --init-from: minimize the expected cost of the
    model's own translations; null: off."""
    gradient_clip_norm: PositiveFloat | None = None
    """Gradients with a larger norm are scaled down to this norm; null: off."""
    normalize_by: Literal["tokens", "sentences", "none"] = "tokens"
    """What the summed loss of an update is divided by: its target tokens, its sentences, or nothing.
    gradient_clip_norm is compared with the quotient's gradient."""
    moving_average: MovingAverageConfig | None = MovingAverageConfig()
    """Validate and keep, instead of the weights θ, their moving average θ' over the updates; null: off."""
    vocabulary: Literal["same", "extended", "new"] | None = None
    """The vocabularies after --init-from, without which no value is allowed. same: those of the model, as null;
    extended: with the symbols of the data and of `subwords` added; new: those of `subwords`."""
    freeze: list[Literal["embeddings", "encoder", "decoder"]] = []
    """Parts of the model that keep the weights of --init-from."""
    keep_best: CountOrZero = 1
    """How many of the best checkpoints to keep, in addition to best.safetensors."""
    keep_last: CountOrZero = 1
    """How many of the newest checkpoints to keep."""
    average_best: Literal[0] | Annotated[int, Field(ge=2, le=1_000_000_000)] = 0
    """At the end, average the weights of this many best checkpoints; the average becomes best.safetensors if it
    validates better. 0: off; otherwise 2 to keep_best."""
    save_every: Interval | None = None
    """How often to save the state to resume from, in addition to every validation; null: only then."""
    log_every: Count = 50
    """Updates between two lines of the log."""
    kernels: Literal["auto", "fused", "plain"] = "auto"
    """fused: fast operations with hand-written backward passes; plain: the same operations by autograd, which tests
    compare them with. auto: fused."""
    precision: Literal["float32", "bfloat16", "auto"] = "float32"
    """The type that the large matrix products of training are rounded to. auto: bfloat16 where the device has
    instructions for it. Validation always uses float32."""

    @model_validator(mode="before")
    @classmethod
    def _usual_length(cls, section: Any) -> Any:
        """Without any key that ends it, training ends when validation finds nothing better, whatever the corpus."""
        if not isinstance(section, dict) or "early_stopping" in section:
            return section
        if any(section.get(key) is not None for key in ("max_epochs", "max_updates")):
            return section
        return {"validate_every": "500 updates", **section, "early_stopping": {"share": 0.25}}

    @model_validator(mode="after")
    def _one_metric(self) -> "TrainingConfig":
        """What watches the validation watches the metric that chooses checkpoints, unless it names another."""
        for key in ("schedule", "early_stopping"):
            part = getattr(self, key)
            if isinstance(part, PlateauSchedule | EarlyStopping) and "metric" not in part.model_fields_set:
                object.__setattr__(self, key, part.model_copy(update={"metric": self.validation.metric}))
        return self


class DecodingConfig(Section):
    beam_size: BeamSize = 5
    """Hypotheses kept per sentence; 1 is greedy search."""
    length_penalty: Literal["none", "average"] | Annotated[float, Field(ge=0.0, le=10.0)] = "average"
    """none: score by the sum of log-probabilities; average: divide it by the length; a number: Wu et al.'s alpha."""
    max_length_ratio: float = Field(default=2.0, ge=0.0, le=100.0)
    """A translation has at most this many times the source's pieces, plus max_length_extra; the end mark is counted in
    both."""
    max_length_extra: int = Field(default=10, ge=0, le=100_000)
    """Added to the limit in pieces that max_length_ratio gives; with a ratio of 0, it is the limit. The authors' codes
    add nothing."""
    batch_tokens: Count = 2000
    """Source pieces translated together, including padding; larger beams make smaller batches. It affects speed and
    memory, and results by no more than rounding."""
    batch_sentences: Count | None = None
    """At most this many sentences are translated together; null: as many as batch_tokens has room for."""
    minimum_length: int = Field(default=0, ge=0, le=1000)
    """A translation has at least this many pieces, or its maximum length if that is shorter."""
    minimum_length_ratio: float = Field(default=0.0, ge=0.0, le=100.0)
    """A translation has at least this many times the source's pieces. With minimum_length, the larger of the two
    holds; 0: off."""
    no_repeat_ngram_size: int = Field(default=0, ge=0, le=100)
    """No sequence of this many pieces occurs twice in a translation; 0: off."""
    suppress_unknown: bool = False
    """Never produce the unknown piece."""
    protect: Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=50), AfterValidator(_patterns)] = [
        "placeholders",
        "addresses",
        "symbols",
    ]
    """What the model is not shown, and what stands in the translation as it is: of placeholders, addresses, symbols,
    and numbers those named here, and what regular expressions match; also what the vocabulary lacks. What the model has
    learned in training is shown, and lines in capitals as sentences. Numbers that are not named, and names of programs,
    are shown, and put right in the translation. [] shows the model lines as they are, and changes no translation."""
    coverage_penalty: float = Field(default=0.0, ge=0.0, le=10.0)
    """How strongly to penalize translations that neglect parts of the source: the beta of Wu et al., with the length
    penalty average for the mean over source pieces instead of their sum; 0: off."""


class SamplingConfig(Section):
    """How translations are sampled instead of searched for; not part of a configuration file."""

    temperature: float = Field(default=1.0, gt=0.0, le=100.0)
    """Log-probabilities are divided by this: below 1 favors probable pieces, above 1 improbable ones."""
    top_k: Count | None = None
    """Sample each piece from only this many of the most probable ones."""
    top_p: float | None = Field(default=None, gt=0.0, le=1.0)
    """Sample each piece from the smallest set of most probable ones whose probabilities add up to this."""
    seed: int = Field(default=42, ge=0, lt=2**32)
    """Random seed; a line at the same place gets the same sample, whatever the other lines and the batches are."""


class Config(Section):
    """One experiment: data, subwords, model, training and decoding."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
        json_schema_extra={"$comment": 'text of letters, digits, ".", "_" and "-" that begins with a letter or digit'},
    )
    """Name of the run; its folder is `runs/<name>` unless --output says otherwise."""
    seed: int = Field(default=42, ge=0, lt=2**32)
    """Random seed of all that training draws."""
    data: DataConfig
    """The parallel text."""
    subwords: SubwordsConfig = SubwordsConfig()
    """How text is split into pieces."""
    model: ModelConfig = ModelConfig()
    """The network."""
    training: TrainingConfig = TrainingConfig()
    """How the network is trained."""
    decoding: DecodingConfig = DecodingConfig()
    """How the trained network translates."""
