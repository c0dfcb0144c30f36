"""What attention remembers of its earlier steps: only what is asked for."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from nmt.models.seq2seq import Seq2Seq


@pytest.mark.parametrize(
    ("options", "weights", "coverage"),
    [
        ({"score": "additive"}, False, False),
        ({"score": "additive", "coverage": True}, False, True),
        ({"score": "location_sensitive"}, True, False),
        ({"score": "location_sensitive", "coverage": True}, True, True),
    ],
    ids=["nothing", "coverage", "weights", "both"],
)
def test_only_what_is_asked_for_is_remembered(
    make_model: Callable[..., Seq2Seq], batch: Any, options: dict[str, Any], weights: bool, coverage: bool
) -> None:
    """In the state of search: the weights of the last step, and the sum of those of all steps."""
    model = make_model(attention=options)
    state = model.start(batch[0], batch[1])
    expected = model(*batch).weights
    for tokens in batch[2].unbind(1):
        _, state = model.step(tokens, state)
    past = state.decoder.past
    assert (past.weights is not None, past.coverage is not None) == (weights, coverage)
    if past.weights is not None:
        torch.testing.assert_close(past.weights, expected[:, -1], rtol=0, atol=1e-12)
    if past.coverage is not None:
        torch.testing.assert_close(past.coverage, expected.sum(1), rtol=0, atol=1e-12)
