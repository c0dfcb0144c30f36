"""Models that the loader refuses, and what it says; everything else it takes."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest
import torch

from nmt.config import dump_config, json_schema, load_config, schema
from nmt.config.schema import ModelConfig, TrainingConfig
from nmt.errors import UserError
from nmt.models.cells import CELLS
from nmt.models.combinations import FAMILIES, model_problems, start_warnings
from nmt.models.decoders import DECODERS
from nmt.models.encoder import DIRECTIONS
from nmt.models.initial_state import INITIAL_STATES
from nmt.models.scopes import SCOPES
from nmt.models.scores import SCORES
from nmt.models.seq2seq import build_model

FILE = """
name: toy
data: {source_language: en, target_language: de, train: [{source: a, target: b}], valid: {source: c, target: d}}
training: {max_updates: 1}
"""
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
            load_config(path, checks=[model_problems], families=FAMILIES)
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
    """With every decoder and scope: these three are global only, and none is not for conditional_gru."""
    encoder = ONE_WAY.get(score, "")
    for decoder, scope in product(DECODERS, SCOPES):
        refused = (score in ("location", "fixed", "none") and scope != "global") + (
            (decoder, score) == ("conditional_gru", "none")
        )
        attention = f"attention: {{score: {score}, scope: {scope}}}"
        messages = refusals(f"{encoder}{attention}, decoder: {{type: {decoder}, {MEAN}}}")
        assert len(messages) == refused, (decoder, score, scope, messages)


# --------------------------------------------------------------------------------------------------------------- sizes


@pytest.mark.parametrize("score", SCORES)
def test_unequal_sizes(refusals: Refusals, score: str) -> None:
    """dot and its kin name both sizes and two ways out; for the other scores any sizes will do."""
    decoder = f"decoder: {{hidden_size: 300, {MEAN}}}"
    encoder = ONE_WAY.get(score, "encoder: {hidden_size: 100}, ")
    messages = refusals(f"attention: {{score: {score}}}, {encoder}{decoder}")
    if score not in ("dot", "scaled_dot", "cosine"):
        assert messages == []
        return
    ways = ("model.decoder.hidden_size: 200", "score: general")
    assert mentions(messages, "model.attention.score", score, "300 units", "200 units", *ways)


@pytest.mark.parametrize(
    "mended",
    [
        "encoder: {hidden_size: 100}, decoder: {hidden_size: 200}",
        "encoder: {directions: sum, hidden_size: 300}, decoder: {hidden_size: 300}",
        "encoder: {bidirectional: false, hidden_size: 300}, decoder: {hidden_size: 300}",
    ],
    ids=["decoder", "summed", "one direction"],
)
def test_equal_sizes(refusals: Refusals, mended: str) -> None:
    assert refusals(f"attention: {{score: dot}}, {mended}") == []


# -------------------------------------------------------------------------------------------------------------- values


@pytest.mark.parametrize("scope", ["local-m", "local-p"])
@pytest.mark.parametrize("half_width", ["0", "-3", "2.5"])
def test_half_width_is_at_least_1(refusals: Refusals, scope: str, half_width: str) -> None:
    messages = refusals(f"attention: {{scope: {scope}, half_width: {half_width}}}")
    assert mentions(messages, "model.attention.half_width", half_width, "at least 1")


@pytest.mark.parametrize("value", ["null", "3", "true", "[dot]"])
def test_a_score_that_is_no_name(refusals: Refusals, value: str) -> None:
    messages = refusals(f"attention: {{score: {value}}}")
    assert mentions(messages, "model.attention.score", "allowed: additive, concat")


@pytest.mark.parametrize("value", ["0", "-1.0", "true", "learnt", ".inf"])
def test_temperature_is_a_positive_number_or_learned(refusals: Refusals, value: str) -> None:
    messages = refusals(f"attention: {{score: cosine, temperature: {value}}}, {FITTING}")
    assert any("model.attention.temperature" in message and "learned" in message for message in messages), messages
    for allowed in ("1", "0.5", "learned"):
        assert refusals(f"attention: {{score: cosine, temperature: {allowed}}}, {FITTING}") == []


@pytest.mark.parametrize("width", ["4", "0", "-1"])
def test_filter_width_is_odd(refusals: Refusals, width: str) -> None:
    messages = refusals(f"attention: {{score: location_sensitive, filter_width: {width}}}")
    assert mentions(messages, "model.attention.filter_width", width, "an odd whole number, at least 1")
    assert refusals("attention: {score: location_sensitive, filter_width: 7}") == []


@pytest.mark.parametrize(
    ("text", "path", "written", "nearest"),
    [
        ("attention: {score: locationsensitive}", "model.attention.score", "locationsensitive", "location_sensitive"),
        ("attention: {scope: local_p}", "model.attention.scope", "local_p", "local-p"),
        ("decoder: {type: conditional-gru}", "model.decoder.type", "conditional-gru", "conditional_gru"),
        ("encoder: {directions: summed}", "model.encoder.directions", "summed", "sum"),
        ("attention: {half_with: 3}", "model.attention.half_with", "half_with", "half_width"),
    ],
)
def test_misspelt_names(refusals: Refusals, text: str, path: str, written: str, nearest: str) -> None:
    assert mentions(refusals(text), path, written, nearest)


# ------------------------------------------------------------------------------------------- what does not go together


@pytest.mark.parametrize("scope", ["local-m", "local-p"])
def test_local_scopes_need_a_score_of_content(refusals: Refusals, scope: str) -> None:
    for score in ("location", "fixed", "none"):
        encoder = ONE_WAY.get(score, "")
        messages = refusals(f"{encoder}attention: {{score: {score}, scope: {scope}}}, decoder: {{{MEAN}}}")
        assert mentions(messages, "model.attention.scope", scope, f"score: {score}", "use global", "additive")


def test_no_attention(refusals: Refusals) -> None:
    messages = refusals(f"attention: {{score: none}}, decoder: {{type: conditional_gru, {MEAN}}}")
    assert mentions(messages, "model.decoder.type", "conditional_gru", "none", "luong or bahdanau")
    messages = refusals("attention: {score: none}, decoder: {initial_state: zeros}")
    assert mentions(messages, "model.decoder.initial_state", "zeros", "none", "final, mean or copy")
    assert refusals("attention: {score: none}, decoder: {initial_state: mean}") == []


@pytest.mark.parametrize("score", ["none", "fixed"])
def test_without_attention_nothing_attends_in_an_order(refusals: Refusals, score: str) -> None:
    model = f"attention: {{score: {score}}}, encoder: {{bidirectional: false}}"
    messages = refusals(f"{model}, decoder: {{type: bahdanau, order: paper}}")
    assert mentions(messages, "model.decoder.order", "has no effect", f"score: {score}", "remove it")
    assert refusals(f"{model}, decoder: {{type: bahdanau}}") == []


def test_a_fixed_context_is_of_one_direction(refusals: Refusals) -> None:
    """The backward direction has read nothing but </s> there; an initial state of its own does not mend that."""
    for more in ("", f", decoder: {{{MEAN}}}", ", decoder: {initial_state: copy}"):
        messages = refusals(f"attention: {{score: fixed}}{more}")
        assert mentions(messages, "model.encoder.bidirectional", "score: fixed", "use false")
    for state in ("final", "mean", "zeros"):
        encoder = (
            "encoder: {bidirectional: false, output_dropout: 0.1, layer_normalisation: true, reverse_source: true}"
        )
        assert refusals(f"attention: {{score: fixed}}, {encoder}, decoder: {{initial_state: {state}}}") == []


@pytest.mark.parametrize("score", ["none", "fixed"])
def test_a_coverage_penalty_needs_attention(refusals: Refusals, score: str) -> None:
    model = f"attention: {{score: {score}}}, encoder: {{bidirectional: false}}}}\ndecoding: {{coverage_penalty: 0.2"
    assert mentions(refusals(model), "decoding.coverage_penalty", f"no effect with attention.score: {score}")


@pytest.mark.parametrize("score", ["none", "fixed", "general"])
def test_guided_alignment_needs_attention(tmp_path: Path, score: str) -> None:
    aligned = FILE.replace("target: b}", "target: b, alignments: x}")
    text = aligned.replace("max_updates: 1", "max_updates: 1, guided_alignment: {weight: 0.3}")
    path = tmp_path / "toy.yaml"
    model = f"model: {{attention: {{score: {score}}}, encoder: {{bidirectional: false}}}}\n"
    path.write_text(text + model, encoding="utf-8")
    if score == "general":
        assert load_config(path, checks=[model_problems]).training.guided_alignment is not None
        return
    with pytest.raises(UserError, match=f"training.guided_alignment: has no effect with attention.score: {score}"):
        load_config(path, checks=[model_problems])


def test_without_attention_a_final_state_reads_one_direction(refusals: Refusals) -> None:
    """The other one would be computed for nothing, and never learn."""
    messages = refusals("attention: {score: none}")
    assert mentions(messages, "model.encoder.bidirectional", "no effect", "score: none", "final", "mean or copy")
    assert refusals("attention: {score: none}, encoder: {bidirectional: false}") == []
    assert refusals("attention: {score: none}, decoder: {initial_state: copy}") == []
    assert refusals("attention: {score: none}, encoder: {layers: 2}") == []  # the lower layer's two are read
    summed = refusals("attention: {score: none}, encoder: {directions: sum}")
    assert mentions(summed, "model.encoder.bidirectional")  # and not a second time for the sum


@pytest.mark.parametrize("option", ["output_dropout: 0.1", "layer_normalisation: true", "directions: sum"])
@pytest.mark.parametrize("start", ["mean", "copy", "final"])
def test_without_attention_only_a_mean_state_reads_the_annotations(refusals: Refusals, option: str, start: str) -> None:
    """A copied state is of summed directions as well."""
    key = option.split(":")[0]
    hidden_size = 256 if (start, key) == ("copy", "directions") else 512
    decoder = f"decoder: {{initial_state: {start}, hidden_size: {hidden_size}, layers: 2}}"
    messages = refusals(f"attention: {{score: none}}, encoder: {{{option}, layers: 2}}, {decoder}")
    if start == "mean" or (start, key) == ("copy", "directions"):
        assert messages == []
    else:
        assert mentions(messages, f"model.encoder.{key}", "no effect", "none", start)


def test_conditional_gru_is_of_grus(refusals: Refusals) -> None:
    messages = refusals("decoder: {type: conditional_gru, cell: lstm}")
    assert mentions(messages, "model.decoder.cell", "lstm", "conditional_gru", "allowed: gru")
    assert refusals("decoder: {type: conditional_gru, layers: 2}, encoder: {cell: lstm}") == []


# --------------------------------------------------------------------- options without an effect, and all at once

OPTIONS: dict[str, Any] = {
    "size": 9,
    "bias": "true",
    "coverage": "true",
    "positions": 9,
    "filters": 9,
    "filter_width": 9,
}
OPTIONS["temperature"] = 9.0
TAKERS = {
    "temperature": {"cosine"},
    "size": {"additive", "concat", "location_sensitive"},
    "bias": {"additive", "location_sensitive"},
    "coverage": {"additive", "concat", "location_sensitive"},
    "positions": {"location"},
    "filters": {"location_sensitive"},
    "filter_width": {"location_sensitive"},
}


@pytest.mark.parametrize("score", SCORES)
def test_options_of_another_score(refusals: Refusals, score: str) -> None:
    """Each option with each score: taken or refused, and all refusals in one report."""
    encoder = ONE_WAY.get(score, "")
    wrong = [option for option, takers in TAKERS.items() if score not in takers]
    for option, value in OPTIONS.items():
        messages = refusals(f"{encoder}attention: {{score: {score}, {option}: {value}}}, decoder: {{{MEAN}}}")
        if option in wrong:
            takers = " or ".join(name for name in SCORES if name in TAKERS[option])
            assert mentions(messages, f"model.attention.{option}: has no effect with score: {score};", f"use {takers}")
        else:
            assert messages == []
    everything = ", ".join(f"{option}: {value}" for option, value in OPTIONS.items())
    assert len(refusals(f"{encoder}attention: {{score: {score}, {everything}}}, decoder: {{{MEAN}}}")) == len(wrong)


@pytest.mark.parametrize("option", ["positions: 101", "filters: 10", "filter_width: 5", "half_width: 10"])
def test_an_option_that_is_given_as_its_default(refusals: Refusals, option: str) -> None:
    """Who writes D = 10 and forgets the scope would train global attention; with a scope it is as good as nothing."""
    name = option.split(":")[0]
    family, default = ("scope", "global") if name == "half_width" else ("score", "additive")
    assert mentions(
        refusals(f"attention: {{{option}}}"), f"model.attention.{name}", f"no effect with {family}: {default}"
    )
    assert refusals(f"attention: {{{family}: {default}, {option}}}") == []


def test_options_that_are_off(refusals: Refusals) -> None:
    assert refusals("attention: {renormalise: false, bias: false, coverage: false, size: null}") == []


def test_a_resolved_configuration_loads(tmp_path: Path) -> None:
    """It spells out every option; one that has another value than its default is refused there as well."""
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text(FILE, encoding="utf-8")
    config = load_config(first, checks=[model_problems])
    second.write_text(dump_config(config), encoding="utf-8")
    assert load_config(second, checks=[model_problems]) == config
    with pytest.raises(UserError, match="half_width=9: has no effect with scope: global"):
        load_config(second, ["model.attention.half_width=9"], checks=[model_problems])


def test_options_of_another_scope(refusals: Refusals) -> None:
    assert mentions(refusals("attention: {half_width: 5}"), "half_width", "scope: global", "use local-m or local-p")
    assert mentions(refusals("attention: {renormalise: true}"), "renormalise", "scope: global", "local-p")
    messages = refusals("attention: {scope: local-m, renormalise: true}")
    assert mentions(messages, "renormalise", "scope: local-m", "use local-p")
    assert refusals("attention: {scope: local-m, half_width: 5, gaussian: true}") == []
    assert refusals("attention: {scope: local-p, half_width: 5, renormalise: true, position_scale: length}") == []
    assert mentions(
        refusals("attention: {scope: local-p, gaussian: true}"), "gaussian", "scope: local-p", "use local-m"
    )
    messages = refusals("attention: {scope: local-m, position_scale: length}")
    assert mentions(messages, "position_scale", "scope: local-m", "use local-p")
    messages = refusals("attention: {position_logit: unscaled}")
    assert mentions(messages, "position_logit", "scope: global", "use local-p")


@pytest.mark.parametrize(
    ("option", "owner"),
    [("order: paper", "bahdanau"), ("input_feeding: false", "luong"), ("fed_dropout: 0.2", "luong")],
)
def test_options_of_another_decoder(refusals: Refusals, option: str, owner: str) -> None:
    for decoder in DECODERS.keys() - {owner}:
        messages = refusals(f"decoder: {{type: {decoder}, {option}}}")
        assert mentions(messages, f"model.decoder.{option.split(':')[0]}", f"no effect with type: {decoder}", owner)
    assert refusals(f"decoder: {{type: {owner}, {option}}}") == []


def test_input_feeding_without_a_decoder(refusals: Refusals) -> None:
    """Who asks for it means Luong's, not the default; off, it is what the default has."""
    messages = refusals("decoder: {input_feeding: true, fed_dropout: 0.0}")
    assert mentions(messages, "model.decoder.input_feeding", "type: bahdanau; leave it out, or use luong")
    for decoder in ("fed_dropout: 0.0", "type: bahdanau, input_feeding: true", "type: luong, input_feeding: true"):
        assert refusals(f"decoder: {{{decoder}}}") == []


