"""The loop of the search: its stopping rule by hand, what it imports, and what it takes to add a rule or a policy."""

import ast
import itertools
import math

import numpy as np
import pytest

from nmt.config.schema import SamplingConfig
from nmt.decoding.search.beam import Beam
from nmt.decoding.search.choices import NEVER, Choice, Continuations, split, taken
from nmt.decoding.search.hypotheses import Array, Scores
from nmt.decoding.search.loop import Lanes, Policy, is_done, search
from nmt.decoding.search.sampling import Draws
from nmt.symbols import BEGIN, END
from tests.decoding.search.test_beam import A, table
from tests.decoding.tables import LoggedRows, Rows, key_for, random_tables, table_step
from tests.test_layers import PACKAGE, imports, sources

PENALTIES = [1.0, 2.0, 3.0, 4.0]  # "average"; a lane has 2 tokens of at most 4
LANES = [  # live, ended, best, worst; the beam size is 2: whether the lane is done
    (-2.0, 1, -0.9, NEVER, False),  # only one has ended
    (-2.0, 2, -1.0, NEVER, True),  # settled: two have ended, and -2 / 2 is no better than the best of them
    (-2.0, 3, -1.1, NEVER, False),  # the live one is better as it stands
    (-2.0, 1, -0.4, -0.5, True),  # beaten: at the limit it would have -2 / 4
    (-2.0, 1, -0.4, -0.6, False),  # it can still come before the last
    (NEVER, 0, NEVER, NEVER, True),  # nothing lives
]


@pytest.mark.parametrize(("live", "ended", "best", "worst", "done"), LANES)
def test_a_lane_is_done_when_it_is_settled_or_beaten_or_at_its_limit(
    live: float, ended: int, best: float, worst: float, done: bool
) -> None:
    numbers = {"live": live, "ended": ended, "best": best, "worst": worst, "limit": 4}
    lane = {name: np.array([number]) for name, number in numbers.items()}
    assert is_done(**lane, beam_size=2, penalties=np.array(PENALTIES), length=2) == [done]
    assert is_done(**lane, beam_size=2, penalties=np.array(PENALTIES), length=4) == [True]


def test_many_lanes_at_once_are_done_as_each_by_itself() -> None:
    live, ended, best, worst, done = (np.array(column) for column in zip(*LANES, strict=True))
    lanes = {"live": live, "ended": ended, "best": best, "worst": worst, "penalties": np.array(PENALTIES)}
    limits = np.full((len(LANES),), 4)
    assert is_done(**lanes, beam_size=2, length=2, limit=limits).tolist() == done.tolist()
    limits[2] = 2
    assert is_done(**lanes, beam_size=2, length=2, limit=limits).tolist() == [False, True, True, True, False, True]


def test_a_sentence_leaves_with_the_last_of_its_lanes() -> None:
    """Of three sentences with two samples each, the first has ended after a step, the last after two."""
    tables = np.full((3, 6, 6), NEVER)
    tables[:, [BEGIN, END, 4], END] = tables[:, [BEGIN, END, 4], 4] = math.log(0.5)
    end, on, logged = key_for(END, 4), key_for(4, END), LoggedRows(np.arange(3), [])
    drawn = [[[end] * 4] * 2, [[end] * 4, [on, on, on, end]], [[on, end, on, on], [end, end, on, on]]]
    results = search(
        lambda tokens, state, wanted: (Scores(tables[state.table, tokens]), state),
        logged,
        Draws(np.array(drawn), SamplingConfig()),
        max_lengths=np.full((3,), 9),
        length_penalty="none",
        n_best=1,
    )
    assert [[hypothesis.tokens for hypothesis in drawn] for drawn in results] == [[[], []], [[], [4, 4, 4]], [[4], []]]
    assert logged.selections == [[[0, 0], [1, 1], [2, 2]], [[2, 3], [4, 5]], [[0, 1]]]  # rows by sentence


