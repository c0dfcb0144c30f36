"""Weight gradients formed once for all steps, against autograd's own, one a step."""

import gc
import weakref
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmt.ops import steps
from nmt.ops.products import OUTER_CHUNK, outer_products
from nmt.ops.steps import Loop, StepLinear, inner_products, weight_gradients_at_once, weighted_sums

ROWS, INPUTS, STATE, STEPS = 3, 2, 5, 7


class Network(nn.Module):
    """h_t = tanh(W x_t + U h_{t-1} + b), the simplest loop with two layers, one of them without a bias."""

    def __init__(self, *, at_once: bool) -> None:
        super().__init__()
        self.at_once = at_once
        self.read, self.recur = StepLinear(INPUTS, STATE, bias=False), StepLinear(STATE, STATE)

    def forward(self, inputs: Tensor) -> Tensor:
        hidden, states = inputs.new_zeros(inputs.size(1), STATE), []
        with weight_gradients_at_once() if self.at_once else nullcontext(Loop()) as loop:
            for step in inputs:
                hidden = torch.tanh(self.read(step) + self.recur(hidden))
                states.append(hidden)
        return loop.outputs(torch.stack(states))[0]


def loops(dtype: torch.dtype = torch.float64) -> tuple[Network, Network, Tensor]:
    torch.manual_seed(3)
    fast, plain = Network(at_once=True).to(dtype), Network(at_once=False).to(dtype)
    plain.load_state_dict(fast.state_dict())
    return fast, plain, torch.randn(STEPS, ROWS, INPUTS, dtype=dtype, requires_grad=True)


def gradients(loop: Network, inputs: Tensor) -> list[Tensor | None]:
    loop.zero_grad()
    inputs.grad = None
    loop(inputs).square().sum().backward()
    return [None if tensor.grad is None else tensor.grad.clone() for tensor in (*loop.parameters(), inputs)]


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_equal_to_the_plain_twin(dtype: torch.dtype, tolerance: float) -> None:
    fast, plain, inputs = loops(dtype)
    torch.testing.assert_close(fast(inputs), plain(inputs), rtol=0, atol=tolerance)
    for gradient, expected in zip(gradients(fast, inputs), gradients(plain, inputs), strict=True):
        torch.testing.assert_close(gradient, expected, rtol=tolerance, atol=tolerance)


def test_the_gradient_of_each_weight_is_formed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    formed = []

    def noting(gradients: Tensor, inputs: Tensor) -> Tensor:
        formed.append(len(gradients))
        return outer_products(gradients, inputs)

    monkeypatch.setattr(steps, "outer_products", noting)
    fast, _, inputs = loops()
    fast(inputs).sum().backward()
    assert formed == [STEPS * ROWS, STEPS * ROWS]  # two layers


def test_what_has_been_taken_is_not_kept_any_longer() -> None:
    """The rest of a backward pass needs the memory."""
    layer = StepLinear(INPUTS, STATE)
    with weight_gradients_at_once() as loop:
        (outputs,) = loop.outputs(layer(torch.ones(ROWS, INPUTS)))
        _, kept = loop.weights(layer)
    outputs.sum().backward()
    assert layer.weight.grad is not None
    assert kept == []


def attended(*, at_once: bool, frozen: bool = False) -> list[Tensor | None]:
    """The gradients of queries and of a memory (batch, source_length, size) that the steps attend to twice each, by its
    inner products with the query and by the sum that they weigh, with two queries a sentence."""
    torch.manual_seed(5)
    memory = torch.randn(ROWS, 11, STATE, dtype=torch.float64, requires_grad=not frozen)
    queries = torch.randn(STEPS, ROWS, 2, STATE, dtype=torch.float64, requires_grad=True)
    with weight_gradients_at_once() if at_once else nullcontext(Loop()) as loop:
        state, sums = torch.zeros(ROWS, 2, STATE, dtype=torch.float64), []
        for query in queries:
            state = weighted_sums(inner_products(query + state, memory).softmax(dim=2), memory)
            sums.append(state)
    (outputs,) = loop.outputs(torch.stack(sums))
    loss = outputs.square().sum()
    loss.backward(retain_graph=True)
    loss.backward()
    assert all(kept == [] for _, kept in loop._shared.values())  # the rest of a backward pass needs the memory
    return [memory.grad, queries.grad]


def test_the_gradient_of_a_memory_is_that_of_the_plain_twin() -> None:
    for made, expected in zip(attended(at_once=True), attended(at_once=False), strict=True):
        torch.testing.assert_close(made, expected, rtol=0, atol=1e-12)


