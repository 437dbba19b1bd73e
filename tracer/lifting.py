"""Convert arguments of calls to arguments of nodes: Values in place of tensors and traced scalars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import UnsupportedError
from ..operators.creation.devices import assumed_device
from ..registry.operator import Operator
from ..registry.source import source_line
from ..registry.values import TensorBase
from .graph import Node, Value
from .infer import infer, specs_of, to_example
from .scalar import TracerScalar
from .tensor import TracerTensor
from .trace import Trace, check_alive
from .weak import WeakTracer, strengthen

if TYPE_CHECKING:
    from ..registry.types import Args, Kwargs


def value_of(trace: Trace, tensor: object) -> Value:
    """The Value of a tensor or a traced scalar in a trace; an untraced tensor is captured."""
    if type(tensor) is TracerTensor and tensor._trace is trace:
        return tensor._value
    if type(tensor) is WeakTracer:
        return value_of(trace, strengthen(tensor, None))
    if type(tensor) is TracerScalar:
        check_alive(tensor)
        return tensor._value if tensor._trace is trace else trace.capture_number(tensor)
    return trace.capture(tensor)


def lift(trace: Trace, tree: object) -> object:
    """Replace the tensors and traced scalars in an argument by Values."""
    if isinstance(tree, (TensorBase, TracerScalar)):
        return value_of(trace, tree)
    if type(tree) is tuple:
        return tuple([lift(trace, item) for item in tree])
    return tree


def _to_examples(tree: object) -> Any:
    """A lifted argument as shape rules see it."""
    if type(tree) is Value:
        return to_example(tree)
    if type(tree) is tuple:
        return tuple([_to_examples(item) for item in tree])
    return tree


def infer_node(op: Operator, args: Args, kwargs: Kwargs) -> object:
    """The spec of the result of a call on Values, or a tuple of them; see :func:`.infer.infer`."""
    return infer(op, _to_examples(args), {name: _to_examples(value) for name, value in kwargs.items()})


def add_node(
    trace: Trace, op: Operator, args: tuple[object, ...], kwargs: dict[str, object]
) -> tuple[Node, Any]:
    """Append a call on Values; returns the node and what the shape rule said."""
    result = infer_node(op, args, kwargs)
    specs = specs_of(result)
    if any(spec.device == "meta" for spec in specs):
        raise UnsupportedError(
            f"{op.schema.name} would give a tensor on the device 'meta' inside a jitted function, and compiled code "
            "has nothing to compute there; call the function with meta arguments, and it runs on them as it is"
        )
    argument = op.binder.device_argument
    if argument and specs and assumed_device(None):
        kwargs = {**kwargs, argument: specs[0].device}
    return trace.graph.add_node(op, args, kwargs, specs, source_line()), result
