"""Read the script's source for where it reads the clock, and what the time between two reads holds: the table `clocks`."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["scan", "scan_source"]

CLOCKS = frozenset({"time", "perf_counter", "monotonic", "process_time", "perf_counter_ns", "time_ns", "monotonic_ns", "process_time_ns"})
STEP_CALLS = frozenset({"step", "backward", "apply_gradients", "apply", "minimize", "train_on_batch", "train_step", "fit"})
SYNCHRONISING = frozenset({"synchronize", "item", "numpy", "tolist", "cpu"})
ROBUST = frozenset({"median", "nanmedian", "quantile", "percentile", "trim_mean", "min"})
TRACERS = frozenset({"function", "compile", "jit"})  # tf.function, torch.compile, jax.jit
COUNTERS = ("step", "epoch", "iter", "batch", "idx", "index", "count", "warm", "i", "n", "it", "e", "b", "t")

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While


def scan(script: Path) -> list[dict[str, Any]]:
    """Rows of the table `clocks` for a script file, named relative to the working directory when inside it; none when it cannot be read
    or parsed."""
    path = script.resolve()
    name = path.relative_to(Path.cwd()).as_posix() if path.is_relative_to(Path.cwd()) else script.name
    try:
        return scan_source(script.read_text(encoding="utf-8"), name)
    except (OSError, ValueError, SyntaxError):  # Python says so itself when it runs the script
        return []


def scan_source(source: str, name: str) -> list[dict[str, Any]]:
    """Rows of the table `clocks`: one per read that starts a measurement, or that stands in a traced function.

    includes_first_step and synchronised are None where the source does not tell. Raises SyntaxError, ValueError.
    """
    module = _Module(ast.parse(source))
    rows = ((read, module.row(read)) for read in module.reads)
    return [{"source": f"{name}:{_place(read)[0]}", **row} for read, row in rows if row is not None]


class _Module:
    """The syntax tree with parents, clock reads, traced functions and functions that train."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self.aliases = _clock_aliases(tree)
        self.reads: list[ast.AST] = sorted((n for n in ast.walk(tree) if self._is_read(n)), key=_place)
        self.traced = _traced_functions(tree)
        self.training = _training_functions(tree)
        self.robust = any(isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ROBUST for node in ast.walk(tree))

    def _is_read(self, node: ast.AST) -> bool:
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Attribute) and node.func.attr in CLOCKS:
            return isinstance(node.func.value, ast.Name) and node.func.value.id in self.aliases
        return isinstance(node.func, ast.Name) and node.func.id in self.aliases

    def row(self, read: ast.AST) -> dict[str, Any] | None:
        """What the read starts; None for a read that only ends a measurement or that measures no training."""
        function = self._function(read)
        base = {"function": None if function is None else function.name, "in_traced_function": self._in_traced(read)}
        if base["in_traced_function"]:
            return {"includes_first_step": None, "synchronised": None, **base}
        name = self._assigned(read)
        ends = [] if name is None else self._ends(name, read)
        if not ends:
            return None
        body = self._between(read, ends[-1])
        if body is None:
            return None
        # a median of step times, or the best of them, is not moved by the first one
        robust = self._loop(read) is not None and self.robust
        first = None if robust else self._first_step(read, ends, name)
        return {"includes_first_step": first, "synchronised": self._synchronised(read, ends[-1], body), **base}

    def _above(self, node: ast.AST) -> Iterator[ast.AST]:
        while node in self.parents:
            node = self.parents[node]
            yield node

    def _function(self, node: ast.AST) -> Function | None:
        return next((n for n in self._above(node) if isinstance(n, Function)), None)

    def _scope(self, node: ast.AST) -> ast.AST:
        return self._function(node) or self.tree

    def _loop(self, node: ast.AST) -> Loop | None:
        """The innermost loop around it within its function."""
        for above in self._above(node):
            if isinstance(above, Function):
                return None
            if isinstance(above, Loop):
                return above
        return None

    def _in_traced(self, node: ast.AST) -> bool:
        return any(isinstance(above, Function) and above.name in self.traced for above in self._above(node))

    def _assigned(self, read: ast.AST) -> str | None:
        """Name of the variable or attribute that keeps the read itself (not a difference)."""
        parent = self.parents.get(read)
        if isinstance(parent, ast.Assign) and parent.value is read:
            return ast.unparse(parent.targets[0])
        return None

    def _ends(self, name: str, read: ast.AST) -> list[ast.AST]:
        """Reads of which the kept value is subtracted, in the order of the source."""
        ends = []
        for node in ast.walk(self._scope(read)):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and ast.unparse(node.right) == name:
                ends += self._end_reads(node.left, read)
        return sorted(ends, key=_place)

    def _end_reads(self, left: ast.AST, read: ast.AST) -> list[ast.AST]:
        """`time() - start`, or `end - start` with `end = time()` before."""
        if self._is_read(left):
            return [left]
        text = ast.unparse(left)
        scope = self._scope(read)
        return [other for other in self.reads if other is not read and self._scope(other) is scope and self._assigned(other) == text]

    def _between(self, read: ast.AST, end: ast.AST) -> list[ast.AST] | None:
        """Calls that train between start and end; None when there are none."""
        loop = self._loop(read) if self._loop(read) is self._loop(end) else None
        calls = [node for node in ast.walk(self._scope(read)) if isinstance(node, ast.Call) and self._trains(node)]
        return [call for call in calls if _span(read, end, call, loop)] or None

    def _trains(self, call: ast.Call) -> bool:
        return _name(call.func) in STEP_CALLS | self.training

    def _first_step(self, read: ast.AST, ends: list[ast.AST], name: str | None) -> bool | None:
        """Does the measurement hold the first step? Guards on a step count say no."""
        start_loop = self._loop(read)
        if start_loop is None:
            return not self._warmed_up(read)
        if self._guard(read, start_loop):
            return False  # `if step == WARM: start = time()`
        if any(self._reset(other, read, name) for other in self.reads):
            return False
        uses = [self._guard(end, self._loop(end)) for end in ends] + self._appends(ends)
        return not any(uses)

    def _warmed_up(self, read: ast.AST) -> bool:
        """A loop or call that trains stands before it in the same scope: the first step is over."""
        before = [node for node in ast.walk(self._scope(read)) if isinstance(node, ast.Call) and self._trains(node)]
        return any(_place(node) < _place(read) for node in before)

    def _reset(self, other: ast.AST, read: ast.AST, name: str | None) -> bool:
        """The same variable is read again under a guard on a step count."""
        return other is not read and self._assigned(other) == name and self._guard(other, self._loop(other))

    def _guard(self, node: ast.AST, loop: Loop | None) -> bool:
        """Under an `if` inside the loop whose condition compares a step or epoch count."""
        for above in self._above(node):
            if above is loop:
                return False
            if isinstance(above, ast.If) and _compares_count(above.test, loop):
                return True
        return False

    def _appends(self, ends: list[ast.AST]) -> list[bool]:
        """For each place where a difference is kept: are its uses guarded, or is a list of them used from a later entry on?"""
        guards = []
        for end in ends:
            kept = next((above for above in self._above(end) if isinstance(above, ast.Assign)), None)
            uses: list[ast.AST] = [end]
            if kept is not None and isinstance(kept.targets[0], ast.Name):
                uses = self._uses(kept.targets[0].id, end)
                guards.append(bool(uses) and all(self._guard(use, self._loop(use)) for use in uses))
            for name in {name for use in uses for name in self._lists(use)}:
                reads = [use for use in self._uses(name, end) if not isinstance(self.parents.get(use), ast.Attribute)]
                cut = any(self._cuts(use, name) for use in reads)
                guards.append(cut or (bool(reads) and all(_sliced(self.parents.get(use)) for use in reads)))
        return guards

    def _cuts(self, use: ast.AST, name: str) -> bool:
        """`times = times[10:]` or `del times[:10]`: what is read later is cut."""
        part = self.parents.get(use, use)
        statement = self.parents.get(part)
        if isinstance(statement, ast.Assign) and _sliced(part):
            return isinstance(statement.targets[0], ast.Name) and statement.targets[0].id == name
        return isinstance(statement, ast.Delete)

    def _uses(self, name: str, near: ast.AST) -> list[ast.AST]:
        """Reads of a variable in the function of `near`."""
        names = [node for node in ast.walk(self._scope(near)) if isinstance(node, ast.Name) and node.id == name]
        return [node for node in names if isinstance(node.ctx, ast.Load)]

    def _lists(self, node: ast.AST) -> Iterator[str]:
        """Names of lists to which an expression with `node` is appended."""
        for above in self._above(node):
            if isinstance(above, ast.Call) and isinstance(above.func, ast.Attribute) and above.func.attr == "append":
                if isinstance(above.func.value, ast.Name):
                    yield above.func.value.id
                return

    def _synchronised(self, read: ast.AST, end: ast.AST, calls: list[ast.AST]) -> bool | None:
        """A synchronising call stands between the last call that trains and the read that ends the time."""
        last = max(calls, key=_place)
        loop = self._loop(last)
        inside_loop = loop is not None and loop is not self._loop(end)  # then any place in the loop's body comes after the last step
        for node in ast.walk(self._scope(read)):
            if not (isinstance(node, ast.Call) and _synchronises(node) and _place(node) < _place(end)):
                continue
            if _place(last) < _place(node) or (inside_loop and self._loop(node) is loop and _place(read) < _place(node)):
                return True
        inner = _name(last.func) if isinstance(last, ast.Call) else None  # a function of the script that trains may synchronise itself
        return None if inner in self.training else False


