"""In-place operators under a trace: record the functional operator, and set the written tensor to its result.

``x.add_(y)`` records ``add``; ``x[i] = v`` calls ``basic_put_`` or ``index_put_``, which record ``basic_put`` and
``index_put``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..eager.tensor.inplace import check_fits
from ..errors import UnsupportedError
from ..operators.elementwise.casting import cast
from ..registry.operator import Operator, operators
from ..registry.source import source_line
from .aliases import can_write, write_value
from .auto_functionalize import functional_forms, record_functional_call
from .graph import Value
from .lifting import add_node, lift
from .tensor import TracerTensor
from .trace import Trace, check_alive

if TYPE_CHECKING:
    from ..registry.types import Args, Kwargs


def find_functional(op: Operator) -> Operator | None:
    """The operator that returns as a new tensor what ``op`` writes into its first argument; None if there is none.

    ``add_.Tensor`` has ``add.Tensor``, ``basic_put_`` has ``basic_put``: the name without the underscore, and the same
    arguments.
    """
    schema = op.schema
    if not schema.name.endswith("_"):
        return None
    suffix = f".{schema.overload}" if schema.overload else ""
    stem = f"{schema.namespace}::{schema.name[:-1]}"
    value = operators.get(stem + suffix) or operators.get(stem)
    same = value is not None and [a.name for a in value.schema.arguments] == [
        a.name for a in schema.arguments
    ]
    return value if same else None


def record_write(trace: Trace, op: Operator, args: tuple[Any, ...], kwargs: Kwargs) -> Any:
    """Record a call of an operator that writes into its first argument.

    Returns:
        That argument, with the new value.

    Raises:
        UnsupportedError: the write would be seen outside of the trace, or through another view; the message names what
            works.
    """
    if op in functional_forms:
        return record_functional_call(
            trace, op, args, kwargs, lambda target: _check_writable(trace, op, target), _make_call(trace)
        )
    target = args[0]
    check_alive(target)
    functional = find_functional(op)
    written = [argument.name for argument in op.schema.arguments if argument.is_write]
    if functional is None or len(written) != 1 or written[0] != op.schema.arguments[0].name:
        raise _make_error(op, "has no functional form to record")
    _check_writable(trace, op, target)
    lifted = tuple([lift(trace, arg) for arg in args])
    node, _ = add_node(
        trace, functional, lifted, {name: lift(trace, value) for name, value in kwargs.items()}
    )
    call, value = _make_call(trace), node.outputs[0]
    check_fits(op.schema.name, target, value.spec)
    if value.spec.dtype is not target.dtype:
        value = call(cast.operator, (value, target.dtype))
    write_value(target, value, call)
    trace.note_write(target)
    return target


def _make_call(trace: Trace) -> Callable[[Operator, Args], Value]:
    """Make a function that records calls on Values in a trace."""

    def call(called: Operator, values: Args) -> Value:
        return add_node(trace, called, *_fill_defaults(called, values))[0].outputs[0]

    return call


def _fill_defaults(op: Operator, args: Args) -> tuple[tuple[object, ...], dict[str, object]]:
    """A call's arguments with the defaults of those left out."""
    rest = op.schema.positional[len(args) :]
    keywords = {a.name: a.default for a in op.schema.arguments if a.kwarg_only}
    return (*args, *(argument.default for argument in rest)), keywords


def _check_writable(trace: Trace, op: Operator, target: object) -> None:
    if type(target) is not TracerTensor or target._trace is not trace:
        raise _make_error(op, "writes into a tensor from outside of the jitted function")
    aliases = target._aliases
    if aliases is not None and aliases.origin and not aliases.is_written_back:
        raise _make_error(op, f"writes into {aliases.origin}, or a view of it")
    if not can_write(target):
        raise _make_error(op, "writes into memory that another view shares")


def _make_error(op: Operator, why: str) -> UnsupportedError:
    return UnsupportedError(
        f"{op.name} {why}, which a jitted function cannot do yet (at {source_line() or 'an unknown line'}); make a new "
        "value and return it: x = x + y instead of x += y, x = x.at[index].set(value) instead of x[index] = value"
    )