def test_a_frozen_memory_gets_no_gradient_and_queries_still_do() -> None:
    of_memory, of_queries = attended(at_once=True, frozen=True)
    assert of_memory is None
    torch.testing.assert_close(of_queries, attended(at_once=False)[1], rtol=0, atol=1e-12)


class Fails(torch.autograd.Function):
    """x, but its backward pass fails, as one does that the memory does not hold."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor) -> Tensor:
        return inputs.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        raise RuntimeError("out of memory")


def test_a_pass_that_fails_leaves_no_memory_behind() -> None:
    """It is tried again with half the sentences, which needs what the graph held."""

    def failing() -> "weakref.ref[Tensor]":
        layer, first = StepLinear(STATE, STATE), torch.zeros(ROWS, STATE, requires_grad=True)
        memory = torch.ones(ROWS, 2, STATE, requires_grad=True)
        with weight_gradients_at_once() as loop:
            hidden = torch.tanh(Fails.apply(layer(first)))
            attended = weighted_sums(inner_products(layer(hidden).unsqueeze(1), memory), memory)
            (outputs,) = loop.outputs(attended)
        with pytest.raises(RuntimeError, match="out of memory"):
            outputs.sum().backward()
        return weakref.ref(hidden)

    held = failing()
    gc.collect()
    assert held() is None


def test_frozen_weights_get_no_gradient_and_inputs_still_do() -> None:
    fast, plain, inputs = loops()
    for loop in (fast, plain):
        loop.recur.requires_grad_(False)
    of_fast = gradients(fast, inputs)
    assert [gradient is None for gradient in of_fast] == [False, True, True, False]
    torch.testing.assert_close(of_fast[3], gradients(plain, inputs)[3], rtol=0, atol=1e-12)


def test_a_second_pass_over_one_graph_gives_the_same_again() -> None:
    fast, _, inputs = loops()
    loss = fast(inputs).square().sum()
    loss.backward(retain_graph=True)
    once = fast.recur.weight.grad.clone()  # type: ignore[union-attr]
    loss.backward()
    torch.testing.assert_close(fast.recur.weight.grad, 2 * once, rtol=0, atol=1e-12)


def test_a_pass_that_asks_for_other_gradients_leaves_nothing_behind() -> None:
    fast, plain, inputs = loops()
    for loop in (fast, plain):
        states = loop(inputs)
        torch.autograd.grad(states.sum(), inputs, retain_graph=True)
        states[:2].square().sum().backward()
    torch.testing.assert_close(fast.recur.weight.grad, plain.recur.weight.grad, rtol=0, atol=1e-12)


def test_only_steps_that_matter_are_summed() -> None:
    """The loss reads the states of the first two steps; later ones have no gradient."""
    fast, plain, inputs = loops()
    for loop in (fast, plain):
        loop(inputs)[:2].sum().backward()
    torch.testing.assert_close(fast.recur.weight.grad, plain.recur.weight.grad, rtol=0, atol=1e-12)


def test_two_sequences_at_once_do_not_mix() -> None:
    """As when gradients of two batches are accumulated: each pass has its own steps."""
    fast, plain, inputs = loops()
    for loop in (fast, plain):
        (loop(inputs).sum() + loop(2 * inputs).square().sum()).backward()
    torch.testing.assert_close(fast.recur.weight.grad, plain.recur.weight.grad, rtol=0, atol=1e-12)


def test_outside_the_block_and_without_gradients_it_is_a_linear_layer() -> None:
    layer = StepLinear(INPUTS, STATE).double()
    inputs = torch.randn(ROWS, INPUTS, dtype=torch.float64)
    expected = nn.functional.linear(inputs, layer.weight, layer.bias)
    with pytest.raises(ValueError, match="inside"), weight_gradients_at_once():
        raise ValueError("inside")
    torch.testing.assert_close(layer(inputs), expected, rtol=0, atol=1e-12)
    layer(inputs).sum().backward()
    assert layer.weight.grad is not None
    with torch.no_grad(), weight_gradients_at_once():
        torch.testing.assert_close(layer(inputs), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("rows", [1, OUTER_CHUNK, OUTER_CHUNK + 3])
@pytest.mark.parametrize("has_kernels", [True, False])
def test_outer_products_over_chunks(rows: int, has_kernels: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.ops.products.has_kernels_by_shape", lambda device: has_kernels)
    torch.manual_seed(1)
    left, right = torch.randn(rows, 2, dtype=torch.float64), torch.randn(rows, 3, dtype=torch.float64)
    torch.testing.assert_close(outer_products(left, right), left.t() @ right, rtol=0, atol=1e-11)