def _place(node: ast.AST) -> tuple[int, int]:
    return node.lineno, node.col_offset  # type: ignore[attr-defined]


def _span(start: ast.AST, end: ast.AST, node: ast.AST, loop: Loop | None) -> bool:
    """The node stands between start and end; in one loop, an end before the start is that of the next round."""
    first, last, here = _place(start), _place(end), _place(node)
    if first < last:
        return bool(first < here < last)
    return loop is not None and bool((first < here or here < last) and loop.lineno <= here[0] <= (loop.end_lineno or 0))


def _name(function: ast.AST) -> str | None:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else None


def _clock_aliases(tree: ast.Module) -> set[str]:
    """Names under which the module `time` and its clocks are known."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname or alias.name for alias in node.names if alias.name in ("time", "timeit")}
        elif isinstance(node, ast.ImportFrom) and node.module in ("time", "timeit"):
            names |= {alias.asname or alias.name for alias in node.names if alias.name in CLOCKS | {"default_timer"}}
    return names


def _traced_functions(tree: ast.Module) -> set[str]:
    """Functions that are decorated with tf.function, torch.compile or jit, or passed to one of them."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, Function) and any(_is_tracer(decorator) for decorator in node.decorator_list):
            found.add(node.name)
        elif isinstance(node, ast.Call) and _is_tracer(node.func) and node.args and isinstance(node.args[0], ast.Name):
            found.add(node.args[0].id)
    return found


