"""Files of named tensors with a few texts, in the safetensors format: nothing in them is ever executed.

A file may come from a stranger. It is read rather than mapped, so that truncation during reading is noticed; its header
is read first and says how much memory the rest takes, never more than the file's length. This module knows nothing of
models or training, which decide what the names mean. PyTorch is imported late: texts and bytes are read without it.
"""

import json
import math
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeVar

from safetensors import SafetensorError, safe_open

from nmt import __version__
from nmt.errors import DamagedFile, UserError, counted
from nmt.files import new_digest, written_atomically

if TYPE_CHECKING:
    from torch import Tensor

Value = TypeVar("Value")
VERSION = "1"  # of the format; increased when an older toolkit would misread a file
LARGEST_HEADER = 1 << 23  # bytes; training 100 layers takes less than half a MiB
_HEADER, _DIGEST = "nmt-toolkit", "digest"
_MOST_NUMBERS = 2**63 - 1  # of a tensor in PyTorch, sizes of 0 left out
_LENGTH = 8  # bytes before the header, which give its length
_TYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
}
"""PyTorch's names of the types that safetensors names so."""
_NAMES = {type_: name for name, type_ in _TYPES.items()}


def write_tensors(
    path: Path, tensors: "dict[str, Tensor]", *, kind: str, texts: dict[str, str], former: Path | None = None
) -> None:
    """Write `path` so that a crash leaves the old file or the new one. `kind` tells `read_tensors` what it is.

    The file that is replaced is renamed to `former`, if that is given.
    """
    tensors = {name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}
    ordered = sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0]))  # so that all are aligned
    declared = {name: DeclaredTensor(str(tensor.dtype)[6:], tuple(tensor.shape)) for name, tensor in tensors.items()}
    values = {name: _bytes(tensor) for name, tensor in tensors.items()}
    texts = {"kind": kind, "version": VERSION, "toolkit": __version__, **texts}
    digest = _digest(declared, values, texts)
    entries: dict[str, Any] = {"__metadata__": {_HEADER: json.dumps({**texts, _DIGEST: digest})}}
    end = 0
    for name, tensor in ordered:
        start, end = end, end + tensor.nbytes
        entries[name] = {
            "dtype": _NAMES[declared[name].type],
            "shape": list(tensor.shape),
            "data_offsets": [start, end],
        }
    header = json.dumps(entries).encode()
    header += b" " * (-len(header) % _LENGTH)
    with written_atomically(path, "wb", former=former) as file:  # not by safetensors, which makes a copy of everything
        file.write(len(header).to_bytes(_LENGTH, "little") + header)
        for name, _ in ordered:
            file.write(values[name])


class DeclaredTensor(NamedTuple):
    """What a header says about a tensor."""

    type: str  # as PyTorch calls it, such as float32
    shape: tuple[int, ...]


class TensorFile:
    """An open file whose header has been read: its texts, and the types and shapes of its tensors."""

    def __init__(self, path: Path, file: IO[bytes], texts: dict[str, str], entries: Mapping[str, Any]) -> None:
        """`entries` are those of the header; `file` is positioned where the values begin."""
        self.digest = texts.pop(_DIGEST, None)  # of what was written
        self.path, self.texts, self._entries = path, texts, entries
        self._file, self._start = file, file.tell()

    @property
    def tensors(self) -> dict[str, DeclaredTensor]:
        """What is declared, in the order of the file."""
        entries = self._entries.items()
        return {name: DeclaredTensor(_TYPES[entry["dtype"]], tuple(entry["shape"])) for name, entry in entries}

    def read(self) -> "dict[str, Tensor]":
        """The tensors by name. Raises DamagedFile when they are not what was written."""
        tensors = {name: self._tensor(name, *declared) for name, declared in self.tensors.items()}
        self._check({name: _bytes(tensor) for name, tensor in tensors.items()})
        return tensors

    def _check(self, values: Mapping[str, memoryview]) -> None:
        if self.digest != _digest(self.tensors, values, self.texts):
            raise DamagedFile(f"{self.path}: damaged: its content is not what was written (the checksums differ)")

    def contents(self) -> dict[str, bytes]:
        """The bytes of the tensors by name. Raises DamagedFile like `read`."""
        contents = {name: self.content(name) for name in self.tensors}
        self._check({name: memoryview(content) for name, content in contents.items()})
        return contents

    def content(self, name: str) -> bytes:
        """The bytes of a tensor as they are in the file, whether or not they were written so."""
        start, end = self._entries[name]["data_offsets"]
        content = bytearray(end - start)
        self._fill(name, memoryview(content))
        return bytes(content)

    def _tensor(self, name: str, type_: str, shape: tuple[int, ...]) -> "Tensor":
        import torch

        try:
            tensor = torch.empty(shape, dtype=getattr(torch, type_))
        except (RuntimeError, MemoryError) as error:
            raise UserError(f"{self.path}: not enough memory for its {name[:100]}, {str(shape)[:100]}") from error
        self._fill(name, _bytes(tensor))
        return tensor

    def _fill(self, name: str, values: memoryview) -> None:
        self._file.seek(self._start + self._entries[name]["data_offsets"][0])
        if self._file.readinto(values) != len(values):  # type: ignore[attr-defined]
            raise DamagedFile(f"{self.path}: damaged: it was cut short while being read")


