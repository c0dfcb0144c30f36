"""COMET, a metric that was learned from people's judgments, by the package `unbabel-comet` of the extra "comet".

Nothing is ever downloaded: the model file must be there, and the tokenizer that it names must be among the files that
Hugging Face keeps on this machine. Rei et al. (2020), "COMET: A Neural Framework for MT Evaluation".
"""

import hashlib
import logging
import math
import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sacrebleu.metrics.base import Score, Signature

from nmt.errors import UserError, nothing_at, refuse


def check_comet(path: Path) -> None:
    """Raise UserError unless the package and the model's file are there: before hours of work, not after."""
    problems = []
    if find_spec("comet") is None:
        problems.append("--comet: unbabel-comet is not installed: pip install 'nmt-toolkit[comet]'")
    if not path.is_file():
        missing = nothing_at(path) or f"{path}: give the model file of the download, such as checkpoints/model.ckpt"
        problems.append(f"--comet {missing}; nothing is downloaded here")
    refuse(problems)


class Comet:
    """COMET of translations of `source`, times 100, with the interface of sacreBLEU's metrics.

    The score of a corpus is the mean of its sentences' scores: the statistics of a sentence are its score and 1.
    """

    def __init__(self, path: Path, source: Sequence[str], *, on_gpu: bool) -> None:
        """Load the model file `path`, which runs code that it contains: it must be from somebody you trust.

        Raises UserError when it cannot be loaded.
        """
        check_comet(path)
        os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
        level = logging.getLogger().level
        try:
            import comet

            logging.getLogger().setLevel(level)  # which the import has changed
            self._model: Any = comet.load_from_checkpoint(str(path.absolute()), local_files_only=True)
        except Exception as error:  # of all kinds: what is wrong with a pickle, with YAML, and with an offline hub
            raise UserError(
                f"--comet {path}: COMET cannot load it ({error}); keep the folders of the download as they are, and "
                "have the tokenizer that hparams.yaml names where Hugging Face keeps its files"
            ) from error
        self._source, self._gpus = source, int(on_gpu)
        digest = hashlib.sha256()
        with open(path, "rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
        self._signature = {"model": path.name, "sha256": digest.hexdigest()[:16], "version": comet.__version__}

    def _extract_corpus_statistics(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str | None]]
    ) -> list[list[float]]:
        first = [next(line for line in row if line is not None) for row in zip(*references, strict=True)]
        triples = zip(self._source, hypotheses, first, strict=True)
        samples = [{"src": left, "mt": middle, "ref": right} for left, middle, right in triples]
        predicted = self._model.predict(samples, batch_size=16, gpus=self._gpus, progress_bar=False)
        return [[100 * float(score), 1.0] for score in predicted["scores"]]

    def _compute_score_from_stats(self, sums: Sequence[float]) -> Score:
        return Score("COMET", float(sums[0]) / float(sums[1]))

    def _aggregate_and_compute(self, statistics: Sequence[Sequence[float]]) -> Score:
        return self._compute_score_from_stats([math.fsum(column) for column in zip(*statistics, strict=True)])

    def get_signature(self) -> Signature:
        signature = Signature({"num_refs": 1})
        signature.info |= self._signature
        return signature
