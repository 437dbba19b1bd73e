"""An operator without a batching rule: it runs on one example after the other, and the results are stacked."""

from __future__ import annotations

import warnings
from typing import Any

from ...errors import UnsupportedError
from ...registry.function import functions
from ...registry.operator import Operator
from ...registry.values import TensorBase, TensorSpec, describe
from ..dunders import by_name
from ..levels import Level
from ..record import Args, Kwargs
from .adopt import check_written
from .tensor import BatchedTensor, wrap_batched

_said: set[str] = set()


def loop(op: Operator, level: Level, args: Args, kwargs: Kwargs) -> Any:
    """Run an operator on each example of a batch.

    Raises:
        UnsupportedError: the results are not tensors, or differ in shape, or are views, or the batch is empty and the
            operator has no shape rule.
    """
    _check(op, level, args)
    _say_so(op)
    function = functions.get(op.name, op)
    results = []
    for example in range(level.batch_size):
        picked = [_pick(level, arg, example) for arg in args]
        results.append(
            function(*picked, **{name: _pick(level, arg, example) for name, arg in kwargs.items()})
        )
    return _join(op, level, args, results or [_nothing(op, args, kwargs)], bool(results))


def _say_so(op: Operator) -> None:
    if op.name not in _said:
        _said.add(op.name)
        warnings.warn(
            f"{op.name} has no batching rule, so td.vmap runs it on one example after the other; to register one: "
            f"td.register_vmap({op.name!r}, rule) with rule(info, in_dims, *args) -> (result, out_dims)",
            stacklevel=2,
        )


def _check(op: Operator, level: Level, args: Args) -> None:
    if op.schema.is_view:
        raise UnsupportedError(
            f"{op.name} gives views and has no batching rule; a loop over the examples would give copies. Register a "
            f"rule: td.register_vmap({op.name!r}, rule)"
        )
    for argument, value in zip(op.schema.positional, args):
        if argument.is_write and isinstance(value, TensorBase):
            check_written(op, level, value)


def _pick(level: Level, value: Any, example: int) -> Any:
    """An argument as one example has it."""
    if isinstance(value, BatchedTensor) and value._level is level:
        payload = value._payload
        plan = (example, *[(0, size, 1) if size else (0, 0, 1) for size in payload.shape[1:]])
        return by_name("basic_index")(payload, plan)
    return tuple([_pick(level, item, example) for item in value]) if type(value) is tuple else value


def _nothing(op: Operator, args: Args, kwargs: Kwargs) -> Any:
    """The specs of an example's results, where there is no example."""
    meta = getattr(op.decl, "meta", None)
    if meta is None:
        raise UnsupportedError(
            f"{op.name} has neither a batching rule nor a shape rule, so what it gives for an empty batch is not known"
        )
    return meta(*map(_spec, args), **{name: _spec(arg) for name, arg in kwargs.items()})


def _spec(value: Any) -> Any:
    if isinstance(value, TensorBase):
        return TensorSpec(value.shape, value.dtype, value.device)  # type: ignore[attr-defined]
    return tuple(map(_spec, value)) if type(value) is tuple else value


def _join(op: Operator, level: Level, args: Args, results: list[Any], is_real: bool) -> Any:
    """The results of all examples as one: each tensor of them stacked."""
    return _stack(op, level, args, results, is_real, 0 if len(op.schema.returns) == 1 else None)


def _stack(op: Operator, level: Level, args: Args, items: list[Any], is_real: bool, place: int | None) -> Any:
    """One of the results, number ``place`` in the schema; the argument itself where that is what was written."""
    written = None if place is None else _written(op, args, place)
    if written is not None or items[0] is None:
        return written
    if type(items[0]) in (tuple, list):
        if len({len(item) for item in items}) > 1:
            raise _differing(op, level, "how many results there are")
        columns = enumerate(zip(*items))
        places = [at if place is None else None for at in range(len(items[0]))]
        return type(items[0])(
            [_stack(op, level, args, list(column), is_real, places[at]) for at, column in columns]
        )
    if not is_real:
        spec = items[0]
        zeros = by_name("zeros")((0, *spec.shape), dtype=spec.dtype, device=spec.device)
        return wrap_batched(level, zeros)
    strange = [item for item in items if not isinstance(item, TensorBase)]
    if strange:
        raise UnsupportedError(
            f"{op.name} inside {level.name} gives {describe(strange[0])}, which is no tensor and may differ from "
            "example to example"
        )
    if len({item.shape for item in items}) > 1:
        raise _differing(op, level, "the shape of its result")
    return wrap_batched(level, by_name("stack")(items, 0))


def _differing(op: Operator, level: Level, what: str) -> UnsupportedError:
    return UnsupportedError(
        f"{op.name} inside {level.name}: {what} differs from example to example, so the results make no batch; use an "
        "operator whose shapes follow from those of its arguments (td.where with a mask, size= where there is one), "
        "or loop over the examples"
    )


def _written(op: Operator, args: Args, index: int) -> Any:
    returns = op.schema.returns
    alias = returns[index].type.alias if index < len(returns) else None
    if alias is None or not alias.is_write:
        return None
    for argument, value in zip(op.schema.positional, args):
        if argument.is_write and argument.type.alias == alias:
            return value
    return None
