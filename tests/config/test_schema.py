"""The schema itself: fully described, immutable, and available as a JSON schema for editors."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from nmt.cli.common import describe
from nmt.config.allowed import allowed, choices, dotted, places, resolved, whole_schema
from nmt.config.schema import Config, Interval, PlateauSchedule, TrainingConfig
from nmt.errors import UserError
from scripts import make_configuration_reference as script

ROOT = Path(__file__).resolve().parents[2]
NAMES = {
    "cell": ["gru"],
    "score": ["additive", "general"],
    "scope": ["global"],
    "decoder": ["luong"],
    "initial state": ["final"],
    "metric": ["bleu"],
}


def test_every_key_is_described() -> None:
    without = [
        dotted(place.path)
        for place in places(script.described_schema())
        if not resolved(place.schema).get("description")
    ]
    assert without == []


def test_every_key_says_in_words_what_it_allows() -> None:
    words = {dotted(place.path): allowed(place.schema) for place in places()}
    assert words["training.batch_size"] == "a whole number, at least 1 and at most 1,000,000,000"
    assert words["model.encoder.dropout"] == "a number, at least 0 and less than 1"
    assert words["training.save_every"] == (
        'a whole number, at least 1, or text such as "1 epoch" or "500 updates", or null'
    )
    assert words["data.train"] == ("a list of at least 1, each item: a section with keys such as source")
    assert words["model.encoder.directions"] == "concatenate, sum"
    assert words["model.decoder.initial_state"] == "one of the initial states"


def test_a_configuration_is_immutable(load: Callable[..., Config]) -> None:
    with pytest.raises(ValidationError, match="frozen"):
        load("seed: 1").seed = 3


@pytest.mark.parametrize(
    ("written", "text", "count", "unit"),
    [
        (500, "500 updates", 500, "updates"),
        ("500", "500 updates", 500, "updates"),
        ("1 updates", "1 update", 1, "updates"),
        ("1 epoch", "1 epoch", 1, "epochs"),
        (" 3epochs ", "3 epochs", 3, "epochs"),
    ],
)
def test_intervals(written: object, text: str, count: int, unit: str) -> None:
    interval = Interval(written)
    assert (interval, interval.count, interval.unit) == (text, count, unit)


@pytest.mark.parametrize("written", [0, -1, "0 epochs", "1.5 epochs", "epoch", "", "1 hour", True])
def test_what_is_no_interval(written: object) -> None:
    with pytest.raises(ValueError, match="must be a number of updates"):
        Interval(written)


def test_json_schema_offers_the_attention_scores() -> None:
    schema = script.json_schema(NAMES)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$defs"]["AttentionConfig"]["properties"]["score"]["enum"] == ["additive", "general"]
    assert choices(schema["$defs"]["EncoderConfig"]["properties"]["directions"]) == ["concatenate", "sum"]
    assert "enum" not in whole_schema()["$defs"]["AttentionConfig"]["properties"]["score"], (
        "the original stays as it is"
    )
    (number, text) = schema["$defs"]["TrainingConfig"]["properties"]["validate_every"]["anyOf"]
    assert number == {"type": "integer", "minimum": 1}
    assert all(re.search(text["pattern"], interval) for interval in ("1 epoch", "500 updates", "500"))
    assert not re.search(text["pattern"], "1 hour")


def test_json_schema_lets_the_default_name_be_left_out() -> None:
    sections = script.json_schema(NAMES)["$defs"]
    required = {name: "name" in section.get("required", []) for name, section in sections.items()}
    for name in ("AdamConfig", "ConstantSchedule", "UniformInitialization"):
        assert not required[name]
    for name in ("SGDConfig", "PlateauSchedule", "XavierInitialization"):
        assert required[name]


def test_reference_and_json_schema_are_up_to_date() -> None:
    for path, text in script.files().items():
        name = path.relative_to(ROOT)
        assert path.is_file(), f"{name} is missing; run: python scripts/make_configuration_reference.py"
        assert path.read_text(encoding="utf-8") == text, (
            f"{name} is old; run: python scripts/make_configuration_reference.py"
        )


def test_the_report_in_the_documentation_is_real(messages: Callable[..., list[str]]) -> None:
    documentation = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    snippet = "name: my\n\n\n\n\n\nmodel:\n  decoder:\n    hiden_size: 512\n    dropout: 1.2\n\ntraining:\n"
    problems = messages(snippet + "  max_epochs: 9\n", "training.batch_size=big")
    assert f"\n```text\n{describe('nmt-train', UserError(*problems))}\n```\n" in documentation


@pytest.mark.parametrize(
    ("snippet", "stopping", "every"),
    [
        ("{}", {"metric": "bleu", "patience": 5, "share": 0.25}, "500 updates"),
        (
            "{validation: {metric: loss}, max_epochs: null}",
            {"metric": "loss", "patience": 5, "share": 0.25},
            "500 updates",
        ),
        ("{validate_every: 1 epoch}", {"metric": "bleu", "patience": 5, "share": 0.25}, "1 epoch"),
        ("{max_updates: 3}", None, "1 epoch"),
        ("{early_stopping: {patience: 3}}", {"metric": "bleu", "patience": 3, "share": 0.0}, "1 epoch"),
        (
            "{validation: {metric: cer}, early_stopping: {patience: 3}}",
            {"metric": "cer", "patience": 3, "share": 0.0},
            "1 epoch",
        ),
    ],
)
def test_what_ends_training_where_nothing_is_given(
    load: Callable[..., Config], snippet: str, stopping: dict[str, Any] | None, every: str
) -> None:
    """The resolved configuration shows it, and reads back equal."""
    training = load(f"training: {snippet}").training
    assert training.validate_every == every
    assert training.model_dump()["early_stopping"] == stopping
    assert TrainingConfig.model_validate(training.model_dump()) == training


def test_what_watches_a_validation_watches_the_metric_that_chooses(load: Callable[..., Config]) -> None:
    """Unless it names another."""
    training = load(
        "training: {validation: {metric: accuracy}, schedule: {name: plateau}, early_stopping: {metric: loss}}"
    ).training
    assert isinstance(training.schedule, PlateauSchedule)
    assert training.schedule.metric == "accuracy"
    assert training.early_stopping is not None
    assert training.early_stopping.metric == "loss"
