"""Models that the loader refuses, and what it says; everything else it takes."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from nmt.config.loading import dump_config
from nmt.config.schema import ModelConfig, TrainingConfig
from nmt.errors import UserError
from nmt.models.cells import CELLS
from nmt.models.combinations import FAMILIES, start_warnings
from nmt.models.decoders import DECODERS
from nmt.models.initial_state import INITIAL_STATES
from nmt.models.scopes import SCOPES
from nmt.models.scores import SCORES
from scripts.make_configuration_reference import json_schema
from tests.conftest import checked_config
from tests.models.conftest import FILE, GLOBAL_ONLY, NEVER

# The default encoder has 2 × 256 units, and the default decoder 512.
FITTING = "encoder: {hidden_size: 256}, decoder: {hidden_size: 512}"
MEAN = "initial_state: mean"  # reads both directions, which is what `none` needs
ONE_WAY = {"fixed": "encoder: {bidirectional: false}, "}  # scores that need it

Refusals = Callable[[str], list[str]]


@pytest.fixture
def refusals(tmp_path: Path) -> Refusals:
    """refusals(text): what the user reads about a model section, without its path; none where it loads."""

    def refusals(model: str) -> list[str]:
        path = tmp_path / "toy.yaml"
        path.write_text(f"{FILE}model: {{{model}}}\n", encoding="utf-8")
        try:
            checked_config(path)
        except UserError as error:
            return [message.replace(f"{tmp_path}/", "") for message in error.messages]
        return []

    return refusals


def mentions(messages: list[str], *parts: str) -> bool:
    """One message, which has all the parts."""
    assert len(messages) == 1, messages
    return all(part in messages[0] for part in parts)


# ------------------------------------------------------------------------------------------------- the whole product


@pytest.mark.parametrize("score", SCORES)
def test_exactly_the_allowed_combinations_load(refusals: Refusals, score: str) -> None:
    """With every decoder and scope, and Bahdanau's decoder in the order that it has by default."""
    encoder = ONE_WAY.get(score, "")
    for decoder, scope in product(DECODERS, SCOPES):
        refused = (score in GLOBAL_ONLY and scope != "global") + ((decoder, score) in NEVER)
        attention = f"attention: {{score: {score}, scope: {scope}}}"
        messages = refusals(f"{encoder}{attention}, decoder: {{type: {decoder}, {MEAN}}}")
        assert len(messages) == refused, (decoder, score, scope, messages)


# ------------------------------------------------------------------------------------- values, and what goes together

SCORE, SCOPE, STATE = "attention.score", "attention.scope", "decoder.initial_state"
BIDIRECTIONAL, BOTH_SUMMED = "encoder.bidirectional", "encoder: {directions: sum, hidden_size: 100}"
COPIED = "decoder: {initial_state: copy, layers: 2}"  # hidden_size: 512


