"""An operator without a batching rule: it runs on one example after the other, and the results are stacked."""

from __future__ import annotations

import warnings
from typing import Any

from ...errors import ShapeError, UnsupportedError
from ...registry.function import functions
from ...registry.operator import Operator
from ...registry.values import TensorBase, TensorSpec, describe
from ..dunders import by_name
from ..levels import Level
from ..record import Args, Kwargs
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
            f"tandem.eager.batched.rules.register_rule({op.name!r}, rule) with rule(info, in_dims, *args) -> "
            "(result, out_dims), or register_vmap of a custom op",
            stacklevel=2,
        )


def _check(op: Operator, level: Level, args: Args) -> None:
    if op.schema.is_view:
        raise UnsupportedError(
            f"{op.name} gives views and has no batching rule; a loop over the examples would give copies. Register a "
            f"rule: tandem.eager.batched.rules.register_rule({op.name!r}, rule)"
        )
    for argument, value in zip(op.schema.positional, args):
        if (
            argument.is_write
            and isinstance(value, TensorBase)
            and not (type(value) is BatchedTensor and value._level is level)
        ):
            raise UnsupportedError(
                f"{op.name} inside {level.name} would write into {describe(value)} once for each example; make a new "
                "tensor for each: x = x.at[index].set(value), x = x + y"
            )


def _pick(level: Level, value: Any, example: int) -> Any:
    """An argument as one example has it."""
    if type(value) is BatchedTensor and value._level is level:
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
    first = results[0]
    if first is None:
        return None
    if not isinstance(first, tuple | list) or isinstance(first, TensorSpec):
        return _stack(op, level, args, 0, results, is_real)
    if len({len(result) for result in results}) > 1:
        raise UnsupportedError(
            f"{op.name} inside {level.name}: how many results there are differs from example to example"
        )
    columns = range(len(first))
    return tuple([_stack(op, level, args, i, [r[i] for r in results], is_real) for i in columns])


def _stack(op: Operator, level: Level, args: Args, index: int, items: list[Any], is_real: bool) -> Any:
    """One result of all examples; the argument itself where the schema says that it is one that was written."""
    written = _written(op, args, index)
    if written is not None:
        return written
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
    shapes = {item.shape for item in items}
    if len(shapes) > 1:
        raise UnsupportedError(
            f"{op.name} inside {level.name}: the shape of its result differs from example to example "
            f"({', '.join(map(str, sorted(shapes)[:3]))}), so the results make no batch; use an operator whose shapes "
            "follow from those of its arguments (td.where with a mask, size= where there is one), or loop over the "
            "examples"
        )
    try:
        return wrap_batched(level, by_name("stack")(items, 0))
    except ShapeError as fault:
        raise UnsupportedError(f"{op.name} inside {level.name}: {fault}") from None


def _written(op: Operator, args: Args, index: int) -> Any:
    returns = op.schema.returns
    alias = returns[index].type.alias if index < len(returns) else None
    if alias is None or not alias.is_write:
        return None
    for argument, value in zip(op.schema.positional, args):
        if argument.is_write and argument.type.alias == alias:
            return value
    return None
