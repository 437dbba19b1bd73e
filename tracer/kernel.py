"""The Tracer key's kernel: one boxed kernel that records every call as a node of the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from ..eager.layers.level_allocations import note_allocation, open_level_count
from ..named_tuple import NamedTuple
from ..operators.declare.declaration import LIBRARY
from ..registry.dispatch.keys import DispatchKey, below
from ..registry.operator import Operator
from ..registry.values import TensorSpec
from . import alias_sets as alias_sets
from .aliases import register_view
from .infer import depends_on
from .lifting import add_node, lift
from .mutation import hold_captured, record_write
from .scalar import TracerScalar
from .tensor import make_tracer, raise_concretization_error
from .trace import check_alive, current_trace

if TYPE_CHECKING:
    from ..registry.types import Args, Kwargs

BELOW = below(DispatchKey.Tracer)


class SchemaTraits(NamedTuple):
    """Properties of a schema that the kernel reads, computed once per operator."""

    is_mutable: bool
    is_view: bool
    numbers: tuple[int, ...]  # indices of the arguments that are not tensors
    number_keywords: tuple[str, ...]


_traits: WeakKeyDictionary[Operator, SchemaTraits] = WeakKeyDictionary()


def traits_of(op: Operator) -> SchemaTraits:
    """The traits of an operator."""
    result = _traits.get(op)
    if result is None:
        schema = op.schema
        numbers = tuple(i for i, a in enumerate(schema.positional) if a.type.core != "Tensor")
        keywords = tuple(a.name for a in schema.arguments if a.kwarg_only and a.type.core != "Tensor")
        result = _traits[op] = SchemaTraits(schema.is_mutable, schema.is_view, numbers, keywords)
    return result


def trace_call(op: Operator, keyset: int, args: tuple[object, ...], kwargs: Kwargs) -> object:
    """Append a call to the graph as a node; the Tracer key's fallback.

    Raises:
        LeakedTracerError: an argument belongs to a trace that has ended, or to another thread's.
    """
    trace = current_trace()
    if trace is None:
        return _run_untraced(op, keyset, args, kwargs)
    traits = traits_of(op)
    if traits.is_mutable:
        return record_write(trace, op, args, kwargs)
    lifted = tuple([lift(trace, arg) for arg in args])
    named = {name: lift(trace, value) for name, value in kwargs.items()}
    for number in [args[index] for index in traits.numbers] + [
        kwargs[name] for name in traits.number_keywords
    ]:
        if type(number) is TracerScalar and depends_on(op, lifted, named, number._value):
            raise_concretization_error(number, f"the shape of {op.schema.name}'s result", "index")
    node, result = add_node(trace, op, lifted, named)
    tensors = tuple([make_tracer(trace, value) for value in node.outputs])
    for tensor in tensors:
        if traits.is_view:
            held = hold_captured(trace, args[0])
            register_view(args[0] if held is None else held, tensor, op, lifted, named)
        elif open_level_count[0]:
            note_allocation(tensor)
    return tensors[0] if isinstance(result, TensorSpec) else None if result is None else tensors


def _run_untraced(op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> object:
    """Run a call outside of any trace whose context was copied inside one, and so includes the Tracer key."""
    for value in (*args, *kwargs.values()):
        for item in value if isinstance(value, tuple) else (value,):
            check_alive(item)
    return op.dispatch(keyset & BELOW, args, kwargs)


LIBRARY.fallback(trace_call, DispatchKey.Tracer)
