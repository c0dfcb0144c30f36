"""The whole model: source ids → memory → distribution over target ids, for training (all steps) and search (each).

Layers take sizes; only the builder at the end of this file reads the configuration.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nmt.config.schema import ModelConfig
from nmt.models.attention import Attention
from nmt.models.cells import CELLS
from nmt.models.combinations import options
from nmt.models.decoder import Decoder, DecoderShape, DecoderState, Outputs
from nmt.models.decoders import DECODERS
from nmt.models.encoder import Encoder
from nmt.models.initial_state import INITIAL_STATES, InitialState, StateSizes
from nmt.models.initialization import Role, Weight, initialize
from nmt.models.memory import Memory
from nmt.models.scopes import SCOPES
from nmt.models.scores import SCORES
from nmt.ops.linear import linear


class SearchState(NamedTuple):
    """Where a batch of hypotheses stands: the memory has one row a sentence, the decoder's state one a hypothesis."""

    memory: Memory
    decoder: DecoderState

    def select(self, rows: Tensor) -> "SearchState":
        """The hypotheses `rows` (sentences, beam): flat indices into the current rows.

        The rows of one line of `rows` must belong to one sentence. This expands a beam, reorders it, and drops
        sentences whose rows are not named; the memory is copied only in the last case.
        """
        hypotheses = self.decoder.layers[0][0].size(0)
        sentences = self.memory.values.size(0)
        memory = self.memory
        if rows.size(0) != sentences:
            memory = memory.select(torch.div(rows[:, 0], hypotheses // sentences, rounding_mode="floor"))
        return SearchState(memory, self.decoder.select(rows.reshape(-1)))


class Seq2Seq(nn.Module):
    """Encoder, attention and decoder between embeddings and the output layer p(y_t) = softmax(W_s v_t), without bias.

    v_t is the decoder's vector. `output_weight` (vocabulary, output_size) is W_s; with tied embeddings it is the target
    embedding, and the source embedding too when one vocabulary serves both.
    """

    def __init__(
        self,
        *,
        source_embedding: nn.Embedding,
        target_embedding: nn.Embedding | None,
        encoder: Encoder,
        initial_state: InitialState,
        decoder: Decoder,
        output_layer: nn.Linear | None,
    ) -> None:
        """`target_embedding` None: the source's is shared. `output_layer` None: the target embedding is shared."""
        super().__init__()
        self.source_embedding = source_embedding
        self.own_target_embedding = target_embedding
        self.encoder = encoder
        self.initial_state = initial_state
        self.decoder = decoder
        self.output_layer = output_layer

    def declared(self) -> Iterator[tuple[Tensor, Weight]]:
        for embedding in (self.source_embedding, self.target_embedding):
            is_output = embedding.weight is self.output_weight
            yield embedding.weight, Weight(Role.OUTPUT_EMBEDDING if is_output else Role.EMBEDDING)

    @property
    def target_embedding(self) -> nn.Embedding:
        return self.source_embedding if self.own_target_embedding is None else self.own_target_embedding

    @property
    def output_weight(self) -> Tensor:
        return self.target_embedding.weight if self.output_layer is None else self.output_layer.weight

    def start(self, source: Tensor, source_lengths: Tensor) -> SearchState:
        """Encode `source` (batch, source_length), ids with END; one row a sentence."""
        lengths = self.encoder.tokens_read(source_lengths)
        encoded = self.encoder(self.source_embedding(source), lengths)
        memory = self.decoder.attention.remember(encoded.annotations, lengths)
        return SearchState(memory, self.decoder.start(self.initial_state(encoded, memory), memory))

    def step(self, tokens: Tensor, state: SearchState) -> tuple[Tensor, SearchState]:
        """Log-probabilities (rows, vocabulary) of the words after `tokens` (rows,), and the next state."""
        vectors, _, following = self.advance(tokens, state)
        return self.log_probabilities(vectors), following

    def advance(self, tokens: Tensor, state: SearchState) -> tuple[Tensor, Tensor, SearchState]:
        """After `tokens` (rows,): vectors for the output layer (rows, output_size), the weights (rows, source_length)
        with which they were computed, and the next state."""
        vectors, weights, decoder = self.decoder.step(self.target_embedding(tokens), state.decoder, state.memory)
        return vectors, weights, SearchState(state.memory, decoder)

    def log_probabilities(self, vectors: Tensor) -> Tensor:
        """log softmax(W_s v), (rows, vocabulary), of the vectors (rows, output_size) of a step."""
        return linear(vectors, self.output_weight).log_softmax(dim=-1)

    def log_probabilities_among(self, tokens: Tensor, barred: Tensor, vectors: Tensor) -> Tensor:
        """The same over the words `tokens` (columns,) alone: (rows, columns), -inf where a sentence may not use one,
        `barred` (sentences, columns)."""
        logits = linear(vectors, self.output_weight[tokens])
        by_sentence = logits.view(barred.size(0), -1, barred.size(1))
        return by_sentence.masked_fill(barred.unsqueeze(1), -torch.inf).flatten(0, 1).log_softmax(dim=1)

    def forward(
        self, source: Tensor, source_lengths: Tensor, target_input: Tensor, sources: Tensor | None = None
    ) -> Outputs:
        """Vectors for the output layer, and attention weights, given the true words before each position.

        `target_input` (batch, target_length) begins with BEGIN; position t predicts word t of the target. `sources`
        (targets,) are the rows of `source` that the targets translate, at least one each; each source is then encoded
        once, however many targets it has, and if there are as many, they are in order. None: target i translates source
        i.
        """
        state = self.start(source, source_lengths)
        if sources is not None:
            state = state.select(sources.unsqueeze(1))
        return self.decoder(self.target_embedding(target_input), state.decoder, state.memory)


def build_model(config: ModelConfig, *, source_size: int, target_size: int) -> Seq2Seq:
    """The model that `config` describes, for vocabularies of these sizes, with freshly drawn weights."""
    model = _assembled(config, source_size, target_size)
    initialize(model, config)
    return model


def restore_model(config: ModelConfig, weights: Mapping[str, Tensor], *, source_size: int, target_size: int) -> Seq2Seq:
    """The model that `config` describes, with `weights` by their names. Raises RuntimeError where they do not fit."""
    model = _assembled(config, source_size, target_size)
    model.load_state_dict(weights)
    return model


def weight_shapes(config: ModelConfig, *, source_size: int, target_size: int) -> dict[str, tuple[int, ...]]:
    """The shapes of that model's weights, by their names; no memory is asked for, however large they are.

    Raises ValueError where there is no such model, or one with more weights than can be counted.
    """
    try:
        with torch.device("meta"):
            model = _assembled(config, source_size, target_size)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise ValueError(f"no model has this configuration: {error}") from error
    return {name: tuple(weight.shape) for name, weight in model.state_dict().items()}


def _assembled(config: ModelConfig, source_size: int, target_size: int) -> Seq2Seq:
    """The model before its weights are drawn."""
    settings = config.encoder.model_dump(exclude={"hidden_size"})
    encoder = Encoder(input_size=config.embedding_size, size=config.encoder.hidden_size, **settings)
    decoder = _build_decoder(config, memory_size=encoder.output_size)
    sizes = StateSizes(
        summary=encoder.size,
        memory=encoder.output_size,
        layers=config.decoder.layers,
        states=CELLS[config.decoder.cell].states,
        size=config.decoder.hidden_size,
    )
    tied = config.tie_embeddings
    return Seq2Seq(
        source_embedding=_embedding(source_size, config.embedding_size),
        target_embedding=None if tied == "all" else _embedding(target_size, config.embedding_size),
        encoder=encoder,
        initial_state=INITIAL_STATES[config.decoder.initial_state](sizes),
        decoder=decoder,
        output_layer=nn.Linear(decoder.output_size, target_size, bias=False) if tied == "none" else None,
    )


def _embedding(size: int, dimension: int) -> nn.Embedding:
    """An embedding as PyTorch draws it; not drawn on the meta device, which would import a large part of PyTorch."""
    weight = torch.empty(size, dimension)
    return nn.Embedding.from_pretrained(weight if weight.is_meta else weight.normal_(), freeze=False)


def _build_decoder(config: ModelConfig, *, memory_size: int) -> Decoder:
    """The decoder that `config` describes; its kind gets just the options that it takes."""
    settings = config.decoder
    available = {
        **settings.model_dump(),
        "input_size": config.embedding_size,
        "size": settings.hidden_size,
        "output_size": settings.output_size or settings.hidden_size,
        "output_dropout": settings.dropout if settings.output_dropout is None else settings.output_dropout,
    }
    shape = DecoderShape(**{name: available[name] for name in DecoderShape._fields})
    kind = DECODERS[settings.type]
    return kind(build_attention(config, memory_size=memory_size), shape, **_taken(kind, available))


def build_attention(config: ModelConfig, *, memory_size: int) -> Attention:
    """The attention that `config` describes; score and scope get just the options that they take."""
    settings, query_size = config.attention, config.decoder.hidden_size
    available = {
        **settings.model_dump(),
        "size": settings.size or query_size,
        "ends_with_first_word": config.encoder.reverse_source and not config.encoder.end_mark,
    }
    score, scope = SCORES[settings.score], SCOPES[settings.scope]
    return Attention(
        score(query_size, memory_size, **_taken(score, available)),
        scope(query_size, **_taken(scope, available)),
        memory_size=memory_size,
    )


def _taken(member: type[nn.Module], available: dict[str, Any]) -> dict[str, Any]:
    return {name: available[name] for name in options(member) if name in available}
