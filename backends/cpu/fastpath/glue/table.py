"""Table of native entries: which operators have one, of which kind, and which (operator, dtype, layout) they serve."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .....eager.tensor.dunders import BINARY, COMPARISON, methods
from .....eager.tensor.inplace import functional
from .....named_tuple import NamedTuple
from .....operators.declare.declaration import on_declaration
from .....registry.dtypes import DType, bool_
from .....registry.function import function_listeners
from .....registry.operator import Operator, change_listeners, definition_listeners, operators
from . import folds, loops, operands, products
from .kernels import KernelStub
from .recording import find_recorder
from .runtime import Runtime
from .structs import CODES, StructMemory
from .stubs import Stub, ViewStub


class Service(NamedTuple):
    """Use of a native entry by an operator.

    Attributes:
        entry: the kind of entry.
        base: the operator that the entry implements: for a composite, the operator that it calls.
        recorder: how calls with history are recorded; empty: in Python.
        key_of: returns the key of a call's operand types.
        make: builds the variant of a key.
        is_served: returns whether there is native code for a dtype.
        caches_layouts: whether the entry remembers layouts of views.
    """

    entry: str
    base: str = ""
    recorder: str = "bound"
    key_of: Callable[..., int | None] = lambda *args, **kwargs: None
    make: Callable[[Operator, int], StructMemory] | None = None
    is_served: Callable[[Operator, DType], bool] = lambda op, dtype: True
    caches_layouts: bool = False


def _has_fold(op: Operator, dtype: DType) -> bool:
    return folds.find_fold(op, dtype) is not None


def _has_product(op: Operator, dtype: DType) -> bool:
    return products.is_served(dtype)


_CAST = Service("cast", key_of=operands.find_cast_key, make=loops.make_cast_variant)
SCAN = Service("scan", key_of=folds.find_reduction_key, make=folds.make_scan_variant, is_served=_has_fold)
SERVICES: dict[str, Service] = {
    **{
        f"td::{name}": Service(name) for name in ("reshape", "permute", "broadcast_to", "clone", "contiguous")
    },
    "td::stop_gradient": Service("stop_gradient", recorder=""),
    "td::basic_index": Service("basic_index"),
    "td::basic_put": Service("put", recorder=""),
    "td::cast": _CAST,
    "td::astype": _CAST._replace(entry="astype", base="td::cast"),
    "td::matmul": Service(
        "matmul",
        key_of=operands.find_elementwise_key,
        make=products.make_product_variant,
        is_served=_has_product,
    ),
    "td::concat": Service("concat"),
    "td::stack": Service("stack", base="td::concat", recorder=""),
    "td::full": Service("full", recorder=""),
    "td::zeros": Service("zeros", base="td::full", recorder=""),
    "td::ones": Service("ones", base="td::full", recorder=""),
    "td::index": Service("index"),
    "td::take": Service("take", base="td::index", recorder=""),
}
ELEMENTWISE = Service(
    "elementwise",
    recorder="elementwise",
    key_of=operands.find_elementwise_key,
    make=loops.make_elementwise_variant,
)
INPLACE = ELEMENTWISE._replace(entry="inplace", recorder="")
REDUCTION = Service(
    "reduction",
    recorder="reduction",
    key_of=folds.find_reduction_key,
    make=folds.make_reduction_variant,
    is_served=_has_fold,
)
VIEW = Service("cached_view", caches_layouts=True)
COMPOSITE_VIEW = VIEW._replace(recorder="")


def _takes_tensors_only(op: Operator) -> bool:
    arguments = op.schema.arguments
    return len(arguments) <= 3 and all(a.type.form == "base" and a.type.base == "Tensor" for a in arguments)


def find_service(op: Operator) -> Service | None:
    """Return the entry that serves an operator; None if there is none."""
    inner = functional.get(op)
    decl = op.decl if inner is None else inner.decl
    if op.name in SERVICES:
        return SERVICES[op.name]
    if decl is not None and decl.is_elementwise and _takes_tensors_only(op):
        value = ELEMENTWISE if inner is None else INPLACE._replace(base=inner.name)
        return value._replace(entry=f"{value.entry}{len(op.schema.arguments)}")
    if inner is not None or decl is None:
        return None
    if decl.fold is not None:
        return SCAN if decl.kind == "scan" else REDUCTION
    return _find_view_service(op) if op.is_view else None


# Types of arguments that the entry of cached views compares.
_STATIC_TYPES = frozenset(("int", "SymInt", "bool"))


def _find_view_service(op: Operator) -> Service | None:
    """Return the entry of a view of one tensor; its layout follows from the tensor's and from static arguments."""
    arguments, results = op.schema.arguments, op.schema.returns
    if len(results) != 1 or results[0].type.is_list:
        return None
    if any(argument.type.core not in _STATIC_TYPES for argument in arguments[1:]):
        return None
    if op.decl.view is not None:
        return VIEW
    return COMPOSITE_VIEW if op.decl.kind == "composite" else None


