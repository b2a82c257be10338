"""The one vocabulary: framework operator, kernel and runtime names -> `kind`; scopes and annotations -> `phase`.

`kind_of` looks at one name; which kind a device op finally gets (its own name or the operator that launched it) is settled by
`merge_device_kind`. Everything works on distinct names, so that plain regular expressions are fast enough.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from tracediag.kindnames import COPIES, KERNELS, RUNTIME, TENSORFLOW, TORCH

__all__ = ["DEVICE_ROLES", "KINDS", "PHASES", "WAITING_KINDS", "kind_of", "merge_device_kind", "scope_phase"]

KINDS: dict[str, str] = {
    "compile": "tracing, graph building, code generation, module loading",
    "input_wait": "the training thread waits for a batch",
    "input_work": "work of the input pipeline",
    "collective": "communication between ranks",
    "sync": "the host waits for the device",
    "copy_h2d": "copy from host to device",
    "copy_d2h": "copy from device to host",
    "copy_d2d": "copy on a device or between devices",
    "memset": "device fill",
    "alloc": "driver or allocator calls",
    "launch": "kernel and graph launch calls",
    "variable_read": "read of a TensorFlow variable",
    "embedding_lookup": "row lookup in a table",
    "embedding_grad": "gradient of a row lookup",
    "optimizer_update": "parameter and optimizer state updates",
    "matmul": "matrix multiplication",
    "attention": "fused attention",
    "conv": "convolution",
    "rnn": "recurrent cell or layer",
    "norm": "batch, layer, group norm",
    "softmax": "softmax",
    "loss": "loss functions",
    "activation": "activation functions",
    "pool": "pooling",
    "resample": "resizing, interpolation",
    "reduction": "sum, mean, max and other reductions",
    "cast": "change of dtype",
    "layout": "transpose, concat, split, pad, copy for layout",
    "random": "random numbers, dropout",
    "index": "gather, scatter, sort, masks",
    "elementwise": "other pointwise work",
    "python": "Python code",
}
"""Closed vocabulary of kinds with their meaning; NULL: unknown."""

PHASES: dict[str, str] = {
    "input": "getting the next batch",
    "forward": "forward computation and loss",
    "backward": "gradients",
    "optimizer": "parameter update, gradient zeroing",
    "comm": "communication between ranks",
    "other": "the rest: logging, metrics, evaluation, time outside every op",
}
"""Closed vocabulary of phases with their meaning; NULL: unknown."""

DEVICE_ROLES = ("kernel", "copy", "memset")
"""Roles that are work of a device."""

WAITING_KINDS = ("sync", "input_wait")
"""Kinds whose time is spent waiting: never the cause of that time."""

_OPERATORS = {"torch": TORCH, "tensorflow": TENSORFLOW, "jax": TENSORFLOW}
_RULES = {"runtime": RUNTIME, "kernel": KERNELS, "copy": COPIES}
_HOST_ROLES = ("op", "function", "annotation", "framework")


@cache
def _compiled(rules: tuple[tuple[str, str], ...]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((kind, re.compile(pattern)) for kind, pattern in rules)


def kind_of(name: str, role: str, framework: str) -> str | None:
    """Kind of one event by its name alone; None: unknown. The first pattern that matches wins."""
    if role == "memset":
        return "memset"
    if role == "python":
        return "python"
    rules = _RULES.get(role) or (_OPERATORS.get(framework, TENSORFLOW) if role in _HOST_ROLES else ())
    for kind, pattern in _compiled(rules):
        if pattern.search(name):
            return kind
    return None


_STRONG_OPERATORS = frozenset((
    "conv", "attention", "rnn", "norm", "embedding_lookup", "embedding_grad", "optimizer_update", "softmax", "loss", "pool", "resample",
    "index", "collective",
))  # fmt: skip
_WEAK_KERNELS = frozenset(("reduction", "elementwise", "memset"))
_NO_WORK = frozenset(("sync", "launch", "alloc", "input_wait", "compile"))


def merge_device_kind(own: str | None, launcher: str | None) -> str | None:
    """Kind of a device op from its own name and from the operator that launched it.

    A kernel's own name decides, except where one kernel serves many operators: a matrix multiplication below a convolution, an
    attention or a recurrent layer belongs to that operator, and a nameless or plain reduction takes the kind of its operator.
    """
    if own is None:
        return None if launcher in _NO_WORK else launcher
    if own == "matmul" and launcher in ("conv", "attention", "rnn"):
        return launcher
    if own in _WEAK_KERNELS and launcher in ("optimizer_update", "embedding_grad", "embedding_lookup", "softmax", "norm", "loss"):
        return launcher
    if own == "reduction" and launcher in _STRONG_OPERATORS:
        return launcher
    if own == "elementwise" and launcher in ("cast", "random", "activation", "index", "layout", "pool", "resample"):
        return launcher
    return own


# Keras writes the names of classes with underlines: schedule_free_adam_w
_OPTIMIZER_SCOPE = re.compile(
    r"^(?:StatefulPartitionedCall/)*(?:training(?:_\d+)?/)?(?:[a-z0-9]+_)*"
    r"(?:adam(?:_?w)?|sgd|rm_?sprop|adagrad|adadelta|adamax|nadam|ftrl|lion|lamb|adafactor|muon|optimizer)(?:_\d+)?/",
    re.IGNORECASE,
)
_BACKWARD_SCOPE = re.compile(
    r"^(?:StatefulPartitionedCall/)*AddN(?:_\d+)?(?:/|$)|(?:^|/)(?:gradient_tape|gradients(?:_\d+)?)/|transpose\(jvp\(|_grad/|Gradient/"
)
_APPLY = re.compile(r"^(Resource)?(Sparse)?Apply|^ResourceSparseApply|^ResourceScatter(Add|Sub|Update)$|^AssignSubVariableOp$")
_BACKWARD_ANNOTATION = re.compile(
    r"^autograd::engine::evaluate_function|^torch::autograd::|Backward\d*$|CompiledFunctionBackward|^tracediag_backward$"
)
_OPTIMIZER_ANNOTATION = re.compile(r"^Optimizer\.(step|zero_grad)#|^aten::_fused_(adam|sgd|adagrad)|optimizer_step$|^tracediag_optimizer$")


def scope_phase(name: str, label: str | None, kind: str | None, role: str) -> str | None:
    """Phase that an op's own name, label (scope) or kind proves; None: look at what encloses it or at its place in the step."""
    if kind in ("input_wait", "input_work"):
        return "input"
    if kind == "collective":
        return "comm"
    found = _label_phase(label) if label is not None else None
    if found is None and role in _HOST_ROLES:
        found = _range_phase(name)
    return found


@lru_cache(1 << 16)
def _label_phase(label: str) -> str | None:
    """Phase that the scope in a label proves."""
    if _BACKWARD_SCOPE.search(label):
        return "backward"
    return "optimizer" if _OPTIMIZER_SCOPE.search(label) else None


@lru_cache(1 << 16)
def _range_phase(name: str) -> str | None:
    """Phase that the name of a host event proves."""
    if _OPTIMIZER_ANNOTATION.search(name) or _APPLY.search(name):
        return "optimizer"
    return "backward" if _BACKWARD_ANNOTATION.search(name) else None
