"""What a Kineto event is: category (and, for old traces, name) -> role."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tracediag.columns import ROLES, Coded

__all__ = ["DROP", "MEMORY", "METADATA", "final_roles", "role_of"]

DROP, MEMORY, METADATA = -1, -2, -3
"""Codes of events that are no rows: counted only, [memory] instants, metadata ("ph": "M")."""

_ROLE_OF = {
    "cpu_op": "op",
    "operator": "op",
    "function": "function",
    "user_annotation": "annotation",
    "python_function": "python",
    "cuda_runtime": "runtime",
    "cuda_driver": "runtime",
    "runtime": "runtime",
    "hip_runtime": "runtime",
    "hip_driver": "runtime",
    "hip": "runtime",
    "xpu_runtime": "runtime",
    "xpu_driver": "runtime",
    "mtia_runtime": "runtime",
    "privateuse1_runtime": "runtime",
    "privateuse1_driver": "runtime",
    "kernel": "kernel",
    "mtia_ccp_events": "kernel",
    "gpu_memcpy": "copy",
    "memcpy": "copy",
    "gpu_memset": "memset",
    "memset": "memset",
    "gpu_user_annotation": "device_annotation",
    "cuda_profiler_range": "device_annotation",
    "cuda_sync": "device_sync",
    "enqueue": "framework",
    "dequeue": "framework",
    "overhead": "overhead",
}
_NO_EVENTS = ("trace", "tracediag_finding")
"""The span of the whole trace, and the findings that our own export adds."""
_RANGES = ("ProfilerStep#", "nccl:", "gloo:", "mpi:", "ucc:", "Optimizer.", "enumerate(DataLoader)")
"""Names of ranges that old versions write as cpu_op."""
_OP_NAMES = ("aten::", "autograd::", "torch::", "prims::", "c10::", "quantized::")


def role_of(ph: str, cat: str) -> int:
    """Index in ROLES, or DROP, MEMORY, METADATA."""
    cat = cat.lower()
    if ph == "X":
        return DROP if cat in _NO_EVENTS else ROLES.index(_ROLE_OF.get(cat, "framework"))
    if ph in ("i", "I") and cat == "cpu_instant_event":
        return MEMORY
    return METADATA if ph == "M" else DROP


def final_roles(roles: npt.NDArray[np.int8], name: Coded) -> npt.NDArray[np.int32]:
    """Roles after a look at the names: ranges among the ops become annotations, ops without a category become ops."""
    op, annotation, framework, function = (ROLES.index(role) for role in ("op", "annotation", "framework", "function"))
    result = roles.astype(np.int32)
    result[(roles == op) & name.where([value.startswith("Torch-Compiled Region") for value in name.values])] = function
    result[(roles == op) & name.where([value.startswith("TorchDynamo ") for value in name.values])] = framework
    result[(roles == op) & name.where([value.startswith(_RANGES) for value in name.values])] = annotation
    result[(roles == framework) & name.where([value.startswith(_OP_NAMES) for value in name.values])] = op
    return result
