"""The experiments of configs/: every file loads, keeps the numbers of its paper, and survives a dry run."""

from pathlib import Path
from typing import Any

import pytest

from nmt.cli.train import main
from nmt.config import dump_config, load_config, parse_config
from nmt.models.combinations import model_problems

ROOT = Path(__file__).resolve().parent.parent
CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))

NOUNS = {"dog": "Hund", "cat": "Kater", "man": "Mann", "boy": "Junge", "bird": "Vogel", "horse": "Hengst"}

# What the papers, and the other toolkits whose benchmarks are repeated, say; keys as --set has them.
LUONG: dict[str, Any] = {
    "data.max_length": 50,
    "subwords.type": "word",
    "subwords.size": 50_000 + 4,
    "subwords.joint": False,
    "model.embedding_size": 1000,
    "model.initialisation.name": "uniform",
    "model.initialisation.range": 0.1,
    "model.encoder.cell": "lstm",
    "model.encoder.hidden_size": 1000,
    "model.encoder.layers": 4,
    "model.encoder.bidirectional": False,
    "model.encoder.reverse_source": True,
    "model.encoder.dropout": 0.2,
    "model.decoder.type": "luong",
    "model.decoder.cell": "lstm",
    "model.decoder.hidden_size": 1000,
    "model.decoder.layers": 4,
    "model.decoder.input_feeding": True,
    "model.decoder.initial_state": "copy",
    "model.decoder.dropout": 0.2,
    "training.optimizer.name": "sgd",
    "training.optimizer.learning_rate": 1.0,
    "training.schedule.name": "halving",
    "training.schedule.after": "8 epochs",
    "training.schedule.every": "1 epoch",
    "training.schedule.factor": 0.5,
    "training.max_epochs": 12,
    "training.batch_size": 128,
    "training.normalise_by": "sentences",
    "training.gradient_clip_norm": 5.0,
    "decoding.beam_size": 12,
    "decoding.length_penalty": "none",
}
LIUM: dict[str, Any] = {
    "subwords.size": 10_000,
    "model.embedding_size": 128,
    "model.initialisation.name": "lecun",
    "model.encoder.hidden_size": 256,
    "model.encoder.dropout": 0.3,
    "model.encoder.output_dropout": 0.5,
    "model.attention.size": 2 * 256,
    "model.attention.bias": True,
    "model.decoder.type": "conditional_gru",
    "model.decoder.hidden_size": 256,
    "model.decoder.output_size": 128,
    "model.decoder.initial_state": "mean",
    "model.decoder.layer_normalisation": False,
    "model.decoder.output_dropout": 0.5,
    "training.optimizer.name": "adam",
    "training.optimizer.learning_rate": 4e-4,
    "training.optimizer.weight_decay": 2e-5,
    "training.optimizer.decayed": "matrices",
    "training.sort_by": "target",
    "training.batch_size": 32,
    "training.gradient_clip_norm": 5.0,
    "training.early_stopping.patience": 10,
    "training.validation.beam_size": 12,
    "decoding.beam_size": 12,
}
NUMBERS: dict[str, dict[str, Any]] = {
    "bahdanau2014_wmt14_en_fr": {
        "data.max_length": 50,
        "subwords.type": "word",
        "subwords.size": 30_000 + 4,
        "subwords.joint": False,
        "model.embedding_size": 620,
        "model.encoder.cell": "gru",
        "model.encoder.hidden_size": 1000,
        "model.encoder.layers": 1,
        "model.encoder.bidirectional": True,
        "model.attention.score": "additive",
        "model.attention.scope": "global",
        "model.attention.size": 1000,
        "model.attention.bias": False,
        "model.decoder.type": "bahdanau",
        "model.decoder.order": "authors",
        "model.decoder.cell": "gru",
        "model.decoder.hidden_size": 1000,
        "model.decoder.output_size": 500,
        "model.decoder.initial_state": "final",
        "model.decoder.dropout": 0.0,
        "training.optimizer.name": "adadelta",
        "training.optimizer.learning_rate": 1.0,
        "training.optimizer.rho": 0.95,
        "training.optimizer.epsilon": 1e-6,
        "training.batch_size": 80,
        "training.batch_by": "sentences",
        "training.gradient_clip_norm": 1.0,
        "training.max_updates": 288_000,
        "decoding.length_penalty": "none",
    },
    "luong2015_wmt14_en_de_global_dot": LUONG | {"model.attention.score": "dot", "model.attention.scope": "global"},
    "luong2015_wmt14_en_de_local_p": LUONG
    | {
        "model.attention.score": "general",
        "model.attention.scope": "local-p",
        "model.attention.half_width": 10,
        "model.attention.renormalise": False,
    },
    "iwslt14_de_en": {
        "data.max_length": 50,
        "model.embedding_size": 256,
        "model.encoder.cell": "lstm",
        "model.encoder.hidden_size": 256,
        "model.encoder.bidirectional": True,
        "model.encoder.dropout": 0.0,
        "model.attention.score": "general",
        "model.decoder.hidden_size": 256,
        "model.decoder.input_feeding": True,
        "model.decoder.dropout": 0.2,
        "model.decoder.output_dropout": None,
        "training.optimizer.name": "adam",
        "training.optimizer.learning_rate": 1e-3,
        "training.schedule.patience": 0,
        "training.batch_size": 64,
        "decoding.beam_size": 10,
        "decoding.length_penalty": 1.0,
    },
    "iwslt15_en_vi": {
        "data.max_length": 50,
        "model.embedding_size": 512,
        "model.initialisation.range": 0.1,
        "model.encoder.cell": "lstm",
        "model.encoder.hidden_size": 512,
        "model.encoder.layers": 1,
        "model.encoder.bidirectional": True,
        "model.decoder.hidden_size": 512,
        "model.decoder.layers": 2,
        "model.decoder.dropout": 0.2,
        "training.optimizer.name": "sgd",
        "training.optimizer.learning_rate": 1.0,
        "training.batch_size": 128,
        "training.normalise_by": "sentences",
        "training.gradient_clip_norm": 5.0,
        "decoding.beam_size": 10,
        "decoding.length_penalty": "none",
    },
    "multi30k_en_de_lium": LIUM,
    "multi30k_en_fr_tok": LIUM,
    "multi30k_en_de": {  # those of the recorded results
        "seed": 42,
        "data.max_length": 100,
        "subwords.type": "bpe",
        "subwords.size": 8000,
        "subwords.joint": True,
        "model.embedding_size": 256,
        "model.tie_embeddings": "none",
        "model.encoder.cell": "gru",
        "model.encoder.hidden_size": 256,
        "model.encoder.layers": 1,
        "model.encoder.bidirectional": True,
        "model.encoder.dropout": 0.3,
        "model.encoder.output_dropout": 0.0,
        "model.attention.score": "additive",
        "model.attention.scope": "global",
        "model.decoder.type": "luong",
        "model.decoder.cell": "gru",
        "model.decoder.hidden_size": 512,
        "model.decoder.layers": 1,
        "model.decoder.input_feeding": True,
        "model.decoder.dropout": 0.3,
        "training.optimizer.name": "adam",
        "training.batch_size": 80,
        "training.batch_by": "sentences",
        "training.max_epochs": 15,
        "training.label_smoothing": 0.1,
        "training.gradient_clip_norm": 1.0,
        "decoding.beam_size": 5,
        "decoding.length_penalty": "average",
    },
}

