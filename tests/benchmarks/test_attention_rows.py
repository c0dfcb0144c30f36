"""The rows of the attention table: none is missing, and they differ in nothing but their attention."""

import pytest

from benchmarks.attention_recipes import RECIPES
from benchmarks.attention_rows import ORDERS, ROWS, concordance
from benchmarks.attention_tasks import Task
from nmt.config.loading import read_config
from nmt.config.resuming import differences
from nmt.models.decoders import DECODERS
from nmt.models.scopes import SCOPES
from nmt.models.scores import SCORES
from tests.conftest import checked_config

OWN_KEYS = {
    *("model.attention.score", "model.attention.scope", "model.attention.position_logit"),
    *("model.decoder.type", "model.decoder.input_feeding", "model.decoder.order"),
}


def test_every_score_scope_and_decoder_has_a_row() -> None:
    rows = ROWS.values()
    assert {row.score for row in rows} == set(SCORES) - {"fixed"}  # which needs another encoder
    assert {row.scope for row in rows} == set(SCOPES)
    assert {row.decoder for row in rows} == set(DECODERS)


def test_the_published_orders() -> None:
    """Table 4 has 18.6 twice, which is no order; Table 1 has 14.0, 16.8 with attention, and 18.1 with feeding."""
    assert len(ORDERS) == 2 + 14
    orders = {(order.better, order.worse): round(order.published, 1) for order in ORDERS}
    assert set().union(*orders) <= set(ROWS)
    assert orders["local-p-general", "global-general"] == 1.7
    assert orders["global-location", "local-p-dot"] == 0.1
    assert orders["global-location-no-feeding", "none-no-feeding"] == 2.8
    assert orders["global-location", "global-location-no-feeding"] == 1.3
    assert not {("global-dot", "local-m-general"), ("local-m-general", "global-dot")} & set(orders)


@pytest.mark.parametrize("task", RECIPES["short"].tasks, ids=lambda task: task.name)
def test_rows_differ_in_their_attention_alone(task: Task) -> None:
    base = read_config(task.config).config
    for row in ROWS.values():
        config = checked_config(task.config, task.sets(row))
        assert {line.partition(":")[0] for line in differences(base, config).values()} <= OWN_KEYS, row.name
        assert config.model.decoder.input_feeding == row.input_feeding


def test_concordance_counts_pairs_and_leaves_ties_out() -> None:
    assert concordance([(1.0, 10.0), (2.0, 20.0), (3.0, 15.0)]) == (2, 3)
    assert concordance([(1.0, 10.0), (2.0, 10.0)]) == (0, 0)
