"""The search of one sentence against the batched search, bit for bit, where many continuations are equally good."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from nmt.decoding.search.beam import beam_search
from nmt.decoding.search.choices import NEVER, NotNumbersError
from nmt.decoding.search.hypotheses import Hypothesis, LengthPenalty
from nmt.decoding.search.one_sentence import LARGEST_BEAM, best_choices, search_one
from nmt.symbols import BEGIN, END, PAD
from tests.decoding.tables import Rows, random_tables, table_beam_search, table_step


@pytest.mark.parametrize("different", [2, 40, 10**6])
@pytest.mark.parametrize("columns", [7, 23, 1600])
@pytest.mark.parametrize(("width", "count"), [(1, 2), (1, 10), (3, 1), (5, 10)])
def test_the_best_choices_are_those_of_a_stable_sort(columns: int, width: int, count: int, different: int) -> None:
    """Of few different values, so that most are equal, as of many; with impossible tokens and a zero of either sign."""
    generator = torch.Generator().manual_seed(columns + different)
    for _ in range(20):
        live = torch.randint(-3, 1, (width,), generator=generator).double()
        values = torch.randint(1 - different, 1, (width, columns), generator=generator) / 7
        values[0, 4] = -0.0
        values[-1, columns // 2 :] = NEVER
        allowed = values.double()
        allowed[:, [PAD, BEGIN]] = NEVER
        totals, places = (live.unsqueeze(1) + allowed).flatten().sort(descending=True, stable=True)
        expected = [
            (total, place // columns, place % columns)
            for total, place in zip(totals.tolist()[:count], places.tolist(), strict=False)
            if total > NEVER
        ]
        assert best_choices(live.tolist(), values, count, 1) == expected


def test_what_is_never_written_takes_no_place_among_the_best() -> None:
    """PAD and BEGIN are two of the three best; NaN there is nobody's business."""
    values = torch.full((1, 30), -9.0)
    values[0, [7, 8, 9, BEGIN, PAD]] = torch.tensor([-1.5, -3.0, -4.0, -2.0, -1.0])
    assert best_choices([0.0], values, 2, 1) == [(-1.5, 0, 7), (-3.0, 0, 8)]
    values[0, [PAD, BEGIN]] = float("nan")
    assert best_choices([0.0], values, 2, 1) == [(-1.5, 0, 7), (-3.0, 0, 8)]


def test_sums_are_in_float64_where_everything_is_equally_good_too() -> None:
    assert [total for total, _, _ in best_choices([-0.1], torch.zeros(1, 50), 2, 1)] == [-0.1, -0.1]


@pytest.mark.parametrize("column", [END, 40])
def test_nan_is_an_error_of_the_token_that_it_comes_at(column: int) -> None:
    values = torch.zeros(3, 50)
    values[1, [PAD, BEGIN, column]] = float("nan")
    with pytest.raises(NotNumbersError, match="target token 17 are not numbers"):
        best_choices([0.0, -1.0, -2.0], values, 4, 17)


class Alone(NamedTuple):
    """A sentence's table and length, to be searched by `search_one`."""

    table: Tensor
    limit: int
    supplement: Callable[[Rows], Tensor] | None = None

    def hypotheses(self, beam_size: int, penalty: LengthPenalty = "none", n_best: int = 1) -> list[Hypothesis]:
        (hypotheses,) = search_one(
            table_step(self.table[None]),
            Rows(torch.zeros(1, dtype=torch.long)),
            beam_size=beam_size,
            length_penalty=penalty,
            max_lengths=torch.tensor([self.limit]),
            n_best=n_best,
            supplement=self.supplement,
        )
        return hypotheses


def test_a_beam_that_shrinks_to_its_first_rows() -> None:
    """Of three hypotheses the third can only end, late; the state has to lose its row, though the others stay."""
    table = torch.full((7, 7), NEVER)
    table[BEGIN, [4, 5, 6]] = torch.tensor([-1.0, -2.0, -3.0])
    table[4, 4] = table[5, 5] = -0.1
    table[6, END] = -9.0
    rows: list[int] = []

    def step(tokens: Tensor, state: Rows) -> tuple[Tensor, Rows]:
        rows.append(len(tokens))
        assert len(state.table) == len(tokens)
        return table[tokens], state

    (hypotheses,) = search_one(
        step,
        Rows(torch.zeros(1, dtype=torch.long)),
        beam_size=3,
        length_penalty="none",
        max_lengths=torch.tensor([4]),
        n_best=3,
    )
    assert rows == [1, 3, 2, 2]
    assert [(hypothesis.tokens, hypothesis.score) for hypothesis in hypotheses] == [([6], -12.0)]


def test_a_supplement_may_make_an_end_impossible() -> None:
    table = torch.zeros(5, 5).log_softmax(1)
    assert Alone(table, 3, lambda state: torch.full(state.table.shape, NEVER).double()).hypotheses(2, n_best=2) == []


@pytest.mark.parametrize("supplemented", [False, True])
@pytest.mark.parametrize("penalty", ["none", "average", 0.6])
@pytest.mark.parametrize("beam_size", [1, 2, 5, 12])
def test_alone_as_in_a_batch(beam_size: int, penalty: LengthPenalty, supplemented: bool) -> None:
    """Log-probabilities are rounded to halves, so that ties are everywhere; some tables can never end, some at once."""
    tables = (2 * random_tables(7, 60, seed=5)).round() / 2
    tables[2, :, END] = NEVER
    tables[3, BEGIN, :END] = NEVER
    tables[3, BEGIN, END + 1 :] = NEVER
    tables[4, :, 9:] = NEVER
    limits, n_best = [1, 2, 3, 5, 7, 11, 13], max(1, beam_size - 1)
    together = beam_search(
        table_step(tables),
        Rows(torch.arange(7)),
        beam_size=beam_size,
        length_penalty=penalty,
        max_lengths=torch.tensor(limits),
        n_best=n_best,
        supplement=(lambda state: -state.table.double() / 7) if supplemented else None,
    )
    assert [len(hypotheses) for hypotheses in together[2:4]] == [0, 1]
    for sentence, (limit, expected) in enumerate(zip(limits, together, strict=True)):
        supplement = partial(_supplement_of, sentence) if supplemented else None
        assert Alone(tables[sentence], limit, supplement).hypotheses(beam_size, penalty, n_best) == expected


def _supplement_of(sentence: int, state: Rows) -> Tensor:
    return torch.full(state.table.shape, -sentence / 7, dtype=torch.float64)


@pytest.mark.parametrize(("beam_size", "alone"), [(LARGEST_BEAM, True), (LARGEST_BEAM + 1, False)])
def test_beam_search_leaves_to_it_what_is_alone_and_narrow(
    beam_size: int, alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[int] = []
    monkeypatch.setattr(
        "nmt.decoding.search.beam.search_one", lambda *_, **options: called.append(options["beam_size"])
    )
    table_beam_search(random_tables(1, 9, seed=2), beam_size=beam_size, limits=[5], length_penalty="none")
    assert called == ([beam_size] if alone else [])
