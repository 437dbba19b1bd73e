"""The fallback of vmap for operators without a batching rule: run on each example and stack the results."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from ....errors import UnsupportedError
from ....registry.function import functions
from ....registry.operator import Operator
from ....registry.values import TensorBase, TensorSpec, describe
from ...tensor.dunders import by_name
from ..levels import Level
from .adopt import check_written
from .tensor import BatchedTensor, wrap_batched

if TYPE_CHECKING:
    from ....registry.types import Args, Kwargs

_warned: set[str] = set()


def run_per_example(op: Operator, level: Level, args: Args, kwargs: Kwargs) -> object:
    """Run an operator on each example of a batch.

    Raises:
        UnsupportedError: the results are not tensors, or differ in shape, or are views, or the batch is empty and the
            operator has no shape rule.
    """
    _check(op, level, args)
    _warn_once(op)
    function = functions.get(op.name, op)
    results = []
    for example in range(level.batch_size):
        example_args = [_select_example(level, arg, example) for arg in args]
        results.append(
            function(
                *example_args, **{name: _select_example(level, arg, example) for name, arg in kwargs.items()}
            )
        )
    return _stack_results(op, level, args, results or [_infer_results(op, args, kwargs)], bool(results))


def _warn_once(op: Operator) -> None:
    if op.name not in _warned:
        _warned.add(op.name)
        warnings.warn(
            f"{op.name} has no batching rule, so td.vmap runs it on one example after the other; register one: "
            f"td.register_vmap({op.name!r}, rule) with rule(info, in_dims, *args) -> (result, out_dims)",
            stacklevel=2,
        )


def _check(op: Operator, level: Level, args: Args) -> None:
    if op.is_view:
        raise UnsupportedError(
            f"{op.name} returns views and has no batching rule; a loop over the examples would return copies. Register "
            f"a rule: td.register_vmap({op.name!r}, rule)"
        )
    for argument, value in zip(op.schema.positional, args):
        if argument.is_write and isinstance(value, TensorBase):
            check_written(op, level, value)  # type: ignore[arg-type]


def _select_example(level: Level, value: object, example: int) -> object:
    """The value of an argument for one example."""
    if isinstance(value, BatchedTensor) and value._level is level:
        payload = value._payload
        plan = (example, *[(0, size, 1) if size else (0, 0, 1) for size in payload.shape[1:]])
        return by_name("basic_index")(payload, plan)
    return tuple([_select_example(level, item, example) for item in value]) if type(value) is tuple else value


def _infer_results(op: Operator, args: Args, kwargs: Kwargs) -> Any:
    """The specs of one example's results, computed by the shape rule, for an empty batch."""
    rule = getattr(op.decl, "shape_rule", None)
    if rule is None:
        raise UnsupportedError(
            f"{op.name} has neither a batching rule nor a shape rule, so its results for an empty batch are unknown; "
            f"register a rule: td.register_vmap({op.name!r}, rule)"
        )
    return rule(*map(_spec, args), **{name: _spec(arg) for name, arg in kwargs.items()})


def _spec(value: object) -> object:
    if isinstance(value, TensorBase):
        return TensorSpec(value.shape, value.dtype, value.device)  # type: ignore[attr-defined]
    return tuple(map(_spec, value)) if type(value) is tuple else value


def _stack_results(op: Operator, level: Level, args: Args, results: list[Any], is_real: bool) -> object:
    """Stack the results of all examples."""
    return _stack_result(op, level, args, results, is_real, 0 if len(op.schema.returns) == 1 else None)


def _stack_result(
    op: Operator, level: Level, args: Args, items: list[Any], is_real: bool, position: int | None
) -> object:
    """Stack the examples of result number ``position``; a written argument is returned itself."""
    written = None if position is None else _find_written_argument(op, args, position)
    if written is not None or items[0] is None:
        return written
    if type(items[0]) in (tuple, list):
        if len({len(item) for item in items}) > 1:
            raise _mismatch_error(op, level, "how many results there are")
        columns = enumerate(zip(*items))
        positions = [at if position is None else None for at in range(len(items[0]))]
        return type(items[0])(
            [_stack_result(op, level, args, list(column), is_real, positions[at]) for at, column in columns]
        )
    if not is_real:
        spec = items[0]
        zeros = by_name("zeros")((0, *spec.shape), dtype=spec.dtype, device=spec.device)
        return wrap_batched(level, zeros)
    others = [item for item in items if not isinstance(item, TensorBase)]
    if others:
        raise UnsupportedError(
            f"{op.name} inside {level.name} returns {describe(others[0])}, which is not a tensor and may differ "
            "between examples; return a tensor"
        )
    if len({item.shape for item in items}) > 1:
        raise _mismatch_error(op, level, "the shape of its result")
    return wrap_batched(level, by_name("stack")(items, 0))


def _mismatch_error(op: Operator, level: Level, what: str) -> UnsupportedError:
    return UnsupportedError(
        f"{op.name} inside {level.name}: {what} differs between examples, so the results cannot be stacked; use an "
        "operator whose shapes follow from those of its arguments (td.where with a mask, size= where there is one), "
        "or loop over the examples"
    )


def _find_written_argument(op: Operator, args: Args, index: int) -> object:
    returns = op.schema.returns
    alias = returns[index].type.alias if index < len(returns) else None
    if alias is None or not alias.is_write:
        return None
    for argument, value in zip(op.schema.positional, args):
        if argument.is_write and argument.type.alias == alias:
            return value
    return None
