"""The files of one release that later releases must read: models, a shortlist, and a run in the middle of its training.

    python tests/compatibility/make_fixtures.py

writes tests/compatibility/VERSION for the version of the toolkit that is imported, once for each release, just before
it is tagged. What was written is never made again: it stands for the files that users of that release have.
"""

import json
import os
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
import yaml
from safetensors.torch import save_file

from nmt import __version__
from nmt.cli import score, shortlist, train, translate
from nmt.training.checkpoint import read_state
from nmt.training.trainer import Trainer

HERE = Path(__file__).resolve().parent
PLACE = "/fixture"  # stands in the saved configuration of the run for the folder that all lies in
STOP_AFTER = 13  # updates; in the middle of an epoch and of what is accumulated for a line of the log

NOUNS = {"dog": "Hund", "cat": "Kater", "man": "Mann", "boy": "Junge", "bird": "Vogel"}
VERBS = {"sees": "sieht", "hears": "hört", "likes": "mag"}
MODELS: dict[str, dict[str, Any]] = {
    "bahdanau": {
        "encoder": {"hidden_size": 7, "layers": 2, "layer_normalisation": True},
        "decoder": {"type": "bahdanau", "cell": "gru", "hidden_size": 9, "output_size": 8},
        "attention": {"score": "location_sensitive", "coverage": True, "filters": 3, "filter_width": 5},
        "tie_embeddings": "none",
    },
    "conditional_gru": {
        "encoder": {"hidden_size": 8, "cell": "gru"},
        "decoder": {"type": "conditional_gru", "hidden_size": 9, "output_size": 8, "initial_state": "mean"},
        "attention": {"score": "additive"},
        "tie_embeddings": "target",
    },
    "luong": {
        "encoder": {"hidden_size": 6, "cell": "lstm", "directions": "sum", "reverse_source": True},
        "decoder": {"type": "luong", "cell": "lstm", "hidden_size": 10, "output_size": 8},
        "attention": {"score": "general", "scope": "local-p", "half_width": 4},
        "tie_embeddings": "all",
    },
}
# What the models are trained with until they translate, besides `settings`
LONGER = [
    "training.max_epochs=250",
    "training.validate_every=100 updates",
    "training.early_stopping=null",
    "training.schedule={name: constant}",
    "training.accumulate=1",
]


def settings(name: str) -> dict[str, Any]:
    """A configuration without dropout: its masks differ from one build of PyTorch to another, all else does not."""
    pair = {"source": "train.en", "target": "train.de"}
    return {
        "name": name,
        "seed": 3,
        "data": {
            "source_language": "en",
            "target_language": "de",
            "train": [pair],
            "valid": {"source": "valid.en", "target": "valid.de"},
            "cache_folder": "cache",
        },
        # Without normalisation, which would make each model a quarter of a megabyte.
        "subwords": {"size": 56, "normalisation": "identity", "sampling": {"alpha": 0.1}},
        "model": {"embedding_size": 8, **MODELS[name]},
        "training": {
            "optimizer": {"name": "adam", "learning_rate": 0.02},
            "schedule": {"name": "plateau", "metric": "loss", "patience": 1},
            "batch_size": 6,
            "accumulate": 2,
            "max_epochs": 6,
            "validate_every": "5 updates",
            "early_stopping": {"metric": "loss", "patience": 9},
            "label_smoothing": 0.1,
            "gradient_clip_norm": 1.0,
            "keep_best": 2,
            "average_best": 2,
            "log_every": 4,
        },
        "decoding": {"beam_size": 3},
    }


def write_corpus(folder: Path) -> None:
    """48 pairs for training and 12 for validation."""
    pairs = [
        (f"the {subject} {verb} the {thing} .", f"der {NOUNS[subject]} {VERBS[verb]} den {NOUNS[thing]} .")
        for subject in NOUNS
        for verb in VERBS
        for thing in NOUNS
        if subject != thing
    ]
    random.Random(1).shuffle(pairs)
    for name, part in (("train", pairs[:48]), ("valid", pairs[48:])):
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in part)
            (folder / f"{name}.{language}").write_text(text, encoding="utf-8", newline="\n")


def stop_after(updates: int) -> None:
    """Let the process be asked to stop, as by SIGTERM, once a training has done so many updates."""
    one_update = Trainer._update

    def update(self: Trainer, *arguments: Any) -> None:
        one_update(self, *arguments)
        if self.progress.update == updates:
            os.kill(os.getpid(), signal.SIGTERM)

    Trainer._update = update  # type: ignore[method-assign]


def trained(folder: Path, name: str, output: str, *more: str) -> int:
    arguments = ["--config", f"{folder / name}.yaml", "--output", str(folder / output), "--device", "cpu", *more]
    return train.main(arguments)


def main() -> None:
    version = HERE / __version__
    if version.exists():
        sys.exit(f"{version}: is there already, and is never made again")
    torch.set_num_threads(1)
    folder = Path(tempfile.gettempdir()).resolve() / f"nmt-{__version__}"
    folder.mkdir()
    write_corpus(folder)
    for name in MODELS:
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(settings(name), sort_keys=False), encoding="utf-8")
        assert trained(folder, name, f"finished/{name}", *(f"--set={change}" for change in LONGER)) == 0
    assert trained(folder, "bahdanau", "finished/run") == 0
    stop_after(STOP_AFTER)
    assert trained(folder, "bahdanau", "run") == 128 + signal.SIGTERM

    version.mkdir()
    for path in ("train.en", "train.de", "valid.en", "valid.de", "bahdanau.yaml"):
        shutil.copy(folder / path, version)
    for name in MODELS:
        model = version / f"{name}.safetensors"
        shutil.copy(folder / "finished" / name / "best.safetensors", model)
        arguments = ["--model", str(model), "--input", str(version / "valid.en"), "--device", "cpu"]
        assert translate.main([*arguments, "--output", str(version / f"{name}.translated")]) == 0
        pair = ["--source", str(version / "valid.en"), "--target", str(version / "valid.de")]
        scores = ["--model", str(model), *pair, "--output", str(version / f"{name}.scores"), "--device", "cpu"]
        assert score.main(scores) == 0
    corpus = ["--source", str(version / "train.en"), "--target", str(version / "train.de")]
    model = version / "bahdanau.safetensors"
    few = ["--translations", "10", "--most-frequent", "20"]
    assert shortlist.main(["--model", str(model), *corpus, *few, "--output", str(version / "bahdanau.shortlist")]) == 0

    ignored = shutil.ignore_patterns(".lock", "train.log", "tensorboard", "best.safetensors")
    shutil.copytree(folder / "run", version / "run", ignore=ignored)
    shutil.copy(folder / "run" / "best.safetensors", version / "run")
    saved = version / "run" / "config.yaml"
    saved.write_text(saved.read_text(encoding="utf-8").replace(str(folder), PLACE), encoding="utf-8")
    shutil.copytree(folder / "cache", version / "cache")

    finished = folder / "finished" / "run"
    state = read_state(finished / "state.safetensors")
    weights = {name: tensor for name, tensor in state.tensors.items() if name.startswith("model.")}
    save_file(weights, version / "final.safetensors")
    records = [json.loads(line) for line in (finished / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    (version / "final.json").write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8", newline="\n")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
