"""A line of metrics.jsonl, read back from a file that somebody may have damaged or edited."""

import json
import math
from typing import Any

SPLITS = ("train", "valid", "average")
_LARGEST = 2**53  # of whole numbers: beyond, a float is not exact, and TensorBoard has no room


def measurement(line: bytes) -> dict[str, Any] | None:
    """The record that a line holds: `step`, `split` and numbers, of which null is one; None when it holds none."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not line.endswith(b"\n"):
        return None
    step = record.get("step")
    if record.get("split") not in SPLITS or type(step) is not int or step < 1:
        return None
    fits = all(name.isprintable() and _is_number(value) for name, value in record.items() if name != "split")
    return record if fits else None


def _is_number(value: object) -> bool:
    """Whether a record may hold it; true and false are no numbers."""
    if type(value) is int:
        return abs(value) <= _LARGEST
    return value is None or (type(value) is float and math.isfinite(value))
