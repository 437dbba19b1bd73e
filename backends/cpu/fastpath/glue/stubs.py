"""Stubs of operator functions: they count calls, install native entries when hot, uninstall them when kernels change.

Every operator of a kind that has an entry gets a stub. After `config.flags.hot_calls` calls the entry is loaded (from
the disk cache, or compiled) and installed in the function and in its special methods (`x + y`); each combination of
operand types gets its loop after the same number of calls. For elementwise operators the entry is
entries/rt_elementwise.py:elementwise, and glue/loops.py:make_elementwise_variant compiles the loops.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any

from ..... import config
from .....registry import native_type
from .....registry.dispatch.keys import DispatchKey
from .....registry.dispatch.state import state
from .....registry.operator import Operator, lock
from ..entries import rt_cached_views
from ..runtime import rt_base as rt
from .runtime import Runtime
from .structs import OperatorStruct, StructMemory

NAMES = ("axis", "keepdims", "copy", "dtype")  # keywords that entries accept, as `rt_reduce` numbers them


def _reverse_arguments(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method with its two arguments swapped."""

    def turned(*args: Any, **kwargs: Any) -> Any:
        return method(*args[::-1], **kwargs) if len(args) == 2 else method(*args, **kwargs)

    return turned


class PatchPoint:
    """A callable in which the entry of an operator is installed: the operator's function, or a special method.

    Attributes:
        callable: the callable.
        kind: the kind of entry.
        fall_back: called on a failed guard.
        miss: called for operand types without a variant.
        record: the struct that the entry reads; created when the entry is first installed.
    """

    def __init__(self, target: Any, kind: str, fall_back: Any, miss: Any) -> None:
        self.callable, self.kind, self.fall_back, self.miss = target, kind, fall_back, miss
        self.record: OperatorStruct | None = None

    def open(
        self, runtime: Runtime, recorder: Any, make_struct: Callable[[Any, Any], OperatorStruct]
    ) -> None:
        """Install the entry; ``make_struct(fall_back, miss)`` makes the struct that it reads."""
        entry = runtime.entry(self.kind)
        if self.record is None:
            self.record = make_struct(self.fall_back, self.miss)
        self.record.set_recorder(recorder)
        native_type.set_entry(self.callable, entry, self.record.address)

    def set_fallback(self, other: Any) -> None:
        """Set the callable that receives the calls which the entry does not take."""
        self.fall_back = other
        if self.record is not None:
            self.record.refer(rt.OperatorEntry.fall_back, other)

    def close(self) -> None:
        """Uninstall the entry."""
        native_type.set_entry(self.callable, 0)


