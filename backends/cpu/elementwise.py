"""NumPy kernels of the operators with a scalar body."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...eager.tensor import Tensor, wrap
from ...operators.declare import Declaration
from ...operators.quiet import quietly
from ...operators.rules import compute_dtype, operand_dtypes, promoted_dtype
from ...operators.scalar import instantiate, order
from ...operators.scalar_numpy import numpy_kernel
from ...registry.operator import Operator

Convert = Callable[[Any], Any]
LONG = 40  # nodes of a body that is run in parts
PART = 1 << 14  # elements


class Plan(NamedTuple):
    """How a call runs that has arguments of certain dtypes and Python types.

    Attributes:
        function: the body as a function of arrays.
        converts: for each argument, what makes an operand of it; None where all are arrays of the right dtype.
        checked: whether a Python integer has to be checked at each call, since it may not fit.
    """

    function: Callable[..., Any]
    converts: tuple[Convert, ...] | None
    checked: bool


def _payload(tensor: Tensor) -> Any:
    return tensor._array


def _inexact(kind: Callable[[Any], Any], number: Any) -> Any:
    """A Python number as a scalar of a floating-point or complex type: infinite where it does not fit."""
    return quietly(kind, float(number) if type(number) is int else number)


def _converted(dtype: np.dtype[Any], tensor: Tensor) -> Any:
    return quietly(tensor._array.astype, dtype)


def _convert(arg: Any, dtype: np.dtype[Any]) -> Convert:
    if isinstance(arg, Tensor):
        return _payload if arg._array.dtype == dtype else partial(_converted, dtype)
    return dtype.type if dtype.kind in "biu" else partial(_inexact, dtype.type)


def _in_parts(function: Callable[..., Any], out: np.dtype[Any]) -> Callable[..., Any]:
    """A function of arrays run on parts that stay in the cache: a long body walks over its operands many times."""

    def run(*arrays: Any) -> Any:
        first = arrays[0]
        if np.size(first) < 2 * PART or not all(_alike(one, first) for one in arrays):
            return function(*arrays)
        found, flat = np.empty(first.shape, out), [one.reshape(-1) for one in arrays]
        place = found.reshape(-1)
        for start in range(0, first.size, PART):
            place[start : start + PART] = function(*[one[start : start + PART] for one in flat])
        return found

    return run


def _alike(one: Any, other: Any) -> bool:
    return isinstance(one, np.ndarray) and one.shape == other.shape and one.flags.c_contiguous


def _plan(decl: Declaration, name: str, args: tuple[Any, ...]) -> Plan:
    out = decl.meta(*args).dtype  # type: ignore[misc]
    computed = compute_dtype(name, decl.result, decl.dtypes, args)
    operands = operand_dtypes(decl, computed, len(args))
    root = instantiate(decl.body, operands, out)  # type: ignore[arg-type]
    converts = tuple(_convert(arg, dtype.np) for arg, dtype in zip(args, operands))
    ready = all(convert is _payload for convert in converts)
    checked = promoted_dtype(name, args).is_integer and any(type(arg) is int for arg in args)
    function = numpy_kernel(root, len(args))
    if len(order(root)) > LONG:
        function = _in_parts(function, out.np)
    return Plan(function, None if ready else converts, checked)


def elementwise_kernel(op: Operator) -> Callable[..., Tensor]:
    """The kernel of an operator with a scalar body: one instance of the body for each combination of argument types."""
    decl: Declaration = op.decl
    plans: dict[tuple[Any, ...], Plan] = {}
    ready: dict[Any, Callable[..., Any]] = {}  # of plans that convert nothing, by the arrays' dtypes

    def general(*args: Any) -> Tensor:
        key = tuple([arg._array.dtype if isinstance(arg, Tensor) else type(arg) for arg in args])
        plan = plans.get(key)
        if plan is None:
            plan = plans[key] = _plan(decl, op.schema.name, args)
            if plan.converts is None:
                ready[key if len(key) > 1 else key[0]] = plan.function
        function, converts, checked = plan
        if checked:
            decl.meta(*args)  # type: ignore[misc]
        try:
            if converts is None:
                return wrap(function(*[arg._array for arg in args]))
            return wrap(function(*[convert(arg) for convert, arg in zip(converts, args, strict=True)]))
        except ValueError:
            decl.meta(*args)  # type: ignore[misc]  # says which shapes do not broadcast
            raise

    shortcut = {1: _unary, 2: _binary}.get(len(op.schema.arguments))
    return general if shortcut is None else shortcut(general, ready)


def _unary(general: Callable[..., Tensor], ready: dict[Any, Callable[..., Any]]) -> Callable[..., Tensor]:
    """``general`` with a shortcut for a tensor of a dtype met before."""

    def kernel(self: Any) -> Tensor:
        if isinstance(self, Tensor):
            array = self._array
            function = ready.get(array.dtype)
            if function is not None:
                return wrap(function(array))
        return general(self)

    return kernel


def _binary(general: Callable[..., Tensor], ready: dict[Any, Callable[..., Any]]) -> Callable[..., Tensor]:
    """``general`` with a shortcut for two tensors of dtypes met before."""

    def kernel(self: Any, other: Any) -> Tensor:
        if isinstance(self, Tensor) and isinstance(other, Tensor):
            one, two = self._array, other._array
            function = ready.get((one.dtype, two.dtype))
            if function is not None:
                try:
                    return wrap(function(one, two))
                except ValueError:
                    pass  # the shapes do not broadcast; the general way says so
        return general(self, other)

    return kernel
