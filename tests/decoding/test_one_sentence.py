"""The search of one sentence against the batched search, bit for bit, where many continuations are equally good."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from nmt.decoding.beam import beam_search
from nmt.decoding.choices import NEVER, NotNumbersError
from nmt.decoding.hypotheses import Hypothesis, LengthPenalty
from nmt.decoding.one_sentence import best_choices
from nmt.symbols import BEGIN, END, PAD
from tests.decoding.tables import Rows, random_tables, table_step


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
        wanted = [
            (total, place // columns, place % columns)
            for total, place in zip(totals.tolist()[:count], places.tolist(), strict=False)
            if total > NEVER
        ]
        assert best_choices(live.tolist(), values, count, 1) == wanted


def test_nan_is_an_error_of_the_token_that_it_comes_at() -> None:
    values = torch.zeros(3, 50)
    values[1, 40] = float("nan")
    with pytest.raises(NotNumbersError, match="target token 17 are not numbers"):
        best_choices([0.0, -1.0, -2.0], values, 4, 17)


def found(
    tables: Tensor, beam_size: int, penalty: LengthPenalty, *, supplement: Callable[[Rows], Tensor] | None
) -> list[list[Hypothesis]]:
    return beam_search(
        table_step(tables),
        Rows(torch.arange(len(tables))),
        sentences=len(tables),
        beam_size=beam_size,
        length_penalty=penalty,
        max_lengths=torch.tensor([9] * len(tables)),
        n_best=max(1, beam_size - 1),
        supplement=supplement,
    )


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
    supplement = (lambda state: -state.table.double() / 7) if supplemented else None
    together = found(tables, beam_size, penalty, supplement=supplement)
    assert [len(hypotheses) for hypotheses in together[2:4]] == [0, 1]
    for sentence, wanted in enumerate(together):
        shifted = supplement and (lambda state, at=sentence: -(state.table.double() + at) / 7)
        assert found(tables[sentence : sentence + 1], beam_size, penalty, supplement=shifted) == [wanted]
