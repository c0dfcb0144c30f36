"""The resolved configuration: written, read again, compared."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.config import Config, differences, dump_config, load_config, moved_files, parse_config, with_former_defaults
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
    "subwords: {type: unigram, size: 300, joint: false, sampling: {alpha: 0.1, nbest_size: 5}}",
    "subwords: {source_model: s, target_model: t, joint: false}",
    "model: {initialisation: {name: uniform, range: 1}, attention: {size: 7}, decoder: {output_dropout: 0}}",
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
    assert load_config(folder / "config.yaml") == config, (
        "every key spelt out, no path relative, nothing to complain of"
    )


def test_every_key_is_written_in_the_order_of_the_schema(load: Load, tmp_path: Path) -> None:
    values = read_yaml(dump_config(load("seed: 3\nname: demo"))).value
    assert list(values) == ["name", "seed", "data", "subwords", "model", "training", "decoding"]
    files = {"source": str(tmp_path / "train.en"), "target": str(tmp_path / "train.de"), "alignments": None}
    files |= {"weight": 1.0, "tag": None}
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
    assert differences(old, old) == []
    assert differences(old, new) == [
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
    assert moved_files(before, after) == keys
    assert moved_files(after, before) == keys


def test_the_key_by_which_earlier_versions_counted_epochs(load: Load) -> None:
    """A run of theirs can be resumed, with their file or a new one; a mistake in it is told by its name."""
    snippet = "training: {max_epochs: 9, schedule: {name: halving, %s}}"
    old, new = (load(snippet % key) for key in ("after_epoch: 3, factor: 0.25", "after: 3 epochs, factor: 0.25"))
    assert differences(old, new) == []
    assert old == new
    saved = dump_config(new)
    assert "after: 3 epochs" in saved
    assert parse_config(saved.replace("after: 3 epochs", "after_epoch: 3")) == new
    for wrong in ("after_epoch: 0", "after_epoch: many", "after_epoch: 3, after: 4 epochs"):
        with pytest.raises(UserError, match=r"training\.schedule\.after_epoch: unknown key; nearest: after;"):
            load(snippet % wrong)


@pytest.mark.parametrize(("decoder", "order"), [("bahdanau", "paper"), ("luong", "authors")])
def test_what_was_saved_before_a_key_keeps_its_meaning(load: Load, decoder: str, order: str) -> None:
    """Bahdanau's decoder had the order of the paper before it had the other one, which is the default now."""
    text = dump_config(load(f"model: {{decoder: {{type: {decoder}}}}}"))
    without = "".join(line for line in text.splitlines(keepends=True) if line.strip() != "order: authors")
    assert without != text
    assert parse_config(without).model.decoder.order == order


@pytest.mark.parametrize(("decoder", "kept"), [("bahdanau", "paper"), ("luong", "authors")])
def test_a_key_whose_default_has_changed_is_as_it_was_where_it_is_left_out(load: Load, decoder: str, kept: str) -> None:
    """So a run that began before is resumed with the same file; where the file has the key, it counts. Luong's decoder
    has no such order, and what was saved for it is the default."""
    saved = dump_config(load(f"model: {{decoder: {{type: {decoder}}}}}")).replace("order: authors", "order: paper")
    for written, order in (("", kept), (", order: authors", "authors")):
        config = load(f"model: {{decoder: {{type: {decoder}{written}}}}}")
        assert with_former_defaults(config, parse_config(saved)).model.decoder.order == order


def test_a_run_that_began_with_other_defaults_keeps_them(load: Load) -> None:
    """Where the file of the run leaves the keys out; what it says counts, and Adam's rate is not that of SGD."""
    adam, rest = "training: {max_epochs: 1, optimizer: {name: adam%s}%s}", ", moving_average: null"
    began = load("model: {decoder: {type: luong}}\n" + adam % (", learning_rate: 5e-4", rest))

    def resumed(written: str) -> tuple[str, float, bool]:
        config = with_former_defaults(load(written), began)
        training = config.training
        return config.model.decoder.type, training.optimizer.learning_rate, training.moving_average is not None

    assert resumed("seed: 42") == ("luong", 5e-4, False)
    assert resumed("model: {decoder: {cell: gru}}\n" + adam % ("", "")) == ("luong", 5e-4, False)
    assert resumed("model: {decoder: {type: bahdanau}}") == ("bahdanau", 5e-4, False)
    assert resumed(adam % (", learning_rate: 1e-3", ", moving_average: {}")) == ("luong", 1e-3, True)
    assert resumed(adam.replace("adam", "sgd") % ("", "")) == ("luong", 1.0, False)
    began = load("model: {decoder: {type: conditional_gru}}\n" + adam % (", learning_rate: 0.01", ""))
    assert resumed("seed: 42") == ("bahdanau", 1e-3, True)  # these never were defaults


@pytest.mark.parametrize(("scope", "former"), [("local-p", "unscaled"), ("global", "scaled")])
def test_a_model_from_before_the_logit_of_positions_was_scaled(load: Load, scope: str, former: str) -> None:
    """It keeps its logit, and a run goes on with it, unless the file has another one. Elsewhere the key means nothing,
    and has the default, for another value would be refused."""
    config = load(f"model: {{attention: {{scope: {scope}}}}}")
    saved = dump_config(config)
    without = "".join(line for line in saved.splitlines(keepends=True) if line.strip() != "position_logit: scaled")
    assert without != saved
    before = parse_config(without)
    assert before.model.attention.position_logit == former
    assert with_former_defaults(config, before).model.attention.position_logit == former
    if scope == "local-p":
        config = load("model: {attention: {scope: local-p, position_logit: scaled}}")
        assert with_former_defaults(config, before).model.attention.position_logit == "scaled"


def test_former_defaults_go_only_where_they_have_an_effect(load: Load) -> None:
    """A configuration with another scope or decoder is another configuration; what the run has of its own is not
    written into it, where it would be refused."""
    began = load(
        "model: {attention: {scope: local-p, position_logit: unscaled}, decoder: {type: bahdanau, order: paper}}"
    )
    config = load("model: {attention: {scope: local-m}, decoder: {type: luong}}")
    assert with_former_defaults(config, began) == config


def test_a_run_that_began_before_there_was_a_moving_average_has_none(load: Load) -> None:
    config = load("seed: 42")
    saved = dump_config(config)
    without = re.sub(r"  moving_average:\n    decay: .*\n", "", saved)
    assert without != saved
    assert parse_config(without).training.moving_average is None
    assert with_former_defaults(config, parse_config(without)).training.moving_average is None
