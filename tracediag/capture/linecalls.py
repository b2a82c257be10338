"""What the source says of lines that were recorded: the columns `calls` of `lines` and `function` of `optimizers`."""

from __future__ import annotations

import ast
import json
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ["add_calls", "add_step_functions", "calls_at", "step_function"]

MOST = 8
UPDATES = ("apply_gradients", "apply", "minimize", "step")
BLOCKS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.For, ast.AsyncFor, ast.While)


def add_calls(rows: list[dict[str, Any]], folders: Sequence[Path]) -> None:
    """Fill `calls` of the rows whose `source` is a line of a file below one of the folders; rows of other files stay as they are."""
    for row, _, text, line in _located(rows, folders):
        row["calls"] = json.dumps(calls_at(text, line), separators=(",", ":"))


def add_step_functions(rows: list[dict[str, Any]], folders: Sequence[Path]) -> None:
    """Fill `function` of the rows of `optimizers` whose `source` is a line of a file below one of the folders."""
    for row, name, text, line in _located(rows, folders):
        start = step_function(text, line)
        row["function"] = None if start is None else f"{name}:{start}"


def _located(rows: list[dict[str, Any]], folders: Sequence[Path]) -> Iterator[tuple[dict[str, Any], str, str, int]]:
    """The rows whose source is known, with name and text of its file and the line."""
    for row in rows:
        name, _, line = str(row.get("source") or "").rpartition(":")
        path = next((folder / name for folder in folders if name and (folder / name).is_file()), None)
        if path is not None and line.isdigit():
            yield row, name, _text(path), int(line)


@cache
def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):  # gone or no text: nothing is known of its lines
        return ""


def calls_at(source: str, line: int) -> list[str]:
    """Dotted names of what the statement at `line` calls, in order; of a compound statement its head only. Empty when the source does
    not parse. A comprehension or generator counts as `for`, a slice or index as `[]`."""
    tree = _tree(source)
    found: list[str] = []
    for node in _of_statement(tree, line) if tree is not None else ():
        name = _name(node)
        if name and name not in found:
            found.append(name)
    return found[:MOST]


def step_function(source: str, line: int) -> int | None:
    """Line of the `def` of the innermost function that holds the update of an optimizer at `line`, when no loop of that function holds
    it: the function is called once a step. None where the line updates nothing (`fit` does it inside)."""
    tree = _tree(source)
    if tree is None or not any(call.rsplit(".", 1)[-1] in UPDATES for call in calls_at(source, line)):
        return None
    holding = [node for node in ast.walk(tree) if isinstance(node, BLOCKS) and node.lineno <= line <= (node.end_lineno or node.lineno)]
    inner = max(holding, key=lambda node: node.lineno, default=None)
    return inner.lineno if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)) else None


@cache
def _tree(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return None


def _of_statement(tree: ast.Module, line: int) -> Iterator[ast.AST]:
    """Expression nodes of the innermost statement whose own lines hold `line`."""
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    holding = [node for node in statements if node.lineno <= line <= (node.end_lineno or node.lineno)]
    best = max(holding, key=lambda node: node.lineno, default=None)
    for child in ast.iter_child_nodes(best) if best is not None else ():
        if not isinstance(child, (ast.stmt, ast.excepthandler)):
            yield from ast.walk(child)


def _name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            return node.func.id
        if isinstance(node.func, ast.Attribute):
            return _dotted(node.func)
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
        return "for"
    return "[]" if isinstance(node, ast.Subscript) else None


def _dotted(node: ast.Attribute) -> str:
    """'torch.tensor'; of a method of something longer only '.tolist'."""
    parts = [node.attr]
    value: ast.expr = node.value
    while isinstance(value, ast.Attribute):
        parts.append(value.attr)
        value = value.value
    return ".".join(reversed([*parts, value.id])) if isinstance(value, ast.Name) else "." + node.attr
