"""Every model against the oracle, to 1e-9: what it says, where it looks, and the gradient of every weight."""

from collections.abc import Sequence
from functools import cache
from itertools import cycle

import numpy as np
import pytest
import torch

from nmt.config.schema import AlignmentStep, TrainingConfig
from nmt.decoding.forced import forced_decoding
from nmt.decoding.scorer import Scorer
from nmt.training.optim import SGD
from nmt.training.update import update
from tests.oracle.cases import (
    ALIGNMENT_STEPS,
    CASES,
    FACTORS,
    GLOBAL_ONLY,
    Case,
    name,
    whole_product,
)
from tests.oracle.equations import Model, Step
from tests.oracle.losses import cross_entropy
from tests.oracle.package import BEGIN, END, SOURCES, STEP, TARGETS, Sides, batch, close, direction, gradients, sides

SMOOTHING = 0.1


@pytest.mark.parametrize(
    ("case", "alignment_step"), list(zip(CASES.values(), cycle(ALIGNMENT_STEPS), strict=False)), ids=[*CASES]
)
def test_every_two_options(case: Case, alignment_step: AlignmentStep) -> None:
    both = sides(case)
    moved = moved_oracle_says(both)
    said = real_parts(moved)
    compare_all_steps_at_once(both, said)
    compare_step_by_step(both, said)
    if case["score"] not in ("none", "fixed"):
        compare_alignments(both, said, alignment_step)
    compare_gradients(both, moved, "fused", "plain")


PRODUCT_OF = ("score", "scope", "decoder", "decoder cell")


@cache
def whole() -> list[Case]:
    """Of those that differ in their cells alone, one: another for the next score, scope, or decoder."""
    cases = []
    for one in whole_product(*PRODUCT_OF):
        place = sum(list(FACTORS[factor]).index(one[factor]) for factor in PRODUCT_OF)
        if place % (2 if one["decoder"] == "conditional_gru" else 3) == 0 or one["score"] in GLOBAL_ONLY:
            cases.append(one)
    return cases


@pytest.mark.slow
@pytest.mark.parametrize("score", FACTORS["score"])
def test_every_scope_cell_and_decoder_of_a_score(score: str) -> None:
    cases = [case for case in whole() if case["score"] == score]
    assert len({case["decoder"] for case in cases}) >= (1 if score in GLOBAL_ONLY else 6)
    for case in cases:
        both = sides(case)
        moved = moved_oracle_says(both)
        compare_all_steps_at_once(both, real_parts(moved))
        compare_gradients(both, moved, "fused", title=name(case))


def moved_oracle_says(both: Sides) -> list[list[Step]]:
    """What the oracle says where every weight is moved in a direction of its own, so little that real parts stay."""
    weights = {key: weight + 1j * STEP * direction(weight) for key, weight in both.weights.items()}
    oracle = Model(weights, both.settings)
    return [oracle.forced([*source, END], [BEGIN, *target]) for source, target in zip(SOURCES, TARGETS, strict=True)]


def real_parts(said: Sequence[Sequence[Step]]) -> list[list[Step]]:
    return [
        [step._replace(log_probabilities=step.log_probabilities.real, weights=step.weights.real) for step in steps]
        for steps in said
    ]


def compare_all_steps_at_once(both: Sides, said: Sequence[Sequence[Step]]) -> None:
    padded = batch()
    with torch.no_grad():
        outputs = both.model(padded.source, padded.source_lengths, padded.target_input)
        log_probabilities = both.model.log_probabilities(outputs.vectors)
    for row, steps in enumerate(said):
        length, expected = len(steps), [step.weights for step in steps]
        close(log_probabilities[row, :length], [step.log_probabilities for step in steps])
        close(outputs.weights[row, :length, : len(expected[0])], expected)


def compare_step_by_step(both: Sides, said: Sequence[Sequence[Step]]) -> None:
    padded = batch()
    with torch.no_grad():
        state = both.model.start(padded.source, padded.source_lengths)
        for t, tokens in enumerate(padded.target_input.unbind(1)):
            log_probabilities, state = both.model.step(tokens, state)
            for row, steps in enumerate(said):
                if t < len(steps):
                    close(log_probabilities[row], steps[t].log_probabilities)


def compare_alignments(both: Sides, said: Sequence[Sequence[Step]], alignment_step: AlignmentStep) -> None:
    """The attention of each target word to the source words: a_t, or a_{t+1} of the step that reads the word."""
    pairs = list(zip(SOURCES, TARGETS, strict=True))
    later = ALIGNMENT_STEPS.index(alignment_step)
    scorer = Scorer([both.model])
    results = forced_decoding(scorer, pairs, batch_tokens=100, attention=True, alignment_step=alignment_step)
    for (source, target), steps, result in zip(pairs, said, results, strict=True):
        total = sum(step.log_probabilities[word] for step, word in zip(steps, [*target, END], strict=True))
        close(result.log_probability, total)
        attended = [steps[t + later].weights for t in range(len(target))]
        close(result.weights, [np.pad(row, (0, len(source) + 1 - len(row))) for row in attended])  # END, if read


def compare_gradients(both: Sides, moved: Sequence[Sequence[Step]], *kernels: str, title: str = "") -> None:
    """The derivative of the loss where all weights are moved, each in a direction of its own, by each of `kernels`."""
    loss = sum(cross_entropy(steps, [*target, END], SMOOTHING) for steps, target in zip(moved, TARGETS, strict=True))
    model = both.model.train()
    for kind in kernels:
        settings = {"max_updates": 1, "label_smoothing": SMOOTHING, "normalize_by": "none", "kernels": kind}
        config = TrainingConfig.model_validate(settings)
        update(model, SGD(model.parameters()), [batch()], rate=0.0, config=config)
        along = sum((gradient * direction(both.weights[key])).sum() for key, gradient in gradients(model).items())
        np.testing.assert_allclose(along, np.imag(loss) / STEP, rtol=1e-9, atol=1e-11, err_msg=f"{kind}: {title}")
