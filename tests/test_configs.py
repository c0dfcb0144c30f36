"""The experiments of configs/: every file loads, keeps the numbers of its paper, and survives a dry run."""

import re
import shlex
from itertools import pairwise
from math import prod
from pathlib import Path

import pytest

from nmt.cli.train import main
from nmt.config.loading import dump_config, read_config
from nmt.config.schema import ModelConfig
from nmt.models.seq2seq import weight_shapes
from nmt.training import dry_run
from tests.conftest import checked_config, write_pairs

ROOT = Path(__file__).resolve().parent.parent
CONFIGS = sorted((ROOT / "configs").rglob("*.yaml"))
PATHS = {path.stem: path for path in CONFIGS}

NOUNS = {"dog": "Hund", "cat": "Kater", "man": "Mann", "boy": "Junge", "bird": "Vogel", "horse": "Hengst"}

# What the papers say of training and decoding besides: as it would be set, which changes nothing
LUONG = """data.max_length=50 subwords.size=50004 model.initialization={name: uniform, range: 0.1}
model.encoder.reverse_source=true model.encoder.dropout=0.2 model.decoder.dropout=0.2 model.decoder.fed_dropout=0.2
training.optimizer.name=sgd training.optimizer.learning_rate=1.0 training.gradient_clip_norm=5.0
training.schedule={name: halving, after: 8 epochs, every: 1 epoch, factor: 0.5} training.moving_average=null
training.max_epochs=12 training.batch_size=128 training.normalize_by=sentences decoding.beam_size=12
decoding.length_penalty=none"""
NUMBERS = {
    "bahdanau2014_wmt14_en_fr": """data.max_length=50 subwords.size=30004 model.attention.bias=false
training.optimizer.name=adadelta training.optimizer.rho=0.95 training.optimizer.epsilon=1e-6
training.gradient_clip_norm=1.0 training.normalize_by=none training.moving_average=null training.batch_size=80
training.batch_by=sentences training.sort_pairs=1600 training.max_updates=288000 decoding.beam_size=10
decoding.length_penalty=none""",
    "luong2015_wmt14_en_de_global_dot": f"{LUONG} model.attention.score=dot model.attention.scope=global",
    "luong2015_wmt15_de_en_global_dot": f"{LUONG} model.attention.score=dot model.attention.scope=global",
    "luong2015_wmt14_en_de_local_p": f"{LUONG} model.attention.score=general model.attention.scope=local-p"
    " model.attention.half_width=10 model.attention.renormalize=false",
}