@contextmanager
def open_tensors(path: Path, *, kind: str) -> Iterator[TensorFile]:
    """Open a file of this kind and read its header.

    Raises DamagedFile when it is not what was written, UserError when it is something else or cannot be read.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise UserError(f"{path}: not a {kind} of this toolkit, nor even a file, but a folder, pipe or device")
        with path.open("rb") as file:
            try:
                texts, entries = _header(path, file, status.st_size)
            except (ValueError, KeyError, RecursionError) as error:
                raise DamagedFile(f"{path}: damaged, or not a {kind} of this toolkit ({error})") from error
            _check_kind(path, texts, kind)
            yield TensorFile(path, file, texts, entries)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from error


def read_tensors(path: Path, *, kind: str) -> "tuple[dict[str, Tensor], dict[str, str]]":
    """The tensors and texts of a file of this kind. Raises like `open_tensors` and `TensorFile.read`."""
    with open_tensors(path, kind=kind) as file:
        return file.read(), file.texts


def _check_kind(path: Path, texts: dict[str, str], kind: str) -> None:
    if texts.get("kind") != kind:
        actual = f"a {texts['kind'][:50]}" if "kind" in texts else "a safetensors file of another program"
        raise UserError(f"{path}: not a {kind} of this toolkit, but {actual}")
    version = texts.get("version", "none")[:50]
    if version == VERSION:
        return
    if not (version.isascii() and version.isdecimal()):
        raise DamagedFile(f"{path}: damaged: its format version is {version}; this toolkit reads version {VERSION}")
    age = "a newer" if int(version) > int(VERSION) else "an older"
    raise UserError(
        f"{path}: written by {age} version of the toolkit ({texts.get('toolkit', 'unknown')[:50]}), in format "
        f"{version}; this one ({__version__}) reads format {VERSION}: read it with that one"
    )


def _header(path: Path, file: IO[bytes], size: int) -> tuple[dict[str, str], dict[str, Any]]:
    """The texts, which are empty for a file of another program, and the entries of tensors in the order of the file.

    Raises ValueError, KeyError, or RecursionError.
    """
    length = int.from_bytes(file.read(_LENGTH), "little")
    if length > size - _LENGTH:
        raise ValueError(f"it has {counted(size, 'byte')}, too few for its header")
    if length > LARGEST_HEADER:
        raise ValueError(f"its header has {length:,} bytes, more than {LARGEST_HEADER:,}")
    try:
        with safe_open(path, framework="np"):  # checks types, shapes, and places, which must fill the file
            header = json.loads(file.read(length))
    except SafetensorError as error:
        raise ValueError(str(error)[:300]) from error
    texts = json.loads((header.pop("__metadata__", None) or {}).get(_HEADER, "{}"))
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise ValueError("its texts are not text")
    if any(math.prod(filter(None, entry["shape"])) > _MOST_NUMBERS for entry in header.values()):
        raise ValueError("the shape of a tensor overflows")  # beside a size of 0, which leaves it no values
    if unknown := [entry["dtype"] for entry in header.values() if entry["dtype"] not in _TYPES]:
        raise KeyError(unknown[0])
    return texts, dict(sorted(header.items(), key=lambda item: item[1]["data_offsets"]))


def _digest(declared: Mapping[str, DeclaredTensor], values: Mapping[str, memoryview], texts: dict[str, str]) -> str:
    """A checksum of all names, types, shapes, values and texts, independent of their order."""
    digest = new_digest(json.dumps(texts, sort_keys=True).encode())
    for name, (type_, shape) in sorted(declared.items()):
        digest.update(f"{name} torch.{type_} {shape}".encode())
        digest.update(values[name])
    return digest.hexdigest()


def _bytes(tensor: "Tensor") -> memoryview:
    """The memory of a contiguous tensor."""
    import torch

    return tensor.flatten().view(torch.uint8).numpy().data


def with_prefix(tensors: Mapping[str, Value], prefix: str) -> dict[str, Value]:
    """What has names that begin with `prefix`, by the rest of their names."""
    return {name[len(prefix) :]: tensor for name, tensor in tensors.items() if name.startswith(prefix)}
