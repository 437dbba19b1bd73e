"""Stubs of operators whose CPU kernel is a Python function: calls on plain tensors skip the dispatcher.

These are the operators of other namespaces, and those of tandem without native code of their own. A call that does not
fit goes to the dispatcher; so does every call while anything but a plain kernel is registered or active.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import numpy as np

from .....eager.hot_calls import HotCalls
from .....eager.layers import dispatch_mode
from .....errors import AllocationError, ScalarOverflowError, TandemError
from .....registry import native_type
from .....registry.contract import describe_kernel, is_checked
from .....registry.dispatch.keys import DispatchKey
from .....registry.operator import Operator
from .....registry.schemas.schema import MISSING, Type
from .....registry.values import describe
from ..entries import rt_kernels as at
from .patch_points import TargetCallable
from .runtime import Runtime
from .structs import EntryStruct, StructMemory, find_last_names, find_writer
from .stubs import ColdCallable, Stub

ENTRY, ARRAY_ENTRY = "kernel_call", "array_kernel_call"
OWN_ENTRIES = {"td::bincount": "bincount"}
"""The entries of operators whose eager kernel is native too."""
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


def object_bits(kind: Type, is_first: bool = True) -> int:
    """Return as `kind_bits` also whether any object, a tuple of integers, or a number for a tensor is passed unchanged.

    It is for operators that write nothing: the others count writes in the dispatcher's layers. Functions of arrays get
    numbers in place of tensors, but of the first one, as `make_eager_kernel` passes them.
    """
    if kind.core == "Tensor" and not kind.is_list and not is_first:
        return kind_bits(kind) | _KINDS["Scalar"]
    if kind.form == "list" and kind.element is not None and kind.size is None:
        return at.INTEGERS if kind_bits(kind.element) == at.INTEGER else 0
    return at.ANYTHING | at.TENSOR if kind.form == "base" and kind.base == "Any" else kind_bits(kind)


def find_plain_kernel(op: Operator) -> Any:
    """Return the function that a call on plain CPU tensors runs; None if that takes more than calling it.

    It is a function of arrays, with NumPy as first argument, if the operator declares an eager kernel; a mode that
    intercepts some operators may concern those that such a kernel does not call.
    """
    entry = op.table[DispatchKey.CPU]
    books = op.layer_keys and op.schema.namespace != "td"  # the layer counts writes of other kernels
    if op.extra_keys or books or entry.boxed or entry.kind in ("missing", "ambiguous", "fallthrough"):
        return None
    fn = entry.fn if entry.registration is None else entry.registration.fn
    if not has_eager_kernel(op):
        return fn
    is_used = getattr(entry.fn, "is_eager_kernel", False) and not dispatch_mode.watching()
    return op.decl.eager_kernel if is_used else None


def has_eager_kernel(op: Operator) -> bool:
    """Return whether an operator declares an eager kernel."""
    return op.decl is not None and op.decl.eager_kernel is not None


def expected_results(op: Operator) -> int:
    """Return which results of the current kernel need no check by Python: see ``K_RESULTS``."""
    registration = op.table[DispatchKey.CPU].registration
    if registration is None or not is_checked(registration):
        return at.ANY_RESULT
    return op.contract.tensors if op.contract.tensors >= 0 else at.ASK_PYTHON


class KernelStruct(EntryStruct):
    """The struct that the entry of one operator reads. It keeps the current kernel alive."""

    entry: int
    operator: Operator
    kernel: Any

    def __init__(self, process: StructMemory, op: Operator, fall_back: Any = None) -> None:
        """Make the struct; ``fall_back`` counts some calls, and runs those that the entry does not take."""
        positional, keyword, converters = op.binder.positional, op.binder.keyword, op.binder.converters
        arguments = (*positional, *keyword)
        self.operator, self.kernel = op, None
        is_eager = has_eager_kernel(op)
        kinds, values = StructMemory(8 * len(arguments) + 8), StructMemory(8 * len(arguments) + 8)
        for index, argument in enumerate(arguments):
            kind = argument.type
            kinds.set(8 * index, object_bits(kind, index == 0) if is_eager else kind_bits(kind))
            if argument.default is not MISSING:
                values.refer(8 * index, converters[argument.name](argument.default))
        super().__init__(
            at.KernelEntry,
            process,
            op if fall_back is None else fall_back,
            is_sampled=int(fall_back is not None),
            failed=partial(raise_kernel_error, op),
            check=partial(check_result, op),
            least=sum(argument.default is MISSING for argument in positional),
            most=len(positional),
            count=len(arguments),
            kinds=kinds,
            defaults=values,
            arguments=tuple(sys.intern(argument.name) for argument in arguments),
            write_out=find_writer(op),
            **find_last_names(op),
        )
        self.refer(at.KernelEntry.numpy, np)
        if keyword:
            self.refer(at.KernelEntry.keywords, tuple(sys.intern(argument.name) for argument in keyword))

    def find_weight(self) -> int:
        """Return how many calls the one represents that Python runs now, of which it may run a few."""
        seen = self.get(at.KernelEntry.seen)
        return at.SAMPLE_MASK + 1 if seen > at.ALL_SAMPLED and seen & at.SAMPLE_MASK == 0 else 1

    def put(self, kernel: Any) -> None:
        """Set the kernel; None sends all calls to the dispatcher. A running call holds a reference to the old one."""
        if kernel is not None:
            self.set(at.KernelEntry.results, expected_results(self.operator))
        self.set(at.KernelEntry.kernel, 0 if kernel is None else id(kernel))
        self.kernel = kernel


def raise_kernel_error(op: Operator, fault: BaseException, *args: Any) -> Any:
    """Raise a kernel's TandemError, or for a MemoryError or OverflowError the dispatcher's exception."""
    if isinstance(fault, TandemError):
        raise fault
    kind = AllocationError if isinstance(fault, MemoryError) else ScalarOverflowError
    text = f"{op.schema.name}({', '.join(map(describe, args))}): {fault or 'no memory'}"
    raise kind(text) from None


def check_result(op: Operator, result: Any) -> Any:
    """Return a kernel's result, converted to what the schema declares, or raise."""
    registration = op.table[DispatchKey.CPU].registration
    who = "its kernel" if registration is None else describe_kernel(registration)
    return op.contract.checked(result, who)