def make_stub(runtime: Runtime, function: Any) -> Stub | None:
    """Return the stub of an operator function; None if no native entry serves it."""
    op: Operator = function.operator
    service = find_service(op)
    if service is None:
        return None
    base = operators[service.base] if service.base else op
    make = partial(service.make, base) if service.make is not None else _no_variant
    record = partial(find_recorder, base, service.recorder)
    stub_class = ViewStub if service.caches_layouts else Stub
    return stub_class(runtime, function, service.entry, service.key_of, make, record, base)


def _no_variant(key: int) -> StructMemory:
    raise RuntimeError("this entry has no variants")


def _has_row_loop(op: Operator, first: DType, dtype: DType) -> bool:
    """Return whether there is a loop for operands of one dtype; a condition, which comes first, may be boolean."""
    others = (CODES.index(dtype),) * (len(op.schema.arguments) - 1)
    if first is not dtype and len(others) < 2:
        return False
    dtypes = loops.resolve_dtypes(op, (CODES.index(first), *others))
    return dtypes is not None and loops.has_loop(op, dtypes)


def is_row_served(op: Operator, dtype: DType, layout: str) -> bool:
    """Return whether a hot call on tensors of this dtype and layout runs native code. Nothing is compiled."""
    service = find_service(op)
    if service is None:
        return False
    if service.recorder == "elementwise":
        return any(_has_row_loop(op, first, dtype) for first in (dtype, bool_))
    return service.is_served(op, dtype)


class Stubs:
    """All stubs of this process, by operator."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.by_operator: dict[Operator, Stub] = {}
        self.kernels: dict[Operator, KernelStub] = {}
        self._concerned: dict[Operator, list[Stub]] = {}
        self._views: list[Stub] = []
        change_listeners.append(self.follow)
        definition_listeners.append(self.forget)
        function_listeners.append(self.add)
        on_declaration(self.snapshot_kernels)

    def follow(self, op: Operator) -> None:
        """Update a stub: an operator's table or observers have changed (a listener of the registry)."""
        for stub in self._concerned.get(op, ()):
            stub.follow()
        for stub in self._views if op.is_view else ():
            stub.follow()
        kernel = self.kernels.get(op)
        if kernel is not None:
            kernel.follow()

    def snapshot_kernels(self, op: Operator) -> None:
        """Update a stub whose operator is declared late: kernels follow the function (a listener of declarations)."""
        for stub in self._concerned.get(op, ()):
            stub.snapshot_kernels()

    def forget(self, op: Operator, defined: bool) -> None:
        """Add or remove a stub: an operator was defined or deleted (a listener of the registry)."""
        if not defined and op in self.kernels:
            self.kernels.pop(op).close()
        stub = None if defined else self.by_operator.pop(op, None)
        if stub is not None:
            stub.uninstall()
            if op.is_view:
                self._views.remove(stub)
            for concerned in {op, stub.base}:
                self._concerned[concerned].remove(stub)
                if not self._concerned[concerned]:
                    del self._concerned[concerned]

    def add(self, function: Any) -> None:
        """Give an operator function its stub: of its kind, or the one of functions with a Python kernel."""
        stub, op = make_stub(self.runtime, function), function.operator
        if stub is None:
            self.kernels[op] = KernelStub(self.runtime, function)
            return
        self.by_operator[op] = stub
        if op.is_view:
            self._views.append(stub)
        if isinstance(stub, ViewStub) and op.decl.view is None:
            stub.views = self._views
        for concerned in {op, stub.base}:
            self._concerned.setdefault(concerned, []).append(stub)

    def add_methods(self) -> None:
        """Let the special methods of arithmetic share the entries of their operators."""
        for name in [*BINARY, *COMPARISON]:
            for spelled, swapped in ((f"__{name}__", False), (f"__r{name}__", True), (f"__i{name}__", False)):
                method = methods.get(spelled)
                stub = self.by_operator.get(method.function.operator) if method is not None else None
                if stub is not None and all(point.callable is not method for point in stub.patch_points):
                    stub.add_method(method, swapped)


def describe_failures(stubs: Stubs) -> dict[str, str]:
    """Return the operators whose native code could not be compiled, and why."""
    return {op.name: stub.failure for op, stub in stubs.by_operator.items() if stub.failure}