class Stub:
    """The native entry of one operator.

    Args:
        runtime: the entries of this process.
        function: the operator function.
        kind: which entry serves it.
        key_of: returns the key of a call's operand types, or None for a call that native code does not support.
        make: builds the variant of a key.
        recorder: returns the recorder of calls for autograd, or None.
        base: the operator whose kernel the entry implements: for a composite, the operator that it calls.
    """

    def __init__(
        self,
        runtime: Runtime,
        function: Any,
        kind: str,
        key_of: Callable[..., int | None],
        make: Callable[[int], StructMemory],
        recorder: Callable[[], Any] = lambda: None,
        base: Operator | None = None,
    ) -> None:
        self.runtime, self.function, self.key_of, self.make = runtime, function, key_of, make
        self.operator: Operator = function.operator
        self.base: Operator = base or self.operator
        self.snapshot_kernels()
        self.patch_points = [PatchPoint(function, kind, self.operator, self.call_miss)]
        self.recorder = recorder
        self.cold_calls = 0
        self.seen: Counter[int] = Counter()
        self.failure = ""
        function.target = self.call_cold

    @property
    def record(self) -> OperatorStruct | None:
        """The struct that the function's entry reads; None while the function is cold."""
        return self.patch_points[0].record

    @property
    def usable(self) -> bool:
        """Whether the entry may answer calls."""
        return self.is_unchanged

    @property
    def is_unchanged(self) -> bool:
        """Whether the CPU kernels are unchanged since `snapshot_kernels`, and no mode intercepts the calls."""
        watched = self.operator.extra_keys | self.base.extra_keys
        return not (self.failure or watched) and self._kernels() == self.kernels

    def snapshot_kernels(self) -> None:
        """Remember the current kernels as those that the native code implements."""
        self.kernels = self._kernels()

    def _kernels(self) -> list[Any]:
        keys = (DispatchKey.CPU, DispatchKey.ADInplaceOrView, DispatchKey.WeakScalar)
        result = [op.table[key].fn for op in (self.operator, self.base) for key in keys]
        if (
            self.base is not self.operator
        ):  # calls are recorded as the base's, so the operator's own derivative would be ignored
            result.append(self.operator.table[DispatchKey.AutogradCPU].fn)
        return result

    @property
    def calls(self) -> int:
        """Calls run by the entry."""
        return sum(point.record.calls for point in self.patch_points if point.record is not None)

    def make_struct(self, fall_back: Any, miss: Any) -> OperatorStruct:
        """Return the struct of an entry, with the callables that serve calls without it."""
        return OperatorStruct(self.runtime.process, fall_back, miss, NAMES)

    def add_method(self, method: Any, swapped: bool) -> None:
        """Install the entry in a special method too; on a failed guard the method's own Python code runs."""
        fall_back = MethodType(type(method).__call__, method)
        kind = self.patch_points[0].kind
        if swapped and not kind.startswith("elementwise"):
            return
        if swapped:  # the entry swaps the arguments, and passes them on swapped
            reverse = _reverse_arguments(fall_back)
            self.patch_points.append(PatchPoint(method, kind + "_swapped", reverse, reverse))
        else:
            self.patch_points.append(PatchPoint(method, kind, fall_back, fall_back))

    def call_cold(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run a call before the entry is installed. Calls that are being traced do not count."""
        if not state.include:
            self.cold_calls += 1
            if self.cold_calls >= config.flags.hot_calls:
                self.attempt(self.install)
        return self.operator(*args, **kwargs)

    def call_miss(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run a call with operand types that have no variant yet."""
        key = self.key_of(*args, **kwargs)
        if key is not None:
            self.seen[key] += 1
            if self.seen[key] >= config.flags.hot_calls:
                self.attempt(self.add_variant, key)
        return self.operator(*args, **kwargs)

    def attempt(self, step: Callable[..., None], *args: Any) -> None:
        """Run a step of compilation; if it fails, warn once, and run the operator in Python from now on."""
        try:
            step(*args)
        except (RuntimeError, OSError, SyntaxError, ImportError) as error:
            self.failure = f"{type(error).__name__}: {error}"
            self.uninstall()
            name = self.operator.name
            warnings.warn(f"{name} runs without native code: {self.failure}", RuntimeWarning, stacklevel=4)

    def install(self) -> None:
        """Load or compile the entry and install it in the function and its methods.

        It takes the registry's lock, which registration holds while it notifies the stubs. No call waits for the lock:
        while another thread registers, a later call installs the entry.
        """
        lock.if_free(self._install)

    def _install(self) -> None:
        if not self.usable:
            self.cold_calls = 0  # check again after as many calls
            return
        recorder = self.recorder()
        for point in self.patch_points:
            point.open(self.runtime, recorder, self.make_struct)
            self._share_variants(point)
        self.function.target = self.operator

    def _share_variants(self, point: PatchPoint) -> None:
        known = self.record.variants if self.record is not None else {}
        for key, variant in known.items():
            if point.record is not None and key not in point.record.variants:
                point.record.add(variant)

    def uninstall(self) -> None:
        """Send calls to Python again, and count from zero."""
        with lock:
            for point in self.patch_points:
                point.close()
            self.cold_calls = 0
            self.function.target = self.operator if self.failure else self.call_cold

    def add_variant(self, key: int) -> None:
        """Compile the loop of a combination of operand types and make it reachable."""
        lock.if_free(lambda: self._add_variant(key))

    def _add_variant(self, key: int) -> None:
        if self.record is not None and key not in self.record.variants:
            variant = self.make(key)
            for point in self.patch_points:
                if point.record is not None:
                    point.record.add(variant)

    def follow(self) -> None:
        """Update the entry: the operator's kernels or observers have changed; the registry's lock is held."""
        if self.record is None:
            return  # cold
        if native_type.entry_of(self.function):
            self.uninstall()
        if self.usable:
            self.install()


class ViewStub(Stub):
    """The native entry of a view that remembers layouts.

    Attributes:
        views: the entries of all views. This one may call their operators: while one is changed, Python runs it.
    """

    views: Sequence[Stub] = ()

    @property
    def usable(self) -> bool:
        """Whether neither this operator nor one that it may call is changed."""
        return self.is_unchanged and all(stub.is_unchanged for stub in self.views)

    def make_struct(self, fall_back: Any, miss: Any) -> OperatorStruct:
        """Return the struct of an entry, with memory for the layouts."""
        names = tuple(argument.name for argument in self.operator.schema.arguments)
        result = OperatorStruct(self.runtime.process, fall_back, miss, names)
        result.point(
            rt.OperatorEntry.variants, StructMemory(rt_cached_views.SLOTS * rt_cached_views.SLOT_SIZE)
        )
        return result
