"""The average of several checkpoints of one run, weight by weight."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from nmt.models.model_file import load_model


def average_weights(paths: Sequence[Path]) -> dict[str, Tensor]:
    """w = Σ_k w_k / K over the model files `paths`, summed in float64 and returned in each weight's own type."""
    sums: dict[str, Tensor] = {}
    types: dict[str, torch.dtype] = {}
    for path in paths:
        for name, weight in load_model(path).weights.items():
            types[name] = weight.dtype
            sums[name] = sums.get(name, torch.zeros_like(weight, dtype=torch.float64)) + weight.double()
    return {name: (total / len(paths)).to(types[name]) for name, total in sums.items()}
