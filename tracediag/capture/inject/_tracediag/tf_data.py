"""tf.data iterators: time spent in the Python-side `next`, the shapes of what it gave, and how each pipeline is made."""

from __future__ import annotations

import functools
import weakref
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from . import callsite, guard, tf_sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .tf_functions import Watch

MOST_LOADERS = 50
DEEPEST = 40  # datasets of one pipeline that are looked at


class Loaders:
    """Rows of the `loaders` table; the time waited is counted in the watch."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.rows: list[dict[str, Any]] = []
        self._index: dict[Any, int] = {}
        self.made: weakref.WeakKeyDictionary[Any, str | None] = weakref.WeakKeyDictionary()  # line on which a dataset was made

    @guard.quiet
    def fetched(self, start_ns: int, element: Any) -> None:
        """`next` on an iterator returned `element`."""
        if getattr(self.watch.local, "stack", None):
            return
        self.watch.counters.loader_ns += perf_counter_ns() - start_ns
        if self.watch.waiting:
            self.watch.origin_ns = start_ns
        self.watch.shapes.of_loader(element)

    @guard.quiet
    def opened(self, dataset: Any) -> None:
        """An iterator over `dataset` was made."""
        if dataset is None or not self.watch.eager() or len(self.rows) >= MOST_LOADERS:
            return
        row = {**describe(dataset), **self._places(dataset)}
        row["source"] = callsite.here()
        key = tuple(row.values())
        index = self._index.setdefault(key, len(self.rows))
        if index == len(self.rows):
            self.rows.append({**row, "iterators": 0})
        self.rows[index]["iterators"] += 1

    def _places(self, dataset: Any) -> dict[str, str | None]:
        """Lines of the part of the pipeline that most likely holds it up, and of the user's function that it calls: a generator, else the
        last serial map, else the last map, else the pipeline's end."""
        maps = [part for part in _chain(dataset) if hasattr(part, "_map_func")]
        slow = [*filter(_is_generator, maps), *filter(_is_serial, maps), *maps, dataset][0]
        return {"made": self.made.get(slow), "item_source": tf_sources.of_user_function(_mapped(slow))}

    @guard.quiet
    def note_made(self, dataset: Any) -> None:
        """`dataset` is being made."""
        self.made[dataset] = callsite.here()


def _chain(dataset: Any) -> Iterator[Any]:
    """A dataset and those that it is made of, outermost first."""
    for _ in range(DEEPEST):
        yield dataset
        inner = getattr(dataset, "_input_dataset", None)
        if inner is None or inner is dataset:
            return
        dataset = inner


def _mapped(part: Any) -> Any:
    """The Python function that a dataset maps with."""
    return getattr(getattr(part, "_map_func", None), "_func", None)


def _is_generator(part: Any) -> bool:
    """What from_generator makes: a flat map with a function of its own."""
    return str(getattr(_mapped(part), "__module__", "")).endswith("from_generator_op")


def _is_serial(part: Any) -> bool:
    """It maps one element after the other."""
    name = type(part).__name__
    return "Map" in name and "Parallel" not in name and "Flat" not in name


def describe(dataset: Any) -> dict[str, Any]:
    """Columns of `loaders` read from a chain of datasets, outermost first. Attributes are private: what is missing stays None."""
    row: dict[str, Any] = {"class": type(dataset).__name__, "dataset": None, "batch_size": None, "num_workers": None,
                           "prefetch_factor": None, "drop_last": None, "length": None}  # fmt: skip
    for part in _chain(dataset):
        name = type(part).__name__
        if "Batch" in name and row["batch_size"] is None:
            row["batch_size"] = _number(getattr(part, "_batch_size", None))
            drop = _number(getattr(part, "_drop_remainder", None))
            row["drop_last"] = None if drop is None else bool(drop)
        if "Map" in name and "Parallel" in name and row["num_workers"] is None:
            row["num_workers"] = _number(getattr(part, "_num_parallel_calls", None))
        if _is_serial(part) and row["num_workers"] is None:
            row["num_workers"] = 0
        if "Prefetch" in name and row["prefetch_factor"] is None:
            row["prefetch_factor"] = _number(getattr(part, "_buffer_size", None))
        row["dataset"] = name
    return row


def _number(value: Any) -> int | None:
    """An integer of a Python number or an eager scalar tensor; None for AUTOTUNE (-1) and what cannot be read."""
    try:
        number = int(value.numpy()) if hasattr(value, "numpy") else int(value)
    except (TypeError, ValueError, AttributeError, NotImplementedError):
        return None
    return None if number < 0 else number


def patch_datasets(loaders: Loaders, dataset_class: Any) -> None:
    """Wrap the construction of datasets."""
    init = dataset_class.__init__

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwds: Any) -> None:  # noqa: N807
        loaders.note_made(self)
        init(self, *args, **kwds)

    __init__.autograph_info__ = None  # type: ignore[attr-defined]
    dataset_class.__init__ = __init__


def patch(watch: Watch, loaders: Loaders) -> None:
    """Wrap the iterator class of tf.data."""
    cls = watch.private.iterator_class
    if cls is None:
        return
    following, init = cls.__next__, cls.__init__

    @functools.wraps(following)
    def __next__(self: Any) -> Any:  # noqa: N807
        start = perf_counter_ns()
        element = following(self)
        loaders.fetched(start, element)
        return element

    @functools.wraps(init)
    def __init__(self: Any, dataset: Any = None, *args: Any, **kwds: Any) -> None:  # noqa: N807
        init(self, dataset, *args, **kwds)
        loaders.opened(dataset)

    __next__.autograph_info__ = None  # type: ignore[attr-defined]
    __init__.autograph_info__ = None  # type: ignore[attr-defined]
    cls.__next__, cls.__init__ = __next__, __init__