@pytest.mark.parametrize(
    ("model", "key", "words"),
    [
        # names and values
        ("attention: {score: locationsensitive}", SCORE, "given 'locationsensitive'; nearest: location_sensitive;"),
        ("attention: {scope: local_p}", SCOPE, "given 'local_p'; nearest: local-p; allowed: global, local-m, local-p"),
        ("decoder: {type: conditional-gru}", "decoder.type", "nearest: conditional_gru"),
        ("encoder: {directions: summed}", "encoder.directions", "nearest: sum"),
        ("attention: {half_with: 3}", "attention.half_with", "unknown key; nearest: half_width"),
        ("attention: {score: [dot]}", SCORE, "given a list of 1; allowed: additive, concat, dot"),
        (
            "attention: {scope: local-m, half_width: 0}",
            "attention.half_width",
            "given 0; allowed: a whole",
        ),
        ("attention: {scope: local-p, half_width: 2.5}", "attention.half_width", "given 2.5"),
        ("attention: {score: location_sensitive, filter_width: 4}", "attention.filter_width", "an odd whole number"),
        # sizes
        (
            "attention: {score: dot}, encoder: {hidden_size: 9}",
            SCORE,
            "(512 units) as large as the enc",
        ),
        (
            f"attention: {{score: dot}}, {BOTH_SUMMED}",
            SCORE,
            "hidden_size: 100, or use score: general",
        ),
        # a score and a scope, a decoder and a cell
        ("attention: {score: location, scope: local-m}", SCOPE, "local-m does not go with score: location"),
        (
            "attention: {score: none, scope: local-p}, encoder: {bidirectional: false}",
            SCOPE,
            "use global, or one of",
        ),
        (
            "decoder: {type: conditional_gru, cell: lstm}",
            "decoder.cell",
            "lstm is not for type: conditional_gru",
        ),
        # no attention
        (
            f"attention: {{score: none}}, decoder: {{type: conditional_gru, {MEAN}}}",
            "decoder.type",
            "conditional_gru needs a context, which score: none has not; use luong or bahdanau",
        ),
        ("attention: {score: none}, decoder: {initial_state: zeros}", STATE, "zeros with attention.score: none hides"),
        ("attention: {score: none}", BIDIRECTIONAL, "true has no effect with attention.score: none and initial_state"),
        ("attention: {score: none}, encoder: {directions: sum}", BIDIRECTIONAL, "true has no effect"),  # and only this
        (
            "attention: {score: none}, decoder: {initial_state: forward, hidden_size: 256}",
            BIDIRECTIONAL,
            "true has no effect with attention.score: none and initial_state: forward",
        ),
        (
            f"attention: {{score: none}}, encoder: {{output_dropout: 0.1, layers: 2}}, {COPIED}",
            "encoder.output_dropout",
            "nothing reads it",
        ),
        (
            f"attention: {{score: none}}, encoder: {{layer_normalization: true, layers: 2}}, {COPIED}",
            "encoder.layer_normalization",
            "has no effect with attention.score: none and initial_state: copy",
        ),
        # one context for all steps: the backward direction has read nothing but </s> there
        ("attention: {score: fixed}", BIDIRECTIONAL, "true does not go with attention.score: fixed"),
        (f"attention: {{score: fixed}}, decoder: {{{MEAN}}}", BIDIRECTIONAL, "true does not go with"),
        # states that are taken as they are
        (COPIED, STATE, "set model.decoder.layers: 1 (now 2)"),
        (
            "encoder: {cell: lstm, hidden_size: 96}, decoder: {initial_state: copy}",
            STATE,
            "set model.decoder.cell: lstm (now gru), model.decoder.hidden_size: 192 (now 512), or use final",
        ),
        (f"{BOTH_SUMMED}, decoder: {{initial_state: copy}}", STATE, "set model.decoder.hidden_size: 100 (now 512)"),
        ("decoder: {initial_state: forward}", STATE, "model.decoder.hidden_size: 256 (now 512)"),
        (
            "encoder: {directions: sum}, decoder: {initial_state: forward, hidden_size: 256}",
            "encoder.directions",
            "sum does not go with decoder.initial_state: forward",
        ),
        ("decoder: {initial_state: alternate, hidden_size: 256}", STATE, "layers: 2 (now 1)"),
        (
            "encoder: {bidirectional: false}, decoder: {initial_state: alternate, hidden_size: 256, layers: 2}",
            BIDIRECTIONAL,
            "alternate, which needs two directions",
        ),
        ("initialization: {forget_bias: 1}", "initialization.forget_bias", "1 has no effect"),
    ],
)
def test_one_mistake(refusals: Refusals, model: str, key: str, words: str) -> None:
    assert mentions(refusals(model), f"model.{key}: ", words)


@pytest.mark.parametrize("value", ["0", "true", "learnt", ".inf"])
def test_a_temperature_is_a_positive_number_or_learned(refusals: Refusals, value: str) -> None:
    messages = refusals(f"attention: {{score: cosine, temperature: {value}}}, {FITTING}")
    assert mentions(messages, "model.attention.temperature", "learned")


@pytest.mark.parametrize("score", ["none", "fixed"])
def test_without_a_state_that_attends(refusals: Refusals, score: str) -> None:
    """Neither coverage nor guidance nor the order of cell and attention has an effect."""
    model = f"attention: {{score: {score}}}, encoder: {{bidirectional: false}}"
    assert refusals(model) == []
    for key, more in {
        "decoding.coverage_penalty": f"{model}}}\ndecoding: {{coverage_penalty: 0.2",
        "model.decoder.order": f"{model}, decoder: {{type: bahdanau, order: paper}}",
    }.items():
        assert mentions(refusals(more), f"{key}: has no effect with attention.score: {score}")


@pytest.mark.parametrize("score", ["none", "fixed", "general"])
def test_guided_alignment_needs_attention(tmp_path: Path, score: str) -> None:
    aligned = FILE.replace("target: b}", "target: b, alignments: x}")
    text = aligned.replace("max_updates: 1", "max_updates: 1, guided_alignment: {weight: 0.3}")
    path = tmp_path / "toy.yaml"
    model = f"model: {{attention: {{score: {score}}}, encoder: {{bidirectional: false}}}}\n"
    path.write_text(text + model, encoding="utf-8")
    if score == "general":
        assert checked_config(path).training.guided_alignment is not None
        return
    with pytest.raises(UserError, match=f"training.guided_alignment: has no effect with attention.score: {score}"):
        checked_config(path)


# --------------------------------------------------------------------- options without an effect, and all at once


def test_options_that_are_off(refusals: Refusals) -> None:
    assert refusals("attention: {renormalize: false, bias: false, coverage: false, size: null}") == []


def test_a_resolved_configuration_loads(tmp_path: Path) -> None:
    """It spells out every option; one that has another value than its default is refused there as well."""
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text(FILE, encoding="utf-8")
    config = checked_config(first)
    second.write_text(dump_config(config), encoding="utf-8")
    assert checked_config(second) == config
    with pytest.raises(UserError, match="half_width=9: has no effect with scope: global"):
        checked_config(second, ["model.attention.half_width=9"])


