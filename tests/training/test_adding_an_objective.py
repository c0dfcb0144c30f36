"""Adding an objective: a function in objective.py with its line in `OBJECTIVES` there, and a key in the schema."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import settings, write_corpus
from tests.conftest import copy_with

FUNCTION = """
def weighted_loss(model: Seq2Seq, batch: Batch, config: TrainingConfig) -> BatchLoss:
    losses = cross_entropy(model, batch, config)
    return losses._replace(objective=losses.objective * config.weighted)


"""
ADDITIONS = {  # file: (the line before which they stand, what is added)
    "training/objective.py": [
        ("OBJECTIVES: dict[str, Callable[[Seq2Seq, Batch, TrainingConfig], BatchLoss]] = {", FUNCTION.lstrip()),
        ('    "r_drop": r_drop_loss,', '    "weighted": weighted_loss,\n'),
    ],
    "config/schema.py": [
        (
            "    r_drop: RDrop | None = None",
            '    weighted: PositiveFloat | None = None\n    """A factor on the loss; null: off."""\n',
        )
    ],
}
PROGRAM = """
from pathlib import Path

from nmt.cli.train import main
from nmt.models.model_file import load_model

options = ["--config", "config.yaml", "--device", "cpu", "--set", "training.max_updates=3"]
for name, rate, more in (("usual", 0.5, []), ("weighted", 0.25, ["--set", "training.weighted=2"])):
    optimizer = f"training.optimizer={{name: sgd, learning_rate: {rate}}}"
    assert main([*options, "--set", optimizer, *more, "--output", name]) == 0
usual, weighted = (load_model(Path(name)) for name in ("usual", "weighted"))
assert all(weight.equal(weighted.weights[name]) for name, weight in usual.weights.items())
assert main([*options, "--set", "training.weighted=-1", "--output", "never"]) == 2
"""


@pytest.mark.slow
def test_a_key_asks_for_it(tmp_path: Path) -> None:
    """Twice the loss at half the rate makes the same model, bit for bit; the key is checked as any other."""
    copy_with(ADDITIONS, tmp_path)
    write_corpus(tmp_path)
    config = settings(tmp_path)
    config["training"]["gradient_clip_norm"] = None
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    command = [sys.executable, "-c", PROGRAM]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    assert "training.weighted=-1: given -1; allowed: a number, more than 0" in run.stderr
