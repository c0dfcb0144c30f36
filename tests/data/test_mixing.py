"""Which pairs an epoch reads of several corpora: as often as their weights say, all of them before any again."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from nmt.config.schema import Shuffle, TrainingFiles
from nmt.data.planning import mixed_rows, mixture
from nmt.errors import UserError
from tests.conftest import planned


def epoch_rows(sizes: list[int], weights: list[float], epoch: int, *, shuffle: Shuffle = "every_epoch") -> list[int]:
    rows = mixed_rows(sizes, weights, shuffle=shuffle, seed=3, epoch=epoch)
    assert rows is not None
    return [int(row) for row in rows]


def files(weight: float = 1.0, tag: str | None = None, name: str = "a") -> TrainingFiles:
    return TrainingFiles.model_validate({"source": f"{name}.en", "target": f"{name}.de", "weight": weight, "tag": tag})


def test_weights_of_one_change_nothing() -> None:
    assert mixed_rows([5, 7], [1.0, 1.0], shuffle="every_epoch", seed=3, epoch=0) is None


def test_a_quarter_is_another_quarter_in_every_epoch() -> None:
    parts = [epoch_rows([8, 3], [0.25, 1.0], epoch) for epoch in range(8)]
    for epoch, rows in enumerate(parts):
        assert sum(row < 8 for row in rows) == 2, epoch
        assert sorted(row for row in rows if row >= 8) == [8, 9, 10]
    for first in (0, 4):
        assert sorted(row for rows in parts[first : first + 4] for row in rows if row < 8) == list(range(8))
    assert parts[:4] != parts[4:]  # drawn anew


@pytest.mark.parametrize("weight", [0.3, 1.0, 2.5, 3.0])
def test_no_pair_is_read_twice_before_all_are_read(weight: float) -> None:
    """After any number of epochs, no pair of 7 has been read more than once more often than another."""
    counts: Counter[int] = Counter(dict.fromkeys(range(7), 0))
    for epoch in range(9):
        counts.update(row for row in epoch_rows([7, 2], [weight, 0.5], epoch) if row < 7)
        assert counts.total() == int((epoch + 1) * weight * 7 + 1e-9)
        assert max(counts.values()) - min(counts.values()) <= 1


@pytest.mark.parametrize(("weight", "size", "pairs"), [(0.29, 100, 29), (0.01, 100, 1), (0.07, 700, 49)])
def test_weights_are_decimal_numbers(weight: float, size: int, pairs: int) -> None:
    """As floats, 0.29 · 100 is below 29, and epoch 28 of 100 pairs with weight 0.01 would have no pair."""
    assert {len(epoch_rows([size], [weight], epoch)) for epoch in range(100)} == {pairs}


def test_shuffled_once_is_the_same_order_in_every_epoch() -> None:
    first, second = (epoch_rows([7, 5], [2.0, 1.0], epoch, shuffle="once") for epoch in (0, 3))
    assert first == second
    assert sorted(first) == sorted([*range(7), *range(12)])
    assert first[:7] != list(range(7))


def test_in_the_order_of_the_files() -> None:
    parts = [epoch_rows([4, 2], [0.5, 1.5], epoch, shuffle="never") for epoch in range(3)]
    assert parts == [[0, 1, 4, 5, 4], [2, 3, 5, 4, 5], [0, 1, 4, 5, 4]]


def test_another_seed_draws_others_and_no_epoch_depends_on_others() -> None:
    first = mixed_rows([50], [0.5], shuffle="every_epoch", seed=3, epoch=5)
    again = mixed_rows([50], [0.5], shuffle="every_epoch", seed=3, epoch=5)
    other = mixed_rows([50], [0.5], shuffle="every_epoch", seed=4, epoch=5)
    assert first is not None
    assert again is not None
    assert other is not None
    assert first.tolist() == again.tolist()
    assert sorted(first.tolist()) != sorted(other.tolist())


@pytest.mark.parametrize("shuffle", ["every_epoch", "once"])
def test_corpora_of_one_size_are_drawn_from_by_themselves(shuffle: Shuffle) -> None:
    """Parallel lists, such as two translations of one text, would otherwise be read at the same places."""
    rows = epoch_rows([50, 50], [0.5, 0.5], 0, shuffle=shuffle)
    first, second = ({row % 50 for row in rows if row // 50 == corpus} for corpus in (0, 1))
    assert len(first) == len(second) == 25
    assert first != second


@pytest.mark.parametrize("shuffle", ["every_epoch", "once", "never"])
def test_batches_have_the_rows_of_the_epoch(shuffle: Shuffle) -> None:
    rows = np.array([4, 1, 1, 0])
    lengths = np.array([3, 1, 9, 9, 2])
    settings: dict[str, Any] = {"batch_size": 3, "batch_by": "sentences", "shuffle": shuffle, "seed": 1, "epoch": 2}
    plan = planned(lengths, lengths, **settings, rows=rows)
    assert sorted(sorted(batch.tolist()) for batch in plan) == [[0], [1, 1, 4]]  # by length: 1 1 2 3


def test_pairs_with_weights_of_their_own() -> None:
    """In each epoch one with a whole number as often as that, the others once more or less, as many as they sum to."""
    weights = np.array([0.0, 1.0, 0.3, 2.0, 0.5, 1.7])
    options: dict[str, Any] = {"of_pairs": [None, weights], "shuffle": "never", "seed": 3}
    counts = np.zeros(8)
    for epoch in range(400):
        rows = mixed_rows([2, 6], [1.0, 1.0], **options, epoch=epoch)
        assert rows is not None
        assert rows[:2].tolist() == [0, 1]
        assert rows.tolist() == sorted(rows)
        drawn = np.bincount(rows, minlength=8)[2:]
        assert (drawn >= np.floor(weights)).all()
        assert (drawn <= np.ceil(weights)).all()
        assert drawn.sum() in (5, 6)  # of 5.5
        counts[2:] += drawn
    assert counts[2:] / 400 == pytest.approx(weights, abs=0.1)


def test_what_is_told_of_an_epoch() -> None:
    assert mixture([files()], [10]) == []
    assert mixture([files(), files(0.25, "<BT>", "b")], [10, 1000]) == [
        "an epoch reads 10 pairs of a.en: weight 1, 10 pairs",
        "an epoch reads 250 pairs of b.en: weight 0.25, 1,000 pairs, tagged <BT>",
    ]
    assert mixture([files(0.25), files(3.0)], [1001, 1]) == [
        "an epoch reads 250 pairs of a.en: weight 0.25, 1,001 pairs",
        "an epoch reads 3 pairs of a.en: weight 3, 1 pair",
    ]

    of_pairs = TrainingFiles.model_validate({**files(0.5).model_dump(), "pair_weights": "w"})
    assert mixture([of_pairs, files()], [3, 2], np.array([1.0, 0.5, 2.5, 1.0, 1.0])) == [
        "an epoch reads 2 pairs of a.en: weight 0.5, 3 pairs weighted by w",
        "an epoch reads 2 pairs of a.en: weight 1, 2 pairs",
    ]
    alone = TrainingFiles.model_validate({**files().model_dump(), "pair_weights": "w"})
    assert mixture([alone], [2], np.array([0.5, 2.0])) == [
        "an epoch reads 2 pairs of a.en: weight 1, 2 pairs weighted by w"
    ]


def test_an_epoch_without_pairs_is_refused() -> None:
    with pytest.raises(UserError, match=r"^data\.train: an epoch would have no pair \(0\.25 × 3 pairs, 0\.5 × 1 pair"):
        mixture([files(0.25), files(0.5)], [3, 1])
    alone = TrainingFiles.model_validate({**files().model_dump(), "pair_weights": "w"})
    with pytest.raises(UserError, match=r"no pair \(1 × 3 pairs weighted by w\); give a larger weight"):
        mixture([alone], [3], np.zeros(3))
