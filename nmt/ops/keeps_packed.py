"""What modules have in common that keep their weights in a second form, for inference."""

from typing import Any, Generic, TypeVar

import torch
from torch import nn

Form = TypeVar("Form")
Own = TypeVar("Own", bound="KeepsPacked[Any]")


class KeepsPacked(nn.Module, Generic[Form]):
    """A module that may have its weights in another form too, in which inference is faster.

    Whoever packs sets `packed`. It is gone when the module is moved to another device or type, or loads other weights.
    """

    packed: Form | None = None

    @property
    def for_inference(self) -> Form | None:
        """What to compute with in place of the weights, if there is anything: never while gradients are recorded."""
        return None if torch.is_grad_enabled() else self.packed

    def _load_from_state_dict(self, *arguments: Any) -> None:
        self.packed = None
        super()._load_from_state_dict(*arguments)

    def _apply(self: Own, *arguments: Any, **options: Any) -> Own:
        self.packed = None
        return super()._apply(*arguments, **options)
