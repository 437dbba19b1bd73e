"""Auto-functionalization: record a call of a mutating custom operator as a call of its functional form.

Such an operator has a functional form: it returns its results and then the new contents of each argument that it
writes. The trace records the functional form, and the written tensors take the new contents as their values.

Source: the ``auto_functionalized`` operator of PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ..errors import UnsupportedError
from ..registry.operator import Operator
from ..registry.values import describe
from .aliases import write_value
from .graph import Value
from .lifting import add_node, lift
from .tensor import make_tracer
from .trace import Trace

if TYPE_CHECKING:
    from ..registry.types import Args, Kwargs
    from .tensor import TracerTensor

# operator that writes -> its functional form
functional_forms: WeakKeyDictionary[Operator, Operator] = WeakKeyDictionary()


def list_written(op: Operator, args: Args, kwargs: Kwargs) -> list[Any]:
    """The arguments of a bound call that the operator writes, in the order of the schema."""
    positions = {argument.name: index for index, argument in enumerate(op.schema.positional)}
    return [
        kwargs[a.name] if a.kwarg_only else args[positions[a.name]] for a in op.schema.arguments if a.is_write
    ]


def record_functional_call(
    trace: Trace,
    op: Operator,
    args: tuple[object, ...],
    kwargs: dict[str, object],
    find: Callable[[object], TracerTensor],
    call: Callable[[Operator, tuple[Any, ...]], Value],
) -> object:
    """Record the functional form of a call.

    Args:
        trace: the trace.
        op: an operator of ``functional_forms``.
        args, kwargs: the bound call.
        find: returns the traced tensor that holds what is written; raises for a tensor that must not be written.
        call: records a call on Values, to recompute views.

    Returns:
        The operator's results.

    Raises:
        UnsupportedError: two of the written arguments share memory.
    """
    targets = [find(target) for target in list_written(op, args, kwargs)]
    _check_disjoint(op, targets)
    named = {name: lift(trace, value) for name, value in kwargs.items()}
    node, _ = add_node(trace, functional_forms[op], tuple([lift(trace, arg) for arg in args]), named)
    count = len(node.outputs) - len(targets)
    for target, value in zip(targets, node.outputs[count:], strict=True):
        write_value(target, value, call)
        trace.note_write(target)
    results = tuple([make_tracer(trace, value) for value in node.outputs[:count]])
    if not op.schema.returns:
        return None
    single = len(op.schema.returns) == 1 and not op.schema.returns[0].type.is_list
    return results[0] if single else results


def _check_disjoint(op: Operator, targets: list[TracerTensor]) -> None:
    seen: set[int] = set()
    for target in targets:
        key = id(target if target._aliases is None else target._aliases)
        if key in seen:
            raise UnsupportedError(
                f"{op.name} writes into {describe(target)}, which shares memory with another argument that it writes; "
                "pass x.clone() for one of them"
            )
        seen.add(key)
