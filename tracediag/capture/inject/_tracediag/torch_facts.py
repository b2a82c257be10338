"""torch's parts of run.json: parameters, optimizers, loaders, compiled functions, backend flags, devices, versions."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import guard, switches

if TYPE_CHECKING:
    from .torch_adapter import TorchAdapter

MAX_PARAMS = 20_000


def gather(adapter: TorchAdapter) -> dict[str, Any]:
    """All facts; a part that fails is noted and left out."""
    torch = adapter.torch
    facts: dict[str, Any] = {"used": bool(adapter.roots or adapter.optimizers or adapter.recorder.tracks.get("torch"))}
    parts: dict[str, Callable[[], Any]] = {
        "params": lambda: _params(adapter), "optimizers": lambda: _optimizers(adapter), "loaders": adapter.loaders.facts,
        "functions": adapter.dynamo.functions, "devices": lambda: _devices(torch), "versions": lambda: _versions(torch),
        "flags": lambda: _all_flags(adapter), "host": lambda: _threads(torch),
        "call_sites": lambda: [[what, where] for what, where in adapter.sites], "embeddings": lambda: _embeddings(adapter),
    }  # fmt: skip
    for name, part in parts.items():
        try:
            facts[name] = part() or ({} if name in ("versions", "flags", "host") else [])
        except Exception:  # one missing table must not cost the others
            guard.failed("facts." + name)
    return facts


# -- parameters ----------------------------------------------------------------------------------------------------------------


def _params(adapter: TorchAdapter) -> list[dict[str, Any]]:
    owners = _owners(adapter)
    rows: list[dict[str, Any]] = []
    seen: set[int] = set()
    for name, parameter, module in _named(adapter, owners):
        if id(parameter) not in seen and len(rows) < MAX_PARAMS:
            seen.add(id(parameter))
            adapter.grads.note(parameter)
            rows.append(_param_row(adapter, name, parameter, module, owners.get(id(parameter))))
    loose = [row for row in rows if row["module"] is None and row["optimizer"] is None]
    if loose:
        adapter.loose = loose
    return rows if loose else rows + adapter.loose  # their gradients may be gone by the end of the script


def _owners(adapter: TorchAdapter) -> dict[int, tuple[int, int, Any, Any]]:
    """Parameter id -> index of its optimizer, index of its group, the group, the parameter."""
    owners: dict[int, tuple[int, int, Any, Any]] = {}
    for index, row in enumerate(adapter.optimizers):
        optimizer = row["ref"]()
        for number, group in enumerate(() if optimizer is None else optimizer.param_groups):
            for parameter in group["params"]:
                owners.setdefault(id(parameter), (index, number, group, parameter))
    return owners


def _named(adapter: TorchAdapter, owners: dict[int, Any]) -> list[tuple[str, Any, Any]]:
    """(qualified name, parameter, holding module or None): of root modules, then of other modules that hold a parameter of an
    optimizer, then loose tensors that got a gradient or belong to an optimizer."""
    roots = [module for module in (reference() for reference in adapter.roots) if module is not None]
    names = _variable_names()
    found = [entry for root in roots for entry in _of_module(root, _prefix(root, roots, names))]
    known = {id(parameter) for _, parameter, _ in found}
    modules, loose = _search_heap(adapter.torch, known, set(owners) | set(adapter.grads.seen))
    for module in modules:
        extra = [entry for entry in _of_module(module, _prefix(module, modules, names)) if id(entry[1]) not in known]
        known.update(id(parameter) for _, parameter, _ in extra)
        found += extra
    rest = [tensor for tensor in loose if id(tensor) not in known]
    rest += [owner[3] for key, owner in owners.items() if key not in known and all(owner[3] is not tensor for tensor in rest)]
    for tensor in rest:
        found.append((names.get(id(tensor), f"tensor{len(found)}"), tensor, None))
    return found


def _prefix(module: Any, siblings: list[Any], names: dict[int, str]) -> str:
    """Several root modules need their variable's name in front."""
    return "" if len(siblings) < 2 else names.get(id(module), type(module).__name__.lower()) + "."


