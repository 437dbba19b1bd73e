"""In-place operators under a trace: record the functional operator, and set the written tensor to its result.

``x.add_(y)`` records ``add``; ``x[i] = v`` calls ``basic_put_`` or ``index_put_``, which record ``basic_put`` and
``index_put``. A traced tensor holds the contents of a captured tensor that is written, for the caller to write back.
The Python objects stay the captured ones: :meth:`.trace.Trace.capture` returns the value of the traced tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..eager.tensor.inplace import check_fits
from ..eager.tensor.tensor import Tensor, has_array, read_hooks
from ..eager.tensor.weak_scalars import is_weak
from ..errors import UnsupportedError
from ..operators.elementwise.casting import cast
from ..registry.operator import Operator, operators
from ..registry.source import source_line
from .aliases import Aliases, can_write, write_value
from .auto_functionalize import functional_forms, record_functional_call
from .graph import Value
from .lifting import add_node, lift
from .tensor import TracerTensor, make_tracer, raise_concretization_error
from .trace import Trace, check_alive, current_trace, find_substitute, list_open_traces

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
            trace, op, args, kwargs, lambda target: _find_writable(trace, op, target), _make_call(trace)
        )
    target = args[0]
    check_alive(target)
    functional = find_functional(op)
    written = [argument.name for argument in op.schema.arguments if argument.is_write]
    if functional is None or len(written) != 1 or written[0] != op.schema.arguments[0].name:
        raise _make_error(op, "has no functional form to record")
    held = _find_writable(trace, op, target)
    lifted = tuple([lift(trace, arg) for arg in args])
    node, _ = add_node(
        trace, functional, lifted, {name: lift(trace, value) for name, value in kwargs.items()}
    )
    call, value = _make_call(trace), node.outputs[0]
    check_fits(op.schema.name, target, value.spec)
    if value.spec.dtype is not target.dtype:
        value = call(cast.operator, (value, target.dtype))
    write_value(held, value, call)
    trace.note_write(held)
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


def _find_writable(trace: Trace, op: Operator, target: object) -> TracerTensor:
    """The traced tensor that an operator writes: the target, or what holds the contents of a captured tensor."""
    if type(target) is not TracerTensor:
        captured, target = target, hold_captured(trace, target)
        if target is not None and find_substitute(captured) is None:
            _check_unread(trace, op, captured)  # type: ignore[arg-type]
    if type(target) is not TracerTensor or target._trace is not trace:
        raise _make_error(op, "writes into a tensor from outside of the traced function")
    aliases = target._aliases
    if aliases is not None and aliases.origin and not aliases.is_written_back:
        raise _make_error(op, f"writes into {aliases.origin}, or a view of it")
    if not can_write(target):
        raise _make_error(op, "writes into memory that another view shares")
    return target


def _make_error(op: Operator, why: str) -> UnsupportedError:
    return UnsupportedError(
        f"{op.name} {why}, which a jitted function cannot do yet (at {source_line() or 'an unknown line'}); make a new "
        "value and return it: x = x + y instead of x += y, x = x.at[index].set(value) instead of x[index] = value"
    )


# -- captured tensors -------------------------------------------------------------------------------------------------
def hold_captured(trace: Trace, tensor: Any) -> TracerTensor | None:
    """The traced tensor that holds the contents of a captured tensor; None if they cannot be written back.

    They can be for eager tensors without gradients that ``trace.writable`` lists; tensors that the function has made of
    numbers need not be.
    """
    if type(tensor) is TracerTensor:
        return None
    substitute = find_substitute(tensor)
    if substitute is not None:
        return substitute if getattr(substitute, "_trace", None) is trace else None
    held: TracerTensor | None = trace.states.get(id(tensor))
    if held is None and id(tensor) in trace.numbers:
        held = trace.states[id(tensor)] = trace.make_constant(tensor)
    if held is not None or id(tensor) not in trace.writable or not _is_plain(tensor):
        return held
    value = trace.capture(tensor)
    held = trace.states[id(tensor)] = make_tracer(trace, value)
    contiguous = bool(tensor._array.flags.c_contiguous)
    Aliases(value, "a captured tensor", is_written_back=True, is_contiguous=contiguous).add(held)
    return held


def _is_plain(tensor: Any) -> bool:
    if type(tensor) is not Tensor or tensor.requires_grad or is_weak(tensor):
        return False
    array = tensor._array
    axes = sorted((abs(step), size) for step, size in zip(array.strides, array.shape) if size > 1)
    sizes = [array.itemsize, *(step * size for step, size in axes)]
    return all(step >= size for (step, _), size in zip(axes, sizes))  # its elements do not overlap


def find_contents(leaf: object) -> Any:
    """The traced tensor with the contents of a tensor that the function made of a number and wrote; else the leaf."""
    trace = current_trace()
    return trace.states.get(id(leaf), leaf) if trace is not None and id(leaf) in trace.numbers else leaf


def _is_written(held: TracerTensor) -> bool:
    """Whether the traced tensor of a number has other contents than the number."""
    root = held._value if held._aliases is None else held._aliases.root
    return root.node is None or root.node.op.schema.name != "full"


def note_read(tensor: Tensor, what: str) -> None:
    """Note that Python code reads the data of a tensor during a trace of this thread.

    Raises:
        ConcretizationError: the trace has written its memory.
    """
    for trace in list_open_traces():
        if not (trace.writable or trace.numbers) or not has_array(type(tensor)):
            continue
        for key, held in trace.states.items():
            made = trace.numbers.get(key)
            if made is not None:
                if _is_written(held) and np.may_share_memory(made._array, tensor._array):
                    raise_concretization_error(held, what, "data")
                continue
            other: Any = trace.writable.get(key)
            if other is None or held._aliases.root is trace.graph.captured_value(other):
                continue  # a generator's state, or not written
            if np.may_share_memory(other._array, tensor._array):
                raise_concretization_error(held, what, "data")
        trace.read.append(tensor._array)


def _check_unread(trace: Trace, op: Operator, tensor: Tensor) -> None:
    """Check that the trace contains no constants that were computed from the data of a captured tensor."""
    arrays = [*trace.read, *(mask._array for mask, _ in trace.masks)]
    if any(np.may_share_memory(tensor._array, array) for array in arrays):
        raise _make_error(op, "writes into a tensor whose data Python code has read during the trace")


read_hooks.append(note_read)
