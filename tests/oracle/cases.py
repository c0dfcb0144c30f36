"""Which models the oracle is compared with: of every two options, every two values that go together.

A case has one value of each of FACTORS. The product of all has some hundred million cases, and mistakes come from two
options that do not go together as they should far more often than from three, so `pairs_of_values` takes so few cases
that each pair of values is in one of them. `product` has every combination of the options with the most equations.
"""

import random
from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

Case = dict[str, str]  # factor → the name of its value
Changes = dict[str, Any]

SOURCE_SIZE, TARGET_SIZE = 11, 13  # vocabularies
EMBEDDING, ENCODER_HIDDEN, DECODER_HIDDEN, SCORE_SIZE, OUTPUT = 5, 3, 7, 8, 4

INITIAL_STATES = ("final", "mean", "copy", "forward", "alternate", "zeros")

# Factor → name of a value → what it sets in the section `model`, by key.
FACTORS: dict[str, dict[str, Changes]] = {
    "score": {
        "additive": {"attention.score": "additive", "attention.size": SCORE_SIZE},
        "additive, bias": {"attention.score": "additive", "attention.size": SCORE_SIZE, "attention.bias": True},
        "additive, coverage": {"attention.score": "additive", "attention.coverage": True},
        "concat": {"attention.score": "concat"},
        "concat, coverage": {"attention.score": "concat", "attention.size": SCORE_SIZE, "attention.coverage": True},
        "dot": {"attention.score": "dot"},
        "scaled_dot": {"attention.score": "scaled_dot"},
        "general": {"attention.score": "general"},
        "scaled_general": {"attention.score": "scaled_general"},
        "cosine, learned": {"attention.score": "cosine", "attention.temperature": "learned"},
        "cosine": {"attention.score": "cosine", "attention.temperature": 1.0},
        "cosine, 2.5": {"attention.score": "cosine", "attention.temperature": 2.5},
        "location": {"attention.score": "location", "attention.positions": 4},
        "location_sensitive": {
            "attention.score": "location_sensitive",
            "attention.filters": 2,
            "attention.filter_width": 3,
        },
        "location_sensitive, bias, coverage": {
            "attention.score": "location_sensitive",
            "attention.size": SCORE_SIZE,
            "attention.filters": 3,
            "attention.filter_width": 5,
            "attention.bias": True,
            "attention.coverage": True,
        },
        "fixed": {"attention.score": "fixed"},
        "none": {"attention.score": "none"},
    },
    "scope": {
        "global": {"attention.scope": "global"},
        "local-m": {"attention.scope": "local-m", "attention.half_width": 1},
        "local-m, gaussian": {"attention.scope": "local-m", "attention.half_width": 2, "attention.gaussian": True},
        "local-p": {"attention.scope": "local-p", "attention.half_width": 2},
        "local-p, unscaled": {
            "attention.scope": "local-p",
            "attention.half_width": 2,
            "attention.position_logit": "unscaled",
        },
        "local-p, length": {
            "attention.scope": "local-p",
            "attention.half_width": 1,
            "attention.position_scale": "length",
        },
        "local-p, renormalized": {
            "attention.scope": "local-p",
            "attention.half_width": 1,
            "attention.renormalize": True,
        },
        "local-p, length, renormalized": {
            "attention.scope": "local-p",
            "attention.half_width": 2,
            "attention.position_scale": "length",
            "attention.renormalize": True,
        },
    },
    "decoder": {
        "luong": {"decoder.type": "luong"},
        "luong, no feeding": {"decoder.type": "luong", "decoder.input_feeding": False},
        "luong, linear": {"decoder.type": "luong", "decoder.attentional_activation": "none"},
        "bahdanau, paper": {"decoder.type": "bahdanau", "decoder.order": "paper"},
        "bahdanau, authors": {"decoder.type": "bahdanau", "decoder.order": "authors"},
        "bahdanau": {"decoder.type": "bahdanau"},  # where no state attends, and there is only one order
        "conditional_gru": {"decoder.type": "conditional_gru"},
    },
    "decoder cell": {name: {"decoder.cell": name} for name in ("gru", "gru_reset_first", "lstm")},
    "decoder layers": {
        "1": {"decoder.layers": 1},
        "2": {"decoder.layers": 2},
        "2, residual": {"decoder.layers": 2, "decoder.residual": True},
        "3, residual": {"decoder.layers": 3, "decoder.residual": True},
    },
    "decoder normalization": {"no": {}, "yes": {"decoder.layer_normalization": True}},
    "initial state": {name: {"decoder.initial_state": name} for name in INITIAL_STATES},
    "encoder cell": {name: {"encoder.cell": name} for name in ("gru", "gru_reset_first", "lstm")},
    "encoder layers": {
        "1": {"encoder.layers": 1},
        "2": {"encoder.layers": 2},
        "2, residual": {"encoder.layers": 2, "encoder.residual": True},
        "3, residual": {"encoder.layers": 3, "encoder.residual": True},
    },
    "directions": {
        "one": {"encoder.bidirectional": False},
        "concatenate": {"encoder.bidirectional": True, "encoder.directions": "concatenate"},
        "sum": {"encoder.bidirectional": True, "encoder.directions": "sum"},
    },
    "reversed": {"no": {}, "yes": {"encoder.reverse_source": True}},
    "end mark": {"read": {}, "not read": {"encoder.end_mark": False}},
    "encoder normalization": {"no": {}, "yes": {"encoder.layer_normalization": True}},
    "output": {
        "as hidden": {},
        "own size": {"decoder.output_size": OUTPUT},
        "tied to target": {"tie_embeddings": "target", "decoder.output_size": EMBEDDING},
        "all tied": {"tie_embeddings": "all", "decoder.output_size": EMBEDDING},
    },
}
FIRST: Case = {factor: next(iter(values)) for factor, values in FACTORS.items()}
SAME_SIZE = ("dot", "scaled_dot", "cosine")  # scores of vectors as large as an annotation
GLOBAL_ONLY = ("location", "fixed", "none")  # scores that look at no window
NO_STATE_ATTENDS = ("fixed", "none")
ORDERS = ("bahdanau, paper", "bahdanau, authors")
ATTENDING = [decoder for decoder in FACTORS["decoder"] if decoder != "bahdanau"]


