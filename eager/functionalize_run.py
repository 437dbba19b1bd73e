"""Functionalize: one boxed kernel that reads each operator's schema and runs it without mutation.

Inside, a tensor is a :class:`.functionalize_memory.FunctionalTensor`. An operator that writes runs as the functional
one, and the result becomes the value of the memory; an operator that gives a view is remembered as a way to look at a
memory. Everything else runs on the values. What has been written of the arguments is written back at the end.

Source: ``torch.func.functionalize`` and ``FunctionalizeFallbackKernel`` of PyTorch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import pytree
from ..errors import ArgumentError, LeakedTracerError
from ..operators.declare import LIBRARY
from ..registry.keys import DispatchKey, below
from ..registry.operator import Operator, operators
from ..registry.state import set_keys, state
from ..registry.values import TensorSpec, describe
from . import inplace
from .dunders import by_name
from .functionalize_memory import (
    FUNCTIONALIZE,
    FunctionalTensor,
    Memory,
    check_writable,
    copied,
    outline_of_view,
    view_of,
    wrap_functional,
    write,
)
from .meta_tensor import row_major
from .record import check_not_leaf, eager_meta
from .results import flat, map_results
from .storage import owner_of
from .subclass import is_taken_apart
from .tensor import Tensor
from .views import Step, bottom, shares

Args = tuple[Any, ...]
Kwargs = dict[str, Any]
# Modes have seen the call, and autocast has cast it, before it comes here.
REDISPATCH = below(DispatchKey.Mode) & ~(1 << DispatchKey.Autocast)


class Run:
    """One call of a functionalized function.

    Attributes:
        depth: place in the stack, from 1.
        copies: whether views become copies.
        outer: the Functionalize key if it was included when the run began: the run is inside another one.
        is_open: whether it goes on.
    """

    __slots__ = ("_from_outside", "_kept", "copies", "depth", "is_open", "outer")

    def __init__(self, depth: int, copies: bool, outer: int):
        self.depth, self.copies, self.outer = depth, copies, outer
        self.is_open = True
        self._from_outside: dict[int, FunctionalTensor] = {}
        self._kept: list[FunctionalTensor] = []

    def call(self, op: Operator, args: Args, kwargs: Kwargs) -> Any:
        """Call an operator outside of the run."""
        before = set_keys(state.include & ~FUNCTIONALIZE | self.outer, state.exclude)
        try:
            return op.dispatch(op.keyset(args, kwargs) & REDISPATCH, args, kwargs)
        finally:
            set_keys(*before)

    def wrap(self, value: Any) -> Any:
        """A result, or None or a number as it is, as a tensor of the run."""
        return wrap_functional(self, self.call, value) if isinstance(value, Tensor) else value

    def enter(self, value: Any) -> Any:
        """A tensor from outside, an argument or a captured one, as a tensor of the run."""
        if type(value) is FunctionalTensor and value._run is self:
            return value
        found = self._from_outside.get(id(value))
        if found is None:
            found = wrap_functional(self, self.call, value, value)
            self._meet(found)
            self._from_outside[id(value)] = found
            self._kept.append(found)
        return found

    def _meet(self, new: FunctionalTensor) -> None:
        """Note which tensors from outside lie in the same memory."""
        for other in self._kept:
            if _overlap(other._memory.origin, new._memory.origin):
                if other._memory.written:
                    raise _late(new, other)
                other._memory.rivals.append(new._memory)
                new._memory.rivals.append(other._memory)

    def value(self, tree: Any) -> Any:
        """Arguments with values in place of the run's tensors."""
        if type(tree) is FunctionalTensor and tree._run is self:
            return tree.value
        if type(tree) is tuple:
            return tuple([self.value(item) for item in tree])
        return self._read(tree) if isinstance(tree, Tensor) else tree

    def _read(self, tensor: Any) -> Any:
        """The value of a tensor that is not the run's own."""
        known = self._from_outside.get(id(tensor))
        if known is not None:
            return known.value
        for other in self._kept:
            if other._memory.written and _overlap(other._memory.origin, tensor):
                raise _late(tensor, other)
        return tensor

    # -- the end of it ---------------------------------------------------------------------------------------------
    def write_back(self) -> None:
        """Write what has become of the tensors from outside into their memory."""
        for tensor in self._kept:
            memory: Memory = tensor._memory
            if memory.written:
                by_name("basic_put_")(memory.origin, memory.value, _whole(memory.origin))

    def leave(self, leaf: Any) -> Any:
        """A leaf of the result: what lies in the memory of a tensor from outside is that tensor, or a view of it."""
        if type(leaf) is not FunctionalTensor or leaf._run is not self:
            return leaf
        out = leaf._memory.origin
        if out is None:
            return leaf.value
        for step in leaf._path:
            out = step.op(out, *step.args, **step.kwargs)
        return out