# Weights, counted by hand: gates × units × (input + state + biases); the encoder's cells have two biases
LUONG_ENCODER = 4 * 4 * 1000 * (1000 + 1000 + 2)
LUONG_DECODER = 4 * 4 * 1000 * (1000 + 1000 + 1) + 4 * 1000 * 1000 + 1000 * 2000  # and h̃ fed back, W_c
PARAMETERS = {
    "bahdanau2014_wmt14_en_fr": {
        "encoder": 2 * 3 * 1000 * (620 + 1000 + 2),
        "initial_state": 1000 * (1000 + 1),
        "decoder": 3 * 1000 * (620 + 1000 + 2 + 2000)  # the cell, which reads the context of 2,000 units
        + 1000 * (1000 + 2000 + 1)  # W_a, U_a, v_a
        + 2 * 500 * (1000 + 620 + 2000 + 1),  # U_o, V_o, C_o and a bias, for 500 maxout units
    },
    "luong2015_wmt14_en_de_global_dot": {"encoder": LUONG_ENCODER, "initial_state": 0, "decoder": LUONG_DECODER},
    "luong2015_wmt14_en_de_local_p": {
        "encoder": LUONG_ENCODER,
        "initial_state": 0,
        "decoder": LUONG_DECODER + 1000 * 1000 + 1000 * (1000 + 1),  # W_a; W_p and v_p
    },
}


