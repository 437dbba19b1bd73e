"""Call cache of operators with one CUDA tensor and further arguments that are not tensors: views, reductions, fills.

Native entries (:mod:`.call_cache_entries`) look calls up. On a miss Python runs the call and derives the cached call
from the result: a result in the argument's memory is a view, determined by the layout and the other arguments; for
other results the kernels report their launches.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from ....eager.tensor.tensor import Tensor
from ....locks import ThreadLocal
from ....registry.dispatch.keys import CUDA_KEYS
from ....registry.dtypes import DType
from ....registry.operator import Operator
from ...cpu.fastpath.runtime import rt_base
from ..kernels.tensor import CudaTensor
from ..runtime.arrays import Layout
from . import call_cache_entries as rt
from .eager import EagerEntry, OperatorEntries, make_call_record
from .eager_entries import MAX_KEY, CacheEntry
from .result import block_record, device_record, result_record

T = TypeVar("T")
MAX_CALLS = 1 << 12


class _LaunchLog(ThreadLocal):
    """The launches that computed a result, reported by a kernel that a cache miss has called.

    Attributes:
        is_on: whether a cache miss is in progress in this thread.
        result: (result, launches, temporaries, mask) of the last report.
    """

    is_on = False
    result: Any = None


_log = _LaunchLog()


def report_launches(result: T, launches: list[Any], temporaries: int = 0, mask: int = 0) -> T:
    """Return ``result``; if a call cache is recording, also pass it the launches that computed the result.

    Args:
        result: the result of a kernel.
        launches: one :class:`..runtime.launching.Launch` of the parameters (source, result), or two of which the first
            writes scratch memory that the second reads.
        temporaries: bytes of scratch memory.
        mask: the bits of the argument's address that have to be 0.
    """
    if _log.is_on:
        _log.result = result, launches, temporaries, mask
    return result


class CachedCall:
    """A cached call: the parameters of its view or of its launches, in a native struct.

    Args:
        key: of the call.
        kept: the objects whose addresses are in the key.
        source: the argument's layout.
        result: the result of the first call.
    """

    __slots__ = ("is_registered", "key", "record")

    def __init__(self, key: tuple[int, ...], kept: Any, source: Layout, result: CudaTensor):
        self.key, self.is_registered = key, False
        self.record = make_call_record(key, self)
        self.record.kept.extend((kept, source, result._data.layout))
        self.record.set(rt.CachedKernels.layout, id(result._data.layout))

    def make_record(self, args: tuple[Any, ...]) -> tuple[int, ...]:
        """The key by which native code finds the call; the struct exists already."""
        return self.key

    def set_launches(self, launches: list[Any], temporaries: int, mask: int, out: Layout) -> None:
        """Store the launches that compute the result; see :func:`report_launches`."""
        self.record.set(rt.CachedKernels.mask, mask)
        self.record.point(CacheEntry.device, device_record(out.index))
        self.record.point(CacheEntry.result, result_record(out))
        self.record.point(rt.CachedKernels.scratch, block_record(temporaries))
        for offset, launch in zip((rt.CachedKernels.first, rt.CachedKernels.second), launches):
            self.record.point(offset, launch.record)

    def set_view(self, offset: int, steps: list[tuple[int, int]]) -> None:
        """Store the offset and the steps of a view.

        Args:
            offset: bytes from the argument's first element to the view's, if all integers of the key are 0.
            steps: for each integer of the key: the size of its axis, and the stride of the axis in bytes.
        """
        self.record.set(rt.CachedKernels.offset, offset)
        self.record.set(rt.CachedKernels.integers, len(steps))
        for i, (size, step) in enumerate(steps):
            self.record.set(rt.CachedKernels.steps + 16 * i, size)
            self.record.set(rt.CachedKernels.steps + 16 * i + 8, step)


class CallCache(OperatorEntries):
    """The native entries of an operator of one tensor, and the cached calls that they look up."""

    def __init__(self, op: Operator, kind: str = "keyed"):
        super().__init__(op, kind)
        self._seen: dict[tuple[int, ...], bool] = {}  # keys, and whether their calls can be cached

    def prepare(self, entry: EagerEntry) -> None:
        """Make an entry pass its cache misses to :meth:`call_and_add`."""

        def miss(*args: Any, **kwargs: Any) -> Any:
            return self.call_and_add(entry.fallback, args, kwargs)

        entry.record.refer(rt_base.OperatorEntry.miss, miss)

    def call_and_add(
        self, fallback: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run a call that missed the cache, and cache it if it has been repeated."""
        before = _log.is_on
        _log.is_on = True
        try:
            result = fallback(*args, **kwargs)
        finally:
            _log.is_on = before
            report, _log.result = _log.result, None
        if type(result) is CudaTensor and result is not args[0] and result._keys is CUDA_KEYS:
            report = report if report is not None and report[0] is result else None
            key: Any = (id(args[0]._data.layout), *self.encode_arguments(args[1:], kwargs))
            if self._is_repeated(key):
                call = self._make_call(key, args, kwargs, result, report)
                if len(self.cached_calls) >= MAX_CALLS:
                    self.clear()
                self._seen[key] = call is not None and not self.add(call, args)
        return result

    def _is_repeated(self, key: tuple[Any, ...]) -> bool:
        """Whether a call can be cached and was seen before; many calls are made only once."""
        cached = self._seen.get(key)
        if cached is None:
            if len(self._seen) >= MAX_CALLS:
                self._seen.clear()
            self._seen[key] = None not in key and len(key) <= MAX_KEY
        return bool(cached)

    def clear(self) -> None:
        super().clear()
        self._seen = {}

    def _make_call(
        self,
        key: tuple[int, ...],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        result: CudaTensor,
        report: Any,
    ) -> CachedCall | None:
        """The cached call for a result; None if native code cannot repeat it."""
        source, given = args[0]._data, result._data
        if not given.layout.size:
            return None
        call = CachedCall(key, (args[1:], kwargs), source.layout, result)
        if report is not None:
            _, launches, temporaries, mask = report
            if len(launches) not in (1, 2) or any(launch.record is None for launch in launches):
                return None
            call.set_launches(launches, temporaries, mask, given.layout)
            return call
        if given.buffer is not source.buffer or result._storage is not args[0]._storage:
            return None
        steps, integers = self.get_integer_steps(source.layout, args[1:])
        call.set_view(
            given.ptr - source.ptr - sum(at * step for at, (_, step) in zip(integers, steps)), steps
        )
        return call

    def encode_arguments(self, rest: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[int | None]:
        """The key of the arguments after the first, without their layout; None for a value that has no encoding.

        Native twin: backends/cuda/fastpath/call_cache_entries.py:encode_arguments
        """
        yield len(rest) + 1
        for value in rest:
            yield from encode_value(value)
        for name, value in kwargs.items():
            yield id(sys.intern(name))
            yield from encode_value(value)

    def get_integer_steps(
        self, layout: Layout, rest: tuple[Any, ...]
    ) -> tuple[list[tuple[int, int]], list[int]]:
        """(size, stride in bytes) of the axes that integers of a subscript select from, and the integers."""
        return [], []


class SubscriptCache(CallCache):
    """The native entry of ``x[key]``, and its cached views."""

    def __init__(self, op: Operator):
        super().__init__(op, "subscript")

    def operator_entries(self) -> Iterable[Any]:
        method = Tensor.__dict__.get("__getitem__")
        return [method] if hasattr(method, "set_fallback") else []

    def encode_arguments(self, rest: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[int | None]:
        """Yield the cache key of a subscript; None for what a cached call cannot take.

        Native twin: backends/cuda/fastpath/call_cache_entries.py:encode_subscript
        """
        items, integers = _items(rest), 0
        if type(rest[0]) is tuple:
            yield rt.TUPLE | len(items) << 8
        for item in items:
            if type(item) is int:
                integers += 1
                yield rt.DYNAMIC if integers <= rt.MAX_INTEGERS else None
            elif type(item) in (tuple, list):
                yield None
            else:
                yield from encode_value(item)

    def get_integer_steps(
        self, layout: Layout, rest: tuple[Any, ...]
    ) -> tuple[list[tuple[int, int]], list[int]]:
        items = _items(rest)
        steps, indices, axis = [], [], 0
        taken = sum(item is not None and item is not ... for item in items)
        for item in items:
            if type(item) is int:
                size = layout.shape[axis]
                steps.append((size, layout.strides[axis] * layout.dtype.itemsize))
                indices.append(item + size if item < 0 else item)
            axis += len(layout.shape) - taken if item is ... else item is not None
        return steps, indices


def _items(rest: tuple[Any, ...]) -> tuple[Any, ...]:
    return rest[0] if type(rest[0]) is tuple else rest


def encode_value(value: Any) -> Iterator[int | None]:
    """The key of one value; None for a value that has no encoding.

    Native twin: backends/cuda/fastpath/call_cache_entries.py:encode_value
    """
    kind = type(value)
    if kind is int:
        yield from (rt.INTEGER, value) if -(1 << 63) <= value < 1 << 63 else (None,)
    elif kind in (tuple, list):
        yield (rt.TUPLE if kind is tuple else rt.LIST) | len(value) << 8
        for item in value:
            yield from encode_value(item) if type(item) is int else (None,)
    elif kind is slice:
        yield rt.SLICE
        for item in (value.start, value.stop, value.step):
            yield from encode_value(item) if item is None or type(item) is int else (None,)
    else:
        yield id(value) if value is None or value is ... or kind in (bool, DType) else None
