"""Entries of a cache folder, each named by a hash of everything that it was made from: none is ever out of date.

It knows names, and when an entry is damaged; what is in it, others know.
"""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from nmt.data.sealed import discard

Log = Callable[[str], None]
Entry = TypeVar("Entry")


def cache_key(made_from: Any) -> str:
    """A name for what is made from this, which JSON can hold."""
    return hashlib.blake2b(json.dumps(made_from).encode(), digest_size=16).hexdigest()


def reused(path: Path, read: Callable[[Path], Entry], log: Log) -> Entry | None:
    """The cache entry as `read` returns it; None if there is none.

    A damaged entry, for which `read` raises ValueError, is removed so that it can be made again.
    """
    if not os.path.lexists(path):
        return None
    try:
        return read(path)
    except ValueError as error:
        log(f"{path}: damaged, or of another version, and rebuilt ({error})")
        discard(path)
        return None
