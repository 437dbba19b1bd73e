"""The Batched key's kernel: one boxed kernel that applies the batching rule of any operator at a level of ``vmap``."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
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
    """Run an operator on values of a level.

    Native twin: backends/cpu/fastpath/runtime/rt_batches.py:run_at_level
    """
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
        payloads, in_dims = _unwrap_all(level, strategy, args)
        out, out_dims = _check_rule_result(op, strategy.rule(info, in_dims, *payloads, **kwargs))
    except TandemError as fault:
        if not isinstance(fault, UnsupportedError):
            _check_one_example(op, strategy, args, kwargs)
        raise
    if strategy.inner is not None:
        return args[0]
    if strategy.checked:
        _check_out_dims(op, level, out, out_dims)
    return _wrap(level, out, out_dims)


def _check_rule_result(op: Operator, result: object) -> tuple[object, object]:
    """Check that a batching rule returned a pair of results and out_dims."""
    if type(result) is tuple and len(result) == 2:
        return result
    raise ValueArgumentError(
        f"the batching rule of {op.name} must return a pair (result, out_dims), not {describe(result)}"
    )


def _elementwise(level: Level, info: BatchInfo, args: Args) -> Any:
    """Apply an elementwise operator, to the payloads if the tensors have the same rank without their batch axis."""
    payloads: list[Any] = []
    dims: list[int | None] = []
    rank, is_same_rank = -1, True
    for value in args:
        if isinstance(value, BatchedTensor) and value._level is level:
            value = value._payload
            value_rank = len(value.shape) - 1
            dims.append(0)
        else:
            value_rank = len(value.shape) if isinstance(value, TensorBase) else rank  # type: ignore[attr-defined]
            dims.append(None)
        is_same_rank &= value_rank == rank or rank == -1
        rank = value_rank
        payloads.append(value)
    return info.call(*payloads) if is_same_rank else elementwise(info, tuple(dims), *payloads)[0]


def _wrap(level: Level, out: Any, dims: Any) -> object:
    """Wrap results as values of the level; ``dims`` is the batch axis of all of them, or of each."""
    if type(out) is tuple or type(out) is list:
        dims_of_each = dims if isinstance(dims, tuple | list) else (dims,) * len(out)
        return type(out)([_wrap(level, item, dim) for item, dim in zip(out, dims_of_each)])
    if dims is None or out is None:
        return out
    return wrap_batched(level, move_to_front(out, dims % len(out.shape)) if dims else out)


def _unwrap_all(
    level: Level, strategy: Strategy, args: tuple[Any, ...]
) -> tuple[list[object], tuple[object, ...]]:
    """The payloads of the arguments, and the batch axis of each (None if it has none)."""
    payloads: list[object] = []
    dims: list[Any] = []
    for index, value in enumerate(args):
        if isinstance(value, BatchedTensor) and value._level is level:
            payloads.append(value._payload)
            dims.append(0)
        elif index in strategy.lists and value is not None:
            items = [_unwrap(level, item) for item in value]
            payloads.append(tuple([item for item, _ in items]))
            dims.append(tuple([dim for _, dim in items]))
        else:
            payloads.append(value)
            dims.append(None)
    return payloads, tuple(dims)


def _unwrap(level: Level, value: Any) -> tuple[object, int | None]:
    is_batched = isinstance(value, BatchedTensor) and value._level is level
    return (value._payload, 0) if is_batched else (value, None)


def _any_batched(level: Level, values: Iterable[object]) -> bool:
    return any(isinstance(value, BatchedTensor) and value._level is level for value in values)


def open_batch(
    name: str, size: int, strategies: dict[Operator, Any], axis_name: Hashable = None
) -> push_level:
    """Context manager: open a level of ``vmap``.

    Args:
        name: the transform that opens it, for messages.
        size: the number of examples.
        axis_name: the name of the batch axis, for operators that work along it.
        strategies: a cache of strategies by operator, shared by levels of this name and size.
    """
    level = Level(len(stack.levels) + 1, name, source_line(), state.exclude & AUTOGRAD)
    level.batch_size, level.run, level.prepared, level.axis_name = size, run, strategies, axis_name
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


def _check_one_example(op: Operator, strategy: Strategy, args: tuple[Any, ...], kwargs: Kwargs) -> None:
    """After an error, run the shape rule on the specs of one example; its error, if any, names unbatched shapes."""
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


def _check_out_dims(op: Operator, level: Level, out: object, dims: object) -> None:
    """Check that the out_dims of a user-defined rule are batch axes of its results."""
    if isinstance(out, tuple | list):
        dims_of_each = dims if isinstance(dims, tuple | list) else (dims,) * len(out)
        if len(dims_of_each) != len(out):
            raise ValueArgumentError(
                f"the batching rule of {op.name} returned {len(out)} results and {len(dims_of_each)} out_dims"
            )
        for item, dim in zip(out, dims_of_each):
            _check_out_dims(op, level, item, dim)
        return
    if dims is None or out is None:
        return
    shape = out.shape if isinstance(out, TensorBase) else ()  # type: ignore[attr-defined]
    if type(dims) is not int or not -len(shape) <= dims < len(shape) or shape[dims] != level.batch_size:
        raise ShapeError(
            f"the batching rule of {op.name} returned {describe(out)} with out_dims {dims!r}, which is not a batch "
            f"axis of length {level.batch_size}"
        )