class Later(Beam):
    """A sentence has two lanes, each a beam; in the second no translation is empty."""

    lanes_per_sentence = 2

    def choose(self, lanes: Lanes, scores: Scores) -> Choice:
        if lanes.time == 0:
            scores.values[1::2, END] = NEVER
        return super().choose(lanes, scores)


def test_a_lane_that_is_done_waits_for_the_others_of_its_sentence() -> None:
    """END at once settles the first lane, though one token more would have scored better, as the second lane shows."""
    even = table({BEGIN: {END: 0.5, A: 0.5}, A: {END: 1.0}})[None].repeat(2, axis=0)
    results = search(
        table_step(even),
        Rows(np.arange(2)),
        Later(1),
        max_lengths=np.array([9, 9]),
        length_penalty="average",
        n_best=1,
    )
    assert [[hypothesis.tokens for hypothesis in lanes] for lanes in results] == [[[], [A]]] * 2
    assert results[0][0].score < results[0][1].score


def test_the_search_knows_ids_only() -> None:
    """It imports itself, the special symbols and the configuration's types; no text, no model, no data."""
    allowed = ("nmt.decoding.search.", "nmt.symbols.", "nmt.config.schema.")
    lines = [
        f"{file.name}:{statement.line}: {statement.module}"
        for file in sources(PACKAGE / "decoding" / "search")
        for statement in imports(PACKAGE, file)
        if statement.module.startswith("nmt") and not statement.module.startswith(allowed)
    ]
    assert lines == []


def named_in(names: set[str]) -> set[str]:
    """The files of the search whose code has one of `names`."""
    return {
        file.name
        for file in sources(PACKAGE / "decoding" / "search")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if getattr(node, "id", getattr(node, "name", None)) in names
    }


class Dictated(Policy):
    """Writes the translations it is told, (sentences, longest), whatever the model says of them."""

    beam_size = 1

    def __init__(self, translations: Array) -> None:
        self.translations = translations

    def choose(self, lanes: Lanes, scores: Scores) -> Choice:
        tokens = self.translations[:, [lanes.time]]
        totals = lanes.live + taken(scores.values, tokens)
        return split(Continuations(totals, np.zeros_like(tokens), tokens), self.beam_size)

    def keep(self, lanes: Array) -> None:
        self.translations = self.translations[lanes]


def test_adding_a_search_policy() -> None:
    """A class that chooses is all it takes: ends, scores, limits and leaving the batch are the loop's."""
    tables, translations = random_tables(4, 7, seed=2), [[4, 5], [], [6, 6, 4], [5, 4, 6]]
    padded = np.array([translation + [END] * (4 - len(translation)) for translation in translations])
    rows: list[int] = []

    def step(tokens: Array, state: Rows, wanted: int | None) -> tuple[Scores, Rows]:
        rows.append(len(tokens))
        return Scores(tables[state.table, tokens]), state

    results = search(
        step,
        Rows(np.arange(4)),
        Dictated(padded),
        max_lengths=np.array([9, 9, 9, 3]),
        length_penalty="average",
        n_best=1,
    )
    assert rows == [4, 3, 3, 1]
    assert results.pop() == []  # no END at its limit
    for transitions, told, (hypothesis,) in zip(tables, translations, results, strict=False):
        path = [BEGIN, *told, END]
        assert hypothesis.tokens == told
        total = sum(float(transitions[last, token]) for last, token in itertools.pairwise(path))
        assert math.isclose(hypothesis.log_probability, total)
        assert math.isclose(hypothesis.score, total / (len(told) + 1))
    for policy, file in (("Beam", "beam.py"), ("Groups", "diverse.py"), ("Draws", "sampling.py")):
        assert named_in({policy}) == {file}
    assert named_in({"MinimumLength", "NoUnknown", "NoRepeatedNgrams", "ForcedPrefix"}) == {"rules.py"}
