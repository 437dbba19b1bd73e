"""Plans for calls of one CUDA tensor and arguments that are no tensors; see :mod:`.rt_keyed`.

They are learnt: a door that does not know a call hands it on, and looks at the result. A tensor in the argument's
memory is a view, which follows from the layout and the arguments; what kernels give says which they were.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...eager.tensor import Tensor
from ...registry.dtypes import DType
from ...registry.keys import CUDA_KEYS
from ...registry.operator import Operator
from ..cpu.native import rt_base
from . import rt_keyed as rt
from .arrays import Layout
from .native_eager import Door, Doors, key_record
from .native_result import device_record, result_of, result_record
from .rt_eager import E_DEVICE, E_RESULT, MOST_WORDS
from .tensor import CudaTensor

MOST_PLANS = 1 << 12


class _Asked(threading.local):
    """What a door wants to know of the kernel that it calls: which launches have made which result."""

    wanted = False
    made: Any = None


_asked = _Asked()


def tell(made: Any, launches: list[Any], temporaries: int = 0, mask: int = 0) -> Any:
    """A kernel's result, after whoever asks has been told how it was made.

    Args:
        made: the result.
        launches: one :class:`.launching.Launch` of the parameters (source, result), or two with scratch memory between.
        temporaries: bytes of that.
        mask: the bits of the argument's address that have to be 0.
    """
    if _asked.wanted:
        _asked.made = made, launches, temporaries, mask
    return made


class KeyedPlan:
    """What a call gives: a view, or the result of kernels.

    Args:
        key: of the call.
        kept: what the key's addresses belong to.
        source: the argument's layout.
        made: the result.
    """

    __slots__ = ("key", "known", "record")

    def __init__(self, key: tuple[int, ...], kept: Any, source: Layout, made: CudaTensor):
        self.key = key
        self.record = key_record(key, self)
        self.record.kept.extend((kept, source, made._data.layout))
        self.record.set(rt.E_LAYOUT, id(made._data.layout))

    def describe(self, args: tuple[Any, ...]) -> tuple[int, ...]:
        """The key by which machine code finds the plan."""
        return self.key

    def launches(self, found: list[Any], temporaries: int, mask: int, out: Layout) -> None:
        """It is the result of kernels; see :func:`tell`."""
        self.record.set(rt.E_MASK, mask)
        self.record.point(E_DEVICE, device_record(out.index))
        self.record.point(E_RESULT, result_record(out))
        self.record.point(rt.E_SCRATCH, result_of(temporaries))
        for offset, launch in zip((rt.E_FIRST, rt.E_SECOND), found):
            self.record.point(offset, launch.record)

    def view(self, offset: int, steps: list[tuple[int, int]]) -> None:
        """It is a view.

        Args:
            offset: bytes from the argument's first element to its own, with all integers of the key 0.
            steps: for each of these: how many elements there are along its axis, and bytes from one to the next.
        """
        self.record.set(rt.E_OFFSET, offset)
        self.record.set(rt.E_INTEGERS, len(steps))
        for place, (size, step) in enumerate(steps):
            self.record.set(rt.E_STEPS + 16 * place, size)
            self.record.set(rt.E_STEPS + 16 * place + 8, step)


class KeyedDoors(Doors):
    """The doors of an operator of one tensor."""

    def __init__(self, op: Operator, kind: str = "keyed"):
        super().__init__(op, kind)
        self._met: dict[tuple[int, ...], bool] = {}  # keys, and whether their calls may be learnt

    def made(self, door: Door) -> None:
        """Have a door tell what it does not know."""

        def miss(*args: Any, **kwargs: Any) -> Any:
            return self.ask(door.behind, args, kwargs)

        door.record.refer(rt_base.D_MISS, miss)

    def ask(self, behind: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call what is behind a door, and learn from the result."""
        before = _asked.wanted
        _asked.wanted = True
        try:
            result = behind(*args, **kwargs)
        finally:
            _asked.wanted = before
            made, _asked.made = _asked.made, None
        if type(result) is CudaTensor and result is not args[0] and result._keys is CUDA_KEYS:
            found = made if made is not None and made[0] is result else None
            key: Any = (id(args[0]._data.layout), *self.words(args[1:], kwargs))
            if self._comes_again(key):
                plan = self._plan(key, args, kwargs, result, found)
                if len(self.plans) >= MOST_PLANS:
                    self.clear()
                self._met[key] = plan is not None and not self.learn(plan, args)
        return result

    def _comes_again(self, key: tuple[Any, ...]) -> bool:
        """Whether a call may be learnt, and has been met before; many are made just once."""
        found = self._met.get(key)
        if found is None:
            if len(self._met) >= MOST_PLANS:
                self._met.clear()
            self._met[key] = None not in key and len(key) <= MOST_WORDS
        return bool(found)

    def clear(self) -> None:
        super().clear()
        self._met = {}

    def _plan(
        self,
        key: tuple[int, ...],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        result: CudaTensor,
        made: Any,
    ) -> KeyedPlan | None:
        source, given = args[0]._data, result._data
        if not given.layout.size:
            return None
        plan = KeyedPlan(key, (args[1:], kwargs), source.layout, result)
        if made is not None:
            _, launches, temporaries, mask = made
            if len(launches) not in (1, 2) or any(launch.record is None for launch in launches):
                return None
            plan.launches(launches, temporaries, mask, given.layout)
            return plan
        if given.buffer is not source.buffer or result._storage is not args[0]._storage:
            return None
        steps, integers = self.integers(source.layout, args[1:])
        plan.view(given.ptr - source.ptr - sum(at * step for at, (_, step) in zip(integers, steps)), steps)
        return plan

    def words(self, rest: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[int | None]:
        """What :func:`.rt_keyed.written` writes down; with None in it for what has no words."""
        yield len(rest) + 1
        for value in rest:
            yield from words_of(value)
        for name, value in kwargs.items():
            yield id(sys.intern(name))
            yield from words_of(value)

    def integers(self, layout: Layout, rest: tuple[Any, ...]) -> tuple[list[tuple[int, int]], list[int]]:
        """(size, bytes of a step) of the axes that integers of a key select from, and these; there are none."""
        return [], []


class SubscriptDoors(KeyedDoors):
    """The door of ``x[key]``, which gives views as an operator does."""

    def __init__(self, op: Operator):
        super().__init__(op, "subscript")

    def entries(self) -> Iterable[Any]:
        method = Tensor.__dict__.get("__getitem__")
        return [method] if hasattr(method, "hand_on") else []

    def words(self, rest: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[int | None]:
        items, integers = _items(rest), 0
        if type(rest[0]) is tuple:
            yield rt.TUPLE | len(items) << 8
        for item in items:
            if type(item) is int:
                integers += 1
                yield rt.APART if integers <= rt.MOST_INTEGERS else None
            elif type(item) in (tuple, list):
                yield None
            else:
                yield from words_of(item)

    def integers(self, layout: Layout, rest: tuple[Any, ...]) -> tuple[list[tuple[int, int]], list[int]]:
        items = _items(rest)
        steps, found, axis = [], [], 0
        taken = sum(item is not None and item is not ... for item in items)
        for item in items:
            if type(item) is int:
                size = layout.shape[axis]
                steps.append((size, layout.strides[axis] * layout.dtype.itemsize))
                found.append(item + size if item < 0 else item)
            axis += len(layout.shape) - taken if item is ... else item is not None
        return steps, found


def _items(rest: tuple[Any, ...]) -> tuple[Any, ...]:
    return rest[0] if type(rest[0]) is tuple else rest


def words_of(value: Any) -> Iterator[int | None]:
    """What :func:`.rt_keyed.word` writes down of a value; None for what has no words."""
    kind = type(value)
    if kind is int:
        yield from (rt.INTEGER, value) if -(1 << 63) <= value < 1 << 63 else (None,)
    elif kind in (tuple, list):
        yield (rt.TUPLE if kind is tuple else rt.LIST) | len(value) << 8
        for item in value:
            yield from words_of(item) if type(item) is int else (None,)
    elif kind is slice:
        yield rt.SLICE
        for item in (value.start, value.stop, value.step):
            yield from words_of(item) if item is None or type(item) is int else (None,)
    else:
        yield id(value) if value is None or value is ... or kind in (bool, DType) else None
