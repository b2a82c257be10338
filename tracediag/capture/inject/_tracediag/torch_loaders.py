"""Patches on torch's DataLoader: time spent waiting for a batch, shapes of the batch, and the options of each loader."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from . import callsite, guard
from .torch_batch import shapes_text

DEEPEST = 8  # datasets that wrap each other that are looked at


class Loaders:
    """Facts of every DataLoader that was iterated, and what the open step got from them."""

    def __init__(self, on_iteration: Callable[[], Any]) -> None:
        self.waited_ns = 0
        self.batch: str | None = None
        self.seen = False
        self._rows: list[dict[str, Any]] = []
        self._index: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._made: weakref.WeakKeyDictionary[Any, str | None] = weakref.WeakKeyDictionary()
        self._on_iteration = on_iteration

    def install(self, dataloader: Any) -> None:
        """Patch the classes of the module torch.utils.data.dataloader."""
        self._patch_next(dataloader._BaseDataLoaderIter)
        self._patch_iter(dataloader.DataLoader)
        self._patch_init(dataloader.DataLoader)

    def _patch_next(self, cls: Any) -> None:
        original = cls.__next__
        note = guard.quiet(self._note_batch)

        @functools.wraps(original)
        def __next__(iterator: Any) -> Any:  # noqa: N807 (stands in for the class attribute of this name)
            start = perf_counter_ns()
            batch = original(iterator)
            self.waited_ns += perf_counter_ns() - start
            note(batch)
            return batch

        cls.__next__ = __next__

    def _patch_iter(self, cls: Any) -> None:
        original = cls.__iter__
        note = guard.quiet(self._note_iteration)

        @functools.wraps(original)
        def __iter__(loader: Any) -> Any:  # noqa: N807
            note(loader)
            return original(loader)

        cls.__iter__ = __iter__

    def _patch_init(self, cls: Any) -> None:
        original = cls.__init__
        note = guard.quiet(self._note_made)

        @functools.wraps(original)
        def __init__(loader: Any, *args: Any, **kwds: Any) -> None:  # noqa: N807
            original(loader, *args, **kwds)
            note(loader)

        cls.__init__ = __init__

    def _note_made(self, loader: Any) -> None:
        self._made[loader] = callsite.here()

    def _note_batch(self, batch: Any) -> None:
        if self.batch is None:
            self.batch = shapes_text(batch)

    def _note_iteration(self, loader: Any) -> None:
        self._on_iteration()
        self.seen = True
        index = self._index.get(loader)
        if index is None:
            index = self._index[loader] = len(self._rows)
            self._rows.append({**_describe(loader), "made": self._made.get(loader)})
        self._rows[index]["iterators"] += 1

    def take(self) -> tuple[int | None, str | None]:
        """Waiting time (ns) and batch shapes since the last call; None where no loader is used."""
        waited, batch = self.waited_ns if self.seen else None, self.batch
        self.waited_ns, self.batch = 0, None
        return waited, batch

    def facts(self) -> list[dict[str, Any]]:
        """Rows of the table `loaders`."""
        return [dict(row) for row in self._rows]


def _describe(loader: Any) -> dict[str, Any]:
    dataset = getattr(loader, "dataset", None)
    return {
        "class": type(loader).__name__, "dataset": type(dataset).__name__, "batch_size": getattr(loader, "batch_size", None),
        "num_workers": getattr(loader, "num_workers", None), "pin_memory": bool(getattr(loader, "pin_memory", False)),
        "persistent_workers": bool(getattr(loader, "persistent_workers", False)),
        "prefetch_factor": getattr(loader, "prefetch_factor", None), "drop_last": bool(getattr(loader, "drop_last", False)),
        "length": _length(loader), "iterators": 0, "source": callsite.here(), "item_source": _item_source(dataset),
    }  # fmt: skip


def _length(loader: Any) -> int | None:
    try:
        return len(loader)
    except Exception:  # the length may come from the user's dataset, which may have none or fail
        return None


def _item_source(dataset: Any) -> str | None:
    """Where the user defined how a sample is made: the method of the dataset, or of one that torch's own datasets wrap."""
    for _ in range(DEEPEST):
        for name in ("__getitems__", "__getitem__", "__iter__"):
            line = callsite.of_code(getattr(type(dataset), name, None))
            if line is not None:
                return line
        parts = getattr(dataset, "datasets", None)
        dataset = parts[0] if isinstance(parts, list) and parts else getattr(dataset, "dataset", None)
    return None