def test_layer_normalisation_of_a_reset_gate_that_comes_first(refusals: Refusals) -> None:
    """In the cells of the decoder; that of the annotations is another thing."""
    for kind in DECODERS:
        messages = refusals(f"decoder: {{type: {kind}, cell: gru_reset_first, layer_normalisation: true}}")
        assert mentions(messages, "model.decoder.layer_normalisation", "gru_reset_first", "use gru or lstm")
        cells = "encoder: {cell: gru_reset_first, layer_normalisation: true}"
        assert refusals(f"{cells}, decoder: {{type: {kind}, cell: gru_reset_first}}") == []


@pytest.mark.parametrize(
    ("model", "key", "words"),
    [
        ("decoder: {initial_state: copy, layers: 2}", "decoder.initial_state", "model.decoder.layers: 1 (now 2)"),
        (
            "encoder: {cell: lstm, hidden_size: 96}, decoder: {initial_state: copy}",
            "decoder.initial_state",
            "set model.decoder.cell: lstm (now gru), model.decoder.hidden_size: 192 (now 512), or use final",
        ),
        (
            "encoder: {directions: sum, hidden_size: 100}, decoder: {initial_state: copy}",
            "decoder.initial_state",
            "set model.decoder.hidden_size: 100 (now 512)",
        ),
        ("decoder: {initial_state: forward}", "decoder.initial_state", "model.decoder.hidden_size: 256 (now 512)"),
        (
            "encoder: {directions: sum}, decoder: {initial_state: forward, hidden_size: 256}",
            "encoder.directions",
            "sum does not go with decoder.initial_state: forward",
        ),
        ("decoder: {initial_state: alternate, hidden_size: 256}", "decoder.initial_state", "layers: 2 (now 1)"),
        (
            "encoder: {bidirectional: false}, decoder: {initial_state: alternate, hidden_size: 256, layers: 2}",
            "encoder.bidirectional",
            "alternate, which needs two directions",
        ),
        (
            "attention: {score: none}, decoder: {initial_state: forward, hidden_size: 256}",
            "encoder.bidirectional",
            "true has no effect with attention.score: none and initial_state: forward",
        ),
        ("initialisation: {forget_bias: 1}", "initialisation.forget_bias", "1 has no effect"),
    ],
)
def test_states_that_are_taken_as_they_are(refusals: Refusals, model: str, key: str, words: str) -> None:
    assert mentions(refusals(model), f"model.{key}", words)


