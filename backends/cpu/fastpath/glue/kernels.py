"""Stubs of operators whose CPU kernel is a Python function: calls on plain tensors skip the dispatcher.

These are the operators of other namespaces, and those of tandem without native code of their own. A call that does not
fit goes to the dispatcher; so does every call while anything but a plain kernel is registered or active.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ..... import config
from .....errors import AllocationError, ScalarOverflowError, TandemError
from .....registry import native_type
from .....registry.contract import describe_kernel, is_checked
from .....registry.dispatch.keys import DispatchKey
from .....registry.dispatch.state import state
from .....registry.operator import Operator, lock
from .....registry.schemas.schema import MISSING, Argument, Type
from .....registry.values import describe
from ..compiler.structs import sizeof
from ..entries import rt_kernels as at
from ..runtime import rt_base as rt
from .runtime import Runtime
from .structs import StructMemory

ENTRY = "kernel_call"
_KINDS = {
    "Tensor": at.TENSOR,
    "int": at.INTEGER,
    "SymInt": at.INTEGER,
    "float": at.REAL,
    "complex": at.COMPLEX,
    "bool": at.BOOLEAN,
    "str": at.STRING,
    "Scalar": at.BOOLEAN | at.INTEGER | at.REAL | at.COMPLEX,
}


def kind_bits(kind: Type) -> int:
    """Return the types of values that the binder passes unchanged, as bits; 0 for a type whose values it converts."""
    if kind.form == "optional" and kind.element is not None:
        return kind_bits(kind.element) | at.NOTHING
    return _KINDS.get(kind.base, 0) if kind.form == "base" else 0


def find_plain_kernel(op: Operator) -> Any:
    """Return the function that a call on plain CPU tensors runs; None if that takes more than calling it."""
    entry = op.table[DispatchKey.CPU]
    books = op.layer_keys and op.schema.namespace != "td"  # the layer counts writes of other kernels
    if op.extra_keys or books or entry.boxed or entry.kind in ("missing", "ambiguous", "fallthrough"):
        return None
    return entry.fn if entry.registration is None else entry.registration.fn


def expected_results(op: Operator) -> int:
    """Return which results of the current kernel need no check by Python: see ``K_RESULTS``."""
    registration = op.table[DispatchKey.CPU].registration
    if registration is None or not is_checked(registration):
        return at.ANY_RESULT
    return op.contract.tensors if op.contract.tensors >= 0 else at.ASK_PYTHON


class KernelStruct(StructMemory):
    """The struct that the entry of one operator reads. It keeps the current kernel alive."""

    entry: int
    operator: Operator
    kernel: Any

    def __init__(self, process: StructMemory, op: Operator, failed: Any) -> None:
        super().__init__(sizeof(at.KernelEntry))
        positional, keyword = op.binder.positional, op.binder.keyword
        arguments, defaults = (*positional, *keyword), _defaults(op)
        self.operator, self.kernel = op, None
        self.point(rt.OperatorEntry.globals_, process)
        self.refer(rt.OperatorEntry.fall_back, op)
        self.refer(at.KernelEntry.failed, failed)
        self.refer(at.KernelEntry.check, make_result_checker(op))
        self.set(at.KernelEntry.least, sum(default is MISSING for default in defaults[: len(positional)]))
        self.set(at.KernelEntry.most, len(positional))
        self.set(at.KernelEntry.count, len(arguments))
        kinds, values = StructMemory(8 * len(arguments) + 8), StructMemory(8 * len(arguments) + 8)
        for index, (argument, default) in enumerate(zip(arguments, defaults, strict=True)):
            kinds.set(8 * index, kind_bits(argument.type))
            if default is not MISSING:
                values.refer(8 * index, default)
        self.point(at.KernelEntry.kinds, kinds)
        self.point(at.KernelEntry.defaults, values)
        if keyword:
            self.refer(at.KernelEntry.keywords, tuple(sys.intern(argument.name) for argument in keyword))

    @property
    def calls(self) -> int:
        """Calls run by the entry."""
        return self.get(rt.OperatorEntry.calls)

    def put(self, kernel: Any) -> None:
        """Set the kernel; None sends all calls to the dispatcher. A running call holds a reference to the old one."""
        if kernel is not None:
            self.set(at.KernelEntry.results, expected_results(self.operator))
        self.set(at.KernelEntry.kernel, 0 if kernel is None else id(kernel))
        self.kernel = kernel


def explain_kernel_error(op: Operator, fault: BaseException, args: tuple[Any, ...]) -> Exception:
    """Return the dispatcher's exception for a MemoryError or OverflowError of a kernel."""
    kind = AllocationError if isinstance(fault, MemoryError) else ScalarOverflowError
    return kind(f"{op.schema.name}({', '.join(map(describe, args))}): {fault or 'no memory'}")


