"""Whether the two sides compute the same: operations, parameters, updated elements, batch, dtype, and the products that differ."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracediag.comparing.work import Product, Work

__all__ = ["TOLERANCE", "per_sample", "same_work"]

TOLERANCE = 0.05
MOST_PRODUCTS = 5
Row = dict[str, Any]


def per_sample(a: Work, b: Work) -> bool:
    """Whether the batches are known and differ, so that only a sample's share can be compared."""
    return a.batch is not None and b.batch is not None and a.batch != b.batch


def same_work(a: Work, b: Work, time: tuple[float, float] = (1.0, 1.0)) -> dict[str, Row]:
    """Quantity -> {a, b, ratio, per, warning}; ratio and warning None where a side does not tell, per: sample | step | None.

    time: part of the step that each side spends in counted operations: where it is small, so is what a difference of them costs.
    """
    sample = per_sample(a, b)
    sizes = (a.batch or 1, b.batch or 1) if sample else (1, 1)
    per = "sample" if sample else "step"
    flops = _row(_each(a.total, sizes[0]), _each(b.total, sizes[1]), per, "operations")
    forward = _row(_each(a.forward, sizes[0]), _each(b.forward, sizes[1]), per, "operations of the forward pass")
    for row in (flops, forward):
        row["time_share"] = {"a": time[0], "b": time[1]}
    flops["by_kind"] = _by_kind(a, b, sizes)
    flops["products"] = _differing(a, b, sizes) if flops["warning"] or forward["warning"] else []
    rows = {
        "flops": flops,
        "forward_flops": forward,
        "parameters": _row(a.parameters, b.parameters, None, "parameters"),
        "trainable": _row(a.trainable, b.trainable, None, "trainable parameters"),
        "batch": _row(a.batch, b.batch, None, "samples a step"),
        "dtype": _texts(a.dtype, b.dtype, "most of the operations are in"),
        "gradients": _row(a.gradients, b.gradients, None, "elements with a gradient"),
        "updated": _row(a.updated, b.updated, None, "elements that the optimizer updates"),
        "bytes": _row(_sum(a.bytes, sizes[0]), _sum(b.bytes, sizes[1]), per, None),
    }
    rows["bytes"]["by_kind"] = {
        kind: {"a": _each(a.bytes.get(kind), sizes[0]), "b": _each(b.bytes.get(kind), sizes[1])} for kind in sorted({*a.bytes, *b.bytes})
    }
    return rows


def _each(value: float | None, samples: int) -> float | None:
    return None if value is None else value / samples


def _sum(values: dict[str, float], samples: int) -> float | None:
    return sum(values.values()) / samples if values else None


def _row(a: float | None, b: float | None, per: str | None, what: str | None) -> Row:
    """what: how the quantity is called in the warning; None: a difference is no warning."""
    ratio = a / b if a is not None and b else None
    differs = what is not None and a is not None and b is not None and abs(a - b) > TOLERANCE * min(a, b)
    warning = f"{what}{f' a {per}' if per else ''} differ: {_number(a)} against {_number(b)}" if differs else None
    return {"a": a, "b": b, "ratio": ratio, "per": per, "warning": warning}


def _texts(a: str | None, b: str | None, what: str) -> Row:
    warning = f"{what} {a} on one side, {b} on the other" if a and b and a != b else None
    return {"a": a, "b": b, "ratio": None, "per": None, "warning": warning}


def _number(value: float | None) -> str:
    if value is None:
        return "unknown"
    for limit, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if value >= limit:
            return f"{value / limit:.3g} {unit}"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.3g}"


def _by_kind(a: Work, b: Work, sizes: tuple[int, int]) -> list[Row]:
    """Operations by phase and kind on both sides, the largest difference first."""
    left, right = a.flops or {}, b.flops or {}
    rows = []
    for phase, kind in sorted({*left, *right}):
        one, two = left.get((phase, kind), 0) / sizes[0], right.get((phase, kind), 0) / sizes[1]
        rows.append({"phase": phase, "kind": kind, "a": one, "b": two, "ratio": one / two if two else None})
    return sorted(rows, key=lambda row: -abs(row["a"] - row["b"]))


def _differing(a: Work, b: Work, sizes: tuple[int, int]) -> list[Row]:
    """The largest products that the other side lacks: more operations of this phase, kind and size a sample than there."""
    sums: list[dict[tuple[str, str, float], float]] = [defaultdict(float), defaultdict(float)]
    for total, work, samples in zip(sums, (a, b), sizes, strict=True):
        for product in work.products:
            total[product.phase, product.kind, product.flops / samples] += product.count
    rows = []
    for side, (mine, other, work, samples) in zip("ab", ((sums[0], sums[1], a, sizes[0]), (sums[1], sums[0], b, sizes[1])), strict=True):
        for product in work.products:
            key = (product.phase, product.kind, product.flops / samples)
            if mine[key] > other[key] + TOLERANCE:
                rows.append(_product(side, product, product.flops * (mine[key] - other[key]) / samples, (mine[key], other[key])))
    rows.sort(key=lambda row: (-row["flops"], row["side"], row["op"], str(row["shapes"])))
    kept: list[Row] = []
    for side in "ab":
        kept += [row for row in rows if row["side"] == side][:MOST_PRODUCTS]
    return kept


def _product(side: str, product: Product, extra: float, counts: tuple[float, float]) -> Row:
    """counts: products of this phase, kind and size a step, here and on the other side."""
    return {
        "side": side, "op": product.name, "phase": product.phase, "kind": product.kind, "shapes": product.shapes,
        "count_per_step": product.count, "flops_per_call": product.flops, "flops": extra,
        "calls": counts[0], "other_calls": counts[1],
    }  # fmt: skip
