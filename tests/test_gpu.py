"""What a GPU computes is what the CPU computes: every model, gradients, beam search, mixed precision, and resuming.

`python -m pytest -m gpu` on a machine with a GPU; benchmarks/gpu.py runs them too. Where there is none, a few run on
the CPU, so that they go on working.
"""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from nmt.cli.train import main
from nmt.config.schema import TrainingConfig
from nmt.data.batch import Batch, make_batch
from nmt.decoding.translator import Translator
from nmt.models.model_file import load_model
from nmt.models.seq2seq import Seq2Seq
from nmt.training.optim import build_optimizer
from nmt.training.run_folder import CHECKPOINTS, files_of_updates
from nmt.training.update import update
from tests.conftest import data_section, make_synthetic_corpus
from tests.models.conftest import COMBINATIONS, EVERY_TWO_PARTS, make_model
from tests.random_model import SENTENCES, save_random_model

__all__ = ["make_model"]  # the fixture
HAS_GPU = torch.cuda.is_available()
MODELS = [*COMBINATIONS] if HAS_GPU else EVERY_TWO_PARTS[:3]
SETTINGS: dict[str, Any] = {
    "name": "tiny",
    "subwords": {"type": "word", "size": 120},
    "model": {"embedding_size": 5, "encoder": {"hidden_size": 3, "dropout": 0.1}, "decoder": {"hidden_size": 6}},
    "training": {
        "batch_size": 8,
        "validate_every": "3 updates",
        "validation": {"metric": "loss"},
        "recurrent_dropout": 0.2,
    },
}

pytestmark = pytest.mark.gpu


@pytest.fixture
def device() -> torch.device:
    return torch.device("cuda" if HAS_GPU else "cpu")


def a_batch() -> Batch:
    """Three sentences of different lengths; one source is longer than any window."""
    sources = [[4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15], [16, 5, 9, 14], [6]]
    return make_batch(sources, [[10, 11, 12, 5, 6, 7, 4], [13, 14, 15], [18, 4]], np.arange(3))


def after_update(model: Seq2Seq, device: torch.device, **settings: Any) -> tuple[float, dict[str, torch.Tensor]]:
    """The loss of an update in float32, and the gradients, on the CPU."""
    copied = copy.deepcopy(model).float().to(device).train()
    config = TrainingConfig.model_validate({"optimizer": {"name": "sgd", "learning_rate": 1.0}, **settings})
    result = update(copied, build_optimizer(copied.parameters(), config), [a_batch()], rate=0.0, config=config)
    gradients = {name: weight.grad.cpu() for name, weight in copied.named_parameters() if weight.grad is not None}
    return result.loss, gradients


@pytest.mark.parametrize("kernels", ["fused", "plain"])
@pytest.mark.parametrize("name", MODELS)
def test_every_model_learns_the_same(
    name: str, kernels: str, device: torch.device, make_model: Callable[..., Seq2Seq]
) -> None:
    model = make_model(**COMBINATIONS[name])
    loss, gradients = after_update(model, torch.device("cpu"), kernels=kernels)
    on_device, others = after_update(model, device, kernels=kernels)
    assert on_device == pytest.approx(loss, rel=1e-4)
    assert others.keys() == gradients.keys()
    for weight, gradient in gradients.items():
        torch.testing.assert_close(others[weight], gradient, rtol=1e-3, atol=1e-4, msg=weight)


@pytest.mark.parametrize("name", MODELS if HAS_GPU else MODELS[:1])
def test_products_in_bfloat16_come_near(name: str, device: torch.device, make_model: Callable[..., Seq2Seq]) -> None:
    model = make_model(**COMBINATIONS[name])
    loss, _ = after_update(model, torch.device("cpu"))
    rounded, gradients = after_update(model, device, precision="bfloat16")
    assert rounded == pytest.approx(loss, rel=0.05)
    assert all(bool(gradient.isfinite().all()) for gradient in gradients.values())


@pytest.mark.parametrize(
    "options", [{"beam_size": 1}, {"beam_size": 5, "n_best": 3}, {"beam_size": 3, "batch_sentences": 1}]
)
def test_beam_search_finds_the_same(options: dict[str, int], device: torch.device, tmp_path: Path) -> None:
    path, lines = save_random_model(tmp_path / "model.safetensors"), [*SENTENCES, "a", "dog ball dog"]
    expected, found = (
        [[(one.text, one.score) for one in best] for best in translator.translate(lines, **options)]
        for translator in (Translator.load(path, device=where) for where in (torch.device("cpu"), device))
    )
    assert [[text for text, _ in best] for best in found] == [[text for text, _ in best] for best in expected]
    scores = [[score for _, score in best] for best in expected]
    assert [[score for _, score in best] for best in found] == [pytest.approx(one, abs=1e-4) for one in scores]


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_an_interrupted_training_ends_like_one_that_was_not(
    precision: str, device: torch.device, tmp_path: Path
) -> None:
    """To rounding: a GPU adds in an order of its own."""
    corpus = make_synthetic_corpus(tmp_path / "corpus", train=40, valid=5, test=6)
    config = tmp_path / "tiny.yaml"
    config.write_text(yaml.safe_dump({**SETTINGS, "data": data_section(corpus)}), encoding="utf-8")

    def trained(name: str, updates: int, *more: str) -> dict[str, torch.Tensor]:
        sets = ["--set", f"training.max_updates={updates}", "--set", f"training.precision={precision}"]
        arguments = ["--config", config, "--output", tmp_path / name, "--device", device.type, *sets, *more]
        assert main([*map(str, arguments)]) == 0
        return load_model(dict(files_of_updates(tmp_path / name, CHECKPOINTS))[updates]).weights

    whole = trained("whole", 6)
    trained("parts", 3)
    resumed = trained("parts", 6, "--resume")
    for name, weight in whole.items():
        torch.testing.assert_close(resumed[name], weight, rtol=1e-3, atol=1e-5, msg=name)
