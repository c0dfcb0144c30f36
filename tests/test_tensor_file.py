"""Files of tensors: what is written is read, and nothing else is."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from nmt.errors import UserError
from nmt.tensor_file import below, read_tensors, write_tensors

TENSORS = {
    "a.weight": torch.arange(6, dtype=torch.float32).reshape(2, 3),
    "a.step": torch.tensor(7.0),
    "b": torch.tensor([1, 2, 255], dtype=torch.uint8),
    "empty": torch.zeros(0, 5, dtype=torch.int64),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "some.safetensors"
    write_tensors(path, TENSORS, kind="model", texts={"config": "name: ü\n"})
    return path


def test_round_trip(path: Path) -> None:
    tensors, texts = read_tensors(path, kind="model")
    assert tensors.keys() == TENSORS.keys()
    assert all(torch.equal(tensors[name], tensor) for name, tensor in TENSORS.items())
    assert texts["config"] == "name: ü\n"
    assert below(tensors, "a.").keys() == {"weight", "step"}


def test_equal_content_gives_equal_bytes(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.safetensors"
    write_tensors(other, dict(reversed(TENSORS.items())), kind="model", texts={"config": "name: ü\n"})
    assert other.read_bytes() == path.read_bytes()


def test_every_flipped_bit_is_noticed(path: Path) -> None:
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        with pytest.raises(UserError, match=r"some\.safetensors: "):
            read_tensors(path, kind="model")


def test_other_kinds_are_named(path: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no training state of this toolkit, but a model"):
        read_tensors(path, kind="training state")
    foreign = tmp_path / "foreign.safetensors"
    save_file(TENSORS, foreign)
    with pytest.raises(UserError, match="no model of this toolkit, but a safetensors file of another program"):
        read_tensors(foreign, kind="model")
