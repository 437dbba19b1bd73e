"""The Meta key's kernel: one boxed kernel that runs the shape rule of every declared operator.

Composites decompose by their own kernels, so what arrives here has a rule, or a result whose shape follows from data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...errors import DeviceError, UnsupportedError
from ...operators.declare.declaration import LIBRARY
from ...operators.declare.shape_rules import spec_of
from ...registry.dispatch.keys import DispatchKey
from ...registry.operator import Operator
from ...registry.values import TensorBase, TensorSpec, describe
from ..tensor import inplace
from .tensor import MetaTensor, meta_tensor
from .views import may_view, view_meta

if TYPE_CHECKING:
    from ...registry.types import Args, Kwargs


def meta_kernel(op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> object:
    """Run an operator on tensors without data; the fallback of the Meta key.

    Raises:
        DeviceError: an argument is on another device, and is not a 0-d operand of an elementwise operator.
        UnsupportedError: the shape of the result follows from data, or the operator has no rule.
    """
    inner = inplace.functional.get(op)
    if inner is not None:
        return _write(op, inner, keyset, args, kwargs)
    rule = getattr(op.decl, "shape_rule", None)
    if rule is None:
        raise _no_rule(op)
    if may_view(op):
        rule(*args, **kwargs)  # checks the arguments
        x: Any = args[0]
        result = view_meta(op, x, args[1:], kwargs)
        if result is not None:
            return result
    convert = _spec_converter(op)
    specs = [convert(value) for value in args]
    return _filled(rule(*specs, **{name: convert(value) for name, value in kwargs.items()}))


def _spec_converter(op: Operator) -> Callable[[object], object]:
    """Return a function that converts an argument to its spec on ``meta``; values that are not tensors stay."""
    is_elementwise, is_indexing = op.decl.is_elementwise, op.decl.kind in ("gather", "scatter")

    def to_spec(value: object) -> object:
        if type(value) is tuple:
            return tuple(map(to_spec, value))
        if not isinstance(value, TensorBase):
            return value
        spec = spec_of(value)
        # A constant is as useful beside meta tensors as a Python number; positions are often written as a list.
        is_constant = is_elementwise and not spec.shape and not getattr(value, "requires_grad", False)
        if spec.device == "meta" or is_constant or (is_indexing and spec.dtype.is_integer):
            return spec._replace(device="meta")
        raise DeviceError(
            f"{op.schema.name}: {describe(value)} lies on {spec.device} and another argument on meta, which has no "
            f"elements; move it with .to('meta'), or make both on {spec.device}"
        )

    return to_spec


def _filled(result: object) -> object:
    if isinstance(result, TensorSpec):
        return meta_tensor(result)
    return tuple(map(_filled, result)) if isinstance(result, tuple) else result


def _write(op: Operator, inner: Operator, keyset: int, args: Args, kwargs: Kwargs) -> MetaTensor:
    """Run an in-place operator: check that the result of the functional operator fits into the target."""
    target: Any = args[0]
    if type(target) is not MetaTensor:
        raise DeviceError(
            f"{op.schema.name}: a tensor on meta has no elements to write into {describe(target)} on {target.device}"
        )
    _check_writable(op.schema.name, target)
    result = inner.dispatch(keyset, args, kwargs)
    inplace.check_fits(op.schema.name, target, result.spec)
    return target


def _check_writable(name: str, target: MetaTensor) -> None:
    if any(step == 0 and size > 1 for step, size in zip(target.strides, target.shape)):
        raise UnsupportedError(
            f"{name}: {describe(target)} is a broadcast view, several of its elements are one in memory; write into a "
            "copy: x.clone()"
        )


def _no_rule(op: Operator) -> UnsupportedError:
    return UnsupportedError(
        f"{op.name} has no shape rule, so it does not run on the device 'meta'; register one: "
        f'lib = td.Library("{op.schema.namespace}", "IMPL"); lib.impl("{op.schema.name}", rule, "Meta") with rule from '
        "meta tensors to meta tensors"
    )


LIBRARY.fallback(meta_kernel, DispatchKey.Meta)