def can_be_served(op: Operator) -> bool:
    """Return whether calls of a schema may fit the entry: it takes a tensor, and requires no keyword."""
    binder = op.binder
    tensor = any(kind_bits(argument.type) & at.TENSOR for argument in binder.positional)
    complete = all(argument.default is not MISSING for argument in binder.keyword)
    return tensor and complete and len(binder.positional) + len(binder.keyword) <= at.MOST_ARGUMENTS


def is_compilable(op: Operator) -> bool:
    """Return whether compiled code computes an operator without Python, and it only computes from its arguments.

    These are composites, operators that create tensors, draw from a key, write at declared positions or declare a
    decomposition, and those whose kernel is a function in C or LLVM IR.
    """
    decl, schema = op.decl, op.schema
    is_decomposed = decl is not None and decl.decomposition is not None
    writes = getattr(decl, "index_spec", None) is not None and decl.index_spec.writes
    composed = decl is not None and (
        decl.kind in ("composite", "creation", "random") or is_decomposed or writes
    )
    if composed and (decl.explicit or decl.effects):
        return False
    if not (composed or has_machine_code(op)):
        return False
    computes = bool(schema.returns) and all(r.type.core == "Tensor" for r in schema.returns)
    return computes and not (schema.is_view or schema.is_mutable)


def has_machine_code(op: Operator) -> bool:
    """Return whether a kernel of an operator that takes a tensor is a function in C or LLVM IR."""
    if (op.schema.namespace == "td" and op.decl is not None) or not can_be_served(op):
        return False
    entry = op.table[DispatchKey.CPU]
    registrations = [one.registration for one in (entry, *entry.dtypes.values())]
    return any(one is not None and getattr(one.fn, "is_machine_code", False) for one in registrations)


