"""How weights start: uniform in a range (Luong et al. 2015), or Xavier with orthogonal recurrent matrices."""

from torch import Tensor, nn

from nmt.config.schema import ModelConfig, UniformInitialisation


def initialise(model: nn.Module, config: ModelConfig) -> None:
    """Draw every parameter of `model` anew from PyTorch's global generator, in the order of their names."""
    settings = config.initialisation
    for name, parameter in sorted(model.named_parameters()):
        if _is_bias(name):
            nn.init.zeros_(parameter)
        elif isinstance(settings, UniformInitialisation):
            nn.init.uniform_(parameter, -settings.range, settings.range)
        else:
            _xavier(name, parameter)


def _is_bias(name: str) -> bool:
    return name.rsplit(".", 1)[-1].startswith("bias")


def _xavier(name: str, parameter: Tensor) -> None:
    """Orthogonal for each gate's recurrent block, N(0, 1/size) for embeddings, Xavier-uniform for all else."""
    if "weight_hh" in name or "recurrent_layer" in name:
        size = parameter.size(1)
        for start in range(0, parameter.size(0), size):
            nn.init.orthogonal_(parameter[start : start + size])
    elif "embedding" in name:
        nn.init.normal_(parameter, std=parameter.size(1) ** -0.5)
    elif parameter.dim() == 1:  # the vector of a score is a matrix with one output
        nn.init.xavier_uniform_(parameter.unsqueeze(0))
    else:
        nn.init.xavier_uniform_(parameter)
