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

from ..... import config, lazy
from .....eager.hot_calls import find_size
from .....eager.tensor.dunders import by_name
from .....eager.tensor.element_count import ElementCount
from .....errors import ArgumentError
from .....registry import native_type
from .....registry.dispatch.keys import DispatchKey
from .....registry.dispatch.state import state
from .....registry.dtypes import default_float, float32
from .....registry.operator import Operator, lock
from ..runtime import rt_base as rt
from .patch_points import ArgumentConversion, PatchPoint, install_forward
from .runtime import Runtime
from .structs import EntryStruct, OperatorStruct, StructMemory, find_last_names, find_writer

elementwise = lazy.Module(".backends.cpu.kernels.elementwise")
protocols = lazy.Module(".backends.cpu.fastpath.glue.protocols")

LARGE = 1 << 10  # elements of an operand from which its size matters
ELEMENTS_PER_CALL = 1 << 14  # elements that are passed over once more than necessary count as one more call
NAMES = (
    "axis",
    "keepdims",
    "copy",
    "dtype",
    "device",
)  # keywords that entries accept, as `rt_reduce` numbers them


def _reverse_arguments(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method with its two arguments swapped."""

    def turned(*args: Any, **kwargs: Any) -> Any:
        return method(*args[::-1], **kwargs) if len(args) == 2 else method(*args, **kwargs)

    return turned


class ColdCallable:
    """Counts the calls of a callable that may have a native entry, and installs the entry when it is hot.

    Args:
        runtime: the entries of this process.
        function: the callable; its ``target`` runs its calls while it has no entry.
        python: runs a call in Python.
        name: of what is called, for the warning.

    Attributes:
        failure: why the entry could not be compiled; empty if it could, or nobody has tried.
    """

    def __init__(self, runtime: Runtime, function: Any, python: Any, name: str) -> None:
        self.runtime, self.function, self.python, self.name = runtime, function, python, name
        self.cold_calls, self.failure = 0, ""
        self.wrappers: list[Any] = []
        function.target = self.call_cold

    @property
    def is_hot(self) -> bool:
        """Whether the entry is worth its compilation."""
        return self.cold_calls >= config.flags.hot_calls

    def weigh_call(self, args: tuple[Any, ...]) -> int:
        """Return how many calls a call counts as, by the work that the entry saves."""
        return 1

    def call_cold(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run a call before the entry is installed. Calls that are being traced do not count."""
        if not state.include:
            self.cold_calls += self.weigh_call(args)
            if self.is_hot:
                self.attempt(self.install)
                if native_type.entry_of(self.function):
                    return self.function(*args, **kwargs)
        return self.python(*args, **kwargs)

    def attempt(self, step: Callable[..., None], *args: Any) -> None:
        """Run a step of compilation; if it fails, warn once, and run all calls in Python from now on."""
        try:
            step(*args)
        except (RuntimeError, OSError, SyntaxError, ImportError) as error:
            self.failure = f"{type(error).__name__}: {error}"
            self.uninstall()
            text = f"{self.name} runs without native code: {self.failure}"
            warnings.warn(text, RuntimeWarning, stacklevel=4)

    def install(self) -> None:
        """Load or compile the entry and install it.

        It takes the registry's lock, which registration holds while it notifies the stubs. No call waits for the lock:
        while another thread registers, a later call installs the entry.
        """
        lock.if_free(self._install)

    def _install(self) -> None:
        raise NotImplementedError

    def add_wrapper(self, wrapper: Any) -> None:
        """Let a callable that converts the arguments which this one refuses pass its calls on by native code."""
        self.wrappers.append(wrapper)
        if self.function.target != self.call_cold:
            self.install_wrappers()

    def install_wrappers(self) -> None:
        """Install the entries of callables that pass calls on, which stay installed."""
        for wrapper in self.wrappers:
            fall_back = MethodType(type(wrapper).__call__, wrapper)
            install_forward(self.runtime, wrapper, wrapper, self.function, fall_back)

    def read_kernels(self) -> list[Any]:
        """Return the current kernels of the operators that the native code implements."""
        return []

    def snapshot_kernels(self) -> None:
        """Remember the current kernels as those that the native code implements."""
        self.kernels = self.read_kernels()

    def uninstall(self) -> None:
        """Send calls to Python again, and count from zero."""
        native_type.set_entry(self.function, 0)
        self.cold_calls = 0
        self.function.target = self.python if self.failure else self.call_cold


class FunctionStub(ColdCallable):
    """The native entry of a Python function outside the registry.

    Args:
        runtime: the entries of this process.
        function: the function.
        kind: which entry serves it.
        operators: the operators that the entry may call.
    """

    record: EntryStruct | None = None

    def __init__(
        self,
        runtime: Runtime,
        function: native_type.NativeFunction,
        kind: str,
        operators: tuple[str, ...] = (),
    ) -> None:
        super().__init__(runtime, function, function.target, kind)
        self.kind, self.operators = kind, operators

    @property
    def is_hot(self) -> bool:
        """Whether the entry needs no compilation, or is worth it: it saves less time than that of an operator."""
        return self.kind in self.runtime.codes or self.cold_calls >= config.flags.hot_composites

    def make_struct(self) -> EntryStruct:
        """Return the struct that the entry reads."""
        targets = tuple(by_name(name) for name in self.operators)
        fields = {
            "targets": targets,
            "known": ElementCount.known,
            "names": ("dtype",),
            "error": ArgumentError,
        }
        return EntryStruct(rt.FunctionEntry, self.runtime.process, self.python, **fields)

    def _install(self) -> None:
        if self.record is None:  # else another thread has installed the entry, which reads the struct
            self.record = self.make_struct()
        native_type.set_entry(self.function, self.runtime.entry(self.kind), self.record.address)
        self.function.target = self.python
        protocols.install_slot(self.runtime, self.kind, self.function)


class Stub(ColdCallable):
    """The native entry of operators: of an operator's function, or of a method that calls some.

    Args:
        runtime: the entries of this process.
        function: the function or method.
        kind: which entry serves it.
        python: runs a call in Python.
        operators: those whose CPU kernels the entry implements: for a composite, also the operator that it calls.
        make: builds the variant of a key.
        recorder: returns the recorder of calls for autograd, or None.

    Attributes:
        calls_views: whether it is a composite that calls views besides its base.
        views: the entries of all views, if it calls some; while one of them is changed, Python runs its calls.
    """

    calls_views = False
    views: Sequence[Stub] = ()
    _passes = 0  # over the elements, of the Python kernel; not counted yet

    def __init__(
        self,
        runtime: Runtime,
        function: Any,
        kind: str,
        python: Any,
        operators: Sequence[Operator],
        make: Callable[[int], StructMemory] | None = None,
        recorder: Callable[[], Any] = lambda: None,
    ) -> None:
        super().__init__(runtime, function, python, getattr(python, "name", kind))
        self.operators, self.make, self.recorder = operators, make, recorder
        self.snapshot_kernels()
        self._was_unchanged = True
        self.patch_points = [PatchPoint(function, kind, python, python if make is None else self.call_miss)]
        self.seen: Counter[int] = Counter()

    @property
    def operator(self) -> Operator:
        """The operator that is called."""
        return self.operators[0]

    @property
    def base(self) -> Operator:
        """The operator whose kernel the entry implements."""
        return self.operators[-1]

    @property
    def record(self) -> OperatorStruct | None:
        """The struct that the function's entry reads; None while the function is cold."""
        return self.patch_points[0].record

    @property
    def usable(self) -> bool:
        """Whether the entry may answer calls: neither its operators nor a view that it calls is changed."""
        return self.is_unchanged and all(stub.is_unchanged for stub in self.views)

    @property
    def is_unchanged(self) -> bool:
        """Whether the CPU kernels are unchanged since `snapshot_kernels`, and no mode intercepts the calls."""
        watched = any(op.extra_keys for op in self.operators)
        return not (self.failure or watched) and self.read_kernels() == self.kernels

    def weigh_call(self, args: tuple[Any, ...]) -> int:
        """Return how many calls a call counts as.

        The Python kernel passes over the elements several times (`elementwise.count_passes`), the entry once. It also
        takes the memory of temporaries (runtime/rt_temporaries.py), which counts as a quarter of a pass.
        """
        size = find_size(args)
        if size < LARGE:
            return 1
        if self._passes == 0:
            self._passes = elementwise.count_passes(self.base)
        return 1 + size * (4 * self._passes - 3) // (4 * ELEMENTS_PER_CALL)

    def update_state(self) -> bool:
        """Check the CPU kernels again; return whether `is_unchanged` differs from what it was at the last check."""
        before, self._was_unchanged = self._was_unchanged, self.is_unchanged
        return before != self._was_unchanged

    def read_kernels(self) -> list[Any]:
        keys = (DispatchKey.CPU, DispatchKey.ADInplaceOrView, DispatchKey.WeakScalar)
        result = [op.table[key].fn for op in self.operators for key in keys]
        if self.base is not self.operator:  # calls are recorded as the base's, whose derivative is used
            result.append(self.operator.table[DispatchKey.AutogradCPU].fn)
        return result

    @property
    def calls(self) -> int:
        """Calls run by the entry."""
        return sum(point.record.calls for point in self.patch_points if point.record is not None)

    def make_struct(self, fall_back: Any, miss: Any) -> OperatorStruct:
        """Return the struct of an entry, with the callables that serve calls without it."""
        writer = find_writer(self.operator)
        return OperatorStruct(self.runtime.process, fall_back, miss, NAMES, write_out=writer)

    def add_wrapper(self, wrapper: Any) -> None:
        """Let a callable that converts arguments share the entry, or pass calls on if it converts some numbers only."""
        if wrapper.passing_rules["values_start"] or wrapper.passing_rules["takes_none"]:
            super().add_wrapper(wrapper)
        else:
            rest: Callable[..., Any] = MethodType(type(wrapper).__call__, wrapper)
            if any(wrapper.single_tensors):
                rest = ArgumentConversion(wrapper, self.function, self.runtime, self.attempt)
            kind = self.patch_points[0].kind
            self.patch_points.append(PatchPoint(wrapper, kind, rest, rest, takes_numbers=False))

    def add_method(self, method: Any, swapped: bool) -> None:
        """Install the entry in a special method too; on a failed guard the method's own Python code runs."""
        fall_back: Callable[..., Any] = MethodType(type(method).__call__, method)
        kind = self.patch_points[0].kind
        if swapped and not kind.startswith("elementwise"):
            return
        if swapped:  # the entry swaps the arguments, and passes them on swapped
            kind, fall_back = kind + "_swapped", _reverse_arguments(fall_back)
        self.patch_points.append(PatchPoint(method, kind, fall_back, fall_back))

    def call_miss(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run a call with operand types that have no variant yet; the entry has written their key."""
        if self.record is not None:
            key = self.record.get(rt.OperatorEntry.missed)
            self.seen[key] += self.weigh_call(args)
            if self.seen[key] >= config.flags.hot_calls and key not in self.record.variants:
                self.attempt(self.add_variant, key)
                if key in self.record.variants:
                    return self.function(*args, **kwargs)
        return self.python(*args, **kwargs)

    def _install(self) -> None:
        if not self.usable:
            self.cold_calls = 0  # check again after as many calls
            return
        recorder, known = self.recorder(), [] if self.record is None else self.record.variants.values()
        for point in self.patch_points:
            point.open(self.runtime, recorder, self.make_struct)
            point.add(*known)
        self._store_last_names()
        for listener in self.runtime.install_listeners:
            listener(self)
        self.function.target = self.python
        self.install_wrappers()

    def _store_last_names(self) -> None:
        """Let the function's entry take more arguments; special methods have none: that of `__pow__` is a modulus."""
        if self.record is not None and not self.record.get(rt.OperatorEntry.last_names):
            for name, value in find_last_names(self.operator).items():
                self.record.store(getattr(rt.OperatorEntry, name), value)

    def uninstall(self) -> None:
        """Send calls to Python again, and count from zero."""
        with lock:
            for point in self.patch_points:
                native_type.set_entry(point.callable, 0)
            super().uninstall()

    def add_variant(self, key: int) -> None:
        """Compile the loop of a combination of operand types and make it reachable."""
        lock.if_free(lambda: self._add_variant(key))

    def _add_variant(self, key: int) -> None:
        if self.make is not None and self.record is not None and key not in self.record.variants:
            variant = self.make(key)
            for point in self.patch_points:
                point.add(variant)

    def clear_variants(self) -> None:
        """Remove the variants, whose dtypes follow from the default dtype; the registry's lock is held."""
        if self.make is not None:
            for point in self.patch_points:
                if point.record is not None:
                    point.record.clear()

    def follow(self) -> None:
        """Update the entry: the operator's kernels or observers have changed; the registry's lock is held."""
        if self.record is None:
            return  # cold
        if native_type.entry_of(self.function):
            self.uninstall()
        if self.usable:
            self.install()


class FillStub(Stub):
    """The native entry of ``full``, ``zeros`` and ``ones``, which has the default dtype float32 built in."""

    @property
    def usable(self) -> bool:
        """Whether the entry may answer calls."""
        return self.is_unchanged and default_float() is float32
