"""When training has diverged: numbers that are not finite, or a validation loss far above that of guessing."""

import math

import torch
from torch import nn
from torch.optim import Optimizer

from nmt.config.schema import Divergence, TrainingConfig
from nmt.errors import UserError
from nmt.training.progress import Progress


class Diverged(UserError):
    """Training cannot go on: what was found, and in or after which update."""

    def __init__(self, finding: str, *, where: str = "") -> None:
        self.finding = finding
        place = f" {where}" if where else ""
        super().__init__(
            f"training diverged{place}: {finding}; lower training.optimizer.learning_rate, set or lower "
            "training.gradient_clip_norm, and start over in another --output"
        )


def not_finite(model: nn.Module, optimizer: Optimizer) -> str | None:
    """How many of the tensors in a state have values that are not finite; None: all values are finite."""
    tensors = [*model.state_dict().values()]
    tensors += [moment for state in optimizer.state.values() for moment in state.values() if torch.is_tensor(moment)]
    broken = sum(not bool(tensor.isfinite().all()) for tensor in tensors)
    return f"{broken} of {len(tensors)} tensors of weights and optimizer are not finite" if broken else None


def bound(settings: Divergence | None, pieces: int) -> float:
    """The validation loss in nats beyond which a model is worse than at its start."""
    return math.inf if settings is None else settings.loss_factor * math.log(pieces)


def beyond_start(progress: Progress, config: TrainingConfig, pieces: int, *, is_over: bool) -> str | None:
    """What the last validations found, if it has to end training, for a model with that many target pieces.

    It takes several in a row above the start's loss; where training is over anyway, the last one is enough.
    """
    limit = config.divergence
    if limit is None or not progress.best or progress.beyond < (1 if is_over else limit.patience):
        return None
    best, metric = progress.best[0], config.validation.metric
    count = "" if progress.beyond == 1 else f", {progress.beyond} in a row"
    return (
        f"validation loss {progress.validation_loss:.4g}{count} above {limit.loss_factor:g} × ln({pieces:,}) = "
        f"{bound(limit, pieces):.4g}, where a model that knows nothing has ln({pieces:,}) (training.divergence); the "
        f"best model so far is that of update {best.update:,}, {metric} {best.value:.4g}"
    )
