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
from ....registry.dispatch.keys import CPU_KEYS, DispatchKey
from ....registry.dispatch.state import state
from ....registry.operator import Operator
from ....registry.values import TensorBase
from .elementwise import elementwise_kernel
from .folds import reduction_kernel, scan_kernel
from .matmul import product_kernel

_modes = lazy.Module(".eager.layers.dispatch_mode")
_eager_loops = lazy.Module(".backends.cpu.native_kernels.eager")
_views = lazy.Module(".backends.cpu.kernels.views")
_WRONG_CALL = (IndexError, TypeError, ValueError)


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


def make_eager_kernel(op: Operator, usual: Callable[..., Any]) -> Callable[..., Any]:
    """Return the CPU kernel of an operator that declares an ``eager_kernel``.

    Native twin: backends/cpu/fastpath/entries/rt_kernels.py:array_kernel_call

    Without it, the body of a composite runs operator by operator until its calls are compiled, which they never are if
    the size of the result depends on data.

    Args:
        op: the operator.
        usual: runs the calls that the declared kernel does not compute, and those while a layer or a mode is active,
            which may intercept the operators of a body.
    """
    compute: Callable[..., Any] = op.decl.eager_kernel
    needs_tensor = op.schema.arguments[0].type.core == "Tensor"  # other arguments may be numbers in its place

    def kernel(*args: Any, **kwargs: Any) -> Any:
        if state.include or _modes.watching() or (needs_tensor and type(args[0]) is not Tensor):
            return usual(*args, **kwargs)
        arrays = []
        for value in args:
            if type(value) is Tensor and value._keys == CPU_KEYS:
                arrays.append(value._array)
            elif isinstance(value, TensorBase):
                return usual(*args, **kwargs)
            else:
                arrays.append(value)
        try:
            result = compute(np, *arrays, **kwargs)
        except _WRONG_CALL:  # the usual kernel raises the error that names the argument
            return usual(*args, **kwargs)
        if result is NotImplemented:
            return usual(*args, **kwargs)
        return tuple(map(wrap, result)) if type(result) is tuple else wrap(result)

    kernel.is_eager_kernel = True  # type: ignore[attr-defined]
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
    if op.decl.eager_kernel is not None:
        body = op.registered("CompositeImplicit")
        if body is not None:
            body.cpu_kernel = make_eager_kernel(op, body.fn)
            op.recompute()
        elif kernel is not None:
            kernel = make_eager_kernel(op, kernel)
    if kernel is not None:
        kernel.__qualname__ = f"numpy_{op.schema.name}"
        LIBRARY.impl(op, kernel, DispatchKey.CPU)
    for listener in registration_listeners:
        listener()
