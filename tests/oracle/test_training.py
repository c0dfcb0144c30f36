"""What training minimizes against the oracle, to 1e-9: label smoothing, guided alignment, what the sum is divided by,
and word dropout."""

from itertools import cycle, product
from typing import get_args

import numpy as np
import pytest
import torch

from nmt.config.schema import TrainingConfig
from nmt.data.alignments import piece_links
from nmt.data.batch import PieceLinks, make_batch
from nmt.training.objective import batch_loss
from nmt.training.optim import SGD
from nmt.training.update import update
from tests.oracle.cases import ATTENDING, CASES, FACTORS, FIRST, NO_STATE_ATTENDS, Case
from tests.oracle.equations import Model, Vector
from tests.oracle.losses import cross_entropy, guidance, guided
from tests.oracle.package import BEGIN, END, SOURCES, STEP, TARGETS, batch, close, direction, gradients, sides

SMOOTHING, GUIDANCE = 0.1, 0.7
DIVISORS = {"tokens": sum(len(target) + 1 for target in TARGETS), "sentences": len(TARGETS), "none": 1}
# Of each pair: the words that the pieces of the source and of the target belong to, and the links of words. Their
# shares are powers of 2, which float32 has without rounding.
ALIGNED = [
    ([0, 0, 1, 2, 3, 3], [0, 1, 1, 2], [(0, 0), (1, 1), (3, 1)]),
    ([0, 1, 1], [0, 0], [(1, 0)]),
    ([], [0], []),
]


GUIDED = {
    title: case
    for title, case in CASES.items()
    if case["score"] not in NO_STATE_ATTENDS and case["end mark"] == "read"  # guidance has a column for the end
}


def test_divisors_are_all_there_are() -> None:
    assert set(get_args(TrainingConfig.model_fields["normalize_by"].annotation)) == set(DIVISORS)


@pytest.mark.parametrize(
    ("decoder", "normalize_by", "scope"),
    [(*one, scope) for one, scope in zip(product(ATTENDING, DIVISORS), cycle(FACTORS["scope"]))],
)
def test_guided_alignment(decoder: str, normalize_by: str, scope: str) -> None:
    compare_guided({**FIRST, "decoder": decoder, "scope": scope}, normalize_by)


@pytest.mark.slow
@pytest.mark.parametrize("case", GUIDED.values(), ids=GUIDED)
def test_guided_alignment_with_other_options(case: Case) -> None:
    """The loss of guided alignment alone has a gradient that goes through attention and nothing behind it."""
    compare_guided(case, "none")


def compare_guided(case: Case, normalize_by: str) -> None:
    """The objective of an update, and its derivative in one direction that moves every weight."""
    both = sides(case)
    padded = batch()._replace(links=links())
    result = batch_loss(both.model, padded, smoothing=SMOOTHING, guidance=GUIDANCE)
    close(result.objective.detach(), objective(both.oracle(), GUIDANCE))
    close(result.guided, objective(both.oracle(), 1.0) - objective(both.oracle(), 0.0))

    settings = {
        "max_updates": 1,
        "label_smoothing": SMOOTHING,
        "guided_alignment": {"weight": GUIDANCE},
        "normalize_by": normalize_by,
    }
    config = TrainingConfig.model_validate(settings)
    optimizer = SGD(both.model.parameters())
    update(both.model.train(), optimizer, [padded], rate=0.0, config=config)
    moved = {name: direction(weight) for name, weight in both.weights.items()}
    weights = {name: weight + 1j * STEP * moved[name] for name, weight in both.weights.items()}
    derivative = objective(Model(weights, both.settings), GUIDANCE).imag / STEP / DIVISORS[normalize_by]
    close(sum((gradient * moved[name]).sum() for name, gradient in gradients(both.model).items()), derivative)


def objective(oracle: Model, weight: float) -> Vector:
    """Summed over the words of all pairs."""
    total = np.zeros(())
    for source, target, (source_words, target_words, word_links) in zip(SOURCES, TARGETS, ALIGNED, strict=True):
        said = oracle.forced([*source, END], [BEGIN, *target])
        shares = guidance(word_links, source_words, target_words, (len(target) + 1, len(source) + 1))
        total = total + cross_entropy(said, [*target, END], SMOOTHING) + weight * guided(said, shares)
    return total


def links() -> PieceLinks:
    """Those of ALIGNED, as the package makes them."""
    linked = [
        (row, *link)
        for row, (source, target, word_links) in enumerate(ALIGNED)
        for link in piece_links(word_links, source, target)
    ]
    rows, targets, sources, shares = zip(*linked, strict=True)
    return PieceLinks(*(torch.tensor(ids) for ids in (rows, targets, sources)), torch.tensor(shares))


@pytest.mark.parametrize("is_reversed", FACTORS["reversed"])
@pytest.mark.parametrize("decoder", ATTENDING)
def test_word_dropout(decoder: str, is_reversed: str) -> None:
    """One set of dropped words, of all that there are, explains what a model in training says."""
    rates = {"encoder": 0.4, "decoder": 0.3}
    both = sides(
        {**FIRST, "decoder": decoder, "reversed": is_reversed},
        **{side: {"word_dropout": rate} for side, rate in rates.items()},
    )
    source, target = [10, 5], [4, 9]
    one = make_batch([source], [target], np.arange(1))
    sets = list(product(*[[0.0, 1 / (1 - rates[side])] for side in ("encoder",) * 3 + ("decoder",) * 3]))
    oracle = both.oracle()
    said = np.array(
        [
            [
                step.log_probabilities
                for step in oracle.forced([*source, END], [BEGIN, *target], kept_source=kept[:3], kept_target=kept[3:])
            ]
            for kept in sets
        ]
    )
    seen = set()
    for seed in range(6):
        torch.manual_seed(seed)
        with torch.no_grad():
            outputs = both.model.train()(one.source, one.source_lengths, one.target_input)
            result = torch.log_softmax(outputs.vectors @ both.model.output_weight.T, dim=-1)[0].numpy()
        explanations = np.flatnonzero(np.abs(said - result).max(axis=(1, 2)) < 1e-9)
        assert len(explanations) == 1
        seen.add(int(explanations[0]))
    assert len(seen) > 3
