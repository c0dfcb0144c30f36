"""Mistakes in a configuration file: all at once, with line, value, what is allowed, and the nearest name."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.config.loading import read_config
from nmt.config.problems import Problem, unknown_choice
from nmt.config.schema import Config
from nmt.errors import UserError

Load = Callable[..., Config]
Messages = Callable[..., list[str]]

SIDES = "source_language: a\n  target_language: b\n  valid: {source: a, target: b}"


@pytest.mark.parametrize(
    ("snippet", "expected"),
    [
        # unknown keys
        ("decoding:\n  beamsize: 3", "my.yaml, line 2: decoding.beamsize: unknown key; nearest: beam_size"),
        ("nonsense: 3", "my.yaml, line 1: nonsense: unknown key; allowed here: name, seed, data,"),
        ("batchsize: 3", "batchsize: unknown key; nearest: training.batch_size"),
        ("1: 2", "line 1: 1: unknown key; allowed here: name,"),
        # of other sections, and of sections of another name
        ("beam_size: 3", "beam_size: unknown key; nearest: decoding.beam_size"),
        (
            "training: {max_epochs: 20, learning_rate: 1}",
            "training.learning_rate: unknown key; nearest: training.optimizer.learning_rate",
        ),
        (
            "training: {max_epochs: 20, schedule: {name: constant, factor: 0.1}}",
            "training.schedule.factor: unknown key here; it goes with name: halving or plateau",
        ),
        (
            "training: {max_epochs: 2, optimizer: {rho: 0.5}}",
            "training.optimizer.rho: unknown key here; it goes with name: adadelta",
        ),
        # what other toolkits call a key, and what is an option
        ("model: {attention: {type: dot}}", "model.attention.type: unknown key; nearest: score"),
        ("epochs: 3", "my.yaml, line 1: epochs: unknown key; nearest: training.max_epochs"),
        (
            "model: {RNN-size: 3}",
            "RNN-size: unknown key; nearest: model.encoder.hidden_size, or model.decoder.hidden_size",
        ),
        ("init_from: x", "init_from: unknown key; it is the option --init-from of nmt-train"),
        ("model: {use_cuda: true}", "use_cuda: unknown key; it is the option --device of nmt-train"),
        # wrong types
        ("seed: '42'", "line 1: seed: given '42'; allowed: a whole number, at least 0"),
        ("seed: true", "seed: given true; allowed: a whole number"),
        ("decoding: {max_length_ratio: 1e999}", "decoding.max_length_ratio: given inf; allowed: a number, at least 0"),
        ("subwords: {joint: yes}", "subwords.joint: given 'yes'; allowed: true or false"),
        ("subwords: {model: 7}", "subwords.model: given 7; allowed: a path, or null"),
        ("model:", "model: given null; allowed: a section with keys such as embedding_size"),
        ("name: {a: 1}", "name: given a section with the keys a; allowed: text of letters"),
        ("name: a b", "name: given 'a b'; allowed: text of letters, digits,"),
        ("model: {decoder: {cell: 3}}", "model.decoder.cell: given 3; allowed: gru, lstm"),
        # out of range
        ("model: {embedding_size: 0}", "model.embedding_size: given 0; allowed: a whole number, at least 1"),
        ("model: {encoder: {dropout: 1}}", "encoder.dropout: given 1; allowed: a number, at least 0 and less than 1"),
        ("training: {minimum_risk: {alpha: 0}}", "minimum_risk.alpha: given 0; allowed: a number, more than 0"),
        ("training: {max_epochs: 2, average_best: 1}", "training.average_best: given 1; allowed: 0, or a whole number"),
        # choices
        (
            "model: {encoder: {directions: concat}}",
            "directions: given 'concat'; nearest: concatenate; allowed: concatenate, sum",
        ),
        ("model: {decoder: {cell: lsmt}}", "model.decoder.cell: given 'lsmt'; nearest: lstm; allowed: gru, lstm"),
        (
            "decoding: {length_penalty: avg}",
            "given 'avg'; nearest: average; allowed: none, average, or a number, at least 0",
        ),
        (
            "training: {max_epochs: 2, validate_every: 2 hours}",
            "validate_every: given '2 hours'; allowed: a whole number, at least 1, or text such as",
        ),
        (
            "training: {max_epochs: 2, freeze: [encodr]}",
            "training.freeze.0: given 'encodr'; nearest: encoder; allowed: embeddings",
        ),
        # sections with variants
        (
            "training: {max_epochs: 2, optimizer: {name: adma}}",
            "training.optimizer.name: given 'adma'; nearest: adam; allowed: adadelta, adam, adamw, sgd",
        ),
        (
            "training: {max_epochs: 2, optimizer: {name: [1]}}",
            "training.optimizer.name: given a list of 1; allowed: ad",
        ),
        (
            "training: {max_epochs: 2, optimizer: adam}",
            "allowed: a section whose name is one of adadelta, adam, adamw, sgd; write optimizer: {name: adam}",
        ),
        (
            "training:\n  max_epochs: 2\n  optimizer:\n    name: sgd\n    momentum: 1",
            "line 5: training.optimizer.momentum: given 1; allowed: a number, at least 0 and less than 1",
        ),
        # missing keys
        ("subwords:\n  sampling: {}", "line 2: subwords.sampling.alpha: this key is missing; allowed: a number, more"),
        # one pair of files stands for a list of it
        (
            f"data:\n  train:\n    source: a\n    target: 3\n  {SIDES}",
            "line 4: data.train.0.target: given 3; allowed: a path",
        ),
    ],
)
def test_one_mistake(messages: Messages, snippet: str, expected: str) -> None:
    (message,) = messages(snippet)
    assert expected in message


def test_missing_keys(messages: Messages) -> None:
    assert messages("data:\n  train:\n  - source: a\n  valid: {}") == [
        "my.yaml, line 1: data.source_language: this key is missing; allowed: text",
        "my.yaml, line 1: data.target_language: this key is missing; allowed: text",
        "my.yaml, line 3: data.train.0.target: this key is missing; allowed: a path",
        "my.yaml, line 4: data.valid.source: this key is missing; allowed: a path",
        "my.yaml, line 4: data.valid.target: this key is missing; allowed: a path",
    ]


def test_every_mistake_of_a_single_key_in_one_report(messages: Messages) -> None:
    """Unknown keys, wrong types, values out of range, and unknown choices; contradictions come once they are mended."""
    snippet = """
