"""NumPy kernels of the CPU key, made from the declarations: the portable path, and the definition of what is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...eager.storage import owner_of
from ...eager.tensor import Tensor, wrap, wrap_view
from ...errors import DeviceError
from ...operators.declare import LIBRARY, Declaration, on_declaration
from ...registry.keys import DispatchKey
from ...registry.operator import Operator
from .elementwise import elementwise_kernel
from .folds import reduction_kernel, scan_kernel


def array_kernel(op: Operator) -> Callable[..., Any]:
    """The kernel of an operator that declares an array kernel; views share their first argument's storage."""
    decl: Declaration = op.decl
    creates = decl.kind == "creation"

    def kernel(*args: Any, **kwargs: Any) -> Any:
        spec = decl.meta(*args, **kwargs)  # type: ignore[misc]  # refuses what does not fit
        if creates and spec.device != "cpu":
            raise DeviceError(
                f"{op.schema.name}: an argument lies on cpu, and the result is asked for on {spec.device}; move it "
                f"with .to({spec.device!r})"
            )
        found = decl.kernel(np, *map(_payload, args), **{k: _payload(v) for k, v in kwargs.items()})  # type: ignore[misc]
        if isinstance(found, tuple):
            return tuple(map(wrap, found))
        return _wrap_result(found, args)

    return kernel


def _wrap_result(found: Any, args: tuple[Any, ...]) -> Tensor:
    """A tensor around a kernel's result, sharing the first argument's storage if it shares its memory."""
    array = np.asarray(found)
    source = args[0] if args else None
    if isinstance(source, Tensor) and owner_of(array) is owner_of(source._array):
        return wrap_view(array, source)
    return wrap(array)


def _payload(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value._array
    return tuple(map(_payload, value)) if isinstance(value, tuple) else value


def _kernel_for(op: Operator) -> Callable[..., Any] | None:
    decl: Declaration = op.decl
    if decl.is_elementwise:
        return elementwise_kernel(op)
    if decl.reduce is not None:
        return scan_kernel(op) if decl.kind == "scan" else reduction_kernel(op)
    return array_kernel(op) if decl.kernel is not None else None


# Told when operators have been declared and have their CPU kernels: other backends serve them too.
declared_more: list[Callable[[], None]] = []


def register() -> None:
    """Have a CPU kernel registered for every declared operator that describes one, now and later."""
    on_declaration(_register)


def _register(op: Operator) -> None:
    kernel = None if op.registered(DispatchKey.CPU) else _kernel_for(op)
    if kernel is not None:
        kernel.__qualname__ = f"numpy_{op.schema.name}"
        LIBRARY.impl(op, kernel, DispatchKey.CPU)
    for listener in declared_more:
        listener()
