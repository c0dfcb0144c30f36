"""How weights start: uniform in a range (Luong et al. 2015), or Xavier with orthogonal recurrent matrices."""

from torch import Tensor, nn

from nmt.config.schema import ModelConfig, UniformInitialisation
from nmt.models.cells import CELLS


def initialise(model: nn.Module, config: ModelConfig, *, output_weight: Tensor) -> None:
    """Draw every parameter of `model` anew from PyTorch's global generator, in the order of their names.

    `output_weight` is the parameter of the output layer, which may be an embedding too.
    """
    settings = config.initialisation
    for name, parameter in sorted(model.named_parameters()):
        if _is_bias(name):
            nn.init.zeros_(parameter)
        elif isinstance(settings, UniformInitialisation):
            nn.init.uniform_(parameter, -settings.range, settings.range)
        elif "embedding" in name:
            _embedding(parameter, tied=parameter is output_weight)
        else:
            cell = config.encoder.cell if name.startswith("encoder.") else config.decoder.cell
            _xavier(name, parameter, gates=CELLS[cell].gates)


def _is_bias(name: str) -> bool:
    return name.rsplit(".", 1)[-1].startswith("bias")


def _embedding(parameter: Tensor, *, tied: bool) -> None:
    """N(0, 1): inputs of unit size, from which gates learn at once; with N(0, 1/size) learning starts much later.

    Tied to the output layer N(0, 1/size) all the same, or the first logits would be of the size of the vector.
    """
    nn.init.normal_(parameter, std=parameter.size(1) ** -0.5 if tied else 1.0)


def _xavier(name: str, parameter: Tensor, *, gates: int) -> None:
    """Each gate's block by itself: orthogonal for recurrent weights, Xavier-uniform (Glorot & Bengio) for others."""
    if "weight_hh" in name or "recurrent_layer" in name:
        for block in parameter.chunk(gates):
            nn.init.orthogonal_(block)
    elif any(part in name for part in ("weight_ih", "input_layer", "feed")):
        for block in parameter.chunk(gates):
            nn.init.xavier_uniform_(block)
    elif parameter.dim() == 1:  # the vector of a score is a matrix with one output
        nn.init.xavier_uniform_(parameter.unsqueeze(0))
    else:
        nn.init.xavier_uniform_(parameter)