@pytest.mark.parametrize(
    "model",
    [
        "decoder: {initial_state: forward, hidden_size: 256, layers: 3, cell: lstm}",
        "encoder: {bidirectional: false}, decoder: {initial_state: forward, hidden_size: 256}",
        "decoder: {initial_state: alternate, hidden_size: 256, layers: 2}",
        "decoder: {initial_state: copy}",
        "encoder: {bidirectional: false}, decoder: {initial_state: copy, hidden_size: 256}",
        "encoder: {directions: sum, hidden_size: 100}, decoder: {initial_state: copy, hidden_size: 100}",
        "initialisation: {forget_bias: 1}, decoder: {cell: lstm}",
    ],
)
def test_states_that_fit(refusals: Refusals, model: str) -> None:
    assert refusals(model) == []


def test_all_problems_in_one_report(refusals: Refusals) -> None:
    text = (
        "attention: {score: dot, scope: local-m, bias: true, renormalise: true, filters: 3}, "
        "encoder: {hidden_size: 100}, decoder: {type: conditional_gru, cell: lstm, input_feeding: false}"
    )
    messages = refusals(text)
    places = ["attention.score", "attention.bias", "attention.renormalise", "attention.filters"]
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


def test_the_directions_of_the_schema_are_those_of_the_encoder() -> None:
    assert [*DIRECTIONS] == [*get_args(schema.DirectionsName)]


