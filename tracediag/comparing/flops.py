"""Floating-point operations of one operator, from its name and shapes; a multiplication and an addition count as two.

Formulas: matrix product 2 m n k; convolution 2 x outputs x (input channels of a group x kernel size), the same again for each of the two
gradients; attention two products. Only what the shapes tell is counted; None means unknown, never zero.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Any

import msgspec

__all__ = ["HEAVY", "counted", "flops"]

HEAVY = ("matmul", "conv", "attention", "rnn")
"""Kinds whose operations are counted."""
Shape = list[int]

_TORCH_CONV = re.compile(
    r"^aten::(_?convolution|conv[123]d|cudnn_convolution|miopen_convolution|mkldnn_convolution|thnn_conv2d|slow_conv[23]d)$"
)
_STRIDE_AT = {"mkldnn_convolution": (4, 3, 5), "cudnn_convolution": (3, 2, 4), "miopen_convolution": (4, 3, 5)}
"""Arguments stride, padding, dilation, where they do not stand third to fifth."""


_COUNTED = re.compile(
    r"^aten::(mm|bmm|matmul|baddbmm|_?addmm\w*|linear|convolution_backward|mkldnn_rnn_layer\w*)$|attention|MatMul|Conv[23]D|Depthwise"
)


def counted(name: str) -> bool:
    """Whether operations of this name are counted where their shapes are known."""
    return bool(_COUNTED.search(name) or _TORCH_CONV.match(name))


@lru_cache(1 << 14)
def flops(name: str, in_shapes: str | None, out_shapes: str | None, in_values: str | None) -> int | None:
    """Operations of one call, None: unknown. Shapes and values: JSON as in the columns of `ops`."""
    if in_shapes is None or not counted(name):
        return None
    ins, outs = _loads(in_shapes), _loads(out_shapes)
    values = _loads(in_values)
    try:
        return _torch(name.removeprefix("aten::"), ins, values) if name.startswith("aten::") else _tensorflow(name, ins, outs)
    except (IndexError, TypeError, ValueError, ZeroDivisionError):
        return None  # shapes that the operator cannot have: a damaged or foreign event tells nothing


def _loads(text: str | None) -> list[Any]:
    value = msgspec.json.decode(text) if text else []
    return value if isinstance(value, list) else []


def _torch(name: str, ins: list[Shape], values: list[Any]) -> int | None:
    if name in ("mm", "bmm", "matmul"):
        return _product(ins[0], ins[1])
    if name in ("addmm", "baddbmm", "_addmm_activation"):
        return _product(ins[1], ins[2])
    if name == "linear":
        return 2 * math.prod(ins[0]) * ins[1][0] if len(ins[1]) == 2 else None
    if _TORCH_CONV.match(f"aten::{name}"):
        return _convolution(name, ins, values)
    if name == "convolution_backward":
        gradients = sum(flag.strip() == "True" for flag in str(values[10]).strip("[]").split(",")[:2])
        transposed = str(values[7]) == "True"
        return gradients * 2 * math.prod(ins[1] if transposed else ins[0]) * math.prod(ins[2][1:])
    if "attention" in name:
        return _attention(name, ins)
    if name in ("mkldnn_rnn_layer", "mkldnn_rnn_layer_backward"):
        return (4 if name.endswith("backward") else 2) * math.prod(ins[0][:2]) * (math.prod(ins[1]) + math.prod(ins[2]))
    return None


def _product(a: Shape, b: Shape) -> int | None:
    """A matrix product with leading axes that are broadcast."""
    if not a or not b:
        return None
    inner, columns = a[-1], b[-1] if len(b) > 1 else 1
    rows = a[-2] if len(a) > 1 else 1
    if (b[-2] if len(b) > 1 else b[0]) != inner:
        return None
    lead = max(math.prod(a[:-2]), math.prod(b[:-2]))
    return 2 * lead * rows * inner * columns


def _convolution(name: str, ins: list[Shape], values: list[Any]) -> int | None:
    data, kernel = ins[0], ins[1]
    if len(data) != len(kernel) or len(data) < 3:
        return None
    stride, padding, dilation = (_numbers(values[i], len(kernel) - 2) for i in _STRIDE_AT.get(name, (3, 4, 5)))
    if name in ("convolution", "_convolution") and str(values[6]) == "True":
        return 2 * math.prod(data) * math.prod(kernel[1:])
    size = []
    for i, (length, width) in enumerate(zip(data[2:], kernel[2:], strict=True)):
        reach = dilation[i] * (width - 1)
        size.append((length + 2 * padding[i] - reach - 1) // stride[i] + 1)
    return 2 * data[0] * kernel[0] * math.prod(size) * math.prod(kernel[1:])


def _numbers(value: Any, count: int) -> list[int]:
    """'[1, 2]' or '3' as `count` numbers. Raises ValueError for anything else ('same')."""
    found = [int(part) for part in str(value).strip("[]").split(",")]
    return found if len(found) == count else found * count


def _attention(name: str, ins: list[Shape]) -> int | None:
    tensors = [shape for shape in ins if len(shape) == 4]
    backward = "backward" in name
    query, key, value = tensors[1:4] if backward else tensors[:3]
    forward = 2 * math.prod(query[:-1]) * key[-2] * (query[-1] + value[-1])
    return forward * 5 // 2 if backward else forward


def _tensorflow(name: str, ins: list[Shape], outs: list[Shape]) -> int | None:
    if "Fused" in name and outs and ins[0] == outs[0]:
        return None  # the shapes are those of the addition of the bias, whose name the fused node has
    plain = re.sub(r"^_Mkl(Native)?|^_Fused|V[23]$", "", re.sub(r"^_Mkl(Native)?", "", name))
    if plain in ("MatMul", "BatchMatMul") and outs and ins[0]:
        rows = math.prod(outs[0][:-1])
        return 2 * outs[0][-1] * math.prod(ins[0]) if math.prod(ins[0]) % rows == 0 else None
    if plain in ("Conv2D", "Conv3D") and outs:
        return 2 * math.prod(outs[0]) * math.prod(ins[1][:-1])
    if plain in ("Conv2DBackpropInput", "Conv3DBackpropInput"):
        return 2 * math.prod(ins[2]) * math.prod(ins[1][:-1])
    if plain in ("Conv2DBackpropFilter", "Conv3DBackpropFilter") and outs:
        return 2 * math.prod(ins[2]) * math.prod(outs[0][:-1])
    if plain == "DepthwiseConv2dNative" and outs:
        return 2 * math.prod(outs[0]) * math.prod(ins[1][:2])
    return None
