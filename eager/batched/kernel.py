"""The Batched key's kernel: one boxed kernel that runs every operator on what the values of a ``vmap`` wrap."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from ...errors import ShapeError, TandemError, UnsupportedError, ValueArgumentError
from ...operators.batching import BatchInfo, elementwise, one_to_front
from ...registry.function import functions
from ...registry.keys import AUTOGRAD, DispatchKey, below
from ...registry.operator import Operator
from ...registry.source import source_line
from ...registry.state import adjusted, state
from ...registry.values import TensorBase, TensorSpec, describe
from ..inplace import check_fits
from ..levels import Level, highest_level, pushed, stack
from ..record import Args, Kwargs
from .adopt import check_written
from .loop import loop
from .tensor import BatchedTensor, wrap_batched
from .ways import Way, way_of

MODES = ~below(DispatchKey.Mode)


def batched(op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> Any:
    """Run an operator on a batch; the fallback of the Batched key. The innermost level among the arguments is meant."""
    return run(highest_level(op, args, kwargs), op, args, kwargs)


def run(level: Level, op: Operator, args: Args, kwargs: Kwargs) -> Any:
    """Run an operator on values of a level."""
    found = level.prepared.get(op)
    if found is None or found[0].version != op.version:
        found = level.prepared[op] = way_of(op), info_of(level, op)
    way, info = found
    return below_modes(level, op, way, info, args, kwargs)


def below_modes(level: Level, op: Operator, way: Way, info: BatchInfo, args: Args, kwargs: Kwargs) -> Any:
    """Run an operator in the way that was found. Modes have seen the call; what it consists of is not theirs."""
    if (state.include | op.extra_keys) & MODES:
        with adjusted(exclude=MODES):
            return _run(level, op, way, info, args, kwargs)
    return _run(level, op, way, info, args, kwargs)


def info_of(level: Level, op: Operator) -> BatchInfo:
    return BatchInfo(level.batch_size, level.name, functions.get(op.name, op), level.axis_name)


def _run(level: Level, op: Operator, way: Way, info: BatchInfo, args: Args, kwargs: Kwargs) -> Any:
    if way.decompose is not None:
        return way.decompose(*args, **kwargs)
    if way.rule is None or (kwargs and _any_batched(level, kwargs.values())):
        return loop(op, level, args, kwargs)
    if way.writes:
        _check_target(op, level, way, args)
    try:
        if way.elementwise:
            return wrap_batched(level, _elementwise(level, info, args))
        raw, dims = _unwrap_all(level, way, args)
        out, out_dims = _pair(op, way.rule(info, dims, *raw, **kwargs))
    except TandemError as fault:
        if not isinstance(fault, UnsupportedError):
            _check_example(op, way, args, kwargs)
        raise
    if way.inner is not None:
        return args[0]
    if way.checked:
        _check_result(op, level, out, out_dims)
    return _wrap(level, out, out_dims)


def _pair(op: Operator, found: Any) -> tuple[Any, Any]:
    if type(found) is tuple and len(found) == 2:
        return found
    raise ValueArgumentError(
        f"the batching rule of {op.name} gives a pair (result, out_dims), not {describe(found)}"
    )


def _elementwise(level: Level, info: BatchInfo, args: Args) -> Any:
    """What the rule of the elementwise kinds gives; at once where all examples have equally many axes."""
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


def _wrap(level: Level, out: Any, dims: Any) -> Any:
    """Results as values of the level; ``dims`` says for all of them, or for each, where the batch is."""
    if type(out) is tuple or type(out) is list:
        each = dims if isinstance(dims, tuple | list) else (dims,) * len(out)
        return type(out)([_wrap(level, item, dim) for item, dim in zip(out, each)])
    if dims is None or out is None:
        return out
    return wrap_batched(level, one_to_front(out, dims % len(out.shape)) if dims else out)


def _unwrap_all(level: Level, way: Way, args: Args) -> tuple[list[Any], tuple[Any, ...]]:
    """What the arguments wrap, and where the batch axis of each is."""
    raw: list[Any] = []
    dims: list[Any] = []
    for place, value in enumerate(args):
        if isinstance(value, BatchedTensor) and value._level is level:
            raw.append(value._payload)
            dims.append(0)
        elif place in way.lists and value is not None:
            items = [_unwrap(level, item) for item in value]
            raw.append(tuple([item for item, _ in items]))
            dims.append(tuple([dim for _, dim in items]))
        else:
            raw.append(value)
            dims.append(None)
    return raw, tuple(dims)


def _unwrap(level: Level, value: Any) -> tuple[Any, int | None]:
    own = isinstance(value, BatchedTensor) and value._level is level
    return (value._payload, 0) if own else (value, None)


def _any_batched(level: Level, values: Any) -> bool:
    return any(isinstance(value, BatchedTensor) and value._level is level for value in values)


def open_batch(
    name: str, size: int, prepared: dict[Operator, Any], axis_name: Any = None
) -> AbstractContextManager[Level]:
    """A level of ``vmap`` for a ``with`` block.

    Args:
        name: what opens it, for messages.
        size: the number of examples.
        axis_name: what the batch axis is called, for operators that work along it.
        prepared: what was prepared for operators by former levels of this name and size, and will be by this one.
    """
    level = Level(len(stack.levels) + 1, name, source_line(), state.exclude & AUTOGRAD)
    level.batch_size, level.run, level.prepared, level.axis_name = size, run, prepared, axis_name
    return pushed(level)


# -- checks ------------------------------------------------------------------------------------------------------------
def _check_target(op: Operator, level: Level, way: Way, args: Args) -> None:
    """Refuse to write a batch into what is one tensor for all examples, unless that was made inside the level."""
    if way.inner is None:
        return
    target = args[0]
    check_written(op, level, target)
    if way.inner.decl.is_elementwise:
        _check_ranks(op, target, args)


def _check_ranks(op: Operator, target: Any, args: Args) -> None:
    rank = len(target.shape)
    for other in args[1:]:
        if isinstance(other, TensorBase) and len(other.shape) > rank:  # type: ignore[attr-defined]
            raise ShapeError(f"{op.schema.name}: {describe(other)} does not fit into {describe(target)}")


def _check_example(op: Operator, way: Way, args: Args, kwargs: Kwargs) -> None:
    """After an error: raise that of one example's shapes instead, if there is one."""
    inner = way.inner or op
    meta = getattr(inner.decl, "meta", None)
    if meta is None:
        return
    specs = tuple([_spec(arg) for arg in args])
    try:
        result = meta(*specs, **{name: _spec(arg) for name, arg in kwargs.items()})
        if way.inner is not None:
            check_fits(op.schema.name, args[0], result)
    except TandemError as fault:
        raise fault from None


def _spec(value: Any) -> Any:
    if isinstance(value, TensorBase):
        return TensorSpec(value.shape, value.dtype, value.device)  # type: ignore[attr-defined]
    return tuple([_spec(item) for item in value]) if type(value) is tuple else value


def _check_result(op: Operator, level: Level, out: Any, dims: Any) -> None:
    """Refuse what a rule from outside must not return."""
    if isinstance(out, tuple | list):
        each = dims if isinstance(dims, tuple | list) else (dims,) * len(out)
        if len(each) != len(out):
            raise ValueArgumentError(
                f"the batching rule of {op.name} gives {len(out)} results and {len(each)} out_dims"
            )
        for item, dim in zip(out, each):
            _check_result(op, level, item, dim)
        return
    if dims is None or out is None:
        return
    shape = out.shape if isinstance(out, TensorBase) else ()  # type: ignore[attr-defined]
    if type(dims) is not int or not -len(shape) <= dims < len(shape) or shape[dims] != level.batch_size:
        raise ShapeError(
            f"the batching rule of {op.name} gives {describe(out)} and says that axis {dims!r} is the batch of "
            f"{level.batch_size}"
        )