class KernelStub(ColdCallable):
    """The native entry of one operator function whose kernel is a Python function.

    The entry is installed at the first call if another operator has loaded it, else when the function is hot. An
    operator that is compiled has it in a callable of its own: the entry of the function runs calls that are compiled as
    a whole (eager/hot_calls.py:HotCalls), and may leave the others to a second entry, which counts fewer calls.
    """

    record: KernelStruct | None = None
    sampled_record: KernelStruct | None = (
        None  # of calls that are counted, if an eager kernel computes the others
    )

    def __init__(self, runtime: Runtime, function: Any) -> None:
        self.operator: Operator = function.operator
        self.callable = function
        self.hot_calls: HotCalls | None = None
        usual = ARRAY_ENTRY if has_eager_kernel(self.operator) else ENTRY
        self.entry_kind = OWN_ENTRIES.get(self.operator.name, usual)
        super().__init__(runtime, function, function.run, self.operator.name)
        self.snapshot_kernels()

    @property
    def is_hot(self) -> bool:
        """Whether the entry needs no compilation, or is worth it."""
        return self.entry_kind in self.runtime.codes or super().is_hot

    def _install(self) -> None:
        if self.hot_calls is None and is_compilable(self.operator):
            self._use(None)
            self.callable, self.record = TargetCallable(self.operator), None
            self.hot_calls = HotCalls(self.function, self.callable, self.function, self.operator)
        self.function.target = self.function.run if self.hot_calls is None else self.hot_calls.call
        try:
            is_own = self.function.run is self.operator  # otherwise there is a shorter way than its kernels
            if self.record is None and is_own and can_be_served(self.operator):
                record = KernelStruct(self.runtime.process, self.operator)
                record.entry = self.runtime.entry(self.entry_kind)
                # the function keeps the struct alive, which its entry reads
                self.record = self.callable.native_record = record
                self._install_sampled_entry()
            self.install_wrappers()
        except (RuntimeError, OSError, SyntaxError, ImportError):
            return  # the stubs of hotter operators have warned already
        self.follow()

    def _install_sampled_entry(self) -> None:
        """Install an entry that runs an eager kernel, and leaves some calls to Python, which counts them.

        It is that of the function until calls are compiled, and then runs the calls of other kinds.
        """
        if self.hot_calls is None or self.sampled_record is not None or not has_eager_kernel(self.operator):
            return
        other = TargetCallable(self.hot_calls.call)
        record = KernelStruct(self.runtime.process, self.operator, self.hot_calls.call)
        self.sampled_record = other.native_record = self.function.native_record = record
        self.hot_calls.fall_back, self.hot_calls.find_weight = other, record.find_weight
        for target in (other, self.function):
            native_type.set_entry(target, self.runtime.entry(self.entry_kind), record.address)

    def follow(self) -> None:
        """Update the struct: the operator's kernels may have changed; the registry's lock is held."""
        if self.record is not None and self.hot_calls is None and is_compilable(self.operator):
            self._install()
            return
        self._enable_hot_calls()
        if self.record is not None:
            self._use(find_plain_kernel(self.operator))

    def read_kernels(self) -> list[Any]:
        keys = (DispatchKey.CPU, DispatchKey.ADInplaceOrView, DispatchKey.WeakScalar, DispatchKey.AutogradCPU)
        return [self.operator.table[key].fn for key in keys]

    def _enable_hot_calls(self) -> None:
        """Compile hot calls only while compiled code computes what the kernels do, and no mode intercepts it."""
        if self.hot_calls is not None:
            same = has_machine_code(self.operator) or self.read_kernels() == self.kernels
            self.hot_calls.is_enabled = same and not self.operator.extra_keys

    def close(self) -> None:
        """Send every call to Python, which raises: the operator was deleted."""
        if self.record is not None:
            self._use(None)
        self.function.target = self.operator

    def _use(self, kernel: Any) -> None:
        """Set the kernel that the entry calls, and install the entry; without a kernel, uninstall it."""
        record = self.record
        if record is not None and (kernel is not record.kernel or kernel is None):
            record.put(kernel)
            if self.sampled_record is not None:
                self.sampled_record.put(kernel)
            native_type.set_entry(self.callable, 0 if kernel is None else record.entry, record.address)


class ComposedStub(Stub):
    """The native entry of a composite; calls that it leaves, such as those with history, are compiled when hot."""

    hot_calls: HotCalls | None = None

    def __init__(self, runtime: Runtime, function: Any, kind: str, python: Any, *args: Any) -> None:
        self.rest = TargetCallable(self._call_rest)
        super().__init__(runtime, function, kind, self.rest, *args)

    def _call_rest(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run the first of these calls: the operator is declared now."""
        op = self.operator
        self.hot_calls = HotCalls(self.rest, op, self.function, op) if is_compilable(op) else None
        self.rest.target = op if self.hot_calls is None else self.hot_calls.call
        self.follow_rest()
        return self.rest.target(*args, **kwargs)

    def follow_rest(self) -> None:
        """Compile hot calls only while the kernels are those that the entry implements."""
        if self.hot_calls is not None:
            self.hot_calls.is_enabled = self.usable

    def follow(self) -> None:
        """Update the entry and the compiled calls: the operator's kernels or observers have changed."""
        self.follow_rest()
        super().follow()
