"""The Batched key's kernel: one boxed kernel that runs every operator on the payloads of a ``vmap``'s values."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from ....errors import ShapeError, TandemError, UnsupportedError, ValueArgumentError
from ....operators.declare.batching import BatchInfo, elementwise, move_to_front
from ....registry.dispatch.guards import adjust_keys
from ....registry.dispatch.keys import AUTOGRAD, DispatchKey, below
from ....registry.dispatch.state import state
from ....registry.function import functions
from ....registry.operator import Operator
from ....registry.source import source_line
from ....registry.values import TensorBase, TensorSpec, describe
from ...tensor.inplace import check_fits
from ..levels import Level, highest_level, push_level, stack
from .adopt import check_written
from .loop import run_per_example
from .strategies import Strategy, find_strategy
from .tensor import BatchedTensor, wrap_batched

if TYPE_CHECKING:
    from ....registry.types import Args, Kwargs, Tensor

MODES = ~below(DispatchKey.Mode)


def batched(op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> object:
    """Run an operator on a batch at the innermost level among the arguments; the fallback of the Batched key."""
    return run(highest_level(op, args, kwargs), op, args, kwargs)


def run(level: Level, op: Operator, args: Args, kwargs: Kwargs) -> object:
    """Run an operator on values of a level."""
    cached = level.prepared.get(op)
    if cached is None or cached[0].version != op.version:
        cached = level.prepared[op] = find_strategy(op), make_batch_info(level, op)
    strategy, info = cached
    return run_below_modes(level, op, strategy, info, args, kwargs)


def run_below_modes(
    level: Level, op: Operator, strategy: Strategy, info: BatchInfo, args: Args, kwargs: Kwargs
) -> object:
    """Run an operator by its strategy, with modes off: they have already handled the call."""
    if (state.include | op.extra_keys) & MODES:
        with adjust_keys(exclude=MODES):
            return _run(level, op, strategy, info, args, kwargs)
    return _run(level, op, strategy, info, args, kwargs)


def make_batch_info(level: Level, op: Operator) -> BatchInfo:
    """Make the argument ``info`` of an operator's batching rule."""
    return BatchInfo(level.batch_size, level.name, functions.get(op.name, op), level.axis_name)


def _run(
    level: Level, op: Operator, strategy: Strategy, info: BatchInfo, args: Args, kwargs: Kwargs
) -> object:
    if strategy.decompose is not None:
        return strategy.decompose(*args, **kwargs)
    if strategy.rule is None or (kwargs and _any_batched(level, kwargs.values())):
        return run_per_example(op, level, args, kwargs)
    if strategy.writes:
        _check_target(op, level, strategy, args)
    try:
        if strategy.elementwise:
            return wrap_batched(level, _elementwise(level, info, args))
        raw, dims = _unwrap_all(level, strategy, args)
        out, out_dims = _check_pair(op, strategy.rule(info, dims, *raw, **kwargs))
    except TandemError as fault:
        if not isinstance(fault, UnsupportedError):
            _check_example(op, strategy, args, kwargs)
        raise
    if strategy.inner is not None:
        return args[0]
    if strategy.checked:
        _check_result(op, level, out, out_dims)
    return _wrap(level, out, out_dims)


def _check_pair(op: Operator, result: object) -> tuple[object, object]:
    if type(result) is tuple and len(result) == 2:
        return result
    raise ValueArgumentError(
        f"the batching rule of {op.name} must return a pair (result, out_dims), not {describe(result)}"
    )


def _elementwise(level: Level, info: BatchInfo, args: Args) -> Any:
    """Apply an elementwise operator; directly if all examples have the same rank."""
    raw: list[Any] = []
    dims: list[int | None] = []
    rank, is_even = -1, True
    for value in args:
        if isinstance(value, BatchedTensor) and value._level is level:
            value = value._payload
            own = len(value.shape) - 1
            dims.append(0)
        else:
            own = len(value.shape) if isinstance(value, TensorBase) else rank  # type: ignore[attr-defined]
            dims.append(None)
        is_even &= own == rank or rank == -1
        rank = own
        raw.append(value)
    return info.call(*raw) if is_even else elementwise(info, tuple(dims), *raw)[0]


def _wrap(level: Level, out: Any, dims: Any) -> object:
    """Wrap results as values of the level; ``dims`` is the batch axis of all of them, or of each."""
    if type(out) is tuple or type(out) is list:
        each = dims if isinstance(dims, tuple | list) else (dims,) * len(out)
        return type(out)([_wrap(level, item, dim) for item, dim in zip(out, each)])
    if dims is None or out is None:
        return out
    return wrap_batched(level, move_to_front(out, dims % len(out.shape)) if dims else out)


