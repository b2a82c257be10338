"""Facts of a TensorFlow run for run.json: flags, devices, versions, functions, variables of functions."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from . import switches, tf_sources
from .tf_functions import Watch, uses_xla
from .tf_graphs import concretes

if TYPE_CHECKING:
    from collections.abc import Callable

    from .keras_registry import Registry

MOST_FUNCTIONS = 200


def functions(watch: Watch) -> list[dict[str, Any]]:
    """Rows of `functions`: those that were called, or traced. A script that ends with its main() has let go of its functions: what was
    known of them stands, with what was counted since."""
    for function, record in list(watch.records.items()):
        count = getattr(function, "experimental_get_tracing_count", None)  # a concrete function has none
        name = getattr(function, "_name", None) or getattr(getattr(function, "graph", None), "name", "")
        record.row = {
            "name": str(name), "calls": record.calls, "tracing_count": 1 if count is None else count(),
            "jit_compile": uses_xla(function) or record.xla, "source": tf_sources.of_function(getattr(function, "python_function", None)),
            "caller": record.caller,
        }  # fmt: skip
        record.traced = 0
    rows = [
        {**record.row, "calls": record.calls, "tracing_count": record.row["tracing_count"] + record.traced}
        for record in watch.all_records
        if record.row is not None
    ]
    rows.sort(key=lambda row: row["calls"], reverse=True)
    return rows[:MOST_FUNCTIONS]


def add_variables(watch: Watch, registry: Registry, embedded: set[int]) -> None:
    """Add the variables that training functions capture; mark those that rows were looked up in (ids of their handles)."""
    for function, record in list(watch.records.items()):
        if not record.training:
            continue
        for concrete in concretes(function)[-2:]:
            for variable in concrete.graph.variables:
                row = registry.variable(variable)
                if row is not None and id(getattr(variable, "_handle", None)) in embedded:
                    row["embedding"] = True


def flags(tensorflow: Any) -> dict[str, Any]:
    """Settings, by dotted name; one that this version lacks is left out."""
    config = tensorflow.config
    found: dict[str, Any] = dict(switches.flags())
    wanted: dict[str, Callable[[], Any]] = {
        "tf.run_functions_eagerly": config.functions_run_eagerly,
        "tf.optimizer.jit": config.optimizer.get_jit,
        "tf.optimizer.options": config.optimizer.get_experimental_options,
        "tf.intra_op_threads": config.threading.get_intra_op_parallelism_threads,
        "tf.inter_op_threads": config.threading.get_inter_op_parallelism_threads,
        "tf.soft_device_placement": config.get_soft_device_placement,
        "tf.deterministic_ops": lambda: config.experimental.is_op_determinism_enabled(),
        "tf.tensor_float_32": lambda: config.experimental.tensor_float_32_execution_enabled(),
    }
    for name, read in wanted.items():
        value = _read(read)
        if value is not None:
            found[name] = value
    for name in ("keras", "tf_keras"):
        module = sys.modules.get(name)
        if module is not None:
            found[name + ".backend"] = _read(lambda module=module: module.config.backend()) or "tensorflow"  # type: ignore[misc]
            policy = _read(lambda module=module: module.mixed_precision.global_policy().name)  # type: ignore[misc]
            found[name + ".dtype_policy"] = policy or _read(lambda module=module: module.config.dtype_policy().name)  # type: ignore[misc]
    return found


def _read(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (AttributeError, RuntimeError, ValueError, TypeError):  # older or newer versions lack some
        return None


def versions(tensorflow: Any) -> dict[str, str | None]:
    """Versions of the packages in use; CUDA and cuDNN that TensorFlow was built for."""
    found: dict[str, str | None] = {"tensorflow": str(tensorflow.__version__)}
    for name in ("keras", "tf_keras", "numpy"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if version:
            found[name] = str(version)
    build = _read(tensorflow.sysconfig.get_build_info) or {}
    for name, key in (("cuda", "cuda_version"), ("cudnn", "cudnn_version")):
        if build.get(key):
            found[name] = str(build[key])
    return found


def devices(tensorflow: Any) -> list[dict[str, Any]]:
    """Physical devices. Only after a step: listing them earlier would fix settings that the script may still want to make."""
    rows = []
    for device in tensorflow.config.list_physical_devices():
        kind = device.device_type.lower()
        if kind.startswith("xla"):
            continue
        details = _read(lambda device=device: tensorflow.config.experimental.get_device_details(device)) or {}  # type: ignore[misc]
        capability = details.get("compute_capability")
        rows.append({
            "device": device.name.rsplit("device:", 1)[-1], "type": kind, "name": details.get("device_name"),
            "vendor": "nvidia" if capability else None, "sm_count": None, "memory_bytes": None,
            "compute_capability": float(f"{capability[0]}.{capability[1]}") if capability else None,
        })  # fmt: skip
    return rows