def test_unknown_names_come_with_all_that_is_wrong_with_single_keys(refusals: Refusals) -> None:
    messages = refusals("attention: {score: dott, half_width: 0}, decoder: {type: luon, initial_state: zero}")
    keys = ["attention.half_width", "attention.score", "decoder.initial_state", "decoder.type"]
    assert sorted(message.split(": ")[1] for message in messages) == [f"model.{key}" for key in keys]


# ------------------------------------------------------------------------------------------- taken, but with a warning


@pytest.mark.parametrize(
    ("changes", "warned"),
    [
        ({}, True),
        ({"initialisation": {"name": "uniform"}}, True),  # ±0.1 is the default
        ({"initialisation": {"name": "uniform", "range": 0.05}}, True),
        ({"attention": {"score": "general", "scope": "local-p"}}, True),
        ({"decoder": {"type": "luong", "hidden_size": 499, "cell": "lstm"}}, True),
        ({"decoder": {"type": "luong", "hidden_size": 500}}, False),
        ({"decoder": {"type": "luong", "hidden_size": 128, "input_feeding": False}}, False),
        ({"decoder": {"hidden_size": 128, "type": "bahdanau"}}, False),
        ({"attention": {"score": "dot"}}, False),
        ({"attention": {"score": "scaled_general"}}, False),
        ({"initialisation": {"name": "uniform", "range": 0.11}}, False),
        ({"initialisation": {"name": "xavier"}}, False),
    ],
)
def test_a_start_with_scores_near_0(changes: dict[str, Any], warned: bool) -> None:
    model = {"attention": {"score": "general"}, "decoder": {"type": "luong", "hidden_size": 128}, **changes}
    warnings = start_warnings(ModelConfig.model_validate(model), TrainingConfig())
    assert len(warnings) == warned
    for warning in warnings:
        ways = ("initialisation.range: 0.2", "attention.score: scaled_general", "decoder.input_feeding: false")
        assert all(way in warning for way in ways)


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


