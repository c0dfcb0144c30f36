"""Files of named tensors with a few texts beside them, in the safetensors format: nothing in them is ever executed.

It knows no model and no training; those say what the names mean.
"""

import hashlib
import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from nmt.errors import UserError
from nmt.files import written_atomically

_HEADER, _DIGEST = "nmt-toolkit", "digest"
VERSION = "1"  # of what this version of the toolkit writes


def write_tensors(path: Path, tensors: dict[str, Tensor], *, kind: str, texts: dict[str, str]) -> None:
    """Write `path` so that a crash leaves the old file or the new one. `kind` says what it is, for `read_tensors`."""
    # One entry only: safetensors writes several in a random order, and equal content is to give equal bytes.
    tensors = {name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}
    texts = {"kind": kind, "version": VERSION, **texts}
    content = save(tensors, {_HEADER: json.dumps({**texts, _DIGEST: _digest(tensors, texts)})})
    with written_atomically(path, "wb") as file:
        file.write(content)


def read_tensors(path: Path, *, kind: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and texts of a file of this kind. Raises UserError when it is damaged, or something else."""
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            texts = _texts(file.metadata() or {})
            if texts.get("kind") != kind:
                found = f"a {texts['kind']}" if "kind" in texts else "a safetensors file of another program"
                raise UserError(f"{path}: no {kind} of this toolkit, but {found}")
            if texts.get("version") != VERSION:
                found = texts.get("version", "none")
                raise UserError(f"{path}: format version {found}, but this toolkit reads version {VERSION}")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    except SafetensorError as error:
        raise UserError(f"{path}: damaged, or no {kind} of this toolkit ({error})") from error
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from error
    if texts.pop(_DIGEST, None) != _digest(tensors, texts):
        raise UserError(f"{path}: damaged: its content is not what was written (the checksums differ)")
    return tensors, texts


def _digest(tensors: dict[str, Tensor], texts: dict[str, str]) -> str:
    """A checksum of all names, types, shapes, values and texts, whatever their order."""
    digest = hashlib.blake2b(json.dumps(texts, sort_keys=True).encode(), digest_size=16)
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _texts(metadata: dict[str, str]) -> dict[str, str]:
    """The texts that `write_tensors` was given; empty for a file of another program."""
    try:
        texts = json.loads(metadata.get(_HEADER, "{}"))
    except ValueError:
        return {}
    return texts if isinstance(texts, dict) else {}


def below(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose name begins with `prefix`, by the rest of their name."""
    return {name[len(prefix) :]: tensor for name, tensor in tensors.items() if name.startswith(prefix)}
