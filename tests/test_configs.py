"""The experiments of configs/: every file loads, and the reference experiment keeps its sizes."""

from pathlib import Path

import pytest

from nmt.config import dump_config, load_config, parse_config
from nmt.config.schema import AdamConfig, PlateauSchedule

ROOT = Path(__file__).resolve().parent.parent
CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_config_loads(path: Path) -> None:
    """Typed, without unknown keys, contradictions or options without effect; the corpus need not be there."""
    config = load_config(path)
    assert config.name == path.stem, "the run folder is named after the configuration file"
    assert parse_config(dump_config(config)) == config


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_corpus_lies_in_the_data_folder(path: Path) -> None:
    config = load_config(path)
    files = [file for pair in (*config.data.train, config.data.valid) for file in (pair.source, pair.target)]
    assert all(file.is_relative_to(ROOT / "data") for file in files)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_header_gives_command_data_and_result(path: Path) -> None:
    header = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    for word in ("# Command:", "# Data:", "# Result:"):
        assert any(line.startswith(word) for line in header), f"the header lacks {word!r}"


def test_multi30k_has_the_sizes_of_the_recorded_results() -> None:
    config = load_config(ROOT / "configs" / "multi30k_en_de.yaml")
    assert config.seed == 42
    assert config.data.max_length == 100
    assert (config.subwords.type, config.subwords.size, config.subwords.joint) == ("bpe", 8000, True)

    model = config.model
    assert (model.embedding_size, model.tie_embeddings) == (256, "none")
    encoder = model.encoder
    assert (encoder.cell, encoder.hidden_size, encoder.layers, encoder.bidirectional) == ("gru", 256, 1, True)
    assert (encoder.dropout, encoder.output_dropout) == (0.3, 0.0)
    assert (model.attention.score, model.attention.scope) == ("additive", "global")
    decoder = model.decoder
    assert (decoder.type, decoder.cell, decoder.hidden_size, decoder.layers) == ("luong", "gru", 512, 1)
    assert (decoder.input_feeding, decoder.dropout) == (True, 0.3)

    training = config.training
    assert training.optimizer == AdamConfig(name="adam", learning_rate=5e-4)
    assert training.schedule == PlateauSchedule(name="plateau", metric="bleu", patience=2, factor=0.5)
    assert (training.batch_size, training.batch_by, training.max_epochs) == (80, "sentences", 15)
    assert (training.validate_every, training.label_smoothing, training.gradient_clip_norm) == ("1 epoch", 0.1, 1.0)
    assert (config.decoding.beam_size, config.decoding.length_penalty) == (5, "average")