@pytest.mark.parametrize("cell", CELLS)
def test_that_start_does_have_scores_near_0(cell: str) -> None:
    """The standard deviation of a sentence's scores, with as many units on both sides of the limit, and ways out."""

    def spread(size: int, *, start: float = 0.1) -> float:
        sizes = {
            "embedding_size": size,
            "initialisation": {"name": "uniform", "range": start},
            "encoder": {"hidden_size": size // 2, "cell": cell},
            "attention": {"score": "general"},
            "decoder": {"type": "luong", "hidden_size": size, "cell": cell, "initial_state": "copy"},
        }
        torch.manual_seed(1)
        model = build_model(ModelConfig.model_validate(sizes), source_size=50, target_size=50).eval()
        seen: list[torch.Tensor] = []
        model.decoder.attention.score.register_forward_hook(lambda module, inputs, scores: seen.append(scores))
        source, target = torch.randint(4, 50, (2, 5, 12))
        with torch.no_grad():
            model(source, torch.full((5,), 12), target)
        return float(torch.cat([scores.flatten(0, -2) for scores in seen]).std(dim=1).mean())

    small, larger, paper = spread(128), spread(512), spread(1000)
    assert small < 0.01
    assert larger > 10 * small
    assert paper > 0.2
    assert spread(128, start=0.2) > 10 * small
