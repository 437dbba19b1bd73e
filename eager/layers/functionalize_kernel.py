"""Functionalization: one boxed kernel that reads each operator's schema and runs it without mutation.

Inside, a tensor is a :class:`.functionalize_memory.FunctionalTensor`. An operator that writes runs as its functional
variant, and the result becomes the value of the storage; a view operator is added to the path of its result. Other
operators run on the values. At the end, written arguments are updated in place.

Source: ``torch.func.functionalize`` and ``FunctionalizeFallbackKernel`` of PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import pytree
from ...errors import ArgumentError, LeakedTracerError
from ...locks import ThreadLocal
from ...operators.declare.declaration import LIBRARY
from ...operators.declare.ownership import shares_memory, unwrap_levels
from ...operators.declare.view_spec import row_major_strides
from ...operators.elementwise.casting import cast
from ...registry.dispatch import unwinding
from ...registry.dispatch.keys import AUTOCAST, DispatchKey, below
from ...registry.dispatch.state import current_keys, set_keys, state
from ...registry.operator import Operator, operators
from ...registry.values import TensorSpec, describe
from ..autograd.kernel import check_not_leaf, eager_meta
from ..autograd.view_writes import Step
from ..tensor import inplace
from ..tensor.dunders import by_name
from ..tensor.results import flat, map_results
from ..tensor.storage import owner_of
from ..tensor.tensor import Tensor
from .functionalize_memory import (
    FUNCTIONALIZE,
    FunctionalStorage,
    FunctionalTensor,
    check_writable,
    copy_with_strides,
    derive_meta_view,
    view_of,
    wrap_functional,
    write,
)
from .subclass import is_decomposed

if TYPE_CHECKING:
    from ...registry.types import Args, Function, Kwargs

# Modes and autocast have already handled the call.
REDISPATCH = below(DispatchKey.Mode) & ~AUTOCAST


class Run:
    """One call of a functionalized function.

    Attributes:
        depth: position in the stack, from 1.
        copies: whether views become copies.
        outer: the Functionalize key if it was included when the run began (the run is nested in another one), else 0.
        is_open: whether the function is still running.
    """

    __slots__ = ("_inputs", "_inputs_by_id", "copies", "depth", "is_open", "outer")

    def __init__(self, depth: int, copies: bool, outer: int):
        self.depth, self.copies, self.outer = depth, copies, outer
        self.is_open = True
        self._inputs_by_id: dict[int, FunctionalTensor] = {}
        self._inputs: list[FunctionalTensor] = []

    def call(self, op: Operator, args: Args, kwargs: Kwargs) -> Any:
        """Call an operator outside the run."""
        before = current_keys()
        try:
            set_keys(state.include & ~FUNCTIONALIZE | self.outer, state.exclude)
            return op.dispatch(op.keyset(args, kwargs) & REDISPATCH, args, kwargs)
        finally:
            set_keys(*before)

    def wrap(self, value: object) -> object:
        """Wrap a result as a tensor of the run; None and numbers are returned unchanged."""
        return wrap_functional(self, self.call, value) if isinstance(value, Tensor) else value

    def wrap_input(self, value: Tensor) -> FunctionalTensor:
        """Wrap an outer tensor, an argument or a captured one, as a tensor of the run."""
        if type(value) is FunctionalTensor and value._run is self:
            return value
        result = self._inputs_by_id.get(id(value))
        if result is None:
            result = wrap_functional(self, self.call, value, value)
            self._note_overlaps(result)
            self._inputs_by_id[id(value)] = result
            self._inputs.append(result)
        return result

    def _note_overlaps(self, new: FunctionalTensor) -> None:
        """Note which outer tensors overlap in memory."""
        for other in self._inputs:
            if _overlap(other._functional_storage.origin, new._functional_storage.origin):
                if other._functional_storage.written:
                    raise _late_use_error(new, other)
                other._functional_storage.overlapping.append(new._functional_storage)
                new._functional_storage.overlapping.append(other._functional_storage)

    def value(self, tree: object) -> Any:
        """Replace the run's tensors by their values."""
        if type(tree) is FunctionalTensor and tree._run is self:
            return tree.value
        if type(tree) is tuple:
            return tuple([self.value(item) for item in tree])
        return self._read(tree) if isinstance(tree, Tensor) else tree

    def _read(self, tensor: Tensor) -> Tensor:
        """The value of a tensor that does not belong to the run."""
        known = self._inputs_by_id.get(id(tensor))
        if known is not None:
            return known.value
        for other in self._inputs:
            if other._functional_storage.written and _overlap(other._functional_storage.origin, tensor):
                raise _late_use_error(tensor, other)
        return tensor

    # -- at the end ------------------------------------------------------------------------------------------------
    def write_back(self) -> None:
        """Copy the new values of outer tensors into their memory."""
        for tensor in self._inputs:
            memory: FunctionalStorage = tensor._functional_storage
            if memory.written:
                by_name("basic_put_")(memory.origin, memory.value, _whole(memory.origin))

    def unwrap_result(self, leaf: object) -> object:
        """Unwrap a leaf of the result; on the storage of an outer tensor, return that tensor or a view of it."""
        if type(leaf) is not FunctionalTensor or leaf._run is not self:
            return leaf
        out = leaf._functional_storage.origin
        if out is None:
            return leaf.value
        for step in leaf._path:
            out = step.op(out, *step.args, **step.kwargs)
        return out


