"""What other toolkits call our keys: every name leads to something that there is, and none of ours leads elsewhere."""

from collections.abc import Callable

from nmt.cli.parsers.train import parser
from nmt.config.allowed import dotted, places
from nmt.other_names import KEYS, OPTIONS, our_keys, our_option

Messages = Callable[..., list[str]]
OURS = {dotted(place.path) for place in places()}
NAMES = [name for names in (*KEYS.values(), *OPTIONS.values()) for name in names]


def test_every_name_leads_to_a_key_or_an_option() -> None:
    options = {name for action in parser()._actions for name in action.option_strings}
    about_other_things = {"-h", "--help", "--version", "--list-configs", "--print-schema", "--config", "--set"}
    assert KEYS.keys() <= OURS
    assert OPTIONS.keys() == options - about_other_things


def test_no_name_is_a_key_of_ours() -> None:
    last_names = {key.rpartition(".")[2] for key in OURS}
    assert not {*NAMES, *(option[2:].replace("-", "_") for option in OPTIONS)} & last_names


def test_names_may_be_written_as_options_are() -> None:
    assert our_keys("--Max-Grad-Norm") == ["training.gradient_clip_norm"]
    assert our_keys("batch-size") == ["training.batch_size"]  # our own
    assert our_keys("hidden") == ["model.encoder.hidden_size", "model.decoder.hidden_size"]
    assert our_keys("zebra") == []
    assert (our_option("dry_run"), our_option("--gpu"), our_option("zebra")) == ("--dry-run", "--device", None)


def test_nothing_is_said_about_the_key_that_was_meant(messages: Messages) -> None:
    """Without it there is neither max_epochs nor max_updates, but that is not a second mistake."""
    (message,) = messages("training: {max_epochs: null, epochs: 3}")
    assert "training.epochs: unknown key; nearest: max_epochs;" in message
    (_, message) = messages("training: {max_epochs: null, device: cpu}")
    assert "neither this nor max_updates is set" in message
