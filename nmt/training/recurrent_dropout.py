"""Dropout on the weights U that multiply a cell's last state (Merity, Keskar & Socher 2018, arXiv 1708.02182, 2).

With m_ij = 0 with probability p and 1 / (1 - p) otherwise, an update computes all its steps and batches with m ∘ U:

    dL/dU = m ∘ dL/d(m ∘ U)

DropConnect (Wan et al. 2013) of the recurrent product alone. Dropout of its input would have to keep one mask for all
steps, or it would wipe out what a state remembers; a mask of the weights does so for nothing, and kernels of whole
sequences stay what they are. A model whose weights are U is asked for them by their role; it knows nothing of this.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from nmt.models.initialization import Role, declared_weights
from nmt.ops.masks import dropout_mask
from nmt.processes import Processes
from nmt.training.averaging import put_back


def masks(model: nn.Module, rate: float, *, processes: Processes) -> list[tuple[Tensor, Tensor]]:
    """Each U of the model with a fresh mask, the same in all processes: it is the first one's random state that draws
    its seed."""
    seed = processes.gather(int(torch.randint(2**62, ())))[0]
    recurrent = [weight for weight, of in declared_weights(model).items() if of.role is Role.RECURRENT]
    generator = torch.Generator(recurrent[0].device).manual_seed(seed)
    return [(weight, dropout_mask(weight.shape, rate, like=weight, generator=generator)) for weight in recurrent]


@contextmanager
def dropped_recurrent(model: nn.Module, rate: float, *, processes: Processes) -> Iterator[None]:
    """Compute losses and gradients in the block with m ∘ U for each recurrent U of the model, whose gradients are
    those of U behind it; U is then what it was, bit for bit. A rate of 0 draws nothing."""
    dropped = masks(model, rate, processes=processes) if rate else []
    with put_back(weight.detach() for weight, _ in dropped):
        for weight, mask in dropped:
            weight.detach().mul_(mask)
        yield
    for weight, mask in dropped:
        if weight.grad is not None:
            weight.grad.mul_(mask)
