"""Register the NumPy kernels of the CPU key, made from the declarations; they define the reference semantics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .... import lazy
from ....eager.tensor.storage import owner_of
from ....eager.tensor.tensor import Tensor, wrap, wrap_view
from ....errors import DeviceError
from ....operators.declare.declaration import LIBRARY, Declaration, on_declaration
from ....registry.dispatch.keys import DispatchKey
from ....registry.operator import Operator
from .elementwise import elementwise_kernel
from .folds import reduction_kernel, scan_kernel
from .matmul import product_kernel

_eager_loops = lazy.Module(".backends.cpu.native_kernels.eager")
_views = lazy.Module(".backends.cpu.kernels.views")


def array_kernel(op: Operator) -> Callable[..., Any]:
    """Return the kernel of an operator that declares an array kernel; views share their first argument's storage."""
    decl: Declaration = op.decl
    is_creation = decl.kind == "creation"
    native = None if decl.native is None or decl.native.is_exact else decl.native
    uses_loops = native is not None and native.may_be_emitted
    wrap_result = _wrap_view if op.is_view else _wrap_array

    def kernel(*args: Any, **kwargs: Any) -> Any:
        if uses_loops:
            args, kwargs = tuple(map(_snapshot, args)), {k: _snapshot(v) for k, v in kwargs.items()}
        out_spec = decl.shape_rule(*args, **kwargs)  # type: ignore[misc]  # raises on invalid arguments
        if is_creation and out_spec.device != "cpu":
            raise DeviceError(
                f"{op.schema.name}: an argument is on cpu, but the result is requested on {out_spec.device}; move it "
                f"with .to({out_spec.device!r})"
            )
        if uses_loops:
            fast = _eager_loops.call(op, args, kwargs, out_spec)
            if fast is not None:
                return fast
        result = decl.kernel(np, *map(_to_array, args), **{k: _to_array(v) for k, v in kwargs.items()})  # type: ignore[misc]
        if isinstance(result, tuple):
            return tuple([wrap_result(part, args) for part in result])
        return wrap_result(result, args)

    return kernel


def _snapshot(value: Any) -> Any:
    """Return a tensor with a view of another one's memory; anything else is returned unchanged.

    A loop relies on the sizes that it was chosen for, and another thread may give a tensor other memory, or its array
    another shape, at any time.
    """
    if not isinstance(value, Tensor):
        return value
    result = value._copy_object()
    result._array = result._array.view()
    return result


def _wrap_array(result: Any, args: tuple[Any, ...]) -> Tensor:
    """Wrap a kernel's result in a tensor; a result that shares memory with an argument is copied."""
    array = np.asarray(result)
    owner = owner_of(array)
    for value in args:
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, Tensor) and owner_of(item._array) is owner:
                return wrap(array.copy())
    return wrap(array)


def _wrap_view(result: Any, args: tuple[Any, ...]) -> Tensor:
    """Wrap a kernel's result in a tensor that shares the first argument's storage if it shares its memory."""
    array = np.asarray(result)
    base = args[0] if args else None
    if isinstance(base, Tensor) and owner_of(array) is owner_of(base._array):
        return wrap_view(array, base)
    return wrap(array)


def _to_array(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value._array
    return tuple(map(_to_array, value)) if isinstance(value, tuple) else value


def _make_kernel(op: Operator) -> Callable[..., Any] | None:
    """Return the CPU kernel that a declaration describes, or None."""
    decl: Declaration = op.decl
    if decl.is_elementwise:
        return elementwise_kernel(op)
    if decl.fold is not None:
        return scan_kernel(op) if decl.kind == "scan" else reduction_kernel(op)
    if op.schema.name == "matmul":
        return product_kernel(op)
    if decl.kernel is not None:
        return array_kernel(op)
    kernel: Callable[..., Any] | None = _views.rule_kernel(op) if decl.view is not None else None
    return kernel


# Called after operators have been declared and have CPU kernels, so that other backends can add theirs.
registration_listeners: list[Callable[[], None]] = []


def register() -> None:
    """Register a CPU kernel for every declared operator that describes one, now and later."""
    on_declaration(_register)


def _register(op: Operator) -> None:
    kernel = None if op.registered(DispatchKey.CPU) else _make_kernel(op)
    if kernel is not None:
        kernel.__qualname__ = f"numpy_{op.schema.name}"
        LIBRARY.impl(op, kernel, DispatchKey.CPU)
    for listener in registration_listeners:
        listener()
