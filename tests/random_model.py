"""A model file with random weights that translates nonsense into nonsense in no time, and text for it."""

import random
from collections.abc import Sequence
from pathlib import Path

import torch

from nmt.cli.export import main as export
from nmt.config.schema import Config
from nmt.data.subwords import Subwords
from nmt.models.model_file import ModelFile, save_model
from nmt.models.seq2seq import build_model

# without a full stop, so that no line of them has several sentences
SENTENCES = ["a dog runs across the green field ,", "two men are reading", "is a boy playing with the ball"]
WORDS = sorted({word for sentence in SENTENCES for word in sentence.split()})
SIZE = 43  # of the vocabulary


def text(lines: int) -> str:
    """So many lines of one to nine words; every seventh is blank."""
    draw = random.Random(5)
    texts = [" ".join(draw.choices(WORDS, k=draw.randint(1, 9))) if line % 7 != 6 else "" for line in range(lines)]
    return "".join(f"{line}\n" for line in texts)


def save_random_model(
    path: Path,
    *,
    seed: int = 1,
    sentences: Sequence[str] = SENTENCES,
    symbols: Sequence[str] = (),
    size: int = SIZE,
    decoder: str = "luong",
    score: str = "additive",
    ratio: float = 0.5,
) -> Path:
    """Write the model, whose configuration asks for beams of 3; returns its path."""
    pair = {"source": "a", "target": "b"}
    config = Config.model_validate(
        {
            "name": "tiny",
            "data": {"source_language": "en", "target_language": "en", "train": [pair], "valid": pair},
            "model": {
                "embedding_size": 5,
                "initialization": {"range": 0.1},
                "encoder": {"hidden_size": 3},
                "decoder": {"type": decoder, "hidden_size": 7},
                "attention": {"score": score},
            },
            "decoding": {"beam_size": 3, "max_length_ratio": ratio, "max_length_extra": 3},
        }
    )
    subwords = Subwords.train(sentences, settings=config.subwords.model_copy(update={"size": size}))
    subwords = subwords.with_symbols(symbols)
    torch.manual_seed(seed)
    network = build_model(config.model, source_size=subwords.size, target_size=subwords.size)
    for weight in network.parameters():
        weight.data *= 3  # so that translations differ from line to line
    save_model(path, ModelFile(config, network.state_dict(), subwords.model, subwords.model, (subwords.size,) * 2, {}))
    return path


def exported(model: Path) -> Path:
    """The same model for ONNX Runtime, beside it: processes that translate with it spend no seconds on PyTorch."""
    path = model.with_name("exported")
    if not path.exists():
        assert export(["--model", str(model), "--output", str(path)]) == 0
    return path
