"""The products of an ONNX graph in 8-bit integers. It knows no models, and no PyTorch.

A product x W + b with a constant W becomes, with a scale for each row of x and for each column of W,

    y_ij = s_i t_j Σ_k round(x_ik / s_i) round(W_kj / t_j) + b_j,  s_i = max_k |x_ik| / 127,  t_j = max_k |W_kj| / 63

The sums of integers are exact, so no row depends on another. Rounded weights have 7 bits: processors without
instructions for such sums add pairs of products in 16 bits, which more would overflow.
"""

import numpy as np
import onnx
from onnx import GraphProto, helper, numpy_helper, parser

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
    """The graph with all products in 8-bit integers whose weight is constant and has several columns."""
    model = onnx.load_from_string(serialized)
    weights = {one.name: one for one in model.graph.initializer if len(one.dims) == 2}
    nodes = list(model.graph.node)
    del model.graph.node[:]
    for node in nodes:
        weight = weights.get(node.input[1]) if node.op_type in ("MatMul", "Gemm") else None
        if weight is None or weight.dims[1] == 1:
            model.graph.node.append(node)
            continue
        transposed = any(one.name == "transB" and one.i for one in node.attribute)
        matrix = numpy_helper.to_array(weight)
        _replace(model.graph, node, matrix.T if transposed else matrix)
    read = {name for node in model.graph.node for name in node.input}
    for name in weights.keys() - read:
        model.graph.initializer.remove(weights[name])
    model.functions.append(PRODUCT)
    model.opset_import.extend([helper.make_opsetid(OWN, 1), helper.make_opsetid(RUNTIMES, 1)])
    content: bytes = model.SerializeToString()
    return content


def _replace(graph: GraphProto, node: onnx.NodeProto, matrix: np.ndarray) -> None:
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
