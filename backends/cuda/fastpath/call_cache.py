"""Call cache of operators with one CUDA tensor and further arguments that are not tensors: views, reductions, fills.

Native entries (:mod:`.call_cache_entries`) look calls up. On a miss Python runs the call and derives the cached call
from the result: a result in the argument's memory is a view, determined by the layout and the other arguments; for
other results the kernels report their launches.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ....eager.tensor.tensor import Tensor
from ....locks import ThreadLocal
from ....registry.dispatch.keys import CUDA_KEYS
from ....registry.operator import Operator
from ...cpu.fastpath.runtime import capi, rt_base, rt_keys
from ..kernels.tensor import CudaTensor
from ..runtime.arrays import Layout
from .eager import EagerEntry, OperatorEntries, entry_code, make_call_record
from .eager_entries import ANY_ADDRESS, MAX_INTEGERS, CacheEntry
from .result import backend_struct, block_struct

T = TypeVar("T")
MAX_CALLS = 1 << 12
_ENCODER = ctypes.PYFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 2, ctypes.c_int64, *[ctypes.c_void_p] * 3)


class _LaunchLog(ThreadLocal):
    """The launches that computed a result, reported by a kernel that a cache miss has called.

    Attributes:
        is_on: whether a cache miss is in progress in this thread.
        result: the arguments of the last report.
    """

    is_on = False
    result: Any = None


_log = _LaunchLog()


def report_launches(result: T, launches: list[Any], temporaries: int = 0, any_address: bool = True) -> T:
    """Return ``result``; if a call cache is recording, also pass it the launches that computed the result.

    Args:
        result: the result of a kernel.
        launches: one :class:`..runtime.launching.Launch` of the parameters (source, result), or two of which the first
            writes scratch memory that the second reads.
        temporaries: bytes of scratch memory.
        any_address: whether the address of the argument may be any, or has to be a multiple of 16.
    """
    if _log.is_on:
        _log.result = result, launches, temporaries, any_address
    return result


class CachedCall:
    """A cached call: the parameters of its view or of its launches, in a native struct.

    Args:
        key: of the call.
        kept: the objects whose addresses are in the key.
        out: the layout of the result.
    """

    __slots__ = ("is_registered", "key", "record")

    def __init__(self, key: tuple[int, ...], kept: Any, out: Layout):
        self.key, self.is_registered = key, False
        self.record = make_call_record(key, self, kept, out)

    def make_record(self, args: tuple[Any, ...]) -> tuple[int, ...]:
        """The key by which native code finds the call; the struct exists already."""
        return self.key

    def set_launches(self, launches: list[Any], temporaries: int, any_address: bool) -> None:
        """Store the launches that compute the result; see :func:`report_launches`."""
        for offset in ANY_ADDRESS if any_address else ANY_ADDRESS[:1]:
            self.record.point(offset, launches[0].record)
        if len(launches) > 1:
            self.record.point(CacheEntry.second, launches[1].record)
            self.record.point(CacheEntry.scratch, block_struct(temporaries))

    def set_view(self, layout: Layout, offset: int, steps: list[tuple[int, int]]) -> None:
        """Store the layout, the offset and the steps of a view.

        Args:
            layout: of the view.
            offset: bytes from the argument's first element to the view's, if all integers of the key are 0.
            steps: for each integer of the key: the size of its axis, and the stride of the axis in bytes.
        """
        entry = CacheEntry(self.record.address)
        entry.layout, entry.offset, entry.integers = id(layout), offset, len(steps)
        for i, word in enumerate(itertools.chain(*steps)):
            self.record.set(CacheEntry.axes + 8 * i, word)


class CallCache(OperatorEntries):
    """The native entries of an operator of one tensor, and the cached calls that they look up."""

    def __init__(self, op: Operator, kind: str = "keyed"):
        super().__init__(op, kind)
        self._seen: dict[tuple[int, ...], bool] = {}  # keys, and whether their calls can be cached

    def prepare(self, entry: EagerEntry) -> None:
        """Make an entry pass its cache misses to :meth:`call_and_add`."""
        entry.record.refer(rt_base.OperatorEntry.miss, functools.partial(self.call_and_add, entry.target))

    def call_and_add(self, fallback: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
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
            key, integers = self.encode_call(args, kwargs)
            if key and self._is_repeated(key):
                call = self._make_call(key, integers, args, kwargs, result, report)
                if len(self.cached_calls) >= MAX_CALLS:
                    self.clear()
                self._seen[key] = call is not None and not self.add(call, args)
        return result

    def _is_repeated(self, key: tuple[int, ...]) -> bool:
        """Whether a call can be cached and was seen before; many calls are made only once."""
        cached = self._seen.get(key)
        if cached is None:
            if len(self._seen) >= MAX_CALLS:
                self._seen.clear()
            self._seen[key] = True
        return bool(cached)

    def clear(self) -> None:
        super().clear()
        self._seen = {}

    def _make_call(
        self,
        key: tuple[int, ...],
        integers: list[int],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        result: CudaTensor,
        report: Any,
    ) -> CachedCall | None:
        """The cached call for a result; None if native code cannot repeat it."""
        source, given = args[0]._data, result._data
        if not given.layout.size:
            return None
        call = CachedCall(key, (args[1:], kwargs, source.layout), given.layout)
        if report is not None:
            _, launches, temporaries, any_address = report
            if len(launches) not in (1, 2) or any(launch.record is None for launch in launches):
                return None
            call.set_launches(launches, temporaries, any_address)
            return call
        if given.buffer is not source.buffer or result._storage is not args[0]._storage:
            return None
        steps = get_integer_steps(source.layout, args[1]) if integers else []
        start = sum((at + size if at < 0 else at) * step for at, (size, step) in zip(integers, steps))
        call.set_view(given.layout, given.ptr - source.ptr - start, steps)
        return call

    def encode_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[int, ...], list[int]]:
        """The key of a call, as its entry computes it, and the integers of a subscript; () for a call without a key."""
        key, integers = (ctypes.c_int64 * rt_keys.MAX_KEY)(), (ctypes.c_int64 * (MAX_INTEGERS + 1))()
        values, names = (*args, *kwargs.values()), tuple(map(sys.intern, kwargs))
        encode = _ENCODER(entry_code(self.kind)["encode"])
        length = encode(
            backend_struct().address,
            id(values) + capi.PyTuple.items,
            len(args),
            id(names) if names else None,
            key,
            integers,
        )
        if length == rt_keys.INVALID:
            return (), []
        return (id(args[0]._data.layout), *key[1:length]), integers[1 : 1 + integers[0]]


class SubscriptCache(CallCache):
    """The native entry of ``x[key]``, and its cached views."""

    def __init__(self, op: Operator):
        super().__init__(op, "subscript")

    def operator_entries(self) -> Iterable[Any]:
        stub = getattr(Tensor.__dict__.get("__getitem__"), "stub", None)
        return () if stub is None else stub.patch_points


def get_integer_steps(layout: Layout, subscript: Any) -> list[tuple[int, int]]:
    """(size, stride in bytes) of the axes that the integers of a subscript select from."""
    items = subscript if type(subscript) is tuple else (subscript,)
    steps, axis = [], 0
    indexed = sum(item is not None and item is not ... for item in items)
    for item in items:
        if type(item) is int:
            steps.append((layout.shape[axis], layout.strides[axis] * layout.dtype.itemsize))
        axis += len(layout.shape) - indexed if item is ... else item is not None
    return steps
