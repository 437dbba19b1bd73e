"""Table of native entries: which operators have one, of which kind, and which (operator, dtype, layout) they serve."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..... import lazy
from .....eager.tensor.dunders import BINARY, COMPARISON, methods
from .....eager.tensor.inplace import functional
from .....named_tuple import NamedTuple
from .....operators.declare.declaration import on_declaration
from .....registry.dispatch.keys import DispatchKey, keyset
from .....registry.dtypes import DType, bool_, default_listeners
from .....registry.function import function_listeners, wrapper_listeners, wrappers
from .....registry.operator import Operator, change_listeners, definition_listeners, operators
from .caching_stubs import LoopStub, ViewListStub, ViewStub
from .kernels import ComposedStub, KernelStub, has_eager_kernel
from .recording import find_recorder
from .runtime import Runtime
from .structs import CODE_OF, StructMemory
from .stubs import FillStub, Stub

# Imported when a loop is looked for: code that is found in the disk cache does not need what writes it.
_batches = lazy.Module(".backends.cpu.fastpath.glue.batches")
folds = lazy.Module(".backends.cpu.fastpath.glue.folds")
loops = lazy.Module(".backends.cpu.fastpath.glue.loops")
products = lazy.Module(".backends.cpu.fastpath.glue.products")
make_elementwise_variant = lazy.Functions(".backends.cpu.fastpath.glue.loops").make_elementwise_variant
make_cast_variant = lazy.Functions(".backends.cpu.fastpath.glue.loops").make_cast_variant
make_fold_variant = lazy.Functions(".backends.cpu.fastpath.glue.folds").make_fold_variant
make_product_variant = lazy.Functions(".backends.cpu.fastpath.glue.products").make_product_variant

# Calls that an entry runs have these keys only, and calls that are compiled are traced: other kernels do not matter.
ENTRY_KEYS = keyset(
    DispatchKey.CPU,
    DispatchKey.Tracer,
    DispatchKey.ADInplaceOrView,
    DispatchKey.AutogradCPU,
    DispatchKey.WeakScalar,
)


class Service(NamedTuple):
    """Use of a native entry by an operator.

    Attributes:
        entry: the kind of entry.
        base: the operator that the entry implements: for a composite, the operator that it calls.
        calls_views: whether it is a composite that also calls views, and runs in Python while one of them is changed.
        recorder: how calls with history are recorded; empty: in Python.
        make: builds the variant of a key.
        is_served: returns whether there is native code for a dtype.
        stub: the class of its stub.
    """

    entry: str
    base: str = ""
    calls_views: bool = False
    recorder: str = "bound"
    make: Callable[[Operator, int], StructMemory] | None = None
    is_served: Callable[[Operator, DType], bool] = lambda op, dtype: True
    stub: type[Stub] = Stub


def _has_fold(op: Operator, dtype: DType) -> bool:
    return folds.find_fold(op, dtype) is not None


_CAST = Service("cast", make=make_cast_variant)
SCAN = Service("scan", make=make_fold_variant, is_served=_has_fold)
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
        "matmul", make=make_product_variant, is_served=lambda op, dtype: bool(products.is_served(dtype))
    ),
    "td::concat": Service("concat"),
    "td::stack": Service("stack", base="td::concat", calls_views=True, recorder="", stub=ComposedStub),
    "td::full": Service("full", recorder="", stub=FillStub),
    "td::empty": Service("zeros", base="td::full", recorder="", stub=FillStub),
    "td::zeros": Service("zeros", base="td::full", recorder="", stub=FillStub),
    "td::ones": Service("ones", base="td::full", recorder="", stub=FillStub),
    **{
        f"td::{name}": Service(name, recorder="", stub=ComposedStub) for name in ("arange", "linspace", "eye")
    },
    "td::index": Service("index"),
    "td::take": Service("take", base="td::index", calls_views=True, recorder="", stub=ComposedStub),
}
ELEMENTWISE = Service("elementwise", recorder="elementwise", make=make_elementwise_variant)
INPLACE = ELEMENTWISE._replace(entry="inplace", recorder="")
REDUCTION = Service("reduction", recorder="reduction", make=make_fold_variant, is_served=_has_fold)
VIEW = Service("cached_view", stub=ViewStub)
COMPOSITE_VIEW = VIEW._replace(recorder="steps", calls_views=True)
NATIVE_KERNEL = Service(
    "loop_call",
    is_served=lambda op, dtype: op.decl.native.dtypes is None or dtype in op.decl.native.dtypes,
    stub=LoopStub,
)
VIEW_LIST = Service("cached_views", calls_views=True, recorder="steps", stub=ViewListStub)


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
    if decl.native is not None:
        return NATIVE_KERNEL
    return _find_view_service(op) if op.is_view else None


# Types of arguments that the entry of cached views compares; it rejects values of other types.
_STATIC_TYPES = frozenset(("int", "SymInt", "bool", "ScalarType"))


def _find_view_service(op: Operator) -> Service | None:
    """Return the entry of views of one tensor; their layouts follow from the tensor's and from static arguments."""
    arguments, results = op.schema.arguments, op.schema.returns
    if len(results) != 1:
        return None
    types = {argument.type.core for argument in arguments[1:]}
    if results[0].type.is_list:
        return VIEW_LIST if types <= _STATIC_TYPES | {"Any"} else None
    if not types <= _STATIC_TYPES:
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
    make = None if service.make is None else partial(service.make, base)
    record = partial(find_recorder, base, service.recorder)
    called = [op] if base is op else [op, base]
    stub = service.stub(runtime, function, service.entry, op, called, make, record)
    stub.calls_views = service.calls_views
    return stub


