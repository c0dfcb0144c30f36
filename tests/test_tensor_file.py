"""Files of tensors: what is written is read, and nothing else is."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from nmt import __version__
from nmt.errors import UserError
from nmt.tensor_file import LARGEST_HEADER, open_tensors, read_tensors, with_prefix, write_tensors
from tests.hostile_files import rewrite, write_parts

TENSORS = {
    "a.weight": torch.arange(6, dtype=torch.float32).reshape(2, 3),
    "a.step": torch.tensor(7.0),
    "b": torch.tensor([1, 2, 255], dtype=torch.uint8),
    "empty": torch.zeros(0, 5, dtype=torch.int64),
    "eight axes": torch.ones([1] * 8),
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
    assert with_prefix(tensors, "a.").keys() == {"weight", "step"}


def test_every_type_is_read_as_it_was(tmp_path: Path) -> None:
    whole = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    kinds = (*whole, torch.float16, torch.bfloat16, torch.float32, torch.float64)
    tensors = {str(kind): torch.tensor([0, 1, 1]).to(kind) for kind in kinds}
    write_tensors(tmp_path / "types", tensors, kind="model", texts={})
    read, _ = read_tensors(tmp_path / "types", kind="model")
    assert all(read[name].dtype == tensor.dtype for name, tensor in tensors.items())
    assert all(torch.equal(read[name], tensor) for name, tensor in tensors.items())


def test_no_copy_of_all_tensors_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are written one by one, each from where it is."""
    written: list[memoryview] = []

    @contextmanager
    def recorded(*_: object, **__: object) -> Iterator[Any]:
        yield SimpleNamespace(write=written.append)

    monkeypatch.setattr("nmt.tensor_file.written_atomically", recorded)
    tensors = {name: torch.arange(5.0) for name in "abc"}
    write_tensors(tmp_path / "some", tensors, kind="model", texts={})
    tensors["b"][2] = 17.0
    assert [len(part) for part in written[1:]] == [20, 20, 20]
    assert torch.frombuffer(written[2], dtype=torch.float32).tolist() == [0.0, 1.0, 17.0, 3.0, 4.0]


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
    with pytest.raises(UserError, match="not a training state of this toolkit, but a model"):
        read_tensors(path, kind="training state")
    foreign = tmp_path / "foreign.safetensors"
    save_file(TENSORS, foreign)
    with pytest.raises(UserError, match=r"not a model of this toolkit, but a safetensors file of another program$"):
        read_tensors(foreign, kind="model")


# --------------------------------------------------------------------------------------------- files from a stranger


def test_the_version_of_the_toolkit_is_in_the_file(path: Path) -> None:
    assert read_tensors(path, kind="model")[1]["toolkit"] == __version__


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (
            "2",
            r"by a newer version of the toolkit \(9\.8\.7\), in format 2; .* reads format 1: read it with that one$",
        ),
        (
            "0",
            r"by an older version of the toolkit \(9\.8\.7\), in format 0; this one .*: read it with that one$",
        ),
        ("1.5", r"damaged: its format version is 1\.5; this toolkit reads version 1"),
        ("9" * 5000, rf"written by a newer version of the toolkit .* in format {'9' * 50};"),
    ],
)
def test_other_versions_are_named(path: Path, version: str, message: str) -> None:
    """Also where the newer version writes what this one would take for damage."""
    rewrite(path, "model", lambda tensors, texts: texts.update(version=version, toolkit="9.8.7"))
    with pytest.raises(UserError, match=message):
        read_tensors(path, kind="model")


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"version": "1"}, "not a model of this toolkit, but a safetensors file of another program"),
        ({"kind": "model"}, "damaged: its format version is none; this toolkit"),
        ({"kind": "model", "version": "2"}, r"written by a newer version of the toolkit \(unknown\), in format 2;"),
        ({"kind": "model", "version": "1"}, "the checksums differ"),
    ],
)
def test_texts_that_are_absent(path: Path, texts: dict[str, str], message: str) -> None:
    write_parts(path, {"__metadata__": {"nmt-toolkit": json.dumps(texts)}}, b"")
    with pytest.raises(UserError, match=message):
        read_tensors(path, kind="model")


