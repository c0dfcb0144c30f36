"""COMET, a metric that was learned from people's judgments, by the package `unbabel-comet` of the extra "comet".

It knows sentences and the path of a model file. Nothing is ever downloaded: the file must be there, and the tokenizer
that it names must be among the files that Hugging Face keeps on this machine. Rei et al. (2020), "COMET: A Neural
Framework for MT Evaluation".
"""

import hashlib
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from nmt.errors import UserError, nothing_at
from nmt.evaluation.comparison import Measure

PACKAGE: Final = "unbabel-comet"
_BATCH: Final = 16  # sentences, the package's default
_OFFLINE: Final = (
    "HF_HUB_OFFLINE",
    "TRANSFORMERS_OFFLINE",
)  # environment variables of huggingface_hub and transformers
_PERCENT: Final = 100.0  # COMET's scores are about 0 to 1, those of the other metrics 0 to 100
_CHUNK: Final = 1 << 20  # bytes


@dataclass(frozen=True)
class Comet:
    """A model that has been loaded: what its scores mean, and how to compute them."""

    measure: Measure
    scores: Callable[[Sequence[str], Sequence[str], Sequence[str]], list[float]]
    """For each sentence of the source, the hypotheses, and the reference, which have equally many: its score, times
    100."""


def check_comet(path: Path, name: str = "--comet") -> None:
    """Raise UserError unless the package and the model's files are there: before hours of work, not after.

    `name` is the option that gave `path`; the messages begin with it.
    """
    problems = []
    if find_spec("comet") is None:
        problems.append(f"{name}: {PACKAGE} is not installed: pip install 'nmt-toolkit[comet]' (for Python up to 3.12)")
    if path.is_dir():
        problems.append(f"{name} {path}: is a folder; give the model file in it, such as checkpoints/model.ckpt")
    elif not path.is_file():
        missing = nothing_at(path) or f"{path}: no such file"
        problems.append(f"{name} {missing}; nothing is downloaded here, so download the model first")
    elif not _settings(path).is_file():
        problems.append(
            f"{name} {path}: there is no {_settings(path)}, which COMET's models come with; keep the folders as they "
            "are in the download"
        )
    if problems:
        raise UserError(*problems)


def load_comet(path: Path, *, on_gpu: bool, name: str = "--comet") -> Comet:
    """Load the model file `path`, which runs code that it contains: it must be from somebody you trust.

    Raises UserError as `check_comet`, and when the file cannot be loaded, or needs other files that are not there.
    """
    check_comet(path, name)
    for variable in _OFFLINE:
        os.environ[variable] = "1"
    told = logging.getLogger().level
    try:
        import comet

        logging.getLogger().setLevel(told)  # which the import has changed, and sacreBLEU would tell what it is doing
        model: Any = comet.load_from_checkpoint(str(path.absolute()), local_files_only=True)
    except Exception as error:  # of all kinds: what is wrong with a pickle, with YAML, and with an offline hub
        raise UserError(
            f"{name} {path}: COMET cannot load it: {_first_line(error)}; the tokenizer that {_settings(path)} names as "
            "pretrained_model must be on this machine, too, where Hugging Face keeps its files"
        ) from error
    signature = f"nrefs:1|model:{path.name}|sha256:{_digest(path)[:16]}|version:{comet.__version__}"

    def scores(source: Sequence[str], hypotheses: Sequence[str], reference: Sequence[str]) -> list[float]:
        triples = zip(source, hypotheses, reference, strict=True)
        samples = [{"src": left, "mt": middle, "ref": right} for left, middle, right in triples]
        predicted = model.predict(samples, batch_size=_BATCH, gpus=int(on_gpu), progress_bar=False)
        return [_PERCENT * float(score) for score in predicted["scores"]]

    return Comet(Measure(title="COMET", better="higher", signature=signature), scores)


def _settings(path: Path) -> Path:
    """The file beside the folder of the model file, in which COMET looks for the kind of model."""
    return path.absolute().parent.parent / "hparams.yaml"  # not resolved: in a download it is a link


def _digest(path: Path) -> str:
    """What tells the file from others that are called model.ckpt, too."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__
