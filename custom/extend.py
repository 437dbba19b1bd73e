"""Register kernels, fakes, derivatives and autocast rules for any operator, built-in or custom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ..eager.autograd.namespace import fallback
from ..eager.layers.vmap.rules import operator_of
from ..errors import UnsupportedError
from ..operators.declare.declaration import Declaration
from ..operators.declare.derivatives import Custom
from ..registry.dispatch.keys import AUTOGRAD, DispatchKey, keys_of
from ..registry.function import functions
from ..registry.library import Handle, Library
from ..registry.operator import Operator, lock
from .casting import autocast_kernel, autocast_key
from .op import CustomOp, check_function, keys_of_devices, make_declaration, remove_all, wrap_fake

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..operators.declare.derivatives import Derivative
    from ..registry.dtypes import DType
    from ..registry.types import Args, DTypeLike, Function, Kwargs
    from .kernels import KernelLike

F = TypeVar("F", bound=Callable[..., object])
K = TypeVar("K", bound="KernelLike")
_libraries: dict[str, Library] = {}
_derivatives: dict[Operator, list[Declaration | None]] = {}  # declarations; the last one is active


def _get_custom_op(op: Operator) -> CustomOp | None:
    function = functions.get(op.name)
    return function if isinstance(function, CustomOp) else None


def _get_library(op: Operator) -> Library:
    namespace = op.schema.namespace
    with lock:
        result = _libraries.get(namespace)
        if result is None:
            result = _libraries[namespace] = Library(namespace, "IMPL")
            result.is_trusted = False  # its kernels are the user's
        return result


def register_kernel(
    op: Function | str,
    device_types: str | Iterable[str] | None,
    fn: K | None,
    dtypes: Sequence[DType | str] | None,
) -> Handle | Callable[[K], K]:
    """See :func:`tandem.register_kernel`."""
    operator = operator_of(op)
    if fn is None:
        return lambda function: (register_kernel(op, device_types, function, dtypes), function)[1]
    custom = _get_custom_op(operator)
    if custom is not None:
        return custom.register_kernel(device_types, fn, dtypes=dtypes)
    keys, library = keys_of_devices(device_types), _get_library(operator)
    kernel: Any = fn  # a function, or a kernel that impl binds to the operator
    handles = [library.impl(operator, kernel, key, dtypes=dtypes, allow_override=True) for key in keys]
    return handles[0] if len(handles) == 1 else Handle(partial(remove_all, handles))


def register_fake(op: Function | str, fn: F | None) -> Handle | Callable[[F], F]:
    """See :func:`tandem.register_fake`."""
    operator = operator_of(op)
    if fn is None:
        return lambda function: (register_fake(op, function), function)[1]
    custom = _get_custom_op(operator)
    if custom is not None:
        return custom.register_fake(fn)
    kernel = wrap_fake(operator, check_function(fn))
    handle: Handle = _get_library(operator).impl(operator, kernel, DispatchKey.Meta, allow_override=True)
    return handle


def register_autocast(op: Function | str, device_type: str, dtype: DTypeLike) -> Handle:
    """See :func:`tandem.register_autocast`."""
    operator = operator_of(op)
    kernel = autocast_kernel(device_type, dtype)
    return _get_library(operator).impl_layer(operator, kernel, autocast_key(device_type))


def register_autograd(
    op: Function | str, backward: F | None, setup_context: Function | None
) -> Handle | Callable[[F], F]:
    """See :func:`tandem.register_autograd`."""
    operator = operator_of(op)
    if backward is None:
        return lambda function: (register_autograd(op, function, setup_context), function)[1]
    custom = _get_custom_op(operator)
    if custom is not None:
        return custom.register_autograd(backward, setup_context)
    if operator.schema.is_mutable:
        raise UnsupportedError(
            f"{operator.name} writes into its arguments, and a derivative is registered for operators that write "
            f"nothing: {operator.schema}"
        )
    check_function(backward)
    if setup_context is not None:
        check_function(setup_context)
    return _install_derivative(operator, Custom(backward, setup_context))


def _install_derivative(operator: Operator, derivative: Derivative) -> Handle:
    """Install a derivative, and autograd kernels that use it instead of native entries."""
    decl = operator.decl
    if not isinstance(decl, Declaration):
        decl = make_declaration(str(operator.schema), operator.name, "", frozenset())
    changed = decl._replace(derivative=derivative)
    with lock:
        _derivatives.setdefault(operator, [operator.decl]).append(changed)
        operator.decl = changed
    library = _get_library(operator)
    handles = [library.impl_layer(operator, _make_autograd_kernel(), key) for key in keys_of(AUTOGRAD)]
    return Handle(partial(_remove_derivative, operator, changed, handles))


def _make_autograd_kernel() -> Function:
    """Make an autograd kernel that uses the operator's declaration."""

    def record(op: Operator, bits: int, args: Args, kwargs: Kwargs) -> object:
        return fallback(op, bits, args, kwargs)

    return record


def _remove_derivative(operator: Operator, declaration: Declaration, handles: list[Handle]) -> None:
    with lock:
        stack = [one for one in _derivatives.get(operator, []) if one is not declaration]
        _derivatives[operator] = stack
        if stack:
            operator.decl = stack[-1]
        if len(stack) < 2:
            _derivatives.pop(operator, None)
        operator.recompute()
    remove_all(handles)
