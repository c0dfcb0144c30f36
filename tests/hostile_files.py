"""Files of tensors as a stranger may make them: any header, and a checksum that agrees where one is wanted."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor

from nmt.tensor_file import read_tensors, write_tensors


def parts(path: Path) -> tuple[dict[str, Any], bytes]:
    """The header of a file, as it is, and the bytes of its tensors."""
    content = path.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:end]), content[end:]


def write_parts(path: Path, header: Any, data: bytes) -> None:
    """`header` is written as it is when it is bytes."""
    encoded = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(encoded).to_bytes(8, "little") + encoded + data)


def rewrite(
    path: Path, kind: str, change: Callable[[dict[str, Tensor], dict[str, Any]], None], *, to: Path | None = None
) -> Path:
    """Change tensors and texts of a file, to the same or another one, with a checksum that agrees."""
    tensors, texts = read_tensors(path, kind=kind)
    change(tensors, texts)
    write_tensors(to or path, tensors, kind=kind, texts=texts)
    return to or path
