"""The weights of an ONNX graph in few bits: products in 8-bit integers, embeddings in float16. It knows no models, and
no PyTorch.

A product x W + b with a constant W becomes, with a scale for each row of x and for each column of W,

    y_ij = s_i t_j Σ_k round(x_ik / s_i) round(W_kj / t_j) + b_j,  s_i = max_k |x_ik| / 127,  t_j = max_k |W_kj| / 63

The sums of integers are exact, so no row depends on another. Rounded weights have 7 bits: processors without
instructions for such sums add pairs of products in 16 bits, which more would overflow. Of embeddings, what is read
becomes float32 again.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np
import onnx
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper, parser

from nmt.decoding.search.hypotheses import Array

WEIGHT_LIMIT = 63  # the largest rounded weight
SMALLEST = np.finfo(np.float32).tiny
OWN, RUNTIMES = "nmt", "com.microsoft"  # domains of operators
PRODUCT = parser.parse_function(
    f"""
    <domain: "{OWN}", opset_import: ["": 17, "{RUNTIMES}": 1]>
    Int8Product (inputs, weight, scales) => (result) {{
        sizes = Abs (inputs)
        largest = ReduceMax <axes = [-1], keepdims = 1> (sizes)
        smallest = Constant <value = float {{{SMALLEST}}}> ()
        ranges = Max (largest, smallest)
        scaled = Div (inputs, ranges)
        step = Constant <value = float {{{1 / 127}}}> ()
        middle = Constant <value = uint8 {{128}}> ()
        zero = Constant <value = int8 {{0}}> ()
        rounded = QuantizeLinear (scaled, step, middle)
        product = {RUNTIMES}.MatMulIntegerToFloat (rounded, weight, step, scales, middle, zero)
        result = Mul (product, ranges)
    }}
    """
)


def in_int8(serialized: bytes) -> bytes:
    """The graph with its embeddings in float16, and in 8-bit integers all products whose weight is constant and has
    several columns."""
    model = onnx.load_from_string(serialized)
    weights = {one.name: one for one in model.graph.initializer if len(one.dims) == 2}
    nodes = list(model.graph.node)
    del model.graph.node[:]
    for node in nodes:
        matrix = _weight(node, weights)
        if matrix is None or matrix.shape[1] == 1:
            model.graph.node.append(node)
        else:
            _replace(model.graph, node, matrix)
    reads = Counter(name for node in model.graph.node for name in node.input)
    for name in weights.keys() - reads.keys():
        model.graph.initializer.remove(weights[name])
    nodes = [part for node in model.graph.node for part in _with_half(node, weights, reads)]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.functions.append(PRODUCT)
    model.opset_import.extend([helper.make_opsetid(OWN, 1), helper.make_opsetid(RUNTIMES, 1)])
    content: bytes = model.SerializeToString()
    return content


def _weight(node: NodeProto, weights: Mapping[str, TensorProto]) -> Array | None:
    """The weight (inner_size, columns) of a product; None where the node is none, or its weight is not constant."""
    if node.op_type not in ("MatMul", "Gemm") or node.input[1] not in weights:
        return None
    matrix: Array = numpy_helper.to_array(weights[node.input[1]])
    return matrix.T if any(one.name == "transB" and one.i for one in node.attribute) else matrix


def _replace(graph: GraphProto, node: NodeProto, matrix: Array) -> None:
    """Add what computes the output of a product with this matrix (inner_size, columns)."""
    inputs, _, *bias = node.input
    (output,) = node.output
    scales = np.maximum(np.abs(matrix).max(axis=0), SMALLEST) / np.float32(WEIGHT_LIMIT)
    constants = {f"{output}.weight": np.rint(matrix / scales).astype(np.int8), f"{output}.scales": scales}
    graph.initializer.extend(numpy_helper.from_array(values, name) for name, values in constants.items())
    result = f"{output}.product" if bias else output
    graph.node.append(helper.make_node(PRODUCT.name, [inputs, *constants], [result], domain=OWN))
    if bias:
        graph.node.append(helper.make_node("Add", [result, *bias], [output]))


def _with_half(node: NodeProto, weights: Mapping[str, TensorProto], reads: Mapping[str, int]) -> Iterator[NodeProto]:
    """The node; if it is the only reader of an embedding whose values fit in float16, it reads that, and casts."""
    yield node
    weight = weights.get(node.input[0]) if node.op_type == "Gather" and reads[node.input[0]] == 1 else None
    if weight is None or weight.data_type != TensorProto.FLOAT:
        return
    with np.errstate(over="ignore"):
        values = numpy_helper.to_array(weight).astype(np.float16)
    if np.isfinite(values).all():
        weight.CopyFrom(numpy_helper.from_array(values, weight.name))
        whole = node.output[0]
        node.output[0] = f"{whole}.half"
        yield helper.make_node("Cast", [node.output[0]], [whole], to=TensorProto.FLOAT)
