"""Files of tensors taken apart and put together again with a right checksum, as somebody would who wishes us ill.

A flipped bit only shows that the checksum is compared; what lies behind it is reached by files whose checksum is right.
It knows the safetensors format and what `nmt.tensor_file` adds to it, without PyTorch.
"""

import hashlib
import json
from contextlib import suppress
from typing import Any, NamedTuple

_OURS, _DIGEST, _METADATA = "nmt-toolkit", "digest", "__metadata__"
TYPES = {
    "F64": ("float64", 8),
    "F32": ("float32", 4),
    "F16": ("float16", 2),
    "BF16": ("bfloat16", 2),
    "I64": ("int64", 8),
    "I32": ("int32", 4),
    "I16": ("int16", 2),
    "I8": ("int8", 1),
    "U8": ("uint8", 1),
    "BOOL": ("bool", 1),
    "C64": ("complex64", 8),
}


class Stored(NamedTuple):
    """A tensor as it lies in the file."""

    type: str
    shape: list[int]
    content: bytes


class Parts(NamedTuple):
    """All that a file of tensors holds."""

    tensors: dict[str, Stored]
    texts: dict[str, Any]


def taken_apart(file: bytes) -> Parts:
    """The parts of a valid file."""
    size = int.from_bytes(file[:8], "little")
    header, content = json.loads(file[8 : 8 + size]), file[8 + size :]
    texts = json.loads(header.pop(_METADATA)[_OURS])
    texts.pop(_DIGEST)
    tensors = {
        name: Stored(entry["dtype"], entry["shape"], content[slice(*entry["data_offsets"])])
        for name, entry in header.items()
    }
    return Parts(tensors, texts)


def put_together(parts: Parts) -> bytes:
    """A file with these parts and their checksum; what the parts say of themselves may be false."""
    header: dict[str, Any] = {_METADATA: {_OURS: json.dumps({**parts.texts, _DIGEST: digest(parts)})}}
    end = 0
    for name, tensor in parts.tensors.items():
        begin, end = end, end + len(tensor.content)
        header[name] = {"dtype": tensor.type, "shape": tensor.shape, "data_offsets": [begin, end]}
    return with_header(header, b"".join(tensor.content for tensor in parts.tensors.values()))


def with_header(header: Any, content: bytes) -> bytes:
    """A file with any header, right or not."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + content


def digest(parts: Parts) -> str:
    """The checksum that `nmt.tensor_file` will compute of these parts, where it can read them."""
    checksum = hashlib.blake2b(json.dumps(parts.texts, sort_keys=True).encode(), digest_size=16)
    for name, tensor in sorted(parts.tensors.items()):
        type_name = TYPES.get(tensor.type, (tensor.type, 1))[0]
        shape: Any = tensor.shape
        with suppress(TypeError):
            shape = tuple(tensor.shape)
        checksum.update(f"{name} torch.{type_name} {shape}".encode(errors="replace"))
        checksum.update(tensor.content)
    return checksum.hexdigest()