def settings(case: Case) -> Changes:
    """The section `model` of the configuration of a case, without the keys that keep their defaults."""
    score = case["score"].split(",")[0]
    annotation = ENCODER_HIDDEN * (2 if case["directions"] == "concatenate" else 1)
    hidden = {"forward": ENCODER_HIDDEN, "alternate": ENCODER_HIDDEN}.get(case["initial state"], DECODER_HIDDEN)
    hidden = annotation if score in SAME_SIZE or case["initial state"] == "copy" else hidden
    model: Changes = {
        "embedding_size": EMBEDDING,
        "encoder": {"hidden_size": ENCODER_HIDDEN},
        "attention": {},
        "decoder": {"hidden_size": hidden},
    }
    for factor, name in case.items():
        for key, value in FACTORS[factor][name].items():
            section, _, last = key.rpartition(".")
            (model[section] if section else model)[last] = value
    return model


def goes_together(case: Case) -> bool:
    """Whether docs/models.md allows a case; factors that it does not have may have any value."""
    score, decoder = case.get("score", "").split(",")[0], case.get("decoder", "")
    layers = [case[f"{side} layers"][0] for side in ("encoder", "decoder") if f"{side} layers" in case]
    cells = [case[f"{side} cell"] for side in ("encoder", "decoder") if f"{side} cell" in case]
    state, directions = case.get("initial state"), case.get("directions", "one")
    refused = (
        score in GLOBAL_ONLY and case.get("scope", "global") != "global",
        decoder == "conditional_gru" and (score == "none" or case.get("decoder cell") == "lstm"),
        decoder == "bahdanau" and (score not in ("", *NO_STATE_ATTENDS) or case.get("scope", "global") != "global"),
        decoder in ORDERS and score in NO_STATE_ATTENDS,
        score == "fixed" and case.get("directions", "one") != "one",
        # Without attention, s_0 alone reads the source: every part of the encoder must matter to it.
        score == "none" and state == "zeros",
        score == "none"
        and state in ("final", "forward")
        and directions != "one"
        and case.get("encoder layers", "2") == "1",
        score == "none"
        and state in ("final", "copy", "forward", "alternate")
        and case.get("encoder normalization", "no") == "yes",
        score == "none" and state == "final" and case.get("directions") == "sum",
        case.get("decoder normalization") == "yes" and case.get("decoder cell") == "gru_reset_first",
        state == "copy" and (len(set(layers)) > 1 or len(set(cells)) > 1),
        # States of single directions: as large as the encoder's, and two layers for one of two directions.
        state in ("forward", "alternate") and directions == "sum",
        state == "forward" and score in SAME_SIZE and directions == "concatenate",
        state == "alternate" and (score in (*SAME_SIZE, "fixed") or case.get("directions") == "one"),
        state == "alternate" and (case.get("encoder layers", "1") != "1" or case.get("decoder layers", "2")[0] != "2"),
        state == "alternate" and len(set(cells)) > 1,
    )
    return not any(refused)


