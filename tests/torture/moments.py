"""The moments at which a fault strikes, by the names that the table has for them.

Most are the writing of some file: the operations of an undisturbed job, told apart by their files' names. The others
lie before a call of a function.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from tests.torture.operations import Operation

# Of a training: the first pattern found in the name of an operation's file counts; a folder belongs to what was before.
TRAINING = {
    "subword training": r"/\.?subwords/",
    "binarizing": r"/\.?ids/",
    "checking the corpus": r"\.cache",
    "a checkpoint's write": r"checkpoints/",
    "best's write": r"run/\.?best\.safetensors",
    "the older state's write": r"run/\.?state\.1\.safetensors",
    "the state's write": r"run/\.?state\.safetensors",
    "metrics and TensorBoard": r"metrics|tensorboard|validations",
    "the log": r"train\.log",
    "opening the folder": r"run",
}
TRANSLATION = {
    "a chunk's record": r"out\.chunks-\w+/\.?\d{6}\.record",
    "a chunk's write": r"out\.chunks-\w+/\.?\d{6}\.",
    "the chunks' description": r"out\.chunks-\w+",
    "joining the chunks": r"out\.?",
}
FILES = {
    "training": TRAINING,
    "fine-tuning": {"the origin's copy": r"run/\.?init_from"},
    "translation": TRANSLATION,
    "making data": {"what nmt-init makes": r"/data\b"},
}
# Of a training: a function, and those of its calls that are meant.
CALLS = {
    "accumulation": ("torch:Tensor.backward", range(2, 19, 2)),
    "between two updates": ("torch:Tensor.backward", range(3, 19, 2)),
    "validation": ("nmt.experiment.validation:corpus_loss", range(1, 4)),
    "an epoch's end": ("nmt.training.trainer:plan_epoch", range(2, 4)),
    "averaging": ("nmt.training.trainer:averaged_checkpoints", range(1, 2)),
}


def moments(job: str, operations: Sequence[Operation]) -> dict[str, list[int]]:
    """The numbers of the operations, from 1, at each moment of a job."""
    numbers: dict[str, list[int]] = {}
    current = ""
    for number, operation in enumerate(operations, start=1):
        if not (operation.kind == "fsync" and _is_folder(operation.path)):
            current = next((name for name, pattern in FILES[job].items() if re.search(pattern, operation.path)), "")
        if current:
            numbers.setdefault(current, []).append(number)
    return numbers


def _is_folder(path: str) -> bool:
    return Path(path).is_dir()