def _unwrap_all(
    level: Level, strategy: Strategy, args: tuple[Any, ...]
) -> tuple[list[object], tuple[object, ...]]:
    """The payloads of the arguments, and the batch axis of each (None if it has none)."""
    raw: list[object] = []
    dims: list[Any] = []
    for index, value in enumerate(args):
        if isinstance(value, BatchedTensor) and value._level is level:
            raw.append(value._payload)
            dims.append(0)
        elif index in strategy.lists and value is not None:
            items = [_unwrap(level, item) for item in value]
            raw.append(tuple([item for item, _ in items]))
            dims.append(tuple([dim for _, dim in items]))
        else:
            raw.append(value)
            dims.append(None)
    return raw, tuple(dims)


def _unwrap(level: Level, value: Any) -> tuple[object, int | None]:
    own = isinstance(value, BatchedTensor) and value._level is level
    return (value._payload, 0) if own else (value, None)


def _any_batched(level: Level, values: Iterable[object]) -> bool:
    return any(isinstance(value, BatchedTensor) and value._level is level for value in values)


def open_batch(
    name: str, size: int, prepared: dict[Operator, Any], axis_name: Hashable = None
) -> AbstractContextManager[Level]:
    """Context manager: open a level of ``vmap``.

    Args:
        name: the transform that opens it, for messages.
        size: the number of examples.
        axis_name: the name of the batch axis, for operators that work along it.
        prepared: a cache of strategies by operator, shared by levels of this name and size.
    """
    level = Level(len(stack.levels) + 1, name, source_line(), state.exclude & AUTOGRAD)
    level.batch_size, level.run, level.prepared, level.axis_name = size, run, prepared, axis_name
    return push_level(level)


# -- checks ------------------------------------------------------------------------------------------------------------
def _check_target(op: Operator, level: Level, strategy: Strategy, args: Args) -> None:
    """Raise UnsupportedError for a write of a batch into a tensor that all examples share, unless it can be adopted."""
    if strategy.inner is None:
        return
    target: Any = args[0]
    check_written(op, level, target)
    if strategy.inner.decl.is_elementwise:
        _check_ranks(op, target, args)


def _check_ranks(op: Operator, target: Tensor, args: Args) -> None:
    rank = len(target.shape)
    for other in args[1:]:
        if isinstance(other, TensorBase) and len(other.shape) > rank:  # type: ignore[attr-defined]
            raise ShapeError(f"{op.schema.name}: {describe(other)} does not fit into {describe(target)}")


def _check_example(op: Operator, strategy: Strategy, args: tuple[Any, ...], kwargs: Kwargs) -> None:
    """After an error: raise the error for the shapes of one example instead, if there is one."""
    inner = strategy.inner or op
    rule = getattr(inner.decl, "shape_rule", None)
    if rule is None:
        return
    specs = tuple([_spec(arg) for arg in args])
    try:
        result = rule(*specs, **{name: _spec(arg) for name, arg in kwargs.items()})
        if strategy.inner is not None:
            check_fits(op.schema.name, args[0], result)
    except TandemError as fault:
        raise fault from None


def _spec(value: object) -> object:
    if isinstance(value, TensorBase):
        return TensorSpec(value.shape, value.dtype, value.device)  # type: ignore[attr-defined]
    return tuple([_spec(item) for item in value]) if type(value) is tuple else value


def _check_result(op: Operator, level: Level, out: object, dims: object) -> None:
    """Check the results of a user-defined rule."""
    if isinstance(out, tuple | list):
        each = dims if isinstance(dims, tuple | list) else (dims,) * len(out)
        if len(each) != len(out):
            raise ValueArgumentError(
                f"the batching rule of {op.name} returned {len(out)} results and {len(each)} out_dims"
            )
        for item, dim in zip(out, each):
            _check_result(op, level, item, dim)
        return
    if dims is None or out is None:
        return
    shape = out.shape if isinstance(out, TensorBase) else ()  # type: ignore[attr-defined]
    if type(dims) is not int or not -len(shape) <= dims < len(shape) or shape[dims] != level.batch_size:
        raise ShapeError(
            f"the batching rule of {op.name} returned {describe(out)} with out_dims {dims!r}, which is not a batch "
            f"axis of length {level.batch_size}"
        )