def _of_module(root: Any, prefix: str) -> list[tuple[str, Any, Any]]:
    entries = []
    for path, module in root.named_modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                entries.append((prefix + (path + "." if path else "") + name, parameter, module))
    return entries


def _variable_names() -> dict[int, str]:
    """Names of the script's global variables by the id of their values."""
    main = sys.modules.get("__main__")
    return {id(value): name for name, value in list(vars(main).items()) if not name.startswith("_")} if main is not None else {}


def _search_heap(torch: Any, known: set[int], used: set[int]) -> tuple[list[Any], list[Any]]:
    """Modules that are part of no other and hold unknown parameters, and leaf tensors outside modules that got a gradient."""
    modules, tensors = [], []
    for thing in gc.get_objects():
        kind = type(thing)
        if issubclass(kind, torch.nn.Module):
            modules.append(thing)
        elif issubclass(kind, torch.Tensor) and id(thing) not in known and thing.requires_grad and thing.is_leaf:
            tensors.append(thing)
    inner = {id(child) for module in modules for child in module.__dict__.get("_modules", {}).values()}
    tops = [m for m in modules if id(m) not in inner and "_parameters" in m.__dict__ and _holds_unknown(m, known, used)]
    return tops, [tensor for tensor in tensors if tensor.grad is not None]


def _holds_unknown(module: Any, known: set[int], used: set[int]) -> bool:
    return any(id(p) not in known and (id(p) in used or p.grad is not None) for p in module.parameters())


def _param_row(adapter: TorchAdapter, name: str, parameter: Any, module: Any, owner: Any) -> dict[str, Any]:
    nobody: tuple[None, None, dict[str, Any], None] = (None, None, {}, None)
    index, number, group, _ = owner or nobody
    return {
        "name": name, "shape": _json(list(parameter.shape)), "numel": parameter.numel(), "dtype": _dtype(parameter.dtype),
        "device": str(parameter.device), "requires_grad": bool(parameter.requires_grad),
        "grad": adapter.grads.seen.get(id(parameter), "none"), "optimizer": index, "param_group": number,
        "module": None if module is None else type(module).__name__,
        "sparse": getattr(module, "sparse", None) if module is not None and "Embedding" in type(module).__name__ else None,
        "weight_decay": _number(group.get("weight_decay")),
    }  # fmt: skip


def _embeddings(adapter: TorchAdapter) -> list[dict[str, Any]]:
    """Options of embedding modules, by the name of their table."""
    rows = []
    for name, parameter, module in _named(adapter, _owners(adapter)):
        if module is not None and "Embedding" in type(module).__name__ and hasattr(module, "num_embeddings"):
            rows.append({
                "param": name, "class": type(module).__name__, "rows": module.num_embeddings, "dim": module.embedding_dim,
                "sparse": bool(module.sparse), "max_norm": _number(module.max_norm), "padding_idx": module.padding_idx,
                "scale_grad_by_freq": bool(module.scale_grad_by_freq), "requires_grad": bool(parameter.requires_grad),
            })  # fmt: skip
    return rows


# -- optimizers, devices, flags -------------------------------------------------------------------------------------------------


def _optimizers(adapter: TorchAdapter) -> list[dict[str, Any]]:
    return [_optimizer_row(row, row["ref"]()) for row in adapter.optimizers]


def _optimizer_row(row: dict[str, Any], optimizer: Any) -> dict[str, Any]:
    if optimizer is not None:
        groups = optimizer.param_groups
        row["facts"] = {
            "class": type(optimizer).__name__, "module": type(optimizer).__module__.rsplit(".", 1)[0],
            "foreach": _option(groups, "foreach"), "fused": _option(groups, "fused"),
            "weight_decay": _largest(groups, "weight_decay"), "momentum": _largest(groups, "momentum"),
            "groups": len(groups), "params": sum(len(group["params"]) for group in groups),
        }  # fmt: skip
    return {**row.get("facts", {}), "steps": row["steps"], "source": row["source"]}


def _option(groups: list[Any], name: str) -> bool | None:
    values = [group.get(name) for group in groups if group.get(name) is not None]
    return bool(values[0]) if values else None


