"""Products in 8-bit integers: what their formula says, each row by itself, and near the model's own numbers."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from nmt.decoding.int8 import in_int8

GENERATOR = np.random.default_rng(2)
INPUTS = GENERATOR.normal(size=(2, 5, 11)).astype(np.float32)
WEIGHT = GENERATOR.normal(size=(7, 11)).astype(np.float32)
BIAS = GENERATOR.normal(size=7).astype(np.float32)


def products(inputs: Any, weight: Any, bias: Any) -> bytes:
    """A graph with `matrix` = inputs Wᵀ, `layer` = inputs Wᵀ + b and `column` = inputs w, a weight of one column."""
    constants = {"turned": weight.T.copy(), "weight": weight, "bias": bias, "one": weight[:1].T.copy()}
    nodes = [
        helper.make_node("MatMul", ["inputs", "turned"], ["matrix"]),
        helper.make_node("Gemm", ["inputs", "weight", "bias"], ["layer"], transB=1),
        helper.make_node("MatMul", ["inputs", "one"], ["column"]),
    ]
    ports = [helper.make_tensor_value_info("inputs", 1, [None] * inputs.ndim)]
    results = [helper.make_tensor_value_info(node.output[0], 1, None) for node in nodes]
    kept = [numpy_helper.from_array(values, name) for name, values in constants.items()]
    graph = helper.make_graph(nodes, "products", ports, results, kept)
    opsets = [helper.make_opsetid("", 17)]
    content: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    return content


def run(serialized: bytes, inputs: Any) -> list[Any]:
    session = onnxruntime.InferenceSession(serialized, providers=["CPUExecutionProvider"])
    results: list[Any] = session.run(["matrix", "layer", "column"], {"inputs": inputs})
    return results


def rounded(rows: Any, limit: int) -> tuple[Any, Any]:
    scales = np.abs(rows).max(axis=1, keepdims=True) / limit
    return np.rint(rows / scales), scales


def test_it_is_the_formula() -> None:
    """In NumPy, in integers; a weight of one column is left as it is."""
    rows = INPUTS[0]
    (whole, scales), (weights, of_columns) = rounded(rows, 127), rounded(WEIGHT, 63)
    expected = scales * (whole @ weights.T) * of_columns.T
    matrix, layer, column = run(in_int8(products(rows, WEIGHT, BIAS)), rows)
    np.testing.assert_allclose(matrix, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(layer, expected + BIAS, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(column, rows @ WEIGHT[:1].T, rtol=1e-5, atol=1e-6)
    assert 1e-3 < np.abs(matrix - rows @ WEIGHT.T).max() < 0.1


def test_no_row_depends_on_another_and_zeros_give_the_bias() -> None:
    serialized = in_int8(products(INPUTS[0], WEIGHT, BIAS))
    rows = np.concatenate((INPUTS[0], 1000 * INPUTS[1], np.zeros((1, 11), dtype=np.float32)))
    together = run(serialized, rows)
    for place, row in enumerate(rows):
        for all_rows, one in zip(together[:2], run(serialized, row[None])[:2], strict=True):
            assert np.array_equal(all_rows[place], one[0])
    assert np.array_equal(together[1][-1], BIAS)


@pytest.mark.parametrize("largest", [127.0, -127.0])
def test_the_largest_sums_do_not_overflow(largest: float) -> None:
    """Even of values that are all the largest there are."""
    rows, weight = np.full((1, 64), largest, dtype=np.float32), np.full((3, 64), 63, dtype=np.float32)
    matrix, *_ = run(in_int8(products(rows, weight, np.zeros(3, dtype=np.float32))), rows)
    np.testing.assert_allclose(matrix, np.full((1, 3), 64 * largest * 63), rtol=1e-6)


@pytest.mark.parametrize(("largest", "twice"), [(1.0, False), (7e4, False), (1.0, True)])
def test_embeddings_are_kept_in_float16(largest: float, twice: bool) -> None:
    """Not those of which a value is beyond it, or that something else reads too; what is read is float32."""
    weight = WEIGHT * np.float32(largest / np.abs(WEIGHT).max())
    nodes = [
        helper.make_node("Gather", ["weight", "inputs"], ["rows"]),
        helper.make_node("Gather" if twice else "Identity", ["weight", "inputs"] if twice else ["rows"], ["more"]),
    ]
    ports = [helper.make_tensor_value_info("inputs", 7, [None])]
    results = [helper.make_tensor_value_info(name, 1, None) for name in ("rows", "more")]
    graph = helper.make_graph(nodes, "embedding", ports, results, [numpy_helper.from_array(weight, "weight")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    made = in_int8(model.SerializeToString())
    (stored,) = onnx.load_from_string(made).graph.initializer
    session = onnxruntime.InferenceSession(made, providers=["CPUExecutionProvider"])
    rows, _ = session.run(["rows", "more"], {"inputs": np.array([3, 0])})
    expected = weight if largest > 1 or twice else weight.astype(np.float16)
    assert numpy_helper.to_array(stored).dtype == expected.dtype
    assert rows.dtype == np.float32
    assert np.array_equal(rows, expected[[3, 0]].astype(np.float32))
