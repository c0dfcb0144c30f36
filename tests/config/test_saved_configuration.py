"""The resolved configuration: written, read again, compared."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.config.loading import dump_config, parse_config, read_config
from nmt.config.resuming import continuation, differences
from nmt.config.schema import Config
from nmt.config.yaml_text import read_yaml
from nmt.errors import UserError

Load = Callable[..., Config]

SNIPPETS = [
    "seed: 1",
    """
name: '1e5'
data:
  source_language: no
  target_language: '~'
  train: [{source: 1.en, target: Grüße.de}, {source: a, target: 'b: c'}]
  valid: {source: v, target: w}
  cache_folder: ..
  max_length_ratio: 3
""",
    "subwords: {type: unigram, size: 300, joint: false, sampling: {alpha: 0.1}}",
    "subwords: {source_model: s, target_model: t, joint: false}",
    "model: {initialization: {name: uniform, range: 1}, attention: {size: 7}, decoder: {output_dropout: 0}}",
    "training: {max_updates: 9000, optimizer: {name: adamw, epsilon: 1e-10}, schedule: {name: warmup_inverse_sqrt}}",
    "training: {max_epochs: 9, optimizer: {name: sgd, momentum: 0.9}, schedule: {name: halving}, validate_every: 500}",
    "training: {max_epochs: 9, optimizer: {name: adadelta}, schedule: {name: plateau}, freeze: [encoder, decoder]}",
    "training: {max_epochs: 9, early_stopping: {patience: 2}, gradient_clip_norm: 1, save_every: 7 updates}",
    "decoding: {length_penalty: 0.6}",
    "decoding: {length_penalty: none, beam_size: 3}",
]


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_what_is_saved_reads_back_equal(load: Load, tmp_path: Path, snippet: str) -> None:
    config = load(snippet)
    text = dump_config(config)
    assert parse_config(text) == config
    assert dump_config(parse_config(text)) == text
    folder = tmp_path / "another" / "folder"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(text, encoding="utf-8")
    assert read_config(folder / "config.yaml").config == config, (
        "every key spelt out, no path relative, nothing to complain of"
    )


def test_every_key_is_written_in_the_order_of_the_schema(load: Load, tmp_path: Path) -> None:
    values = read_yaml(dump_config(load("seed: 3\nname: demo"))).value
    assert list(values) == ["name", "seed", "data", "subwords", "model", "training", "decoding"]
    files = {"source": str(tmp_path / "train.en"), "target": str(tmp_path / "train.de"), "alignments": None}
    files |= {"weight": 1.0, "pair_weights": None, "tag": None}
    assert values["data"]["train"] == [files]
    assert values["model"]["encoder"]["bidirectional"] is True
    assert values["training"]["validate_every"] == "1 epoch"
    assert values["training"]["optimizer"]["learning_rate"] == 0.001


def test_a_damaged_saved_configuration_is_refused() -> None:
    with pytest.raises(UserError) as error:
        parse_config("name: demo\nsed: 3\n")
    assert error.value.messages[0].startswith("the saved configuration: data: this key is missing")
    assert error.value.messages[1].startswith("the saved configuration, line 2: sed: unknown key; nearest: seed")
    with pytest.raises(UserError, match="the saved configuration: the file is empty"):
        parse_config("")


def test_a_saved_configuration_may_contradict_a_rule_of_today(load: Load) -> None:
    text = dump_config(load("seed: 1")).replace("average_best: 0", "average_best: 9")
    assert parse_config(text).training.average_best == 9


def test_differences(load: Load) -> None:
    old = load("training: {max_epochs: 9, schedule: {name: plateau, patience: 1}}")
    new = load("training: {max_epochs: 9, batch_size: 64, early_stopping: {metric: loss}, freeze: [encoder]}")
    assert differences(old, old) == {}
    assert [*differences(old, new).values()] == [
        "training.schedule.name: 'plateau' there, 'constant' here",
        "training.schedule.metric: 'bleu' there, absent here",
        "training.schedule.patience: 1 there, absent here",
        "training.schedule.factor: 0.5 there, absent here",
        "training.schedule.minimum_learning_rate: 1e-06 there, absent here",
        "training.schedule.stop_below_minimum: false there, absent here",
        "training.batch_size: 80 there, 64 here",
        "training.early_stopping: null there, given here",
        "training.freeze: an empty list there, given here",
        "training.early_stopping.metric: absent there, 'loss' here",
        "training.early_stopping.patience: absent there, 5 here",
        "training.early_stopping.share: absent there, 0.0 here",
        "training.freeze.0: absent there, 'encoder' here",
    ]


MOVED = "data.train.0.source=other.en"


@pytest.mark.parametrize(
    ("changes", "keys"),
    [
        ([], []),
        ([MOVED, "data.valid.target=other.de"], ["data.train.0.source", "data.valid.target"]),
        (["data.cache_folder=cache"], []),
        ([MOVED, "data.cache_folder=cache"], ["data.train.0.source"]),
        ([MOVED, "seed=2"], None),
        ([MOVED, "model.embeddings={source: vectors}"], None),  # where there was none before
    ],
)
def test_moved_files(load: Load, changes: list[str], keys: list[str] | None) -> None:
    """The same files at other paths make no other configuration, nor does another cache."""
    before, after = load("seed: 1"), load("seed: 1", *changes)
    for moved, lengthened, obstacles in (continuation(before, after), continuation(after, before)):
        assert not lengthened
        assert bool(obstacles) == (keys is None)
        assert keys is None or moved == keys


LENGTH = "training: {max_updates: 5, max_epochs: 9, early_stopping: {patience: 3}}"


@pytest.mark.parametrize(
    ("change", "lengthened", "obstacle"),
    [
        ("training.max_updates=6", ["training.max_updates: 5 there, 6 here"], None),
        ("training.max_updates=null", ["training.max_updates: 5 there, null here"], None),
        ("training.early_stopping.patience=4", ["training.early_stopping.patience: 3 there, 4 here"], None),
        ("training.max_updates=4", [], "training.max_updates: 5 there, 4 here; a run can be lengthened, but"),
        ("training.max_epochs=8", [], "training.max_epochs: 9 there, 8 here; a run can be lengthened, but"),
        ("training.early_stopping.metric=loss", [], "training.early_stopping.metric: 'bleu' there, 'loss' here"),
    ],
)
def test_a_run_may_be_lengthened(load: Load, change: str, lengthened: list[str], obstacle: str | None) -> None:
    result = continuation(load(LENGTH), load(LENGTH, change))
    assert result.lengthened == lengthened
    assert [line for line in result.obstacles if not line.startswith(obstacle or " ")] == []
    assert bool(result.obstacles) == (obstacle is not None)


def test_where_every_rate_depends_on_the_length(load: Load) -> None:
    linear = "training: {max_updates: 5, schedule: {name: linear}}"
    (obstacle,) = continuation(load(linear), load(linear, "training.max_updates=6")).obstacles
    assert obstacle.endswith("with training.schedule: linear, every rate depends on it")
