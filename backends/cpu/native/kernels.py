"""Operators whose CPU kernel is a Python function: calls on plain tensors reach it without the dispatcher.

They are those of other namespaces, and those of tandem that have no native code of their own. A call that does not fit
goes to the dispatcher; so does every call while something else than a plain kernel is in force.
"""

from __future__ import annotations

import sys
from typing import Any

from .... import config
from ....errors import AllocationError, ScalarOverflowError, TandemError
from ....registry import native_type
from ....registry.keys import DispatchKey
from ....registry.operator import Operator, lock
from ....registry.schema import MISSING, Argument, Type
from ....registry.state import state
from ....registry.values import describe
from . import rt_base as rt
from . import rt_kernels as at
from .records import Record
from .runtime import Runtime

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


def kinds_of(kind: Type) -> int:
    """The types of values that the binder leaves as they are, as bits; 0 for a type whose values it converts."""
    if kind.form == "optional" and kind.element is not None:
        return kinds_of(kind.element) | at.NOTHING
    return _KINDS.get(kind.base, 0) if kind.form == "base" else 0


def plain_kernel(op: Operator) -> Any:
    """The function that a call on plain CPU tensors runs; None where that takes more than calling it."""
    entry = op.table[DispatchKey.CPU]
    books = op.layer_keys and op.schema.namespace != "td"  # the layer counts what other kernels write
    if op.extra_keys or books or entry.boxed or entry.kind in ("missing", "ambiguous", "fallthrough"):
        return None
    return entry.fn


class KernelRecord(Record):
    """What the entry reads of one operator. It holds the kernel that is in force, and no earlier one."""

    entry: int

    def __init__(self, process: Record, op: Operator, failed: Any) -> None:
        super().__init__(at.K_SIZE)
        positional, keyword = op.binder.positional, op.binder.keyword
        arguments, defaults = (*positional, *keyword), _defaults(op)
        self.kernel: Any = None
        self.point(rt.D_GLOBALS, process)
        self.refer(rt.D_SLOW, op)
        self.refer(at.K_FAILED, failed)
        self.set(at.K_LEAST, sum(default is MISSING for default in defaults[: len(positional)]))
        self.set(at.K_MOST, len(positional))
        self.set(at.K_ALL, len(arguments))
        kinds, values = Record(8 * len(arguments) + 8), Record(8 * len(arguments) + 8)
        for place, (argument, default) in enumerate(zip(arguments, defaults, strict=True)):
            kinds.set(8 * place, kinds_of(argument.type))
            if default is not MISSING:
                values.refer(8 * place, default)
        self.point(at.K_KINDS, kinds)
        self.point(at.K_DEFAULTS, values)
        if keyword:
            self.refer(at.K_NAMES, tuple(sys.intern(argument.name) for argument in keyword))

    @property
    def calls(self) -> int:
        """Calls answered natively."""
        return self.get(rt.D_CALLS)

    def put(self, kernel: Any) -> None:
        """Set the kernel; None sends all calls to the dispatcher. A call that runs the old one holds it."""
        self.set(at.K_KERNEL, 0 if kernel is None else id(kernel))
        self.kernel = kernel


def explained(op: Operator, fault: BaseException, args: tuple[Any, ...]) -> Exception:
    """Want of memory, or a number out of range, as the dispatcher tells them."""
    kind = AllocationError if isinstance(fault, MemoryError) else ScalarOverflowError
    return kind(f"{op.schema.name}({', '.join(map(describe, args))}): {fault or 'no memory'}")


def _defaults(op: Operator) -> list[Any]:
    """The defaults as the binder fills them in; MISSING for what must be given."""

    def default(argument: Argument) -> Any:
        convert = op.binder.converters[argument.name]
        return MISSING if argument.default is MISSING else convert(argument.default)

    return [default(argument) for argument in (*op.binder.positional, *op.binder.keyword)]


def can_be_served(op: Operator) -> bool:
    """Whether calls of a schema may fit the entry: a tensor among what is given, and nothing needed by keyword."""
    binder = op.binder
    tensor = any(kinds_of(argument.type) & at.TENSOR for argument in binder.positional)
    complete = all(argument.default is not MISSING for argument in binder.keyword)
    return tensor and complete and len(binder.positional) + len(binder.keyword) <= at.MOST_ARGUMENTS


class KernelStub:
    """The native entry of one operator function whose kernel is a Python function.

    The entry is put in at the first call if it has been loaded for another operator, else when the function is hot.
    """

    def __init__(self, runtime: Runtime, function: Any) -> None:
        self.runtime, self.function = runtime, function
        self.operator: Operator = function.operator
        self.record: KernelRecord | None = None
        self.cold_calls = 0
        function.target = self.call_cold

    def call_cold(self, /, *args: Any, **kwargs: Any) -> Any:
        """A call before the entry is in place."""
        if not state.include:
            self.cold_calls += 1
            if ENTRY in self.runtime.codes or self.cold_calls >= config.flags.hot_calls:
                self.put_in()
        return self.operator(*args, **kwargs)

    def put_in(self) -> None:
        """Make the record and put the entry in, if the kernel is one for it; later, if another thread registers now."""
        with lock.if_free() as free:
            if not free:
                return
            self.function.target = self.operator
            try:
                if self.record is None and can_be_served(self.operator):
                    entry = self.runtime.entry(ENTRY)
                    # the function keeps the record, which its entry reads
                    self.record = self.function.native_record = self.make_record()
                    self.record.entry = entry
            except (RuntimeError, OSError, SyntaxError, ImportError):
                return  # what keeps machine code off has been said by the stubs of hotter operators
            self.follow()

    def make_record(self) -> KernelRecord:
        """The record of the operator."""
        op = self.operator

        def failed(fault: BaseException, *args: Any) -> Any:
            if isinstance(fault, TandemError):
                raise fault
            raise explained(op, fault, args) from None

        return KernelRecord(self.runtime.process, op, failed)

    def follow(self) -> None:
        """The operator's kernels may have changed; the registry's lock is held."""
        if self.record is None:
            return
        kernel = plain_kernel(self.operator)
        if kernel is self.record.kernel and kernel is not None:
            return
        self.record.put(kernel)
        if kernel is None:
            native_type.set_entry(self.function, 0)
        else:
            native_type.set_entry(self.function, self.record.entry, self.record.address)

    def close(self) -> None:
        """The operator is gone: every call goes to Python, which says so."""
        if self.record is not None:
            self.record.put(None)
            native_type.set_entry(self.function, 0)
        self.function.target = self.operator
