"""Lines of the user's code in TensorFlow's own stacks, which map AutoGraph's generated code back to the source."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from . import callsite

if TYPE_CHECKING:
    from collections.abc import Iterable

GENERATED = "__autograph_generated_file"


def of_frames(frames: Iterable[Any]) -> str | None:
    """The innermost user frame ("train.py:12") of a stack given outermost first (objects with filename and lineno)."""
    found = None
    for frame in frames:
        if GENERATED not in frame.filename and callsite.user_file(frame.filename) is not None:
            found = frame
    return None if found is None else f"{callsite.user_file(found.filename)}:{found.lineno}"


def here(stack_module: Any) -> str | None:
    """The user's line that runs now, inside a traced function too. stack_module: tensorflow.python.util.tf_stack, or None."""
    return callsite.here() if stack_module is None else of_frames(stack_module.extract_stack())


def of_function(function: Any) -> str | None:
    """Where a Python function is defined, library functions with the last two parts of their path."""
    code = getattr(_innermost(function), "__code__", None)
    if code is None:
        return None
    return f"{callsite.relative(os.path.abspath(code.co_filename))}:{code.co_firstlineno}"


def of_user_function(function: Any) -> str | None:
    """The same; None for functions of libraries."""
    return callsite.of_code(_innermost(function))


def _innermost(function: Any) -> Any:
    """What decorators, partials and methods wrap."""
    for _ in range(10):
        inner = getattr(function, "__wrapped__", None) or getattr(function, "func", None) or getattr(function, "__func__", None)
        if inner is None:
            break
        function = inner
    return function
