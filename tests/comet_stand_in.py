"""A package `comet` with the part of unbabel-comet's interface that the toolkit uses, and a model file for it.

The real one brings a gigabyte of packages, and its models have two. Its `load_from_checkpoint` and `predict` take
these arguments in version 2.2.7.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

MODEL = b"a model"
OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
PACKAGE = """
import logging
import os

logging.getLogger().setLevel(logging.INFO)
__version__ = "2.2.7"
asked = {}
environment = {name: os.environ.get(name) for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")}

class Model:
    def predict(self, samples, batch_size=16, gpus=1, progress_bar=True):
        asked.update(samples=samples, gpus=gpus)
        scores = []
        for sample in samples:
            words = sample["ref"].split()
            scores.append(sum(word in sample["mt"].split() for word in words) / len(words))
        return {"scores": scores, "system_score": sum(scores) / len(scores)}

def load_from_checkpoint(checkpoint_path, reload_hparams=False, strict=False, local_files_only=False):
    asked.update(path=checkpoint_path, local_files_only=local_files_only)
    with open(checkpoint_path, "rb") as file:
        if file.read() != b"a model":
            raise Exception("damaged file\\nwith a second line")
    return Model()
"""


@contextmanager
def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Have the package importable from `folder` in the block; yields the model file."""
    (folder / "site" / "comet").mkdir(parents=True)
    (folder / "site" / "comet" / "__init__.py").write_text(PACKAGE, encoding="utf-8")
    model = folder / "wmt22-comet-da" / "checkpoints" / "model.ckpt"
    model.parent.mkdir(parents=True)
    model.write_bytes(MODEL)
    (folder / "wmt22-comet-da" / "hparams.yaml").write_text("class_identifier: regression_metric\n", encoding="utf-8")
    for name in OFFLINE:
        monkeypatch.setenv(name, "")  # so that what is set later is undone
    monkeypatch.syspath_prepend(folder / "site")
    sys.modules.pop("comet", None)
    try:
        yield model
    finally:
        sys.modules.pop("comet", None)
