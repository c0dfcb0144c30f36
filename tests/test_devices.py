"""The names of devices, where PyTorch says what there is. No GPU of Apple's or Intel's was at hand: it is stubbed."""

import pytest
import torch

from nmt import devices
from nmt.devices import device_name
from nmt.errors import UserError
from nmt.processes.several import meeting
from nmt.signals import PATIENCE


@pytest.mark.parametrize(
    ("there", "auto"), [((), "cpu"), (("mps",), "cpu"), (("xpu",), "cpu"), (("cuda", "xpu"), "cuda")]
)
def test_what_pytorch_can_use_may_be_chosen(there: tuple[str, ...], auto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "GPU_FILES", ("/",))
    for name, module in {"cuda": torch.cuda, "mps": torch.backends.mps, "xpu": torch.xpu}.items():
        monkeypatch.setattr(module, "is_available", lambda name=name: name in there)
    assert device_name("auto") == auto
    for name in ("cuda", "mps", "xpu"):
        if name in there:
            assert device_name(name) == name
        else:
            with pytest.raises(
                UserError, match=f"{name}: is not available to PyTorch .* one of {', '.join(('auto', 'cpu', *there))}$"
            ):
                device_name(name)


def test_several_processes_compute_where_they_can_meet() -> None:
    with (
        pytest.raises(UserError, match="--device mps is for a process by itself"),
        meeting("mps", "nmt-train", PATIENCE),
    ):
        pytest.fail("gloo knows no such tensors")
