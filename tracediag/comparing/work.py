"""What one side computes in a step: operations by kind, parameters, gradients, updated elements, batch, dtype, main shapes."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tracediag.comparing.flops import HEAVY, counted, flops
from tracediag.distinct import combinations
from tracediag.intervals import locate
from tracediag.nesting import inherit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracediag.columns import Coded, IntArray
    from tracediag.comparing.parts import Parts
    from tracediag.trace import Trace

__all__ = ["Product", "Work", "work_of"]

KNOWN = 0.9
"""Part of the time in products whose operations must be known."""
_GRADIENT = re.compile(r"(?:^|/)gradient_tape/(.+)/[^/]+/[^/]+$")
SIZES = {"64": 8, "32": 4, "16": 2, "8": 1}


@dataclass(frozen=True)
class Product:
    """Matrix products, convolutions and the like of one phase, name and shapes. flops: of one call; count: calls a step."""

    phase: str
    kind: str
    name: str
    shapes: str | None
    flops: int
    count: float


@dataclass(frozen=True)
class Work:
    """Of one step; None: the side does not tell. flops: by phase and kind; bytes: read by operators, by kind; batch: samples."""

    flops: dict[tuple[str, str], float] | None
    products: tuple[Product, ...]
    bytes: dict[str, float]
    parameters: int | None
    trainable: int | None
    gradients: int | None
    updated: int | None
    batch: int | None
    dtype: str | None

    @property
    def total(self) -> float | None:
        """Operations of all phases and kinds."""
        return None if self.flops is None else sum(self.flops.values())

    @property
    def forward(self) -> float | None:
        """Operations of the forward pass."""
        return None if self.flops is None else sum(value for (phase, _), value in self.flops.items() if phase == "forward")


def work_of(trace: Trace, parts: Parts) -> Work:
    """The work of a mean step. Reads the table of operations and the facts of the run."""
    inside = _inside(trace, parts)
    per_call = _per_call(trace, inside)
    outer = _outermost(trace, per_call)
    products = _products(trace, outer, per_call, parts.steps)
    known = _coverage(trace, inside, outer) >= KNOWN
    totals: dict[tuple[str, str], float] = defaultdict(float)
    for product in products:
        totals[product.phase, product.kind] += product.flops * product.count
    size, trainable, gradients, updated = _elements(trace.facts)
    return Work(
        flops=dict(totals) if known and products else None, products=products, bytes=_bytes(trace, inside, parts.steps), parameters=size,
        trainable=trainable, gradients=gradients, updated=updated, batch=_batch(trace.facts), dtype=_dtype(trace, outer, per_call),
    )  # fmt: skip


def _inside(trace: Trace, parts: Parts) -> IntArray:
    """Operators that begin in the steps counted."""
    rows = np.flatnonzero(trace.strings("role").isin(["op"]) & ~trace.device_mask)
    return rows[locate(*parts.window, (trace.start + trace.shift)[rows]) >= 0]


def _per_call(trace: Trace, rows: IntArray) -> IntArray:
    """Operations of each row, -1: unknown; shape (n,). What the trace itself counts goes before what the shapes tell."""
    result = np.full(len(trace), -1, np.int64)
    columns = [trace.strings(name) for name in ("name", "in_shapes", "out_shapes", "in_values")]
    candidates = rows[columns[0].where([counted(name) for name in columns[0].values])[rows]]
    combos, index = combinations(*(column.codes[candidates] for column in columns))
    table = np.full(len(combos), -1, np.int64)
    for i, combo in enumerate(combos.tolist()):
        name, *texts = (column.values[code] if code >= 0 else None for column, code in zip(columns, combo, strict=True))
        found = flops(name or "", *texts)
        table[i] = -1 if found is None or found >= 1 << 62 else found
    result[candidates] = table[index]
    _fused(trace, rows, result)
    told: Any = trace.columns["flops"]
    mine = rows[told.valid[rows] & (told.values[rows] > 0)]
    result[mine] = told.values[mine]
    return result


def _fused(trace: Trace, rows: IntArray, per_call: IntArray) -> None:
    """Fill in TensorFlow's fused products (`_FusedMatMul` named score/BiasAdd) from the gradients of their layer, which cost the same."""
    labels, names = trace.strings("label"), trace.strings("name")
    fused = rows[names.where(["_Fused" in name for name in names.values])[rows] & (per_call[rows] < 0) & (labels.codes[rows] >= 0)]
    if len(fused) == 0:
        return
    known = rows[(per_call[rows] > 0) & (labels.codes[rows] >= 0)]
    layers = {}
    for row in known.tolist():
        found = _GRADIENT.search(labels.values[labels.codes[row]])
        if found:
            layers[found[1]] = int(per_call[row])
    for row in fused.tolist():
        scope = labels.values[labels.codes[row]].removeprefix("StatefulPartitionedCall/").rpartition("/")[0]
        per_call[row] = layers.get(scope, -1)


def _outermost(trace: Trace, per_call: IntArray) -> IntArray:
    """Rows with known operations that stand inside no other such row: an operator and what it calls count once."""
    rows = np.flatnonzero(per_call > 0)
    above = trace.parent[rows]
    counted = inherit(trace.parent, np.where(per_call > 0, np.arange(len(trace)), -1))
    return np.asarray(rows[(above < 0) | (counted[above] < 0)])