class _Stack(threading.local):
    def __init__(self) -> None:
        self.runs: list[Run] = []


stack = _Stack()


def _whole(x: Any) -> tuple[Any, ...]:
    """The plan of ``x[...]``."""
    return tuple((0, size, 1) for size in x.shape)


def _overlap(one: Any, two: Any) -> bool:
    first, second = bottom(one), bottom(two)
    if type(first) is Tensor and type(second) is Tensor:
        same = owner_of(first._array) is owner_of(second._array)
        return same and np.may_share_memory(first._array, second._array)
    return shares(one, two)


def _late(new: Any, other: FunctionalTensor) -> Exception:
    return ArgumentError(
        f"td.functionalize: {describe(new)} is used after {describe(other)}, which lies in the same memory, was "
        "written; take it from the written tensor inside the function"
    )


# -- the kernel --------------------------------------------------------------------------------------------------------
def functionalize_kernel(op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> Any:
    """Run an operator without mutation; the fallback of the Functionalize key."""
    run = _innermost(args, kwargs)
    if run is None or is_taken_apart(op, keyset):
        return op.dispatch(keyset & below(DispatchKey.Functionalize), args, kwargs)
    if op.schema.is_mutable:
        return _write(run, op, args, kwargs)
    if op.schema.is_view and isinstance(args[0], Tensor):
        return _view(run, op, args, kwargs)
    out = run.call(op, run.value(args), {name: run.value(value) for name, value in kwargs.items()})
    return map_results(lambda item, _: run.wrap(item), out)


def _innermost(args: Args, kwargs: Kwargs) -> Run | None:
    """The innermost run among the arguments; the one in progress if they are all from outside."""
    found: Run | None = None
    for value in flat((args, *kwargs.values())):
        if type(value) is FunctionalTensor:
            if not value._run.is_open:
                raise LeakedTracerError(
                    f"{describe(value)} was made inside td.functionalize and is used after the function has ended; "
                    "return it"
                )
            if found is None or value._run.depth > found.depth:
                found = value._run
    return stack.runs[-1] if found is None and stack.runs else found


def _view(run: Run, op: Operator, args: Args, kwargs: Kwargs) -> Any:
    base: FunctionalTensor = run.enter(args[0])
    out = run.call(op, (base.value, *args[1:]), kwargs)
    if isinstance(out, (tuple, list)):  # several views, of an operator from outside: each follows by itself
        return map_results(lambda item, _: run.wrap(item), out)
    outline = outline_of_view(op, base, TensorSpec(out.shape, out.dtype), args[1:])
    if (run.copies or outline is None) and shares(out, base.value):
        out = copied(run.call, out, row_major(out.shape) if outline is None else outline.strides)
    if outline is None:  # eagerly it is a copy
        return run.wrap(out)
    return view_of(base, outline, (Step(op, args[1:], kwargs),), out)


def functional_of(op: Operator) -> Operator | None:
    """The operator that gives as a new tensor what ``op`` writes: the same name without the underscore, the same
    arguments; None if there is none."""
    if op in inplace.functional:
        return inplace.functional[op]
    if not op.schema.name.endswith("_"):
        return None
    stem = f"{op.schema.namespace}::{op.schema.name[:-1]}"
    found = operators.get(f"{stem}.{op.schema.overload}") if op.schema.overload else operators.get(stem)
    if found is None or [a.name for a in found.schema.arguments] != [a.name for a in op.schema.arguments]:
        return None
    return None if found.schema.is_mutable else found


def _write(run: Run, op: Operator, args: Args, kwargs: Kwargs) -> Any:
    positions = [place for place, argument in enumerate(op.schema.positional) if argument.is_write]
    inner = functional_of(op) if positions == [0] else None
    targets = {place: _target(run, op, args[place]) for place in positions}
    names = [argument.name for argument in op.schema.arguments if argument.kwarg_only and argument.is_write]
    targets_by_name = {name: _target(run, op, kwargs[name]) for name in names}
    for target in flat((*targets.values(), *targets_by_name.values())):
        _leave_origin(run, target, (args, kwargs))
    raw, raw_kwargs = list(run.value(args)), {name: run.value(value) for name, value in kwargs.items()}
    if inner is not None:
        result = run.call(inner, tuple(raw), raw_kwargs)
        inplace.check_fits(op.schema.name, targets[0], result.spec)
        write(targets[0], result)
        return args[0]
    # no functional form: it writes into copies, which become the new values
    for place, target in targets.items():
        raw[place] = _copied(target)
    for name, target in targets_by_name.items():
        raw_kwargs[name] = _copied(target)
    out = run.call(op, tuple(raw), raw_kwargs)
    copies = [raw[place] for place in targets] + [raw_kwargs[name] for name in names]
    originals = [*targets.values(), *targets_by_name.values()]
    for target, new in zip(flat(originals), flat(copies)):
        if target is not None:
            write(target, new)
    given = {id(new): old for new, old in zip(flat(copies), flat(originals))}
    return map_results(lambda item, _: given.get(id(item)) or run.wrap(item), out)


def _leave_origin(run: Run, target: Any, values: Any) -> None:
    """Before the first write into a tensor from outside: where a history is recorded it may save the elements as they
    are now, so it gets copies; the tensor's own memory is written at the end."""
    memory = None if target is None else target._memory
    if memory is None or memory.origin is None or memory.written or not _is_recorded(values):
        return
    if memory.value is memory.origin:
        memory.value = copied(run.call, memory.value, memory.strides)
        memory.version += 1  # views are taken from the copy


def _is_recorded(values: Any) -> bool:
    args, kwargs = values
    tensors = [item for item in flat((args, *kwargs.values())) if isinstance(item, Tensor)]
    return not state.exclude >> DispatchKey.AutogradCPU & 1 and any(x.requires_grad for x in tensors)


def _copied(target: Any) -> Any:
    """Copies of the values of what is to be written."""
    if isinstance(target, tuple):
        return tuple(map(_copied, target))
    return None if target is None else target._run.call(by_name("clone").operator, (target.value,), {})


def _target(run: Run, op: Operator, value: Any) -> Any:
    """A tensor to write, checked; a list of them as a tuple."""
    if isinstance(value, tuple):
        return tuple(_target(run, op, item) for item in value)
    if value is None:
        return None
    target: FunctionalTensor = run.enter(value)
    check_writable(op.schema.name, target)
    origin = target._memory.origin
    if type(origin) is Tensor:
        inplace.check_writable(op.schema.name, origin)
        if not state.exclude >> DispatchKey.AutogradCPU & 1:
            check_not_leaf(op, origin, eager_meta(origin))
    return target


# -- the function ------------------------------------------------------------------------------------------------------
def run_functionalized(function: Callable[..., Any], copies: bool, args: Args, kwargs: Kwargs) -> Any:
    """Call a function without its mutations.

    Args:
        function: the function.
        copies: whether views become copies.
        args, kwargs: its arguments.
    """
    run = Run(len(stack.runs) + 1, copies, state.include & FUNCTIONALIZE)
    leaves, treedef = pytree.flatten((args, kwargs))
    given = [run.enter(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    inner_args, inner_kwargs = treedef.unflatten(given)
    stack.runs.append(run)
    before = set_keys(state.include | FUNCTIONALIZE, state.exclude & ~FUNCTIONALIZE)
    try:
        out, outdef = pytree.flatten(function(*inner_args, **inner_kwargs))
    finally:
        set_keys(*before)
        stack.runs.remove(run)
        run.is_open = False
    run.write_back()
    return outdef.unflatten([run.leave(leaf) for leaf in out])


LIBRARY.fallback(functionalize_kernel, DispatchKey.Functionalize)