def test_input_feeding_without_a_decoder(refusals: Refusals) -> None:
    """Who asks for it means Luong's, not the default; off, it is what the default has."""
    messages = refusals("decoder: {input_feeding: true, fed_dropout: 0.0}")
    assert mentions(messages, "model.decoder.input_feeding", "type: bahdanau; leave it out, or use luong")
    for decoder in ("fed_dropout: 0.0", "type: bahdanau, input_feeding: true", "type: luong, input_feeding: true"):
        assert refusals(f"decoder: {{{decoder}}}") == []


def test_layer_normalization_of_a_reset_gate_that_comes_first(refusals: Refusals) -> None:
    """In the cells of the decoder; that of the annotations is another thing."""
    for kind in DECODERS:
        messages = refusals(f"decoder: {{type: {kind}, cell: gru_reset_first, layer_normalization: true}}")
        assert mentions(messages, "model.decoder.layer_normalization", "gru_reset_first", "use gru or lstm")
        cells = "encoder: {cell: gru_reset_first, layer_normalization: true}"
        assert refusals(f"{cells}, decoder: {{type: {kind}, cell: gru_reset_first}}") == []


def test_all_problems_in_one_report(refusals: Refusals) -> None:
    text = (
        "attention: {score: dot, scope: local-m, bias: true, renormalize: true, filters: 3}, "
        "encoder: {hidden_size: 100}, decoder: {type: conditional_gru, cell: lstm, input_feeding: false}"
    )
    messages = refusals(text)
    places = ["attention.score", "attention.bias", "attention.renormalize", "attention.filters"]
    places += ["decoder.cell", "decoder.input_feeding"]
    for place in places:
        assert sum(f"model.{place}:" in message for message in messages) == 1, (place, messages)
    assert len(messages) == len(places)


@pytest.mark.parametrize(
    ("family", "section", "key", "names"),
    [
        (CELLS, "encoder", "cell", "gru, gru_reset_first, lstm, toy"),
        (CELLS, "decoder", "cell", "gru, gru_reset_first, lstm, toy"),
        (SCOPES, "attention", "scope", "global, local-m, local-p, toy"),
        (INITIAL_STATES, "decoder", "initial_state", "final, mean, copy, forward, alternate, zeros, toy"),
    ],
)
def test_the_names_are_those_of_the_members(
    refusals: Refusals,
    monkeypatch: pytest.MonkeyPatch,
    family: dict[str, Any],
    section: str,
    key: str,
    names: str,
) -> None:
    """They stand nowhere else, so a new member can be named at once, and completed by editors."""
    monkeypatch.setitem(family, "toy", next(iter(family.values())))
    assert mentions(refusals(f"{section}: {{{key}: toi}}"), f"{section}.{key}: given 'toi'; nearest: toy", names)
    assert not any("given" in message for message in refusals(f"{section}: {{{key}: toy}}"))
    sections = json_schema({**FAMILIES, "metric": []})["$defs"]
    assert ", ".join(sections[f"{section.title()}Config"]["properties"][key]["enum"]) == names


# ------------------------------------------------------------------------------------------- taken, but with a warning


@pytest.mark.parametrize(
    ("changes", "warned"),
    [
        ({}, False),
        ({"initialization": {"range": 0.1}}, True),
        ({"initialization": {"range": 0.1}, "attention": {"score": "dot", "scope": "local-p"}}, True),
        ({"initialization": {"range": 0.4}}, False),
        ({"initialization": {"range": 0.1}, "decoder": {"type": "luong", "hidden_size": 512}}, False),
        ({"initialization": {"range": 0.1}, "decoder": {"type": "luong", "input_feeding": False}}, False),
        ({"initialization": {"range": 0.1}, "decoder": {"hidden_size": 128}}, False),
        ({"initialization": {"range": 0.1}, "attention": {"score": "scaled_general"}}, False),
        ({"initialization": {"name": "xavier"}}, False),
    ],
)
def test_a_start_with_scores_near_0(changes: dict[str, Any], warned: bool) -> None:
    model = {"attention": {"score": "general"}, "decoder": {"type": "luong", "hidden_size": 128}, **changes}
    warnings = start_warnings(ModelConfig.model_validate(model), TrainingConfig())
    assert len(warnings) == warned
    assert all("Leave model.initialization.range out" in warning for warning in warnings)


@pytest.mark.parametrize(
    ("attention", "optimizer", "warnings"),
    [
        ({"scope": "local-p"}, "sgd", 1),
        ({"scope": "local-p", "position_logit": "unscaled"}, "sgd", 0),
        ({"scope": "local-m"}, "sgd", 0),
        ({"scope": "local-p"}, "adam", 0),
        ({"scope": "local-p"}, "adadelta", 0),
    ],
)
def test_positions_that_hardly_move(attention: dict[str, str], optimizer: str, warnings: int) -> None:
    """A step of SGD, unlike one of the others, is as small as the gradient, which √d makes smaller twice."""
    model = ModelConfig.model_validate({"attention": attention, "decoder": {"type": "luong", "hidden_size": 1234}})
    found = start_warnings(model, TrainingConfig.model_validate({"optimizer": {"name": optimizer}}))
    begins = "model.attention.position_logit: scaled moves 1,234 times more slowly"
    assert [warning.partition(" than ")[0] for warning in found] == [begins] * warnings
