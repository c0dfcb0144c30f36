"""How weights start: each layer declares what its weights are, and the configuration chooses how such are drawn.

A weight that no layer declares is a matrix drawn as a whole; a vector is a matrix with one output. The bias of a
linear layer or a convolution is one without being declared. Layer normalization and single numbers, such as a score's
temperature, keep the start that they were built with, unless a layer declares the bias of a normalization as an LSTM's.
"""

from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from nmt.config.schema import ModelConfig, UniformInitialization, XavierInitialization


class Role(Enum):
    """What a weight is to its layer."""

    MATRIX = auto()
    RECURRENT = auto()  # multiplies the last state
    EMBEDDING = auto()
    OUTPUT_EMBEDDING = auto()  # is the output layer too
    ATTENTION = auto()  # any weight of attention, but for
    SCORE_VECTOR = auto()  # v_a
    BIAS = auto()  # starts at 0
    LSTM_BIAS = auto()  # starts at 0, but for the forget gate's part, the second of four


class Weight(NamedTuple):
    """What a layer declares of a weight."""

    role: Role = Role.MATRIX
    gates: int = 1  # blocks of rows, one below the other, that are drawn one by one


@runtime_checkable
class Declares(Protocol):
    """A layer that has other weights than plain matrices and the biases of its parts, or parts that have."""

    def declared(self) -> Iterable[tuple[Tensor, Weight]]:
        """These weights, and what they are. What a part declares of its own weight takes precedence."""
        ...


def declared_weights(model: nn.Module) -> dict[Tensor, Weight]:
    """The weights of `model` that are no plain matrices, and what they are."""
    weights: dict[Tensor, Weight] = {}
    for module in model.modules():  # from the outside in
        weights.update(module.declared() if isinstance(module, Declares) else ())
        if isinstance(module, nn.Linear | nn.Conv1d) and module.bias is not None:
            is_lstm = weights.get(module.bias, Weight()).role is Role.LSTM_BIAS
            weights[module.bias] = Weight(Role.LSTM_BIAS if is_lstm else Role.BIAS)
    return weights


def initialize(model: nn.Module, config: ModelConfig) -> None:
    """Draw every parameter of `model` again from PyTorch's global generator, in the order of their names."""
    draw, weights = STARTS[config.initialization.name], declared_weights(model)
    norms = (module for module in model.modules() if isinstance(module, nn.LayerNorm))
    kept = {parameter for norm in norms for parameter in norm.parameters()}
    with torch.no_grad():
        for _, parameter in sorted(model.named_parameters()):
            weight = weights.get(parameter, Weight())
            if parameter.dim() == 0 or (parameter in kept and weight.role is not Role.LSTM_BIAS):
                continue
            if weight.role in (Role.BIAS, Role.LSTM_BIAS):
                nn.init.zeros_(parameter)
                if weight.role is Role.LSTM_BIAS:  # Gers, Schmidhuber & Cummins (2000)
                    parameter.chunk(4)[1].fill_(config.initialization.forget_bias)
            else:
                draw(parameter, weight, config)


def usual_range(units: int) -> float:
    """The r of a decoder of so many units: Luong et al.'s 0.1 with 512 and more.

    From ±0.1 with 256, all states and scores are near 0, and an untrained attention sees nothing: the fewer units, the
    larger r, up to 0.2.
    """
    return min(0.2, max(0.1, 51.2 / units))


def _uniform(parameter: Tensor, weight: Weight, config: ModelConfig) -> None:
    """Luong et al. (2015), section 4.1: r = 0.1, with 1,000 units."""
    assert isinstance(config.initialization, UniformInitialization)
    limit = config.initialization.range or usual_range(config.decoder.hidden_size)
    nn.init.uniform_(parameter, -limit, limit)


def _bahdanau(parameter: Tensor, weight: Weight, config: ModelConfig) -> None:
    """Bahdanau et al. (2014), B.1. The vector of a score starts at 0, so that attention is even at first."""
    if weight.role is Role.SCORE_VECTOR:
        nn.init.zeros_(parameter)
    elif weight.role is Role.RECURRENT:
        for block in parameter.chunk(weight.gates):
            nn.init.orthogonal_(block)
    else:
        nn.init.normal_(parameter, std=0.001 if weight.role is Role.ATTENTION else 0.01)


def _xavier(parameter: Tensor, weight: Weight, config: ModelConfig) -> None:
    """Orthogonal recurrent matrices, Xavier-uniform (Glorot & Bengio 2010) others, each gate's block by itself.

    `recurrent: xavier` draws recurrent matrices as all others.

    Embeddings are N(0, 1), inputs of unit size from which gates learn at once; tied to the output layer they are
    N(0, 1/size), or the first logits would be of the size of the vector.
    """
    start = config.initialization
    assert isinstance(start, XavierInitialization)
    if weight.role in (Role.EMBEDDING, Role.OUTPUT_EMBEDDING):
        usual = 1.0 if weight.role is Role.EMBEDDING else parameter.size(1) ** -0.5
        nn.init.normal_(parameter, std=usual if start.embedding_deviation is None else start.embedding_deviation)
        return
    orthogonal = weight.role is Role.RECURRENT and start.recurrent == "orthogonal"
    draw = nn.init.orthogonal_ if orthogonal else nn.init.xavier_uniform_
    for block in (parameter.unsqueeze(0) if parameter.dim() == 1 else parameter).chunk(weight.gates):
        draw(block)


def _lecun(parameter: Tensor, weight: Weight, config: ModelConfig) -> None:
    """N(0, 1/inputs) (LeCun et al. 1998, Efficient BackProp, 4.6), orthogonal where recurrent or square, as in nmtpy.

    An embedding is a matrix whose inputs are the words, so that its vectors start small.
    """
    embedding = weight.role in (Role.EMBEDDING, Role.OUTPUT_EMBEDDING)
    for block in (parameter.unsqueeze(0) if parameter.dim() == 1 else parameter).chunk(weight.gates):
        outputs, inputs = block.size(0), block[0].numel()
        if weight.role is Role.RECURRENT or (outputs == inputs and not embedding):
            nn.init.orthogonal_(block)
        else:
            nn.init.normal_(block, std=(outputs if embedding else inputs) ** -0.5)


STARTS: dict[str, Callable[[Tensor, Weight, ModelConfig], None]] = {
    "uniform": _uniform,
    "xavier": _xavier,
    "bahdanau": _bahdanau,
    "lecun": _lecun,
}
