"""How weights start: one function for each way, and STARTS names them.

Biases start at 0. Layer normalisation and a score's temperature keep the start that they were built with.
"""

from collections.abc import Callable

from torch import Tensor, nn

from nmt.config.schema import ModelConfig, UniformInitialisation
from nmt.models.cells import CELLS


def initialise(model: nn.Module, config: ModelConfig, *, output_weight: Tensor) -> None:
    """Draw every parameter of `model` anew from PyTorch's global generator, in the order of their names.

    `output_weight` is the parameter of the output layer, which may be an embedding too.
    """
    draw = STARTS[config.initialisation.name]
    for name, parameter in sorted(model.named_parameters()):
        if "_norm." in name or ".norm." in name or parameter.dim() == 0:
            continue
        if name.rsplit(".", 1)[-1].startswith("bias"):
            nn.init.zeros_(parameter)
        else:
            draw(name, parameter, config, parameter is output_weight)


def _uniform(name: str, parameter: Tensor, config: ModelConfig, is_output: bool) -> None:
    """Luong et al. (2015), section 4.1."""
    assert isinstance(config.initialisation, UniformInitialisation)
    nn.init.uniform_(parameter, -config.initialisation.range, config.initialisation.range)


def _bahdanau(name: str, parameter: Tensor, config: ModelConfig, is_output: bool) -> None:
    """Bahdanau et al. (2014), B.1. The vector of a score starts at 0, so that attention is even at first."""
    if name == "decoder.attention.score.vector":
        nn.init.zeros_(parameter)
    elif name.startswith("decoder.attention."):
        nn.init.normal_(parameter, std=0.001)
    elif _is_recurrent(name):
        _each_gate(nn.init.orthogonal_, name, parameter, config)
    else:
        nn.init.normal_(parameter, std=0.01)


def _xavier(name: str, parameter: Tensor, config: ModelConfig, is_output: bool) -> None:
    """Orthogonal recurrent matrices, Xavier-uniform (Glorot & Bengio 2010) others, each gate's block by itself.

    Embeddings are N(0, 1), inputs of unit size from which gates learn at once; tied to the output layer they are
    N(0, 1/size), or the first logits would be of the size of the vector.
    """
    if "embedding" in name:
        nn.init.normal_(parameter, std=parameter.size(1) ** -0.5 if is_output else 1.0)
    elif _is_recurrent(name):
        _each_gate(nn.init.orthogonal_, name, parameter, config)
    elif any(part in name for part in ("weight_ih", "input_layer", "feed", "context_layer")):
        _each_gate(nn.init.xavier_uniform_, name, parameter, config)
    elif parameter.dim() == 1:  # the vector of a score is a matrix with one output
        nn.init.xavier_uniform_(parameter.unsqueeze(0))
    else:
        nn.init.xavier_uniform_(parameter)


def _is_recurrent(name: str) -> bool:
    return "weight_hh" in name or "recurrent_layer" in name


def _each_gate(draw: Callable[[Tensor], Tensor], name: str, parameter: Tensor, config: ModelConfig) -> None:
    """Draw the block of each gate by itself; a cell's matrices have them one below the other."""
    cell = config.encoder.cell if name.startswith("encoder.") else config.decoder.cell
    for block in parameter.chunk(CELLS[cell].gates):
        draw(block)


STARTS: dict[str, Callable[[str, Tensor, ModelConfig, bool], None]] = {
    "uniform": _uniform,
    "xavier": _xavier,
    "bahdanau": _bahdanau,
}
