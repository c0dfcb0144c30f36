"""`--set KEY=VALUE`: any key, under the same rules as in the file."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.config.schema import AdamConfig, Config, ConstantSchedule, PlateauSchedule

Load = Callable[..., Config]
Messages = Callable[..., list[str]]


def test_values_replace_those_of_the_file(load: Load) -> None:
    config = load(
        "seed: 7\ntraining: {max_epochs: 3, early_stopping: null}",
        "seed=11",
        "model.decoder.hidden_size=13",
        "data.source_language=no",
        "training.optimizer={name: sgd, learning_rate: 5e-1}",
        "training.max_epochs=30",
        "training.early_stopping.patience=2",
        "training.max_epochs=40",
    )
    assert (config.seed, config.model.decoder.hidden_size, config.data.source_language) == (11, 13, "no")
    assert (config.training.optimizer.name, config.training.optimizer.learning_rate) == ("sgd", 0.5)
    assert config.training.max_epochs == 40, "the last one wins"
    assert config.training.early_stopping is not None
    assert config.training.early_stopping.patience == 2


def test_a_section_without_a_name_is_of_the_default_one(load: Load) -> None:
    config = load("seed: 1", "training.optimizer.learning_rate=1e-3")
    assert config.training.optimizer == AdamConfig(name="adam", learning_rate=1e-3)
    config = load("training: {max_epochs: 3, optimizer: {beta1: 0.5}, schedule: {}}\nmodel: {initialization: {}}")
    assert config.training.optimizer == AdamConfig(name="adam", beta1=0.5)
    assert config.training.schedule == ConstantSchedule(name="constant")
    assert config.model.initialization.name == "uniform"
    sgd = "training: {max_epochs: 3, optimizer: {name: sgd}}"
    assert load(sgd, "training.optimizer.learning_rate=0.5").training.optimizer.name == "sgd"


def test_a_name_in_place_of_a_section_is_told_how_to_write_it(messages: Messages) -> None:
    (message,) = messages("seed: 1", "training.optimizer=adam")
    assert message.endswith(
        "given 'adam'; allowed: a section whose name is one of adadelta, adam, adamw, sgd; "
        "write optimizer: {name: adam}"
    )


def test_an_empty_value_is_null(load: Load) -> None:
    assert load("training: {max_epochs: 3, max_updates: 5}", "training.max_epochs=").training.max_epochs is None


def test_items_of_lists_are_named_by_index(load: Load, tmp_path: Path) -> None:
    here = Path.cwd()
    config = load("seed: 1", "data.train.0.source=x.en", "data.train.1={source: y.en, target: ~/y.de}")
    assert [(pair.source, pair.target) for pair in config.data.train] == [
        (here / "x.en", tmp_path / "train.de"),
        (here / "y.en", Path.home() / "y.de"),
    ]


def test_relative_paths_are_relative_to_the_current_folder(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    watched = "data.watch=[{name: w, source: w.en, target: w.de}]"
    config = load("seed: 1", "data.valid={source: v.en, target: /v.de}", "subwords.model=../s.model", watched)
    assert config.data.watch[0].source == elsewhere / "w.en"
    assert config.data.valid.source == elsewhere / "v.en"
    assert config.data.valid.target == Path("/v.de")
    assert config.subwords.model == tmp_path / "s.model"
    assert config.data.train[0].source == tmp_path / "train.en", "of the file"


def test_replacing_a_section_drops_its_other_keys(load: Load, messages: Messages) -> None:
    file = "training:\n  max_epochs: 9\n  schedule:\n    name: plateau\n    patience: 3"
    assert load(file, "training.schedule={name: constant}").training.schedule == ConstantSchedule(name="constant")
    assert load(file, "training.schedule={name: plateau}").training.schedule == PlateauSchedule(name="plateau")
    (message,) = messages(file, "training.schedule.name=constant")
    assert message.startswith("my.yaml, line 5: training.schedule.patience: unknown key here; it goes with name: plat")
    (message,) = messages(file, "training.schedule.patience=5", "training.schedule={name: plateau}")
    assert message == (
        "--set training.schedule={name: plateau}: would undo --set training.schedule.patience=5; give it before that"
    )


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("training.batch_size=x", ": given 'x'; allowed: a whole number, at least 1"),
        ("modle.encoder.layers=2", ": modle: unknown key; nearest: model"),
        ("training.schedule.name=", ": given null; allowed: "),
        ("data.train.0.source=''", ": given ''; allowed: a path"),
        ("subwords.model=' '", ": given ' '; allowed: a path"),
        ("data.source_language=''", ": given ''; allowed: text"),
        ("data=&a [*a]", ": anchors and aliases such as &a are not allowed here"),
        ("data.train." + "9" * 5000 + "=3", ": data.train is a list, so an index from 0 to 1 follows (1 adds an item)"),
        ("a." * 5000 + "a=3", ": the key has 5001 names; no key has more than 20"),
        ("training.schedule={name: plateu}", ": training.schedule.name: given 'plateu'; nearest: plateau; allowed:"),
        ("training.average_best=2", ": 2 checkpoints are to be averaged, but keep_best: 1 keeps fewer"),
        ("seed", ": expected KEY=VALUE, such as training.batch_size=64"),
        ("training..batch_size=3", ": expected KEY=VALUE, such as"),
        ("name.x=3", ": name is 'demo' and has no keys below it"),
        ("data.train.x=3", ": data.train is a list, so an index from 0 to 1 follows (1 adds an item); given 'x'"),
        ("training.freeze.1=encoder", ": training.freeze is a list, so an index from 0 to 0 follows"),
        ("seed=[", ": column 2: not valid YAML: expected the node content"),
        ("training.schedule={name: a, name: b}", ": the key name is given twice; both times in this line"),
    ],
)
def test_mistakes_name_the_override(messages: Messages, override: str, expected: str) -> None:
    (message,) = messages("name: demo", override)
    shown = override if len(override) <= 200 else f"{override[:200]}..."
    assert message.startswith(f"--set {shown}{expected}")


def test_mistakes_of_file_and_overrides_come_in_one_report(messages: Messages) -> None:
    problems = messages("seed: -1", "seeds=3", "decoding.beam_size=0", "oops")
    assert [message.split(":")[0] for message in problems] == [
        "my.yaml, line 1",
        "--set seeds=3",
        "--set decoding.beam_size=0",
        "--set oops",
    ]


def test_the_override_of_a_wrong_value_mends_it(messages: Messages) -> None:
    assert messages("seed: -1", "seed=1") == []
