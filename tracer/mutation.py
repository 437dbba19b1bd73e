"""In-place operators under a trace: the functional one is recorded, and the written tensor stands for its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import ArgumentError, ShapeError, UnsupportedError
from ..registry.operator import Operator, operators
from ..registry.source import source_line
from .aliases import can_write, write
from .graph import Value
from .lifting import add_node, lift
from .tensor import TracerTensor
from .trace import Trace, check_alive
from .writes import functional_forms, record_functional


def functional_of(op: Operator) -> Operator | None:
    """The operator that gives as a new tensor what ``op`` writes into its first argument; None if there is none.

    ``add_.Tensor`` has ``add.Tensor``: the same name without the underscore, the same arguments.
    """
    schema = op.schema
    if not schema.name.endswith("_"):
        return None
    suffix = f".{schema.overload}" if schema.overload else ""
    stem = f"{schema.namespace}::{schema.name[:-1]}"
    found = operators.get(stem + suffix) or operators.get(stem)
    same = found is not None and [a.name for a in found.schema.arguments] == [
        a.name for a in schema.arguments
    ]
    return found if same else None


def record_write(trace: Trace, op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Record a call of an operator that writes into its first argument.

    Returns:
        That argument, which stands for the new value from here on.

    Raises:
        UnsupportedError: the write would be seen outside of the trace, or through another view; the message names what
            works.
    """
    if op in functional_forms:
        return record_functional(
            trace, op, args, kwargs, lambda target: _check_private(trace, op, target), _caller(trace)
        )
    target = args[0]
    check_alive(target)
    functional = functional_of(op)
    written = [argument.name for argument in op.schema.arguments if argument.is_write]
    if functional is None or len(written) != 1 or written[0] != op.schema.arguments[0].name:
        raise _refuse(op, "has no functional form to record")
    _check_private(trace, op, target)
    lifted = tuple([lift(trace, arg) for arg in args])
    node, _ = add_node(
        trace, functional, lifted, {name: lift(trace, value) for name, value in kwargs.items()}
    )
    _check_fits(op, target, node.outputs[0].spec)
    write(target, node.outputs[0], _caller(trace))
    return target


def _caller(trace: Trace) -> Callable[[Operator, tuple[Any, ...]], Value]:
    """What records calls on Values in a trace."""

    def call(called: Operator, values: tuple[Any, ...]) -> Value:
        return add_node(trace, called, *_filled(called, values))[0].outputs[0]

    return call


def _filled(op: Operator, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A call's arguments with the defaults of those left out."""
    rest = op.schema.positional[len(args) :]
    keywords = {a.name: a.default for a in op.schema.arguments if a.kwarg_only}
    return (*args, *(argument.default for argument in rest)), keywords


def _check_private(trace: Trace, op: Operator, target: Any) -> None:
    if type(target) is not TracerTensor or target._trace is not trace:
        raise _refuse(op, "writes into a tensor from outside of the jitted function")
    aliases = target._aliases
    if aliases is not None and aliases.origin and not aliases.is_written_back:
        raise _refuse(op, f"writes into {aliases.origin}, or a view of it")
    if not can_write(target):
        raise _refuse(op, "writes into memory that another view shares")


def _check_fits(op: Operator, target: TracerTensor, spec: Any) -> None:
    """What the eager kernel checks: the result is written into the target's memory, so it has its shape and dtype."""
    if spec.shape != target.shape:
        raise ShapeError(f"{op.name}: the result {spec} does not fit into {target.spec}")
    if spec.dtype is not target.dtype:
        raise ArgumentError(
            f"{op.name}: the result {spec} cannot be written into {target.spec}; cast it with astype"
        )


def _refuse(op: Operator, why: str) -> UnsupportedError:
    return UnsupportedError(
        f"{op.name} {why}, which a jitted function cannot do yet (at {source_line() or 'an unknown line'}); make a new "
        "value and return it: x = x + y instead of x += y, x = x.at[index].set(value) instead of x[index] = value"
    )
