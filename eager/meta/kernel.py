"""The Meta key's kernel: one boxed kernel that runs the shape rule of every declared operator.

Composites decompose by their own kernels, so what arrives here has a rule, or a result whose shape follows from data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import DeviceError, UnsupportedError
from ...operators.declare.declaration import LIBRARY
from ...operators.declare.shape_rules import device_mismatch_error, spec_of
from ...registry.dispatch.keys import DispatchKey
from ...registry.operator import Operator
from ...registry.values import TensorBase, TensorSpec, describe, tensors_of
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
        spec = rule(*args, **kwargs)  # which checks the arguments
        x: Any = args[0]
        result = view_meta(op, x, spec.dtype, args[1:], kwargs)
        if result is not None:
            return result
    specs = [_to_meta_spec(op, value, args, kwargs) for value in args]
    return _filled(rule(*specs, **{k: _to_meta_spec(op, value, args, kwargs) for k, value in kwargs.items()}))


def _to_meta_spec(op: Operator, value: object, args: Args, kwargs: Kwargs) -> object:
    """Convert an argument of a call to its spec on ``meta``; a value that is not a tensor is returned unchanged.

    Raises:
        DeviceError: the tensor is on another device, and is neither a constant nor an index.
    """
    if type(value) is tuple:
        return tuple([_to_meta_spec(op, item, args, kwargs) for item in value])
    if not isinstance(value, TensorBase):
        return value
    spec = spec_of(value)
    # A constant mixes with meta tensors as a Python number does; indices are often written as a list.
    is_constant = op.decl.is_elementwise and not spec.shape and not getattr(value, "requires_grad", False)
    is_index = op.decl.kind in ("gather", "scatter") and spec.dtype.is_integer
    if spec.device == "meta" or is_constant or is_index:
        return spec._replace(device="meta")
    others = [tensor for tensor in tensors_of(op, args, kwargs) if tensor.device == "meta"]
    raise device_mismatch_error(op.schema.name, spec, *others)


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
    if any(step == 0 and size > 1 for step, size in zip(target._strides, target.shape)):
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