class _Stack(ThreadLocal):
    def __init__(self) -> None:
        self.runs: list[Run] = []


stack = unwinding.register_thread_local(_Stack())


def _close(before: list[Run]) -> None:
    """End the runs that were begun since ``before`` was taken."""
    for run in stack.runs:
        run.is_open = run in before


unwinding.parts.append(unwinding.Part(lambda: stack.runs, _close))


def _whole(x: Tensor) -> tuple[tuple[int, int, int], ...]:
    """The index plan of ``x[...]``."""
    return tuple((0, size, 1) for size in x.shape)


def _overlap(one: Tensor, two: Tensor) -> bool:
    first, second = unwrap_levels(one), unwrap_levels(two)
    if type(first) is Tensor and type(second) is Tensor:
        same = owner_of(first._array) is owner_of(second._array)
        return same and np.may_share_memory(first._array, second._array)
    return shares_memory(one, two)


def _late_use_error(new: Tensor, other: FunctionalTensor) -> Exception:
    return ArgumentError(
        f"td.functionalize: {describe(new)} is used after {describe(other)}, which shares its memory, was "
        "written; take it from the written tensor inside the function"
    )


# -- the kernel --------------------------------------------------------------------------------------------------------
def functionalize_kernel(op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> object:
    """Run an operator without mutation; the fallback of the Functionalize key."""
    run = _innermost(args, kwargs)
    if run is None or is_decomposed(op, keyset):
        return op.dispatch(keyset & below(DispatchKey.Functionalize), args, kwargs)
    if op.schema.is_mutable:
        return _write(run, op, args, kwargs)
    if op.is_view and isinstance(args[0], Tensor):
        return _view(run, op, args, kwargs)
    out = run.call(op, run.value(args), {name: run.value(value) for name, value in kwargs.items()})
    return map_results(lambda item, _: run.wrap(item), out)


def _innermost(args: Args, kwargs: Kwargs) -> Run | None:
    """The innermost run among the arguments; the current one if all of them are outer tensors."""
    current: Run | None = None
    for value in flat((args, *kwargs.values())):
        if type(value) is FunctionalTensor:
            if not value._run.is_open:
                raise LeakedTracerError(
                    f"{describe(value)} was made inside td.functionalize and is used after the function has ended; "
                    "return it"
                )
            if current is None or value._run.depth > current.depth:
                current = value._run
    return stack.runs[-1] if current is None and stack.runs else current


def _view(run: Run, op: Operator, args: tuple[Any, ...], kwargs: Kwargs) -> object:
    base: FunctionalTensor = run.wrap_input(args[0])
    out = run.call(op, (base.value, *args[1:]), kwargs)
    if isinstance(
        out, (tuple, list)
    ):  # a user-defined operator with several views: each gets its own storage
        return map_results(lambda item, _: run.wrap(item), out)
    meta = derive_meta_view(op, base, TensorSpec(out.shape, out.dtype), args[1:])
    if (run.copies or meta is None) and shares_memory(out, base.value):
        out = copy_with_strides(
            run.call, out, row_major_strides(out.shape) if meta is None else meta._strides
        )
    if meta is None:  # the eager result is a copy
        return run.wrap(out)
    return view_of(base, meta, (Step(op, args[1:], kwargs),), out)


def functional_of(op: Operator) -> Operator | None:
    """The functional variant of an in-place operator, or None.

    It has the same name without the underscore and the same arguments.
    """
    if op in inplace.functional:
        return inplace.functional[op]
    if not op.schema.name.endswith("_"):
        return None
    stem = f"{op.schema.namespace}::{op.schema.name[:-1]}"
    functional = operators.get(f"{stem}.{op.schema.overload}") if op.schema.overload else operators.get(stem)
    if functional is None or [a.name for a in functional.schema.arguments] != [
        a.name for a in op.schema.arguments
    ]:
        return None
    return None if functional.schema.is_mutable else functional


def _write(run: Run, op: Operator, args: Args, kwargs: Kwargs) -> object:
    positions = [index for index, argument in enumerate(op.schema.positional) if argument.is_write]
    inner = functional_of(op) if positions == [0] else None
    targets = {index: _target(run, op, args[index]) for index in positions}
    names = [argument.name for argument in op.schema.arguments if argument.kwarg_only and argument.is_write]
    targets_by_name = {name: _target(run, op, kwargs[name]) for name in names}
    for target in flat((*targets.values(), *targets_by_name.values())):
        _detach_from_origin(run, target, (args, kwargs))
    raw, raw_kwargs = list(run.value(args)), {name: run.value(value) for name, value in kwargs.items()}
    if inner is not None:
        result = run.call(inner, tuple(raw), raw_kwargs)
        inplace.check_fits(op.schema.name, targets[0], result.spec)
        if result.dtype is not targets[0].dtype:
            result = run.call(cast.operator, (result, targets[0].dtype), {})
        write(targets[0], result)
        return args[0]
    # no functional form: it writes into copies, which become the new values
    for index, target in targets.items():
        raw[index] = _copy_targets(target)
    for name, target in targets_by_name.items():
        raw_kwargs[name] = _copy_targets(target)
    out = run.call(op, tuple(raw), raw_kwargs)
    copies = [raw[index] for index in targets] + [raw_kwargs[name] for name in names]
    originals = [*targets.values(), *targets_by_name.values()]
    for target, new in zip(flat(originals), flat(copies)):
        if target is not None:
            write(target, new)
    given = {id(new): old for new, old in zip(flat(copies), flat(originals))}
    return map_results(lambda item, _: given.get(id(item)) or run.wrap(item), out)


def _detach_from_origin(run: Run, target: FunctionalTensor | None, values: tuple[Args, Kwargs]) -> None:
    """Before the first write into an outer tensor, copy its value if the call is recorded.

    Graph nodes may save the current elements, and the tensor's own memory is written at the end.
    """
    memory = None if target is None else target._functional_storage
    if memory is None or memory.origin is None or memory.written or not _is_recorded(values):
        return
    if memory.value is memory.origin:
        memory.value = copy_with_strides(run.call, memory.value, memory.strides)
        memory.version += 1  # views are taken from the copy


def _is_recorded(values: tuple[Args, Kwargs]) -> bool:
    args, kwargs = values
    tensors = [item for item in flat((args, *kwargs.values())) if isinstance(item, Tensor)]
    return not state.exclude >> DispatchKey.AutogradCPU & 1 and any(x.requires_grad for x in tensors)


def _copy_targets(target: Any) -> object:
    """Copies of the values of the tensors to write."""
    if isinstance(target, tuple):
        return tuple(map(_copy_targets, target))
    return None if target is None else target._run.call(by_name("clone").operator, (target.value,), {})


def _target(run: Run, op: Operator, value: Any) -> Any:
    """Check a tensor to write and return it as a tensor of the run; a tuple for a list."""
    if isinstance(value, tuple):
        return tuple(_target(run, op, item) for item in value)
    if value is None:
        return None
    target: FunctionalTensor = run.wrap_input(value)
    check_writable(op.schema.name, target)
    origin = target._functional_storage.origin
    if type(origin) is Tensor:
        inplace.check_writable(op.schema.name, origin)
        if not state.exclude >> DispatchKey.AutogradCPU & 1:
            check_not_leaf(op, origin, eager_meta(origin))
    return target


# -- the function ------------------------------------------------------------------------------------------------------
@unwinding.restore_state_on_error
def run_functionalized(function: Function, copies: bool, args: Args, kwargs: Kwargs) -> object:
    """Call a function without mutation.

    Args:
        function: the function.
        copies: whether views become copies.
        args, kwargs: its arguments.
    """
    run = Run(len(stack.runs) + 1, copies, state.include & FUNCTIONALIZE)
    leaves, treedef = pytree.flatten((args, kwargs))
    given = [run.wrap_input(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    inner_args, inner_kwargs = treedef.unflatten(given)
    outer, stack.runs = stack.runs, [*stack.runs, run]
    before = current_keys()
    try:
        set_keys(state.include | FUNCTIONALIZE, state.exclude & ~FUNCTIONALIZE)
        out, outdef = pytree.flatten(function(*inner_args, **inner_kwargs))
    finally:
        set_keys(*before)
        stack.runs = outer
        run.is_open = False
    run.write_back()
    return outdef.unflatten([run.unwrap_result(leaf) for leaf in out])


LIBRARY.fallback(functionalize_kernel, DispatchKey.Functionalize)