def _largest(groups: list[Any], name: str) -> float | None:
    values = [value for value in (_number(group.get(name)) for group in groups) if value is not None]
    return max(values) if values else None


def _number(value: Any) -> float | None:
    """A plain number; None for tensors (reading one could wait for a device) and everything else."""
    return float(value) if isinstance(value, (int, float)) else None


def _devices(torch: Any) -> list[dict[str, Any]]:
    rows = []
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        for index in range(torch.cuda.device_count()):
            facts = torch.cuda.get_device_properties(index)
            amd = bool(getattr(torch.version, "hip", None))
            rows.append({
                "device": f"cuda:{index}", "type": "gpu", "name": facts.name, "vendor": "amd" if amd else "nvidia",
                "sm_count": facts.multi_processor_count, "memory_bytes": facts.total_memory,
                "compute_capability": None if amd else float(f"{facts.major}.{facts.minor}"), "driver": _driver(torch),
            })  # fmt: skip
    return rows


def _driver(torch: Any) -> str | None:
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8") as stream:
            words = stream.readline().split()
    except OSError:  # no such file outside Linux and in some containers
        version = getattr(torch._C, "_cuda_getDriverVersion", None)
        return str(version()) if version is not None else None
    return next((word for word in words if word.count(".") >= 1 and word[0].isdigit()), None)


def _versions(torch: Any) -> dict[str, Any]:
    versions: dict[str, Any] = {"torch": str(torch.__version__), "cuda": torch.version.cuda, "hip": getattr(torch.version, "hip", None)}
    if torch.cuda.is_initialized() and torch.backends.cudnn.is_available():
        versions["cudnn"] = str(torch.backends.cudnn.version())
    for name in ("numpy", "lightning", "pytorch_lightning", "transformers", "accelerate", "torchvision"):
        module = sys.modules.get(name)
        if module is not None:
            versions[name] = getattr(module, "__version__", None)
    return {name: value for name, value in versions.items() if value is not None}


def _threads(torch: Any) -> dict[str, Any]:
    return {"intra_op_threads": torch.get_num_threads(), "inter_op_threads": torch.get_num_interop_threads()}


def _all_flags(adapter: TorchAdapter) -> dict[str, Any]:
    adapter.hook_count.look(len(adapter.recorder.series), adapter.optimizers, adapter.roots)
    parts = _flags(adapter), adapter.dynamo.flags() or {}, adapter.hook_count.flags(), adapter.subnormals.flags(), switches.flags()
    return {name: value for part in parts for name, value in part.items()}


def _flags(adapter: TorchAdapter) -> dict[str, Any]:
    torch = adapter.torch
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    flags = {
        "torch.backends.cudnn.enabled": cudnn.enabled, "torch.backends.cudnn.benchmark": cudnn.benchmark,
        "torch.backends.cudnn.deterministic": cudnn.deterministic, "torch.float32_matmul_precision": torch.get_float32_matmul_precision(),
        "torch.deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "torch.anomaly_mode": torch.is_anomaly_enabled(), "torch.default_dtype": _dtype(torch.get_default_dtype()),
        "torch.num_threads": torch.get_num_threads(), "torch.num_interop_threads": torch.get_num_interop_threads(),
        "torch.autocast_seen": adapter.autocast, "torch.compile_used": adapter.dynamo.asked,
        "torch.cuda_used": adapter.profiler.device() == "cuda",
    }  # fmt: skip
    for name, owner in (("torch.backends.cudnn.allow_tf32", cudnn), ("torch.backends.cuda.matmul.allow_tf32", matmul)):
        try:
            flags[name] = owner.allow_tf32
        except RuntimeError:  # set through the newer interface: torch refuses to translate it back
            flags[name] = None
    if torch.cuda.is_initialized():
        flags["torch.cuda.max_memory_allocated"] = torch.cuda.max_memory_allocated()
        flags["torch.cuda.max_memory_reserved"] = torch.cuda.max_memory_reserved()
        flags["torch.cuda.alloc_retries"] = torch.cuda.memory_stats().get("num_alloc_retries")
    return flags


def _dtype(dtype: Any) -> str:
    return str(dtype).replace("torch.", "")


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