def make_result_checker(op: Operator) -> Callable[[Any], Any]:
    """Return a function that converts a kernel's result to what the schema declares, or raises."""

    def check(result: Any) -> Any:
        registration = op.table[DispatchKey.CPU].registration
        who = "its kernel" if registration is None else describe_kernel(registration)
        return op.contract.checked(result, who)

    return check


def _defaults(op: Operator) -> list[Any]:
    """Return the defaults as the binder fills them in; MISSING for required arguments."""

    def default(argument: Argument) -> Any:
        convert = op.binder.converters[argument.name]
        return MISSING if argument.default is MISSING else convert(argument.default)

    return [default(argument) for argument in (*op.binder.positional, *op.binder.keyword)]


def can_be_served(op: Operator) -> bool:
    """Return whether calls of a schema may fit the entry: it takes a tensor, and requires no keyword."""
    binder = op.binder
    tensor = any(kind_bits(argument.type) & at.TENSOR for argument in binder.positional)
    complete = all(argument.default is not MISSING for argument in binder.keyword)
    return tensor and complete and len(binder.positional) + len(binder.keyword) <= at.MOST_ARGUMENTS


class KernelStub:
    """The native entry of one operator function whose kernel is a Python function.

    The entry is installed at the first call if another operator has loaded it, else when the function is hot.
    """

    def __init__(self, runtime: Runtime, function: Any) -> None:
        self.runtime, self.function = runtime, function
        self.operator: Operator = function.operator
        self.record: KernelStruct | None = None
        self.cold_calls = 0
        function.target = self.call_cold

    def call_cold(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run a call before the entry is installed."""
        if not state.include:
            self.cold_calls += 1
            if ENTRY in self.runtime.codes or self.cold_calls >= config.flags.hot_calls:
                self.install()
        return self.operator(*args, **kwargs)

    def install(self) -> None:
        """Create the struct and install the entry, if the kernel is plain; later, if another thread registers."""
        lock.if_free(self._install)

    def _install(self) -> None:
        self.function.target = self.operator
        try:
            if self.record is None and can_be_served(self.operator):
                entry = self.runtime.entry(ENTRY)
                # the function keeps the struct alive, which its entry reads
                self.record = self.function.native_record = self.make_record()
                self.record.entry = entry
        except (RuntimeError, OSError, SyntaxError, ImportError):
            return  # the stubs of hotter operators have warned already
        self.follow()

    def make_record(self) -> KernelStruct:
        """Return the struct of the operator."""
        op = self.operator

        def failed(fault: BaseException, *args: Any) -> Any:
            if isinstance(fault, TandemError):
                raise fault
            raise explain_kernel_error(op, fault, args) from None

        return KernelStruct(self.runtime.process, op, failed)

    def follow(self) -> None:
        """Update the struct: the operator's kernels may have changed; the registry's lock is held."""
        if self.record is None:
            return
        kernel = find_plain_kernel(self.operator)
        if kernel is self.record.kernel and kernel is not None:
            return
        self.record.put(kernel)
        if kernel is None:
            native_type.set_entry(self.function, 0)
        else:
            native_type.set_entry(self.function, self.record.entry, self.record.address)

    def close(self) -> None:
        """Send every call to Python, which raises: the operator was deleted."""
        if self.record is not None:
            self.record.put(None)
            native_type.set_entry(self.function, 0)
        self.function.target = self.operator
