"""The Tracer key's kernel: one boxed kernel that records every call as a node of the graph."""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from ..eager.made import note, watching
from ..errors import LeakedTracerError
from ..operators.declare import LIBRARY
from ..registry.keys import DispatchKey
from ..registry.operator import Operator
from ..registry.values import TensorSpec
from . import families as families
from .aliases import share
from .infer import depends_on
from .lifting import add_node, lift
from .mutation import record_write
from .scalar import TracerScalar
from .tensor import concretize, make_tracer
from .trace import check_alive, current_trace


class Traits(NamedTuple):
    """What the kernel needs to know of a schema, looked up once per operator."""

    is_mutable: bool
    is_view: bool
    numbers: tuple[int, ...]  # places of the arguments that are no tensors
    number_keywords: tuple[str, ...]


_traits: WeakKeyDictionary[Operator, Traits] = WeakKeyDictionary()


def traits_of(op: Operator) -> Traits:
    """The traits of an operator."""
    found = _traits.get(op)
    if found is None:
        schema = op.schema
        numbers = tuple(i for i, a in enumerate(schema.positional) if a.type.core != "Tensor")
        keywords = tuple(a.name for a in schema.arguments if a.kwarg_only and a.type.core != "Tensor")
        found = _traits[op] = Traits(schema.is_mutable, schema.is_view, numbers, keywords)
    return found


def record(op: Operator, keyset: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Record a call; the Tracer key's fallback.

    Raises:
        LeakedTracerError: no trace is in progress in this thread, so an argument comes from one that is over.
    """
    trace = current_trace()
    if trace is None:
        raise _stray(op, args, kwargs)
    traits = traits_of(op)
    if traits.is_mutable:
        return record_write(trace, op, args, kwargs)
    lifted = tuple([lift(trace, arg) for arg in args])
    named = {name: lift(trace, value) for name, value in kwargs.items()}
    for number in [args[place] for place in traits.numbers] + [
        kwargs[name] for name in traits.number_keywords
    ]:
        if type(number) is TracerScalar and depends_on(op, lifted, named, number._value):
            concretize(number, f"the shape of {op.schema.name}'s result", "index")
    node, result = add_node(trace, op, lifted, named)
    tensors = tuple([make_tracer(trace, value) for value in node.outputs])
    for tensor in tensors:
        if traits.is_view:
            share(args[0], tensor, op, lifted, named)
        elif watching[0]:
            note(tensor)
    return tensors[0] if isinstance(result, TensorSpec) else None if result is None else tensors


def _stray(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> LeakedTracerError:
    for value in (*args, *kwargs.values()):
        for item in value if isinstance(value, tuple) else (value,):
            check_alive(item)
    return LeakedTracerError(
        f"{op.name} was called with the Tracer key, and this thread is not tracing anything"
    )


LIBRARY.fallback(record, DispatchKey.Tracer)