def is_row_served(op: Operator, dtype: DType) -> bool:
    """Return whether a hot call on tensors of this dtype runs native code. Nothing is compiled."""
    service = find_service(op)
    if service is None or service.recorder != "elementwise":
        return service is not None and service.is_served(op, dtype)
    code, others = CODE_OF[dtype], len(op.schema.arguments) - 1
    # a condition, which comes first, may be boolean
    for first in (code,) if others < 2 else (code, CODE_OF[bool_]):
        dtypes = loops.resolve_dtypes(op, (first, *[code] * others))
        if dtypes is not None and loops.has_loop(op, dtypes):
            return True
    return False


class Stubs:
    """All stubs of this process, by operator."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.by_operator: dict[Operator, Stub] = {}
        self.kernels: dict[Operator, KernelStub] = {}
        # which also depend on the modes that intercept any operator
        self._with_eager_kernels: list[KernelStub] = []
        self._concerned: dict[Operator, list[Stub]] = {}
        self._views: list[Stub] = []
        self._view_callers: list[Stub] = []
        self.batches: Any = None  # `batches.Batches`, from when a level is opened
        change_listeners.append(self.follow)
        definition_listeners.append(self.forget)
        function_listeners.append(self.add)
        wrapper_listeners.append(self.add_wrapper)
        on_declaration(self.snapshot_kernels)
        default_listeners.append(self.clear_variants)

    def follow(self, op: Operator) -> None:
        """Update a stub: an operator's table or observers have changed (a listener of the registry)."""
        if self.batches is not None:
            self.batches.follow(op)
        if op.changed and not op.changed & ENTRY_KEYS:
            return
        concerned = self._concerned.get(op, ())
        for stub in concerned:
            stub.follow()
        altered = [stub for stub in concerned if stub.update_state()]
        for stub in self._view_callers if op.is_view and altered else ():
            stub.follow()
        kernel = self.kernels.get(op)
        if kernel is not None:
            kernel.follow()
        for other in self._with_eager_kernels if op.keys_only else ():
            other.follow()

    def clear_variants(self) -> None:
        """Remove the variants of all operators: the default dtype has changed (a listener of it)."""
        for stub in self.by_operator.values():
            stub.clear_variants()

    def snapshot_kernels(self, op: Operator) -> None:
        """Update a stub whose operator is declared late: kernels follow the function (a listener of declarations)."""
        for stub in self._concerned.get(op, ()):
            stub.snapshot_kernels()
        if op in self.kernels:
            self.kernels[op].snapshot_kernels()

    def forget(self, op: Operator, defined: bool) -> None:
        """Add or remove a stub: an operator was defined or deleted (a listener of the registry)."""
        if not defined and op in self.kernels:
            kernel = self.kernels.pop(op)
            kernel.close()
            if kernel in self._with_eager_kernels:
                self._with_eager_kernels.remove(kernel)
        stub = None if defined else self.by_operator.pop(op, None)
        if stub is not None:
            stub.uninstall()
            for group in (self._views, self._view_callers):
                if stub in group:
                    group.remove(stub)
            for concerned in stub.operators:
                self._concerned[concerned].remove(stub)
                if not self._concerned[concerned]:
                    del self._concerned[concerned]

    def add(self, function: Any) -> None:
        """Give an operator function its stub: of its kind, or the one of functions with a Python kernel."""
        stub, op = make_stub(self.runtime, function), function.operator
        if stub is None:
            self.kernels[op] = KernelStub(self.runtime, function)
            for wrapper in wrappers.get(function, ()):
                self.kernels[op].add_wrapper(wrapper)
            if has_eager_kernel(op):
                self._with_eager_kernels.append(self.kernels[op])
            return
        self.by_operator[op] = stub
        if op.is_view:
            self._views.append(stub)
        if stub.calls_views:
            stub.views = self._views
            self._view_callers.append(stub)
        for wrapper in wrappers.get(function, ()):
            stub.add_wrapper(wrapper)
        self.watch(stub)

    def add_wrapper(self, function: Any, wrapper: Any) -> None:
        """Let a callable share the entry of the function that it wraps (a listener of wrappers)."""
        op = function.operator
        stub = self.by_operator.get(op) or self.kernels.get(op)
        if stub is not None:
            stub.add_wrapper(wrapper)
            stub.follow()

    def attach_batches(self) -> None:
        """Let entries take the values of levels: one is about to be opened."""
        self.batches = _batches.Batches(self)

    def list_stubs(self) -> list[Stub]:
        """Return all stubs."""
        return [*{id(stub): stub for concerned in self._concerned.values() for stub in concerned}.values()]

    def find_concerned(self, op: Operator) -> list[Stub]:
        """Return the stubs whose entries implement or call an operator."""
        return self._concerned.get(op, [])

    def watch(self, stub: Stub) -> None:
        """Tell a stub of changes of its operators."""
        for concerned in stub.operators:
            self._concerned.setdefault(concerned, []).append(stub)

    def add_methods(self) -> None:
        """Let the special methods of arithmetic share the entries of their operators."""
        for name in [*BINARY, *COMPARISON]:
            for spelled, swapped in ((f"__{name}__", False), (f"__r{name}__", True), (f"__i{name}__", False)):
                method = methods.get(spelled)
                stub = self.by_operator.get(method.function.operator) if method is not None else None
                if stub is not None and all(point.callable is not method for point in stub.patch_points):
                    stub.add_method(method, swapped)