seeds: 3
data:
  source_language: 3
  target_language: de
  train:
  - {source: same, target: same}
  - {source: a, target: [b]}
  valid: {source: v.en, target: v.de}
model:
  encoder: {dropout: 2}
  decoder: {cell: seven}
training:
  optimizer: {name: addam}
  average_best: 7
"""
    assert [message.split(": ")[1] for message in messages(snippet)] == [
        "seeds",
        "data.source_language",
        "data.train.1.target",
        "model.encoder.dropout",
        "model.decoder.cell",
        "training.optimizer.name",
    ]


@pytest.mark.parametrize(
    ("snippet", "path"),
    [
        ("training: {max_epoch: 3}", "training.max_epoch"),  # "training has no end" would only be its consequence
        (f"data:\n  {SIDES}\n  tran: {{source: c, target: d}}", "data.tran"),  # and not that data.train is missing
        ("data:\n  train: {source: c, target: d}\n  " + SIDES.replace("valid", "dev"), "data.dev"),
    ],
)
def test_consequences_of_a_mistake_are_not_reported(messages: Messages, snippet: str, path: str) -> None:
    (message,) = messages(snippet)
    assert message.split(": ")[1] == path


def test_checks_of_the_caller_join_the_report(messages: Messages) -> None:
    def scores(config: Config) -> list[Problem]:
        return [Problem(("model", "attention", "score"), unknown_choice("x", ["a", "b"]))]

    mistakes = messages("model:\n  attention:\n    score: x\ntraining: {early_stopping: null}", checks=[scores])
    assert mistakes[0] == "my.yaml, line 3: model.attention.score: given 'x'; allowed: a, b"
    assert "training.early_stopping" in mistakes[1]


def test_a_pair_of_files_is_a_list_of_one(load: Load) -> None:
    data = "data: {source_language: a, target_language: b, train: %s, valid: {source: c, target: d}}"
    assert load(data % "{source: x, target: y}") == load(data % "[{source: x, target: y}]")
    changed = load(data % "{source: x, target: y}", "data.train.0.weight=2", "data.train.1={source: u, target: v}")
    assert [pair.weight for pair in changed.data.train] == [2.0, 1.0]


def test_a_mistake_in_a_pair_of_files_is_told_of_the_override_that_has_it(messages: Messages) -> None:
    files = "train: {source: x, target: y}, valid: {source: c, target: d}"
    (message,) = messages(f"data: {{source_language: a, target_language: b, {files}}}", "data.train.weight=-1")
    assert message.startswith("--set data.train.weight=-1: data.train.0.weight: ")


def test_paths_are_relative_to_the_file(load: Load, tmp_path: Path) -> None:
    config = load("subwords: {model: ../joint.model}")
    assert config.data.train[0].source == tmp_path / "train.en"
    assert config.subwords.model == tmp_path.parent / "joint.model"
    assert load("subwords: {model: /else/where.model}").subwords.model == Path("/else/where.model")
    assert load("subwords: {model: ~/a.model}").subwords.model == Path.home() / "a.model"


def test_values_keep_their_types(load: Load) -> None:
    config = load("""
