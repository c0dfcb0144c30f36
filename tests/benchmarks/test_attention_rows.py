"""The rows of the attention table: none is missing, each loads, and they differ in nothing but their attention."""

import re

import pytest

from benchmarks.attention_rows import PUBLISHED, ROWS, chosen, concordance
from benchmarks.attention_tasks import MULTI30K, SYNTHETIC, Task
from nmt.config import differences, load_config
from nmt.errors import UserError
from nmt.models.combinations import model_problems
from nmt.models.decoders import DECODERS
from nmt.models.scopes import SCOPES
from nmt.models.scores import SCORES

OWN_KEYS = {
    *("model.attention.score", "model.attention.scope"),
    *("model.decoder.type", "model.decoder.input_feeding", "model.decoder.order"),
}


def test_every_score_scope_and_decoder_has_a_row() -> None:
    rows = ROWS.values()
    assert {row.score for row in rows} == set(SCORES) - {"fixed"}  # which needs another encoder
    assert {row.scope for row in rows} == set(SCOPES)
    assert {row.decoder for row in rows} == set(DECODERS)


@pytest.mark.parametrize("ending", ["", "-no-feeding"])
def test_the_rows_of_the_published_table_and_more(ending: str) -> None:
    scores = ["additive", "dot", "scaled_dot", "general", "scaled_general", "concat", "cosine"]
    scores += ["location", "location_sensitive"]
    names = ["none", *(f"global-{score}" for score in scores)]
    names += ["local-m-dot", "local-m-general", "local-p-dot", "local-p-general", "local-p-scaled_general"]
    assert {f"{name}{ending}" for name in names} <= set(ROWS)
    others = {"bahdanau-global-additive", "bahdanau-paper-global-additive", "conditional_gru-global-additive"}
    assert others <= set(ROWS)
    assert {published.row for published in PUBLISHED} <= set(ROWS)


def test_names_are_folders() -> None:
    for name, row in ROWS.items():
        assert row.name == name
        assert re.fullmatch(r"[a-z][a-z_-]*[a-z]", name)


def test_titles() -> None:
    names = ["none", "global-dot", "local-p-general-no-feeding", "bahdanau-paper-global-additive"]
    titles = ["no attention", "global, dot", "local-p, general, no feeding", "global, additive, bahdanau-paper"]
    assert [ROWS[name].title for name in names] == titles


@pytest.mark.parametrize("task", [MULTI30K, SYNTHETIC], ids=lambda task: task.name)
def test_rows_differ_in_their_attention_alone(task: Task) -> None:
    base = load_config(task.config)
    for row in ROWS.values():
        config = load_config(task.config, row.overrides, checks=[model_problems])
        assert {line.partition(":")[0] for line in differences(base, config)} <= OWN_KEYS, row.name
        assert config.model.decoder.input_feeding == row.input_feeding


def test_chosen_rows() -> None:
    assert [row.name for row in chosen("none, global-dot,none")] == ["none", "global-dot"]
    assert [row.name for row in chosen(None)] == list(ROWS)
    with pytest.raises(UserError, match="no row is called 'dot'; rows: none, global-additive"):
        chosen("none,dot")


def test_concordance_counts_pairs_and_leaves_ties_out() -> None:
    assert concordance([(1.0, 10.0), (2.0, 20.0), (3.0, 15.0)]) == (2, 3)
    assert concordance([(1.0, 10.0), (2.0, 10.0)]) == (0, 0)
