"""What other toolkits call our keys: every name leads to something that there is, and none of ours leads elsewhere."""

from types import ModuleType

from nmt.cli import average, evaluate, score, serve, shortlist, train, translate
from nmt.config.allowed import choices, dotted, places
from nmt.evaluation.metrics import METRICS
from nmt.models.scores import SCORES
from nmt.other_names import KEYS, OPTIONS, OTHER_OPTIONS, VALUES, our_keys, ours

OURS = {dotted(place.path) for place in places()}
COMMANDS = [average, evaluate, score, serve, shortlist, translate]
NAMES = [name for names in (*KEYS.values(), *OPTIONS.values()) for name in names]


def options_of(command: ModuleType) -> set[str]:
    return {name for action in command.parser()._actions for name in action.option_strings}


def test_every_name_leads_to_a_key_or_an_option() -> None:
    options = options_of(train)
    about_other_things = {"-h", "--help", "--version", "--list-configs", "--config", "--set"}
    assert KEYS.keys() <= OURS
    assert OPTIONS.keys() == options - about_other_things


def test_the_other_commands_have_their_options_and_call_nothing_otherwise() -> None:
    for name, words in OTHER_OPTIONS.items():
        having = [command for command in COMMANDS if name in options_of(command)]
        assert having
        for word in words:
            assert any(ours(word, OTHER_OPTIONS, options_of(command)) == name for command in having)
            assert not any({f"--{word.replace('_', '-')}", f"-{word}"} & options_of(command) for command in having)


def test_what_is_a_key_elsewhere_too() -> None:
    assert not {name for names in KEYS.values() for name in names} & OURS
    assert our_keys("type", section="model.attention") == ["model.attention.score"]
    assert our_keys("type") == ["subwords.type"]
    assert our_keys("dev") == ["data.valid"]
    assert our_keys("src", section="data") == ["data.source_language"]  # JoeyNMT
    assert our_keys("src") == ["data.train.0.source"]


def test_every_value_is_one_that_there_is() -> None:
    values = {*SCORES, *METRICS, *(choice for place in places() for choice in choices(place.schema))}
    assert VALUES.keys() <= values
    assert ours("MLP", VALUES, [*SCORES]) == "additive"
    assert ours("luong", VALUES, ["luong", "bahdanau"]) is None  # the decoders
    assert ours("zebra", VALUES, [*SCORES]) is None


def test_no_name_is_a_key_of_ours() -> None:
    last_names = {key.rpartition(".")[2] for key in OURS}
    assert not {*NAMES, *(option[2:].replace("-", "_") for option in OPTIONS)} & last_names


def test_names_may_be_written_as_options_are() -> None:
    assert our_keys("--Max-Grad-Norm") == ["training.gradient_clip_norm"]
    assert our_keys("batch-size") == ["training.batch_size"]  # our own
    assert our_keys("hidden") == ["model.encoder.hidden_size", "model.decoder.hidden_size"]
    assert our_keys("zebra") == []
    named = [ours(name, OPTIONS, OPTIONS) for name in ("dry_run", "--gpu", "zebra")]
    assert named == ["--dry-run", "--device", None]