decoding: {length_penalty: 1, max_length_ratio: 3}
training: {max_epochs: 3, optimizer: {name: adam, learning_rate: 5e-4}, save_every: 500, validate_every: 1 epochs}
""")
    assert config.decoding.length_penalty == 1.0
    assert config.training.optimizer.learning_rate == 0.0005
    assert (config.training.save_every, config.training.validate_every) == ("500 updates", "1 epoch")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "the file is empty"),
        (b"# only a comment\n", "the file is empty"),
        (b"- a\n- b\n", "given a list of 2; expected keys with values"),
        (b"just text", "given 'just text'; expected keys with values"),
        (b"name: demo\nseed: \xe9\n", "my.yaml, line 2: not valid UTF-8 (byte 0xE9)"),
        ("name: demo".encode("utf-16"), "my.yaml, line 1: not valid UTF-8"),
        (b"name: demo\nmodel:\n\tlayers: 1\n", "my.yaml, line 3: column 1: not valid YAML: a tab"),
    ],
)
def test_files_that_hold_no_configuration(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "my.yaml"
    path.write_bytes(content)
    with pytest.raises(UserError) as error:
        read_config(path)
    (message,) = error.value.messages
    assert message.startswith(str(path))
    assert expected in message


def test_a_byte_order_mark_is_no_part_of_the_first_key(load: Load) -> None:
    assert load("\ufeffseed: 7").seed == 7


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "demo.yaml").touch()

    def refused(path: Path, mode: str) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    with pytest.raises(UserError, match=r"dmo.yaml: no such configuration file; nearest: .*demo.yaml;"):
        read_config(tmp_path / "dmo.yaml")
    with pytest.raises(
        UserError, match=r"away/x.yaml: no such configuration file; .*; nmt-train --list-configs lists examples$"
    ):
        read_config(tmp_path / "away" / "x.yaml")
    with pytest.raises(UserError, match=r": is a folder; give a file, such as .*/config\.yaml$"):
        read_config(tmp_path)
    with pytest.raises(UserError, match=r"cannot be read: embedded null byte"):
        read_config(tmp_path / "a\0b.yaml")
    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(UserError, match=r"demo.yaml: cannot be read: Permission denied"):
        read_config(tmp_path / "demo.yaml")
