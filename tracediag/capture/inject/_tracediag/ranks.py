"""The ranks of a distributed job: which one this process is, and how those that it starts are recorded too."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from . import guard, imports
from .config import VARIABLE

PATH = "PYTHONPATH"


def told() -> int | None:
    """The rank that a launcher such as torchrun has given this process; None without one."""
    text, world = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    return int(text) if text.isdigit() and world.isdigit() else None


def file_of(rank: int | None) -> str:
    """Name of the file by which a process reports in; None: not a rank, or not known to be one yet."""
    return ".child.json" if rank is None else f".child.rank{rank}.json"


def recorded(out: str) -> bool:
    """A process has reported in as a rank."""
    return any(name.startswith(".child.rank") for name in os.listdir(out))


def joined(action: Callable[[int], Any]) -> None:
    """Run `action(rank)` once this process has become one of several in a process group of torch."""
    quiet = guard.quiet(action)

    def patch(module: Any) -> None:
        original = module.init_process_group

        @functools.wraps(original)
        def init_process_group(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if module.get_world_size() > 1:
                quiet(module.get_rank())
            return result

        module.init_process_group = init_process_group

    imports.after("torch.distributed.distributed_c10d", patch)


def hand_on(folder: str, request: str, started: Callable[[], Any]) -> None:
    """Let processes record that this one starts as ranks: those with a rank in their environment, and those that multiprocessing spawns
    (they record when they join a process group). `started` is called when a rank is started by its environment."""
    imports.after("subprocess", functools.partial(_patch_popen, folder, request, started))
    imports.after("multiprocessing.popen_spawn_posix", functools.partial(_patch_spawn, folder, request))


def _request(folder: str, request: str, environment: Any) -> dict[str, str]:
    """What makes a Python process that is started with `environment` read the request."""
    path = environment.get(PATH)
    return {VARIABLE: request, PATH: folder + os.pathsep + path if path else folder}


def _patch_popen(folder: str, request: str, started: Callable[[], Any], module: Any) -> None:
    original = module.Popen.__init__

    @functools.wraps(original)
    def start(self: Any, *args: Any, **kwargs: Any) -> None:
        env = kwargs.get("env")
        if isinstance(env, dict) and str(env.get("RANK", "")).isdigit() and "WORLD_SIZE" in env and "RANK" not in os.environ:
            kwargs["env"] = {**env, **_request(folder, request, env)}
            started()
        original(self, *args, **kwargs)

    module.Popen.__init__ = start


def _patch_spawn(folder: str, request: str, module: Any) -> None:
    original = module.Popen._launch

    @functools.wraps(original)
    def launch(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = os.environ.get(PATH)
        os.environ.update(_request(folder, request, os.environ))
        try:
            return original(self, *args, **kwargs)
        finally:
            del os.environ[VARIABLE]
            if before is None:
                del os.environ[PATH]
            else:
                os.environ[PATH] = before

    module.Popen._launch = launch
