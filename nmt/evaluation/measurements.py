"""The measurements of a training run as they are in metrics.jsonl: a JSON object a line, of a step and a split.

It knows lines and numbers; what writes them is `training`.
"""

import json
import math
from typing import Any

FILE = "metrics.jsonl"  # of a run's folder
_SPLITS = ("train", "valid", "average")
_LARGEST = 2**53  # of whole numbers: beyond, a float is not exact, and TensorBoard has no room

Record = dict[str, Any]
"""`step` and `split`, and numbers by name, of which None is one that was not finite."""


def perplexity(loss: float) -> float:
    """exp of the loss in nats per token; infinite where a float cannot hold it."""
    return math.exp(loss) if loss < 700 else math.inf


def measurement(line: bytes) -> Record | None:
    """The record that a line holds: `step`, `split` and numbers, of which null is one.

    None when it holds none: somebody may have damaged or edited the file.
    """
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not line.endswith(b"\n"):
        return None
    step = record.get("step")
    first = 1 if record.get("split") == "train" else 0  # a model may be validated before it is trained
    if record.get("split") not in _SPLITS or type(step) is not int or step < first:
        return None
    fits = all(name.isprintable() and _is_number(value) for name, value in record.items() if name != "split")
    return record if fits else None


def _is_number(value: object) -> bool:
    """Whether a record may hold the value; true and false are not numbers."""
    if type(value) is int:
        return abs(value) <= _LARGEST
    return value is None or (type(value) is float and math.isfinite(value))
