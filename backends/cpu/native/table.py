"""Which operators have native entries, of which kind, and which rows (operator, dtype, layout) they serve."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ....eager.dunders import BINARY, COMPARISON, methods
from ....eager.inplace import functional
from ....operators.declare import on_declaration
from ....registry.dtypes import DType, bool_
from ....registry.function import function_listeners
from ....registry.operator import Operator, change_listeners, definition_listeners, operators
from . import folds, loops, operands, products
from .kernels import KernelStub
from .recording import recorder
from .records import CODES, Record
from .runtime import Runtime
from .stubs import Stub


class Service(NamedTuple):
    """How the native entry of an operator of its own kind is used.

    Attributes:
        entry: the kind of entry.
        base: the operator that the entry stands for: for a composite, what it calls.
        recorder: how calls with history are recorded; empty: in Python.
        key_of: the key of a call's operand types.
        make: builds the variant of a key.
        is_served: whether there is native code for a dtype.
    """

    entry: str
    base: str = ""
    recorder: str = "bound"
    key_of: Callable[..., int | None] = lambda *args, **kwargs: None
    make: Callable[[Operator, int], Record] | None = None
    is_served: Callable[[Operator, DType], bool] = lambda op, dtype: True


def _scans(op: Operator, dtype: DType) -> bool:
    return folds.fold_of(op, dtype) is not None


def _multiplies(op: Operator, dtype: DType) -> bool:
    return products.served(dtype)


_CAST = Service("cast", key_of=operands.cast_key, make=loops.cast_variant)
_SCAN = Service("scan", key_of=folds.reduction_key, make=folds.scan_variant, is_served=_scans)
SERVICES: dict[str, Service] = {
    **{
        f"td::{name}": Service(name) for name in ("reshape", "permute", "broadcast_to", "clone", "contiguous")
    },
    "td::stop_gradient": Service("stop_gradient", recorder=""),
    "td::basic_index": Service("basic_index"),
    "td::basic_put": Service("put", recorder=""),
    "td::cast": _CAST,
    "td::astype": _CAST._replace(entry="astype", base="td::cast"),
    "td::cumsum": _SCAN,
    "td::cumprod": _SCAN,
    "td::matmul": Service(
        "matmul", key_of=operands.elementwise_key, make=products.product_variant, is_served=_multiplies
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
    "elementwise", recorder="elementwise", key_of=operands.elementwise_key, make=loops.elementwise_variant
)
INPLACE = ELEMENTWISE._replace(entry="inplace", recorder="")
REDUCTION = Service(
    "reduction",
    recorder="reduction",
    key_of=folds.reduction_key,
    make=folds.reduction_variant,
    is_served=_scans,
)


def _takes_tensors_only(op: Operator) -> bool:
    arguments = op.schema.arguments
    return len(arguments) <= 3 and all(a.type.form == "base" and a.type.base == "Tensor" for a in arguments)


def service_of(op: Operator) -> Service | None:
    """The entry that serves an operator; None for none."""
    inner = functional.get(op)
    decl = op.decl if inner is None else inner.decl
    if op.name in SERVICES:
        return SERVICES[op.name]
    if decl is not None and decl.is_elementwise and _takes_tensors_only(op):
        found = ELEMENTWISE if inner is None else INPLACE._replace(base=inner.name)
        return found._replace(entry=f"{found.entry}{len(op.schema.arguments)}")
    return REDUCTION if inner is None and decl is not None and _is_fold(decl) else None


def _is_fold(decl: Any) -> bool:
    return decl.kind == "reduction" and decl.reduce in folds.FOLDS


def stub_for(runtime: Runtime, function: Any) -> Stub | None:
    """The stub of an operator function; None when nothing native serves it."""
    op: Operator = function.operator
    service = service_of(op)
    if service is None:
        return None
    base = operators[service.base] if service.base else op
    make = partial(service.make, base) if service.make is not None else _no_variant
    record = partial(recorder, base, service.recorder)
    return Stub(runtime, function, service.entry, service.key_of, make, record, base)


def _no_variant(key: int) -> Record:
    raise RuntimeError("this entry is served without variants")


def _row_plan(op: Operator, first: DType, dtype: DType) -> bool:
    """Whether there is a loop for operands of one dtype; a condition, which comes first, may be boolean."""
    others = (CODES.index(dtype),) * (len(op.schema.arguments) - 1)
    if first is not dtype and len(others) < 2:
        return False
    plan = loops.plan(op, (CODES.index(first), *others))
    return plan is not None and loops.emittable(op, plan)


def row_served(op: Operator, dtype: DType, layout: str) -> bool:
    """Whether a hot call on tensors of this dtype and layout runs native. Nothing is compiled to find out."""
    service = service_of(op)
    if service is None:
        return False
    if service.recorder == "elementwise":
        return any(_row_plan(op, first, dtype) for first in (dtype, bool_))
    return service.is_served(op, dtype)


class Stubs:
    """All stubs of this process, by operator."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.by_operator: dict[Operator, Stub] = {}
        self.kernels: dict[Operator, KernelStub] = {}
        self._concerned: dict[Operator, list[Stub]] = {}
        change_listeners.append(self.follow)
        definition_listeners.append(self.forget)
        function_listeners.append(self.add)
        on_declaration(self.settle)

    def follow(self, op: Operator) -> None:
        """A listener of the registry: an operator's table, or who is interested in its calls, has changed."""
        for stub in self._concerned.get(op, ()):
            stub.follow()
        kernel = self.kernels.get(op)
        if kernel is not None:
            kernel.follow()

    def settle(self, op: Operator) -> None:
        """A listener of declarations: an operator that is declared late has its kernels after its function."""
        for stub in self._concerned.get(op, ()):
            stub.settle()

    def forget(self, op: Operator, defined: bool) -> None:
        """A listener of the registry: an operator is there, or is no more."""
        if not defined and op in self.kernels:
            self.kernels.pop(op).close()
        stub = None if defined else self.by_operator.pop(op, None)
        if stub is not None:
            stub.take_out()
            for concerned in {op, stub.base}:
                self._concerned[concerned].remove(stub)
                if not self._concerned[concerned]:
                    del self._concerned[concerned]

    def add(self, function: Any) -> None:
        """Give an operator function its stub: of its kind, or the one of functions with a Python kernel."""
        stub, op = stub_for(self.runtime, function), function.operator
        if stub is None:
            self.kernels[op] = KernelStub(self.runtime, function)
            return
        self.by_operator[op] = stub
        for concerned in {op, stub.base}:
            self._concerned.setdefault(concerned, []).append(stub)

    def add_methods(self) -> None:
        """Let the special methods of arithmetic share the entries of their operators."""
        for name in [*BINARY, *COMPARISON]:
            for spelled, swapped in ((f"__{name}__", False), (f"__r{name}__", True), (f"__i{name}__", False)):
                method = methods.get(spelled)
                stub = self.by_operator.get(method.function.operator) if method is not None else None
                if stub is not None and all(door.callable is not method for door in stub.doors):
                    stub.add_method(method, swapped)


def describe_failures(stubs: Stubs) -> dict[str, str]:
    """Operators whose native code could not be made, and why."""
    return {op.name: stub.failure for op, stub in stubs.by_operator.items() if stub.failure}