ENTRY = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
HEADERS: dict[str, Any] = {
    "no JSON": b"{",
    "no UTF-8": b'{"\xff": 1}',
    "a list": [],
    "nested": b"[" * 100_000,
    "nested texts": {"a": ENTRY, "__metadata__": {"nmt-toolkit": "[" * 100_000}},
    "texts no text": {"a": ENTRY, "__metadata__": {"nmt-toolkit": 5}},
    "texts a number": {"a": ENTRY, "__metadata__": {"nmt-toolkit": "5"}},
    "a number among texts": {"a": ENTRY, "__metadata__": {"nmt-toolkit": '{"kind": "model", "more": 5}'}},
    "an entry without a type": {"a": {"shape": [2, 3], "data_offsets": [0, 24]}},
    "an unknown type": {"a": {**ENTRY, "dtype": "Q7"}},
    "a type of others": {"a": {**ENTRY, "dtype": "C64", "shape": [3]}},
    "a negative shape": {"a": {**ENTRY, "shape": [-2, -3]}},
    "a shape beyond counting": {"a": {**ENTRY, "shape": [1 << 62] * 8}},
    "a shape of more than the bytes": {"a": {**ENTRY, "shape": [2, 4]}},
    "a place beyond the file": {"a": {**ENTRY, "data_offsets": [0, 1 << 40], "shape": [1 << 38]}},
    "a place with a gap": {"a": {**ENTRY, "data_offsets": [4, 28]}},
    "two in one place": {"a": ENTRY, "b": ENTRY},
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_what_is_no_header_is_refused(header: Any, tmp_path: Path) -> None:
    path = tmp_path / "hostile.safetensors"
    write_parts(path, header, bytes(24))
    with pytest.raises(UserError, match=r"hostile\.safetensors: damaged, or not a model of this toolkit \("):
        read_tensors(path, kind="model")


@pytest.mark.parametrize("shape", [[0, *[1] * 1000], [1 << 62, 2, 0], [0, 1 << 63]])
def test_a_shape_that_no_tensor_has(shape: list[int], path: Path) -> None:
    """Without bytes, so that safetensors takes it."""
    texts = {"kind": "model", "version": "1"}
    entry = {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}
    write_parts(path, {"a": entry, "__metadata__": {"nmt-toolkit": json.dumps(texts)}}, b"")
    with pytest.raises(UserError, match=r"some\.safetensors: (not enough memory for its a|damaged)"):
        read_tensors(path, kind="model")


def test_a_file_that_ends_in_its_header(path: Path) -> None:
    content = path.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    for size in (0, 7, 8, end - 1):
        path.write_bytes(content[:size])
        with pytest.raises(UserError, match=f"it has {size:,} bytes, too few for its header"):
            read_tensors(path, kind="model")


def test_a_header_has_a_limit(path: Path) -> None:
    write_parts(path, b"{" + b" " * (LARGEST_HEADER - 2) + b"}", b"")
    with pytest.raises(UserError, match="a safetensors file of another program"):
        read_tensors(path, kind="model")
    content = b"{" + b" " * LARGEST_HEADER
    write_parts(path, content, b"")
    with pytest.raises(UserError, match=r"its header has 8,388,609 bytes, more than 8,388,608"):
        read_tensors(path, kind="model")
    with path.open("wb") as file:
        file.write((1 << 40).to_bytes(8, "little"))
        file.truncate(1 << 41)
    with pytest.raises(UserError, match=r"its header has 1,099,511,627,776 bytes"):
        read_tensors(path, kind="model")


def test_a_file_that_shrinks_while_it_is_read(tmp_path: Path) -> None:
    """Mapped, it would end the process with a signal."""
    path = tmp_path / "some.safetensors"
    write_tensors(path, {"a": torch.zeros(1 << 18)}, kind="model", texts={})
    with open_tensors(path, kind="model") as file:
        os.truncate(path, 0)
        with pytest.raises(UserError, match=r"damaged: it was cut short while being read"):
            file.read()


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (Path("/dev/zero"), tmp_path / "pipe", tmp_path):
        with pytest.raises(
            UserError, match="not a model of this toolkit, nor even a file, but a folder, pipe or device"
        ):
            read_tensors(path, kind="model")
    with pytest.raises(UserError, match="cannot be read"):
        read_tensors(tmp_path / "absent", kind="model")


def test_what_the_memory_does_not_hold(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(torch, "empty", refused)
    with pytest.raises(UserError, match=r"some.safetensors: not enough memory for its \S+, "):
        read_tensors(path, kind="model")


def test_a_file_is_the_one_that_was_opened_and_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """safetensors' own writer would put another one in its place: private, and not flushed to the disk."""
    flushed, flush = [], os.fsync

    def noted(descriptor: int) -> None:
        flushed.append(os.fstat(descriptor).st_ino)
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    path, plain = tmp_path / "file.safetensors", tmp_path / "plain"
    plain.write_text("a file of this user")
    write_tensors(path, {"a": torch.ones(3)}, kind="model", texts={})
    assert path.stat().st_ino in flushed
    assert path.stat().st_mode == plain.stat().st_mode
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file.safetensors", "plain"]
