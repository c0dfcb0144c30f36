"""When training has diverged: numbers that are not finite, or a validation loss far above that of guessing."""

import math
from collections.abc import Sequence

import torch
from torch import nn
from torch.optim import Optimizer

from nmt.config.schema import Divergence, TrainingConfig
from nmt.data.batch import Batch
from nmt.errors import UserError, counted
from nmt.processes import ALONE, Processes
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


def place(group: Sequence[Batch | None], progress: Progress, processes: Processes = ALONE) -> str:
    """Which update `progress` is at, in words; its position is that before the update's batches.

    Pairs are numbered from 1 among those that the filters kept. With several processes, each knows only its own pairs.
    """
    last = progress.position + len(group)
    batches = f"batch {last}" if len(group) == 1 else f"batches {progress.position + 1} to {last}"
    rows = [int(row) + 1 for batch in group if batch is not None for row in batch.indices]
    whose = f" of process {processes.rank}" if processes.size > 1 else ""
    pairs = f", {counted(len(rows), 'pair')}{whose} from {min(rows)} to {max(rows)}" if rows else ""
    return (
        f"update {progress.update:,} (epoch {progress.epoch + 1}, {batches}{pairs}, learning rate {progress.rate:.4g})"
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