# Weights, counted by hand: gates × units × (input + state + biases); the encoder's cells have two biases
LUONG_ENCODER = 4 * 4 * 1000 * (1000 + 1000 + 2)
LUONG_DECODER = 4 * 4 * 1000 * (1000 + 1000 + 1) + 4 * 1000 * 1000 + 1000 * 2000  # and h̃ fed back, W_c
PARAMETERS = {
    "bahdanau2014_wmt14_en_fr": {
        "encoder": 2 * 3 * 1000 * (620 + 1000 + 2),
        "initial_state": 1000 * (1000 + 1),
        "decoder": 3 * 1000 * (620 + 1000 + 1 + 2000)  # the cell, which reads the context of 2,000 units
        + 1000 * (1000 + 2000 + 1)  # W_a, U_a, v_a
        + 2 * 500 * (1000 + 620 + 2000 + 1),  # U_o, V_o, C_o and a bias, for 500 maxout units
    },
    "luong2015_wmt14_en_de_global_dot": {"encoder": LUONG_ENCODER, "initial_state": 0, "decoder": LUONG_DECODER},
    "luong2015_wmt15_de_en_global_dot": {"encoder": LUONG_ENCODER, "initial_state": 0, "decoder": LUONG_DECODER},
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
    """Typed, without unknown keys, contradictions or options without effect; the corpus in data/ may be missing."""
    config = checked_config(path)
    assert config.name == path.stem, "the run folder is named after the configuration file"
    files = [file for pair in (*config.data.train, config.data.valid) for file in (pair.source, pair.target)]
    assert all(file.is_relative_to(ROOT / "data") for file in files)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_header_gives_command_data_and_result(path: Path) -> None:
    """An experiment that was not run here says so, what was published, and in what it differs from that."""
    text = header(path)
    for word in ("# Command:", "# Data:", "# Result:"):
        assert word in text, f"the header lacks {word!r}"
    command, result = (text.partition(word)[2] for word in ("# Command:", "# Result:"))
    assert path.relative_to(ROOT).as_posix() in command or "make" in command
    if "not trained here" in result:
        assert "# Published:" in text
        assert "# What differs from " in text


def settings_in(text: str) -> list[list[str]]:
    """The values of --set in a header, a list for each command line or part of one."""
    joined = re.sub(r" \\\n#\s*", " ", text)  # lines that go on
    lines = [shlex.split(line.removeprefix("#")) for line in joined.splitlines() if re.match(r"#\s+--set ", line)]
    return [[value for option, value in pairwise(line) if option == "--set"] for line in lines]


OVERRIDES = [(path, values) for path in CONFIGS for values in settings_in(header(path))]


@pytest.mark.parametrize(("path", "values"), OVERRIDES, ids=lambda value: getattr(value, "name", "set"))
def test_what_a_header_says_to_set_is_accepted(path: Path, values: list[str]) -> None:
    """The other members of a family, and published vocabularies in the place of those from the corpus."""
    config = checked_config(path, values)
    assert config != read_config(path).config


def test_the_family_of_bahdanau() -> None:
    """RNNsearch and RNNencdec, from sentences of up to 50 and up to 30 words."""
    path = PATHS["bahdanau2014_wmt14_en_fr"]
    lines = [values for values in settings_in(header(path)) if values[0].startswith("name=")]
    family = {config.name: config for config in (read_config(path, values).config for values in lines)}
    assert {
        name: (
            config.data.max_length,
            config.model.attention.score,
            config.model.encoder.bidirectional,
            config.training.max_updates,
        )
        for name, config in family.items()
    } == {
        "bahdanau2014_rnnsearch_30": (30, "additive", True, 471_000),
        "bahdanau2014_rnnencdec_50": (50, "fixed", False, 600_000),
        "bahdanau2014_rnnencdec_30": (30, "fixed", False, 846_000),
    }
    for config in family.values():
        assert config.training.sort_pairs == (1600 if config.model.encoder.bidirectional else 800)


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name: str) -> None:
    values = re.split(r"\s(?=[a-z_]+\.)", NUMBERS[name])
    assert dump_config(read_config(PATHS[name], values).config) == dump_config(read_config(PATHS[name]).config)


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters(name: str) -> None:
    """Of the modules, whatever the vocabularies."""
    shapes = weight_shapes(read_config(PATHS[name]).config.model, source_size=5, target_size=5)
    counts = dict.fromkeys(PARAMETERS[name], 0)
    for weight, shape in shapes.items():
        module = weight.partition(".")[0]
        if module in counts:
            counts[module] += prod(shape)
    assert counts == PARAMETERS[name]


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
    write_pairs(folder, train=pairs, valid=pairs[::5])
    return folder


def smaller(model: ModelConfig) -> list[str]:
    """The sizes of a model, divided by 4, as --set takes them: what has to be equal stays so."""
    sizes = {
        "embedding_size": model.embedding_size,
        "encoder.hidden_size": model.encoder.hidden_size,
        "attention.size": model.attention.size,
        "decoder.hidden_size": model.decoder.hidden_size,
        "decoder.output_size": model.decoder.output_size,
    }
    return [f"model.{key}={size // 4}" for key, size in sizes.items() if size is not None]


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=pytest.mark.slow) if path.parent.name == "research" else path for path in CONFIGS],
    ids=lambda path: path.name,
)
def test_dry_run(
    path: Path, corpus: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole network does two updates on batches of 4, one of which is timed.

    Another corpus has few words, and a number of subwords has to fit; a number of words is an upper bound, so it stays.
    """
    monkeypatch.setattr(dry_run, "WARM_UP", 0)
    monkeypatch.setattr(dry_run, "TIMED", 1)
    changes = [
        f"data.train=[{{source: {corpus / 'train.en'}, target: {corpus / 'train.de'}}}]",
        f"data.valid={{source: {corpus / 'valid.en'}, target: {corpus / 'valid.de'}}}",
        f"data.cache_folder={corpus / 'cache'}",
        "training.batch_size=4",
        "training.batch_by=sentences",
        "training.vocabulary=null",  # there is no model to start from
        *smaller((config := read_config(path).config).model),
    ]
    if config.subwords.model is not None:
        changes.append("subwords.model=null")  # made for another corpus
    if config.training.minimum_risk is not None:
        changes.append("training.minimum_risk.size=2")
    if config.subwords.type != "word":
        changes.append("subwords.size=50")
    if config.data.watch:
        changes.append(f"data.watch=[{{name: old, source: {corpus / 'train.en'}, target: {corpus / 'train.de'}}}]")
    arguments = [part for change in changes for part in ("--set", change)]
    output = tmp_path / "run"
    assert main(["--config", str(path), "--output", str(output), "--device", "cpu", "--dry-run", *arguments]) == 0
    report = capfd.readouterr().out
    assert "training corpus: 30 pairs read, 30 kept" in report
    assert "largest batch: 4 sentences" in report
    assert not output.exists()