def pairs_of_values(seed: int = 14) -> list[Case]:
    """Cases that have every two values of two factors that go together; of 25 seeds this one has the fewest."""
    draw = random.Random(seed)
    values = [(factor, value) for factor, named in FACTORS.items() for value in named]
    missing = {pair for pair in combinations(values, 2) if pair[0][0] != pair[1][0] and goes_together(dict(pair))}
    cases = []
    for pair in combinations(values, 2):
        if pair not in missing:
            continue
        candidates = [case for _ in range(40) if (case := completed(dict(pair), draw)) is not None]
        if candidates:
            best = max(candidates, key=lambda case: len(missing & set(pairs(case))))
            cases.append(best)
            missing -= set(pairs(best))
    return cases


def pairs(case: Case) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """The pairs of values in a case, in the order of FACTORS."""
    return combinations([(factor, case[factor]) for factor in FACTORS], 2)


def completed(case: Case, draw: random.Random) -> Case | None:
    """A whole case with the values of this one; None if the draw leads nowhere."""
    others = [factor for factor in FACTORS if factor not in case]
    for factor in draw.sample(others, len(others)):
        values = draw.sample([*FACTORS[factor]], len(FACTORS[factor]))
        value = next((value for value in values if goes_together({**case, factor: value})), None)
        if value is None:
            return None
        case = {**case, factor: value}
    return {factor: case[factor] for factor in FACTORS}


def whole_product(*factors: str, seed: int = 1) -> Iterator[Case]:
    """Every combination of the values of these factors that goes together, with drawn values of the others."""
    draw = random.Random(seed)
    for values in product(*(FACTORS[factor] for factor in factors)):
        some = dict(zip(factors, values, strict=True))
        if goes_together(some):
            tries = (completed(some, draw) for _ in range(100))
            yield next(case for case in tries if case is not None)


def name(case: Case) -> str:
    return "; ".join(f"{factor}: {value}" for factor, value in case.items())


CASES = {name(case): case for case in pairs_of_values()}

# Ways to search, by the keys of the section `decoding`.
DECODING: dict[str, Changes] = {
    "greedy": {"beam_size": 1},
    "greedy, at least 6": {"beam_size": 1, "minimum_length": 6},
    "3, average": {"beam_size": 3},
    "5, none": {"beam_size": 5, "length_penalty": "none"},
    "5, 0.6": {"beam_size": 5, "length_penalty": 0.6},
    "3, ratio 1.1": {"beam_size": 3, "minimum_length_ratio": 1.1},
    "5, ratio 2, none": {"beam_size": 5, "minimum_length_ratio": 2.0, "length_penalty": "none"},
    "3, at least 4 or ratio 1.5": {"beam_size": 3, "minimum_length": 4, "minimum_length_ratio": 1.5},
    "5, as long as may be": {"beam_size": 5, "minimum_length": 1000, "max_length_ratio": 0.3},
    "5, at most 4": {"beam_size": 5, "max_length_ratio": 0.0, "max_length_extra": 4},
    "3, ratio 1.2 and nothing more": {"beam_size": 3, "max_length_ratio": 1.2, "max_length_extra": 0},
    "3, ratio 0.1 and nothing more": {"beam_size": 3, "max_length_ratio": 0.1, "max_length_extra": 0},
    "3, no bigram twice": {"beam_size": 3, "no_repeat_ngram_size": 2, "minimum_length": 5},
    "3, no word twice, nothing left": {"beam_size": 3, "no_repeat_ngram_size": 1, "minimum_length": 1000},
    "5, no unknown": {"beam_size": 5, "suppress_unknown": True, "minimum_length": 3},
    "3, coverage": {"beam_size": 3, "coverage_penalty": 0.3, "length_penalty": 1.0, "minimum_length": 2},
}
ALIGNMENT_STEPS = ("this", "next")
