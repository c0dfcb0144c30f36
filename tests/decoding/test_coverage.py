"""The coverage penalty: its equation, the exact early stop with it, and the weights that it sums in every decoder."""

import math
from typing import NamedTuple

import numpy as np
import pytest
import torch

from nmt.decoding.engines import coverage_penalty
from nmt.decoding.scorer import Scorer
from nmt.decoding.search.hypotheses import Array, Hypothesis, LengthPenalty, Scores
from nmt.decoding.translator import Translator
from nmt.symbols import BEGIN, END, PAD
from tests.decoding.conftest import network
from tests.decoding.tables import assert_best, beam_search, scores_of_all
from tests.translating import translate

PENALTIES: list[LengthPenalty] = ["none", "average", 0.0, 0.6, 2.0]
BETA, LIMIT = 0.7, 5


class Covered(NamedTuple):
    """The state of tables with attention: each last token attends to the source in its own way."""

    table: Array  # (rows,)
    coverage: Array  # (rows, 3)

    def select(self, rows: Array) -> "Covered":
        return Covered(self.table[rows.ravel()], self.coverage[rows.ravel()])


class Search:
    def __init__(self, sentences: int, vocabulary: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        scores = 2 * torch.randn(sentences, vocabulary, vocabulary, generator=generator, dtype=torch.float64)
        self.tables = scores.log_softmax(dim=-1).numpy()  # as random_tables, and the weights by the numbers that follow
        weights = 3 * torch.randn(vocabulary, 3, generator=generator, dtype=torch.float64)
        self.weights = weights.softmax(dim=-1).numpy()
        self.steps = 0

    def step(self, tokens: Array, state: Covered, wanted: int | None) -> tuple[Scores, Covered]:
        self.steps += 1
        after = state._replace(coverage=state.coverage + self.weights[tokens])
        return Scores(self.tables[state.table, tokens]), after

    def __call__(
        self, beam_size: int, length_penalty: LengthPenalty, *, n_best: int = 1, limits: list[int] | None = None
    ) -> list[list[Hypothesis]]:
        sentences = len(self.tables)
        return beam_search(
            self.step,
            Covered(np.arange(sentences), np.zeros((sentences, 3))),
            beam_size=beam_size,
            length_penalty=length_penalty,
            max_lengths=np.array(limits or [LIMIT] * sentences),
            n_best=n_best,
            supplement=lambda state: BETA * np.log(np.minimum(state.coverage, 1.0)).sum(axis=1),
        )

    def supplement(self, words: list[int]) -> float:
        """What a translation's score gains, summed here in plain Python."""
        sums = [sum(float(self.weights[token, place]) for token in (BEGIN, *words)) for place in range(3)]
        return BETA * sum(math.log(min(covered, 1.0)) for covered in sums)


@pytest.mark.parametrize("length_penalty", PENALTIES)
def test_a_beam_wide_enough_equals_exhaustive_search(length_penalty: LengthPenalty) -> None:
    search = Search(3, 6, seed=11)  # the words are 1, 4 and 5
    for transitions, result in zip(search.tables.tolist(), search(400, length_penalty, n_best=7), strict=True):
        plain = scores_of_all(transitions, (1, 4, 5), LIMIT, length_penalty)
        assert_best(result, {words: score + search.supplement(list(words)) for words, score in plain.items()}, 7)
        found = [tuple(hypothesis.tokens) for hypothesis in result]
        assert found != sorted(plain, key=lambda words: -plain[words])[:7]  # the penalty decides


def small_search(transitions: dict[int, dict[int, float]]) -> Search:
    """A table of probabilities, whose every token attends to the three source tokens alike."""
    search = Search(1, 6, seed=0)
    search.tables.fill(-math.inf)
    for last, choices in transitions.items():
        for token, probability in choices.items():
            search.tables[0, last, token] = math.log(probability)
    search.weights.fill(1 / 3)
    return search


def test_the_penalty_does_not_keep_the_search_going_where_nothing_can_win() -> None:
    """END at once scores log 0.9 + 0.7 · 3 · log 1/3 = -2.41; what begins with 4 at most log 0.05 = -3.00."""
    search = small_search({BEGIN: {END: 0.9, 4: 0.05, 5: 0.05}, 4: {4: 0.9, END: 0.1}, 5: {END: 1.0}})
    (best,) = search(4, "none", limits=[50])[0]
    assert best.tokens == []
    assert best.score == pytest.approx(math.log(0.9) - 2.1 * math.log(3))
    assert (best.log_probability, best.supplement) == pytest.approx((math.log(0.9), -2.1 * math.log(3)))
    assert search.steps == 1


# ----------------------------------------------------------------------------------------------------------- the model


@pytest.mark.parametrize(("length_penalty", "lengths"), [("none", [1, 1]), (0.6, [1, 1]), ("average", [3, 2])])
def test_the_penalty_by_hand(length_penalty: LengthPenalty, lengths: list[int]) -> None:
    model = network()
    start = Scorer([model]).start(torch.tensor([[4, 5, 3], [4, 3, PAD]]), torch.tensor([3, 2]), coverage=True)
    (state,) = start.models
    coverage = torch.tensor([[0.5, 2.0, 0.25], [1.0, 1.0, 0.0], [0.5, 1.5, 0.0], [0.0, 1.0, 0.0]]).double()
    past = state.decoder.past._replace(coverage=coverage)
    penalties = coverage_penalty(
        start._replace(models=(state._replace(decoder=state.decoder._replace(past=past)),)), 2.0, length_penalty
    )
    # two rows a sentence; what is padding of the second has no part in it, and more than 1 counts as 1
    expected = [2 * math.log(0.5 * 0.25), 2 * math.log(1e-10), 2 * math.log(0.5), 2 * math.log(1e-10)]
    np.testing.assert_allclose(penalties, expected / np.repeat(lengths, 2), rtol=1e-7)


@torch.inference_mode()
@pytest.mark.parametrize("lengths", [[3, 2], [3, 3]])
def test_an_ensemble_has_to_cover_what_any_of_its_models_reads(lengths: list[int]) -> None:
    """One reads the end mark, the other does not; the order of the two makes no difference."""
    models = [network(), network(end_mark=False)]
    source, tokens = torch.tensor([[4, 5, 3], [4, 3, PAD]]), np.array([6, 7])
    if lengths == [3, 3]:
        source[1] = torch.tensor([4, 8, 3])
    penalties = []
    for order in (models, models[::-1]):
        scorer = Scorer(order)
        _, state = scorer.step(tokens, scorer.start(source, torch.tensor(lengths), coverage=True))
        penalties.append(coverage_penalty(state, 1.0, "none"))
    summed = [one.decoder.past.coverage for one in state.models]
    expected = [
        sum(math.log((summed[0][row, j] + summed[1][row, j]) / 2) for j in range(length))
        for row, length in enumerate(lengths)
    ]
    np.testing.assert_allclose(penalties[0], expected, rtol=1e-7)
    assert np.array_equal(penalties[0], penalties[1])


@pytest.mark.parametrize("length_penalty", ["none", "average"])
def test_the_penalty_of_a_line_is_that_of_its_segments_together(
    vocabularies, text, length_penalty: LengthPenalty
) -> None:
    model = network(source_size=vocabularies.source.size, target_size=vocabularies.target.size)
    line = " ".join(text[:2])
    cut = Translator([model], vocabularies, longest_segment=40)
    options = {"beam_size": 3, "max_length_ratio": 0.5, "length_penalty": length_penalty}
    penalties = []
    for each in (line, *text[:2]):
        (plain,), (penalized,) = (
            next(translate(cut, [each], coverage_penalty=beta, **options)) for beta in (0.0, 1e-6)
        )
        assert plain.tokens == penalized.tokens
        penalties.append(penalized.score - plain.score)
    of_line, *of_parts = penalties
    tokens = [len(vocabularies.source.encode(part)) + 1 for part in text[:2]]
    assert tokens[0] != tokens[1]
    assert -1e-3 < of_line < 0
    expected = np.average(of_parts, weights=tokens) if length_penalty == "average" else sum(of_parts)
    assert of_line == pytest.approx(expected, rel=1e-6)