def header(path: Path) -> str:
    """The comment at the head of the file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return "\n".join(lines[: next(number for number, line in enumerate(lines) if not line.startswith("#"))])


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_config_loads(path: Path) -> None:
    """Typed, without unknown keys, contradictions or options without effect; the corpus need not be there."""
    config = load_config(path, checks=[model_problems])
    assert config.name == path.stem, "the run folder is named after the configuration file"
    assert parse_config(dump_config(config)) == config


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_corpus_lies_in_the_data_folder(path: Path) -> None:
    config = load_config(path)
    files = [file for pair in (*config.data.train, config.data.valid) for file in (pair.source, pair.target)]
    assert all(file.is_relative_to(ROOT / "data") for file in files)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_header_gives_command_data_and_result(path: Path) -> None:
    """An experiment that was not run here says so, what was published, and in what it differs from that."""
    text = header(path)
    for word in ("# Command:", "# Data:", "# Result:"):
        assert word in text, f"the header lacks {word!r}"
    command, result = (text.partition(word)[2] for word in ("# Command:", "# Result:"))
    assert f"configs/{path.name}" in command or "make" in command
    if "not trained here" in result:
        assert "# Published:" in text
        assert "# What differs from " in text


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name: str) -> None:
    config = load_config(ROOT / "configs" / f"{name}.yaml")
    found = {}
    for key in NUMBERS[name]:
        value: Any = config
        for part in key.split("."):
            value = getattr(value, part)
        found[key] = value
    assert found == NUMBERS[name]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """30 pairs such as "the dog sees the cat .", and 6 of them again for validation."""
    folder = tmp_path_factory.mktemp("corpus")
    pairs = [
        (f"the {subject} sees the {thing} .", f"der {NOUNS[subject]} sieht den {NOUNS[thing]} .")
        for subject in NOUNS
        for thing in NOUNS
        if subject != thing
    ]
    for name, part in (("train", pairs), ("valid", pairs[::5])):
        for side in (0, 1):
            text = "".join(f"{pair[side]}\n" for pair in part)
            (folder / f"{name}.{side}").write_text(text, encoding="utf-8", newline="\n")
    return folder


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_dry_run(path: Path, corpus: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The whole network, in its full sizes, does an update on batches of 4.

    Of the text only the corpus is another one: its few words make small embeddings. A number of words is an upper
    bound, so it stays; a number of subwords has to fit.
    """
    changes = [
        f"data.train=[{{source: {corpus / 'train.0'}, target: {corpus / 'train.1'}}}]",
        f"data.valid={{source: {corpus / 'valid.0'}, target: {corpus / 'valid.1'}}}",
        f"data.cache_folder={corpus / 'cache'}",
        "training.batch_size=4",
    ]
    if load_config(path).subwords.type != "word":
        changes.append("subwords.size=50")
    arguments = [part for change in changes for part in ("--set", change)]
    output = tmp_path / "run"
    assert main(["--config", str(path), "--output", str(output), "--device", "cpu", "--dry-run", *arguments]) == 0
    report = capfd.readouterr().out
    assert "training corpus: 30 pairs read, 30 kept" in report
    assert "largest batch: 4 sentences" in report
    assert not output.exists()
    for module, count in PARAMETERS.get(path.stem, {}).items():
        assert f"  {module}: {count:,}\n" in report
