"""Which operators have native entries, of which kind, and which rows (operator, dtype, layout) they serve."""

from __future__ import annotations

from functools import partial
from typing import Any

from ....eager.dunders import BINARY, COMPARISON, methods
from ....registry.dtypes import DType, bool_
from ....registry.operator import Operator, change_listeners
from . import folds, loops, operands
from .recording import recorder
from .records import CODES, Record
from .runtime import Runtime
from .stubs import Stub

VIEWS = ("td::reshape", "td::permute", "td::broadcast_to")


def _takes_tensors_only(op: Operator) -> bool:
    arguments = op.schema.arguments
    return len(arguments) <= 3 and all(a.type.form == "base" and a.type.base == "Tensor" for a in arguments)


def kind_of(op: Operator) -> str:
    """The kind of entry that serves an operator: `elementwise`, `reduction`, `view`, or empty for none."""
    decl = op.decl
    if decl is None:
        return ""
    if decl.is_elementwise and _takes_tensors_only(op):
        return "elementwise"
    if decl.kind == "reduction" and decl.reduce in folds.FOLDS:
        return "reduction"
    return "view" if decl.kind == "view" and op.name in VIEWS else ""


def _no_variant(op: Operator, key: int) -> Record:
    raise RuntimeError(f"{op.name} is served without variants")


def _no_key(*args: Any, **kwargs: Any) -> None:
    return None


def stub_for(runtime: Runtime, function: Any) -> Stub | None:
    """The stub of an operator function; None when its kind has no native entry."""
    op: Operator = function.operator
    kind = kind_of(op)
    if not kind:
        return None
    make = partial(Stub, runtime, function, recorder=partial(recorder, op, kind))
    if kind == "elementwise":
        entry = f"elementwise{len(op.schema.arguments)}"
        return make(entry, operands.elementwise_key, loops.elementwise_variant)
    if kind == "reduction":
        return make("reduction", folds.reduction_key, folds.reduction_variant)
    return make(op.schema.name, _no_key, _no_variant)


def _row_plan(op: Operator, first: DType, dtype: DType) -> bool:
    """Whether there is a loop for operands of one dtype; a condition, which comes first, may be boolean."""
    others = (CODES.index(dtype),) * (len(op.schema.arguments) - 1)
    if first is not dtype and len(others) < 2:
        return False
    plan = loops.plan(op, (CODES.index(first), *others))
    return plan is not None and loops.emittable(op, plan)


def row_served(op: Operator, dtype: DType, layout: str) -> bool:
    """Whether a hot call on tensors of this dtype and layout runs native. Nothing is compiled to find out."""
    kind = kind_of(op)
    if kind == "elementwise":
        return any(_row_plan(op, first, dtype) for first in (dtype, bool_))
    if kind == "reduction":
        return folds.fold_of(op, dtype) is not None
    return kind == "view" and (op.name != "td::reshape" or layout == "contiguous")


class Stubs:
    """All stubs of this process, by operator."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.by_operator: dict[Operator, Stub] = {}
        change_listeners.append(self.follow)

    def follow(self, op: Operator) -> None:
        """A listener of the registry: an operator's table has changed."""
        stub = self.by_operator.get(op)
        if stub is not None:
            stub.follow()

    def add(self, function: Any) -> None:
        """Give an operator function its stub, if its kind has an entry."""
        stub = stub_for(self.runtime, function)
        if stub is not None:
            self.by_operator[function.operator] = stub

    def add_methods(self) -> None:
        """Let the special methods of arithmetic share the entries of their operators."""
        for name in [*BINARY, *COMPARISON]:
            for spelled, swapped in ((f"__{name}__", False), (f"__r{name}__", True)):
                method = methods.get(spelled)
                stub = self.by_operator.get(method.function.operator) if method is not None else None
                if stub is not None and all(door.callable is not method for door in stub.doors):
                    stub.add_method(method, swapped)


def describe_failures(stubs: Stubs) -> dict[str, str]:
    """Operators whose native code could not be made, and why."""
    return {op.name: stub.failure for op, stub in stubs.by_operator.items() if stub.failure}
