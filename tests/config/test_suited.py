"""Settings by size: the starter with any of them is a configuration, and keeps its comments."""

from typing import Literal

import pytest

from nmt.config.loading import parse_config
from nmt.config.suited import TABLE, filled_in, suited_settings
from nmt.examples import starters
from nmt.models.combinations import FAMILIES

STARTER = starters()["my_files"].read_text(encoding="utf-8")


@pytest.mark.parametrize("pairs", TABLE)
@pytest.mark.parametrize("units", ["sentences", "words", "characters"])
def test_the_starter_has_all_that_is_set(pairs: int, units: Literal["sentences", "words", "characters"]) -> None:
    settings = suited_settings(pairs, units=units, tokenize="none")
    links = {"data.train.0.alignments": "links"} if settings.get("training.guided_alignment") else {}
    text = filled_in(STARTER, settings | {"name": "a", "data.train.0.source": "no #1"} | links, "the head")
    config = parse_config(text, FAMILIES)
    assert config.subwords.size == TABLE[pairs]["subwords.size"]
    assert config.training.validation.tokenize == "none"
    assert str(config.data.train[0].source).endswith("no #1")
    assert config.training.early_stopping is not None
    steering = "bleu" if units == "sentences" else "accuracy"
    assert config.training.validation.metric == config.training.early_stopping.metric == steering
    assert text.startswith("# the head\n\nname: a # of the folder")
    assert text.count("\n") <= 50


def test_settings_change_with_size() -> None:
    settings = [suited_settings(pairs, units="sentences", tokenize="13a") for pairs in (9_999, 10_000, 1_000_000)]
    assert [one["subwords.size"] for one in settings] == [2000, 4000, 8000]
    assert [one.get("data.max_length", 100) for one in settings] == [300, 100, 100]
    settings.append(suited_settings(2_000, units="words", tokenize="none"))
    assert [one.get("training.guided_alignment") for one in settings] == [{"weight": 0.5}, None, None, None]
    assert [one.get("training.recurrent_dropout", 0.0) for one in settings] == [0.5, 0.0, 0.0, 0.0]
    rates = [one.get("training.optimizer", {}).get("learning_rate") for one in settings]
    assert rates == [0.002, None, None, 0.002]  # None: as the starter has it
    assert [one.get("training.validate_every") for one in settings] == [None, None, None, "200 updates"]