def _is_tracer(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):  # @tf.function(jit_compile=True), @partial(jax.jit, ...)
        return _is_tracer(node.func) or any(_is_tracer(argument) for argument in node.args[:1])
    if not isinstance(node, ast.Attribute) or node.attr not in TRACERS:
        return isinstance(node, ast.Name) and node.id in ("jit",)
    root = node.value
    return isinstance(root, ast.Name) and root.id in ("tf", "tensorflow", "torch", "jax")


def _training_functions(tree: ast.Module) -> set[str]:
    """Functions of the script in which a step is taken, and those that are wrapped and renamed: `step_fn = torch.compile(step)`."""
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, Function)}
    calls = {name: {_name(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)} for name, node in functions.items()}
    found = {name for name, called in calls.items() if called & STEP_CALLS}
    grown = True
    while grown:
        more = {name for name, called in calls.items() if name not in found and called & found}
        grown = bool(more)
        found |= more
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _is_tracer(node.value.func):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def _compares_count(test: ast.AST, loop: Loop | None) -> bool:
    """`step >= WARM`, `epoch`, `len(times) > 3`, `step % 10 == 0` is a report, not a warm-up."""
    if any(isinstance(node, ast.Mod) for node in ast.walk(test)):
        return False
    targets = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)} if isinstance(loop, ast.For | ast.AsyncFor) else set()
    names = {n.id for n in ast.walk(test) if isinstance(n, ast.Name)}
    return any(name in targets or name.lower() in COUNTERS or name.lower().startswith(COUNTERS[:7]) for name in names)


def _sliced(parent: ast.AST | None) -> bool:
    return isinstance(parent, ast.Subscript) and isinstance(parent.slice, ast.Slice) and parent.slice.lower is not None


def _synchronises(call: ast.Call) -> bool:
    name = _name(call.func)
    if isinstance(call.func, ast.Name):
        return name == "float" and bool(call.args)
    return name in SYNCHRONISING
