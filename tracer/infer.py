"""What a node's results look like: the operator's meta rule run on Values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..eager.meta_tensor import META_KEYS, meta_tensor
from ..errors import TandemError, UnsupportedError
from ..operators.devices import elsewhere
from ..registry.keys import DispatchKey
from ..registry.operator import Operator
from ..registry.state import set_keys
from ..registry.values import TensorBase, TensorSpec, describe
from .graph import Value, map_values

# A Python scalar is weak: rules look at its type alone, so any value of the type that fits everywhere stands for it.
REPRESENTATIVE: dict[type, Any] = {bool: False, int: 0, float: 0.0, complex: 0j}

_INSTEAD = {
    "nonzero": "td.where(condition, x, y) with three arguments",
    "unique_values": "td.sort, or call it outside of the jitted function",
    "masked_select": "td.where(mask, x, fill)",
}


# Other values of the same types: a rule that gives another result for them depends on the value, which a trace lacks.
_ANOTHER: dict[type, Any] = {bool: True, int: 3, float: 2.5, complex: 1j}


def stand_in(value: Value) -> Any:
    """What meta rules see of a Value: its spec, or a Python scalar of its type."""
    return value.spec if value.weak is None else REPRESENTATIVE[value.weak]


def infer(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The spec of an operator's result, or a tuple of them, as its meta rule gives it; None for no result.

    Args:
        op: the operator.
        args, kwargs: its bound arguments, with a TensorSpec for each tensor.

    Raises:
        DeviceError: its arguments lie on several devices.
        UnsupportedError: the operator has no rule: its result's shape follows from data, or nobody has declared it.
    """
    specs = _specs_in((*args, *kwargs.values()))
    there = next((spec for spec in specs if spec.device.startswith("cuda")), None)
    if there is None or op.decl is None or op.decl.kind in ("transfer", "control"):
        return _inferred(op, args, kwargs)
    place = _placing(op, there)
    found = _inferred(op, place(args), {name: place(value) for name, value in kwargs.items()})
    return found if op.binder.device_argument else _lying_on(there.device, found)


def _placing(op: Operator, there: TensorSpec) -> Callable[[Any], Any]:
    """What puts the arguments of an operator on one CUDA device, as its eager kernels do: a constant on the host is as
    good as a number, and positions are often written as a list; others have to lie there.

    Raises (what it gives):
        DeviceError: an argument lies elsewhere.
    """
    decl, name = op.decl, op.schema.name
    constants = decl.is_elementwise or name in ("basic_put", "index_put")

    def place(value: Any) -> Any:
        if type(value) is tuple:
            return tuple(map(place, value))
        if not isinstance(value, TensorSpec) or value.device == there.device:
            return value
        host = value.device == "cpu"
        index = host and decl.kind in ("gather", "scatter") and value.dtype.is_integer
        if index or (host and constants and not value.shape):
            return value._replace(device=there.device)
        raise elsewhere(name, value, there)

    return place


def _lying_on(device: str, result: Any) -> Any:
    """A rule's result, on a device."""
    if isinstance(result, TensorSpec):
        return result._replace(device=device)
    return result if result is None else tuple([spec._replace(device=device) for spec in result])


def _inferred(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The spec of an operator's result, wherever its arguments lie."""
    meta = getattr(op.decl, "meta", None)
    if meta is not None:
        return meta(*args, **kwargs)
    fake = op.registered(DispatchKey.Meta)
    if fake is None or fake.boxed:
        raise _no_rule(op)
    return _by_fake(op, args, kwargs)


def _by_fake(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the kernel of the Meta key gives on tensors without data; results lie where the arguments do."""
    devices = [spec.device for spec in _specs_in((*args, *kwargs.values()))]
    before = set_keys(0, 0)  # a rule written with operators is not part of the trace
    try:
        found = op.dispatch(META_KEYS, _emptied(args), {name: _emptied(arg) for name, arg in kwargs.items()})
    finally:
        set_keys(*before)
    return _promised(op, found, devices[0] if devices else "cpu")


def _specs_in(args: tuple[Any, ...]) -> list[TensorSpec]:
    found = []
    for arg in args:
        if isinstance(arg, TensorSpec):
            found.append(arg)
        elif type(arg) is tuple:
            found += _specs_in(arg)
    return found


def _emptied(tree: Any) -> Any:
    """Specs turned into tensors without data."""
    if isinstance(tree, TensorSpec):
        return meta_tensor(tree)
    return tuple(map(_emptied, tree)) if type(tree) is tuple else tree


def _promised(op: Operator, found: Any, device: str) -> Any:
    if found is None:
        return None
    if isinstance(found, (TensorBase, TensorSpec)):
        return TensorSpec(tuple(found.shape), found.dtype, device)  # type: ignore[union-attr]
    if isinstance(found, (tuple, list)) and all(isinstance(one, (TensorBase, TensorSpec)) for one in found):
        return tuple(_promised(op, one, device) for one in found)
    raise UnsupportedError(
        f"the fake kernel of {op.name} (its Meta kernel) gave {describe(found)}; it gives a tensor for each result, "
        "such as td.empty_like(x), or a tuple of them"
    )


def depends_on(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], value: Value) -> bool:
    """Whether the result's spec depends on the number behind a weak Value, as the length of ``arange(n)`` does.

    Args:
        op: the operator.
        args, kwargs: its bound arguments, with Values.
        value: the weak Value.
    """

    def outcome(number: Any) -> Any:
        def fill(other: Value) -> Any:
            return number if other is value else stand_in(other)

        try:
            return infer(
                op, map_values(fill, args), {k: map_values(fill, item) for k, item in kwargs.items()}
            )
        except (TandemError, ArithmeticError) as fault:
            return type(fault)

    kind = value.weak or int
    return bool(outcome(REPRESENTATIVE[kind]) != outcome(_ANOTHER[kind]))


def specs_of(result: Any) -> tuple[TensorSpec, ...]:
    """The specs in a meta rule's result, one after the other."""
    if result is None:
        return ()
    return (result,) if isinstance(result, TensorSpec) else tuple(result)


def _no_rule(op: Operator) -> UnsupportedError:
    instead = _INSTEAD.get(op.schema.name) if op.schema.namespace == "td" else None
    advice = (
        f"use {instead}"
        if instead
        else "give a fixed result size where the operator takes one (size=), mask with td.where, call it outside of "
        f'the jitted function, or register a rule: lib = td.Library("{op.schema.namespace}", "IMPL"); lib.impl('
        f'"{op.schema.name}", shape_rule, "Meta") with shape_rule from TensorSpecs to TensorSpecs'
    )
    return UnsupportedError(
        f"{op.name} cannot be traced: the shape of its result does not follow from the shapes and dtypes of its "
        f"arguments, or no rule for it is registered; {advice}"
    )