def _products(trace: Trace, rows: IntArray, per_call: IntArray, steps: int) -> tuple[Product, ...]:
    columns = [trace.strings(name) for name in ("phase", "kind", "name", "in_shapes")]
    combos, index = combinations(*(column.codes[rows] for column in columns), per_call[rows])
    counts = np.bincount(index, minlength=len(combos))
    found = []
    for combo, count in zip(combos.tolist(), counts.tolist(), strict=True):
        phase, kind, name, shapes = (column.values[code] if code >= 0 else None for column, code in zip(columns, combo, strict=False))
        found.append(Product(phase or "other", kind or "matmul", name or "", shapes, combo[-1], round(count / steps, 4)))
    return tuple(sorted(found, key=lambda one: (-one.flops * one.count, one.phase, one.name, one.shapes or "")))


def _coverage(trace: Trace, inside: IntArray, outer: IntArray) -> float:
    """Part of the operators' own time in products that stands in a row whose operations are known."""
    own = trace.col("self_ns")
    kind = trace.strings("kind").isin(HEAVY)
    rows = inside[kind[inside]]
    marks = np.full(len(trace), -1, np.int64)
    marks[outer] = 1
    known = inherit(trace.parent, marks) > 0
    whole = int(own[rows].sum())
    return int(own[rows][known[rows]].sum()) / whole if whole else 0.0


def _bytes(trace: Trace, inside: IntArray, steps: int) -> dict[str, float]:
    """Bytes of the inputs of innermost operators whose shapes and dtypes are known, by kind, a step."""
    has_child = np.zeros(len(trace), np.bool_)
    role = trace.strings("role").isin(["op"])
    nested = np.flatnonzero((trace.parent >= 0) & role)
    has_child[trace.parent[nested]] = True
    rows = inside[~has_child[inside]]
    columns = [trace.strings(name) for name in ("kind", "in_shapes", "in_dtypes")]
    known = rows[np.logical_and.reduce([column.codes[rows] >= 0 for column in columns])]
    combos, index = combinations(columns[1].codes[known], columns[2].codes[known])
    shapes, dtypes = (_decoded(column, codes) for column, codes in zip(columns[1:], combos.T, strict=True))
    sizes = [_input_bytes(*pair) for pair in zip(shapes, dtypes, strict=True)]
    moved = np.asarray(sizes, np.float64)[index]
    sums = np.bincount(columns[0].codes[known], weights=moved, minlength=len(columns[0].values)) if len(known) else ()
    return {name: round(float(value) / steps) for name, value in sorted(zip(columns[0].values, sums, strict=False)) if value}


def _decoded(column: Coded, codes: IntArray) -> list[list[Any]]:
    """The JSON of each of these codes, in one go."""
    found: list[list[Any]] = msgspec.json.decode(f"[{','.join([column.values[code] for code in codes.tolist()])}]")
    return found


def _input_bytes(shapes: list[Any], dtypes: list[Any]) -> int:
    """Bytes of the inputs of one operator."""
    return sum(_numel(shape) * _width(dtype) for shape, dtype in zip(shapes, dtypes, strict=False) if dtype and isinstance(shape, list))


def _numel(shape: list[Any]) -> int:
    """Elements of a tensor, or of a list of tensors; 0 where an axis is unknown."""
    if shape and isinstance(shape[0], list):
        return sum(_numel(one) for one in shape if isinstance(one, list))
    try:
        return int(max(math.prod(shape), 0))
    except TypeError:  # an axis is null
        return 0


@cache
def _width(dtype: str) -> int:
    """Bytes of one element; 0 for what is no number."""
    return next((width for digits, width in SIZES.items() if dtype.endswith(digits)), 0)


def _elements(facts: Mapping[str, Sequence[Mapping[str, Any]]]) -> tuple[int | None, int | None, int | None, int | None]:
    """Parameters, those of them that are trainable, that get a gradient, and that an optimizer updates; in elements."""
    torch, tensorflow = facts.get("params") or (), facts.get("variables") or ()
    rows = [(r.get("numel") or 0, r.get("requires_grad"), r.get("grad") in ("dense", "sparse"), r.get("optimizer")) for r in torch]
    model = [r for r in tensorflow if r.get("layer") is not None or r.get("gradient") is not None]  # not the state of an optimizer
    rows += [(r.get("numel") or 0, r.get("trainable"), r.get("gradient") is not None, r.get("optimizer")) for r in model]
    if not rows:
        return None, None, None, None
    trainable = sum(size for size, train, _, _ in rows if train)
    gradient = sum(size for size, _, has, _ in rows if has)
    updated = sum(size for size, _, has, optimizer in rows if has and optimizer is not None)
    return sum(size for size, *_ in rows), trainable, gradient, updated


def _batch(facts: Mapping[str, Sequence[Mapping[str, Any]]]) -> int | None:
    """Samples of a step: the first axis that most tensors of the usual batch share; None where the run does not tell."""
    told = Counter(row["batch"] for row in facts.get("step_series") or () if row.get("batch"))
    if not told:
        sizes = {row.get("batch_size") for row in facts.get("loaders") or () if row.get("batch_size")}
        return sizes.pop() if len(sizes) == 1 else None
    shapes = msgspec.json.decode(min(told, key=lambda text: (-told[text], text)))
    leading = Counter(shape[0] for shape in shapes if isinstance(shape, list) and shape and isinstance(shape[0], int))
    return max(leading, key=lambda size: (leading[size], -list(leading).index(size))) if leading else None


def _dtype(trace: Trace, rows: IntArray, per_call: IntArray) -> str | None:
    """Dtype of most of the operations: the first floating-point input of each."""
    column = trace.strings("in_dtypes")
    sums: Counter[str] = Counter()
    for row in rows[column.codes[rows] >= 0].tolist():
        given = [name for name in msgspec.json.decode(column.values[column.codes[row]]) if name and "float" in name]
        if given:
            sums[given[0]] += int(per_call[row])
    return max(sums, key=lambda name: (sums[name], name)) if sums else None
