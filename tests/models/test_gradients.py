"""Gradients of several passes over one graph.

Those of whole models, with respect to every weight, are compared with the oracle's: tests/oracle/test_models.py, and of
guided alignment, which goes through attention alone, test_training.py there.
"""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from nmt.models.decoders import DECODERS
from nmt.models.seq2seq import Seq2Seq

MakeModel = Callable[..., Seq2Seq]
Batch = tuple[Tensor, Tensor, Tensor]


@pytest.mark.parametrize("decoder", [*DECODERS, "bahdanau paper"])
def test_backward_passes_over_one_graph_add_up(make_model: MakeModel, batch: Batch, decoder: str) -> None:
    """Several passes over one graph, whole, for some outputs or for one parameter, as the layers of a loop must bear,
    whose weight gradients are formed once for all steps."""
    model = make_model(decoder=dict(zip(("type", "order"), decoder.split(), strict=False)))
    names, parameters = zip(*model.named_parameters(), strict=True)
    vectors = model(*batch).vectors
    expected = torch.autograd.grad(vectors.square().sum(), parameters, retain_graph=True, allow_unused=True)
    parts = [
        torch.autograd.grad(part.square().sum(), parameters, retain_graph=True, allow_unused=True)
        for part in (vectors[:, :3], vectors[:, 3:])
    ]
    torch.autograd.grad(vectors.sum(), model.source_embedding.weight, retain_graph=True)
    again = torch.autograd.grad(vectors.square().sum(), parameters, allow_unused=True)
    for name, whole, first, second, last in zip(names, expected, *parts, again, strict=True):
        if whole is None:
            assert name == "output_layer.weight"
            continue
        torch.testing.assert_close(first + second, whole, msg=f"{name}, by parts")
        torch.testing.assert_close(last, whole, msg=f"{name}, after a pass for the source embedding alone")
