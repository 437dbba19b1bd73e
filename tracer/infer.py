"""Shape inference: run the shape rule of an operator on Values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..eager.meta.tensor import META_KEYS, meta_tensor
from ..errors import KernelResultError, TandemError, UnsupportedError
from ..operators.declare.shape_rules import device_mismatch_error
from ..registry.dispatch.keys import DispatchKey
from ..registry.dispatch.precedence import find_external_kernel
from ..registry.dispatch.state import current_keys, set_keys
from ..registry.operator import Operator
from ..registry.values import TensorBase, TensorSpec, describe
from .graph import Value, map_values

if TYPE_CHECKING:
    from ..registry.registration import Registration
    from ..registry.types import Args, Kwargs

# Shape rules use only the type of a weak Python scalar, so each type is represented by a value that fits every dtype.
EXAMPLES: dict[type, Any] = {bool: False, int: 0, float: 0.0, complex: 0j}

_ALTERNATIVES = {
    "nonzero": "td.where(condition, x, y) with three arguments",
    "unique_values": "td.sort, or call it outside of the jitted function",
    "masked_select": "td.where(mask, x, fill)",
}


# Other values of the same types: a rule that gives another result for them depends on the value, which a trace lacks.
_OTHER_EXAMPLES: dict[type, Any] = {bool: True, int: 3, float: 2.5, complex: 1j}


def to_example(value: Value) -> Any:
    """Convert a Value to an argument of shape rules: its spec, or a Python scalar of its type."""
    return value.spec if value.weak is None else EXAMPLES[value.weak]


def infer(op: Operator, args: Args, kwargs: Kwargs) -> Any:
    """The spec of an operator's result, or a tuple of them, as its shape rule returns it; None for no result.

    Args:
        op: the operator.
        args, kwargs: its bound arguments, with a TensorSpec for each tensor.

    Raises:
        DeviceError: its arguments are on several devices.
        UnsupportedError: the operator has no rule: its result's shape depends on data, or none is registered.
    """
    specs = _specs_in((*args, *kwargs.values()))
    there = next((spec for spec in specs if spec.device.startswith("cuda")), None)
    if there is None or op.decl is None or op.decl.kind in ("transfer", "control"):
        return _infer_by_rule(op, args, kwargs)
    move = _make_mover(op, there)
    result = _infer_by_rule(op, move(args), {name: move(value) for name, value in kwargs.items()})
    return result if op.binder.device_argument else _set_device(there.device, result)


def _make_mover(op: Operator, there: TensorSpec) -> Callable[[Any], Any]:
    """Return a function that sets the device of an argument to a CUDA device, as eager kernels do.

    Scalar constants and integer positions may be on the host; the function raises DeviceError for other arguments.
    """
    decl, name = op.decl, op.schema.name
    constants = decl.is_elementwise or name in ("basic_put", "index_put")

    def move(value: Any) -> Any:
        if type(value) is tuple:
            return tuple(map(move, value))
        if not isinstance(value, TensorSpec) or value.device == there.device:
            return value
        host = value.device == "cpu"
        index = host and decl.kind in ("gather", "scatter") and value.dtype.is_integer
        if index or (host and constants and not value.shape):
            return value._replace(device=there.device)
        raise device_mismatch_error(name, value, there)

    return move


def _set_device(device: str, result: Any) -> object:
    """Set the device of a rule's result."""
    if isinstance(result, TensorSpec):
        return result._replace(device=device)
    return result if result is None else tuple([spec._replace(device=device) for spec in result])


def _infer_by_rule(op: Operator, args: Args, kwargs: Kwargs) -> object:
    """The spec of an operator's result by its shape rule or Meta kernel, for arguments on one device."""
    rule = getattr(op.decl, "shape_rule", None)
    instead = None if rule is None else find_external_kernel(op, DispatchKey.Meta)
    if rule is not None and instead is None:
        return rule(*args, **kwargs)
    fake = instead or op.registered(DispatchKey.Meta) or _find_body(op)
    if fake is None:
        kernel = op.registered(DispatchKey.CPU)
        named = None if kernel is None else getattr(kernel.fn, "named", None)
        if named is not None:  # a scalar function knows what its result looks like
            return named(*args, **kwargs)
    if fake is None or fake.boxed:
        raise _make_no_rule_error(op)
    return _infer_by_meta_kernel(op, args, kwargs)


def _find_body(op: Operator) -> Registration | None:
    """The body of a composite, which also runs on tensors without data."""
    return op.registered("CompositeImplicit") or op.registered("CompositeExplicit")


def _infer_by_meta_kernel(op: Operator, args: Args, kwargs: Kwargs) -> object:
    """The spec of the Meta kernel's result on tensors without data, on the device of the arguments."""
    devices = [spec.device for spec in _specs_in((*args, *kwargs.values()))]
    before = current_keys()
    try:
        set_keys(0, 0)  # a rule written with operators is not part of the trace
        result = op.dispatch(
            META_KEYS, _to_meta_tensors(args), {name: _to_meta_tensors(arg) for name, arg in kwargs.items()}
        )
    except KernelResultError as fault:
        raise UnsupportedError(f"the fake kernel of {op.name} (its Meta kernel) is wrong: {fault}") from None
    finally:
        set_keys(*before)
    return _to_specs(op, result, devices[0] if devices else "cpu")


def _specs_in(args: Args) -> list[TensorSpec]:
    result = []
    for arg in args:
        if isinstance(arg, TensorSpec):
            result.append(arg)
        elif type(arg) is tuple:
            result += _specs_in(arg)
    return result


def _to_meta_tensors(tree: object) -> Any:
    """Replace specs by tensors without data."""
    if isinstance(tree, TensorSpec):
        return meta_tensor(tree)
    return tuple(map(_to_meta_tensors, tree)) if type(tree) is tuple else tree


def _to_specs(op: Operator, result: object, device: str) -> object:
    if result is None:
        return None
    if isinstance(result, (TensorBase, TensorSpec)):
        return TensorSpec(tuple(result.shape), result.dtype, device)  # type: ignore[union-attr]
    if isinstance(result, (tuple, list)) and all(isinstance(one, (TensorBase, TensorSpec)) for one in result):
        return tuple(_to_specs(op, one, device) for one in result)
    raise UnsupportedError(
        f"the fake kernel of {op.name} (its Meta kernel) gave {describe(result)}; it gives a tensor for each result, "
        "such as td.empty_like(x), or a tuple of them"
    )


def depends_on(op: Operator, args: Args, kwargs: Kwargs, value: Value) -> bool:
    """Whether the result's spec depends on the number behind a weak Value, as the length of ``arange(n)`` does.

    Args:
        op: the operator.
        args, kwargs: its bound arguments, with Values.
        value: the weak Value.
    """

    def outcome(number: object) -> Any:
        def fill(other: Value) -> Any:
            return number if other is value else to_example(other)

        try:
            return infer(
                op, map_values(fill, args), {k: map_values(fill, item) for k, item in kwargs.items()}
            )
        except (TandemError, ArithmeticError) as fault:
            return type(fault)

    kind = value.weak or int
    return bool(outcome(EXAMPLES[kind]) != outcome(_OTHER_EXAMPLES[kind]))


def specs_of(result: Any) -> tuple[TensorSpec, ...]:
    """The result of a shape rule as a tuple of specs."""
    if result is None:
        return ()
    return (result,) if isinstance(result, TensorSpec) else tuple(result)


def _make_no_rule_error(op: Operator) -> UnsupportedError:
    instead = _ALTERNATIVES.get(op.schema.name) if op.schema.namespace == "td" else None
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
