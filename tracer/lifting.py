"""From the arguments of a call to the arguments of a node: Values in place of tensors and traced scalars."""

from __future__ import annotations

from typing import Any

from ..errors import UnsupportedError
from ..operators.devices import assumed
from ..registry.operator import Operator
from ..registry.source import source_line
from ..registry.values import TensorBase
from .graph import Node, Value
from .infer import infer, specs_of, stand_in
from .scalar import TracerScalar
from .tensor import TracerTensor
from .trace import Trace, check_alive


def value_of(trace: Trace, tensor: Any) -> Value:
    """The Value of a tensor or a traced scalar in a trace; a tensor from outside is captured."""
    if type(tensor) is TracerTensor and tensor._trace is trace:
        return tensor._value
    if type(tensor) is TracerScalar:
        check_alive(tensor)
        return tensor._value if tensor._trace is trace else trace.capture_number(tensor)
    return trace.capture(tensor)


def lift(trace: Trace, tree: Any) -> Any:
    """An argument with Values in place of tensors and traced scalars."""
    if isinstance(tree, (TensorBase, TracerScalar)):
        return value_of(trace, tree)
    if type(tree) is tuple:
        return tuple([lift(trace, item) for item in tree])
    return tree


def _stand_ins(tree: Any) -> Any:
    """A lifted argument as meta rules see it."""
    if type(tree) is Value:
        return stand_in(tree)
    if type(tree) is tuple:
        return tuple([_stand_ins(item) for item in tree])
    return tree


def infer_node(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The spec of the result of a call on Values, or a tuple of them; see :func:`.infer.infer`."""
    return infer(op, _stand_ins(args), {name: _stand_ins(value) for name, value in kwargs.items()})


def add_node(trace: Trace, op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Node, Any]:
    """Append a call on Values; returns the node and what the meta rule said."""
    result = infer_node(op, args, kwargs)
    specs = specs_of(result)
    if any(spec.device == "meta" for spec in specs):
        raise UnsupportedError(
            f"{op.schema.name} would give a tensor on the device 'meta' inside a jitted function, and compiled code "
            "has nothing to compute there; call the function with meta arguments, and it runs on them as it is"
        )
    place = op.binder.device_argument
    if place and specs and assumed(None):
        kwargs = {**kwargs, place: specs[0].device}
    return trace.graph.add_node(op, args, kwargs, specs, source_line()), result
