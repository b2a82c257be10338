"""What torch.compile did: compilations and their time per step, functions, reasons of recompiles."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from . import callsite, guard

PHASES = ("_compile.compile_inner", "compile_fx.<locals>.bw_compiler")  # a frame's forward compilation, and a backward one made later
REASONS = 20


class Dynamo:
    """Reads torch._dynamo's own counters, only once the script has had it imported."""

    def __init__(self) -> None:
        self.asked = False
        self._callers: dict[str, str | None] = {}  # definition or name of a compiled function -> call of torch.compile
        self._counted = [0] * len(PHASES)

    def watch(self, torch: Any, on_compile: Callable[[], Any]) -> None:
        """See calls of `torch.compile` (a module's own `compile` goes through it)."""
        original = torch.compile
        told = guard.quiet(self._note)

        @functools.wraps(original)
        def compile(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            told(args[0] if args else None, on_compile)
            return result

        torch.compile = compile

    def _note(self, function: Any, on_compile: Callable[[], Any]) -> None:
        self.asked = True
        place = callsite.of_code(function)
        self._callers.setdefault(place or type(function).__name__, callsite.here())
        on_compile()

    def sample(self) -> tuple[int | None, int | None]:
        """Compilations so far, and ns spent compiling since the last call; None while dynamo is not in use."""
        utils = sys.modules.get("torch._dynamo.utils")
        if utils is None or not self.asked:
            return None, None
        spent = 0.0
        for index, phase in enumerate(PHASES):
            times = utils.compilation_time_metrics.get(phase, ())
            if len(times) > self._counted[index]:
                spent += sum(times[self._counted[index] :])
                self._counted[index] = len(times)
        return self._counted[0], int(spent * 1e9)

    @guard.quiet
    def functions(self) -> list[dict[str, Any]]:
        """Rows of the table `functions`: one per compiled frame."""
        rows: dict[str, dict[str, Any]] = {}
        for metric in self._metrics():
            file = callsite.user_file(metric.co_filename)
            source = None if file is None else f"{file}:{metric.co_firstlineno}"
            row = rows.setdefault(source or metric.co_name, {
                "name": metric.co_name, "calls": None, "tracing_count": 0, "jit_compile": None, "source": source,
                "caller": self._callers.get(source or "", None) or next(iter(self._callers.values()), None),
            })  # fmt: skip
            row["tracing_count"] += 1
        return list(rows.values())

    def _metrics(self) -> list[Any]:
        utils = sys.modules.get("torch._dynamo.utils")
        if utils is None or not self.asked or not hasattr(utils, "get_compilation_metrics"):
            return []
        return [metric for metric in utils.get_compilation_metrics() if getattr(metric, "co_filename", None)]

    @guard.quiet
    def flags(self) -> dict[str, Any]:
        """Counters, reasons and limits, as flags."""
        utils = sys.modules.get("torch._dynamo.utils")
        if utils is None or not self.asked:
            return {}
        config = sys.modules.get("torch._dynamo.config")
        counters = utils.counters
        reasons = [str(m.recompile_reason) for m in self._metrics() if getattr(m, "recompile_reason", None)]
        failed = [str(m.fail_reason) for m in self._metrics() if getattr(m, "fail_reason", None)]
        limit = getattr(config, "recompile_limit", None) or getattr(config, "cache_size_limit", None)
        breaks = counters.get("graph_break", {})
        return {
            "dynamo.frames": counters.get("frames", {}).get("total", 0),
            "dynamo.unique_graphs": counters.get("stats", {}).get("unique_graphs", 0),
            "dynamo.graph_breaks": sum(breaks.values()),
            "dynamo.graph_break_reasons": [str(reason)[:300] for reason in list(breaks)[:REASONS]],
            "dynamo.reasons": [_shorten(reason) for reason in reasons[-REASONS:]],
            "dynamo.recompile_limit": limit,
            "dynamo.recompile_limit_hit": any("recompile_limit" in text or "cache_size_limit" in text for text in failed)
            or any("recompile_limit" in str(key) or "cache_size_limit" in str(key) for key in counters.get("unimplemented", {})),
        }


def _shorten(reason: str) -> str:
    return " ".join(reason.split())[:300]
