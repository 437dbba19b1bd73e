"""NumPy kernels of the operators with a scalar body."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from .... import config, lazy
from ....eager.tensor.tensor import Tensor, wrap
from ....named_tuple import NamedTuple
from ....operators.declare.declaration import Declaration
from ....operators.declare.quiet import call_quietly
from ....operators.declare.shape_rules import compute_dtype, operand_dtypes, promoted_dtype
from ....operators.scalar_ir.expr import Expr, apply, arg, const, uniform_power
from ....operators.scalar_ir.nodes import instantiate, is_exact, order
from ....operators.scalar_ir.numpy_evaluation import numpy_kernel, ufunc_of
from ....registry.dtypes import DType, default_stamp, float32
from ....registry.operator import Operator

_emitted = lazy.Module(".backends.cpu.kernels.node_functions")
Converter = Callable[[Any], Any]
LONG_BODY = 40  # nodes of a body that is run in chunks
CHUNK_ELEMENTS = 1 << 14  # elements
SCAN_PASSES = 4  # that the time of a scan of NumPy is worth


class BodyInstance(NamedTuple):
    """A scalar body instantiated for arguments of certain dtypes and Python types.

    Attributes:
        function: the body as a function of arrays.
        converters: for each argument, the function that makes it an operand; None if no argument is converted.
        checks_range: whether a Python integer must be checked at each call, since it may not fit.
    """

    function: Callable[..., Any]
    converters: tuple[Converter, ...] | None
    checks_range: bool


def _payload(tensor: Tensor) -> Any:
    return tensor._array


def _to_inexact(kind: Callable[[Any], Any], number: Any) -> Any:
    """Convert a Python number to a floating-point or complex scalar; one that does not fit becomes infinite."""
    return call_quietly(kind, float(number) if type(number) is int else number)


def _cast_array(dtype: np.dtype[Any], tensor: Tensor) -> Any:
    return call_quietly(tensor._array.astype, dtype)


def _find_converter(arg: Any, dtype: np.dtype[Any]) -> Converter:
    """Return the function that turns an argument into an operand of a dtype."""
    if isinstance(arg, Tensor):
        return _payload if arg._array.dtype == dtype else partial(_cast_array, dtype)
    return dtype.type if dtype.kind in "biu" else partial(_to_inexact, dtype.type)


def _run_in_chunks(function: Callable[..., Any], out: np.dtype[Any]) -> Callable[..., Any]:
    """Return ``function`` applied to chunks that fit the cache: a long body reads its operands many times."""

    def run(*arrays: Any) -> Any:
        first = arrays[0]
        if np.size(first) < 2 * CHUNK_ELEMENTS or not all(_has_same_layout(one, first) for one in arrays):
            return function(*arrays)
        result, flat = np.empty(first.shape, out), [one.reshape(-1) for one in arrays]
        index = result.reshape(-1)
        for start in range(0, first.size, CHUNK_ELEMENTS):
            index[start : start + CHUNK_ELEMENTS] = function(
                *[one[start : start + CHUNK_ELEMENTS] for one in flat]
            )
        return result

    return run


def _has_same_layout(one: Any, other: Any) -> bool:
    """Return whether two arrays have one shape and the first is contiguous."""
    return isinstance(one, np.ndarray) and one.shape == other.shape and one.flags.c_contiguous


def find_function(node: Expr) -> Callable[..., Any]:
    """Return the function of arrays for a node: the emitted loop if NumPy's last bits may differ from it."""
    if is_exact(node) or not config.flags.native:
        return ufunc_of(node)
    if node.op == "uniform_pow" and node.dtype.kind == "c":
        return partial(_raise_to_one_power, node.dtype)
    return _emitted.find_ufunc(node) or ufunc_of(node)


def _raise_to_one_power(dtype: DType, x: Any, exponent: Any) -> Any:
    """Return powers of complex numbers with one exponent, computed by the nodes that emitted code has."""
    return _find_power_kernel(dtype, float(np.real(np.ravel(exponent)[0])))(x)


@lru_cache(maxsize=64)
def _find_power_kernel(dtype: DType, exponent: float) -> Callable[..., Any]:
    """Return the kernel of the powers with one real exponent."""
    root = uniform_power(arg(0, dtype), const(exponent, dtype))
    root = apply("pow", *root.args) if root.op == "uniform_pow" else root
    return numpy_kernel(root, 1, find_function)


def _ends_in_number(args: tuple[Any, ...]) -> bool:
    return len(args) == 2 and not isinstance(args[1], (Tensor, complex))


def _instantiate_body(decl: Declaration, name: str, args: tuple[Any, ...]) -> BodyInstance:
    """Return the instance of a body for the types of ``args``."""
    out = decl.shape_rule(*args).dtype  # type: ignore[misc]
    computed = compute_dtype(name, decl.result, decl.dtypes, args)
    operands = operand_dtypes(decl, computed, len(args))
    root = instantiate(decl.body_with(_ends_in_number(args)), operands, out)
    converts = tuple(_find_converter(arg, dtype.np) for arg, dtype in zip(args, operands))
    ready = all(convert is _payload for convert in converts)
    checked = promoted_dtype(name, args).is_integer and any(type(arg) is int for arg in args)
    function = numpy_kernel(root, len(args), find_function)
    if len(order(root)) > LONG_BODY:
        function = _run_in_chunks(function, out.np)
    return BodyInstance(function, None if ready else converts, checked)


def count_passes(op: Operator) -> int:
    """Return how many passes over the elements the time of an operator's NumPy kernel is worth; at least 1.

    An elementwise operator has one for each ufunc that it calls, for floats or else its first dtype. NumPy's scans
    wait for each result in memory.
    """
    decl: Declaration = op.decl
    if decl.kind == "scan":
        return SCAN_PASSES
    if not decl.is_elementwise:
        return 1
    dtype = float32 if float32 in decl.dtypes else decl.dtypes[0]
    root = instantiate(decl.body_with(False), [dtype] * len(op.schema.arguments))
    return max(1, sum(bool(node.args) for node in order(root)))


def elementwise_kernel(op: Operator) -> Callable[..., Tensor]:
    """Return the kernel of an operator with a scalar body: one instance per combination of argument types.

    Native twin: backends/cpu/fastpath/entries/rt_elementwise.py:elementwise
    """
    decl: Declaration = op.decl
    instances: dict[tuple[Any, ...], BodyInstance] = {}
    ready: dict[Any, Callable[..., Any]] = {}  # instances without conversions, by the arrays' dtypes

    def general(*args: Any) -> Tensor:
        key = tuple([arg._array.dtype if isinstance(arg, Tensor) else type(arg) for arg in args])
        stamp = default_stamp()
        instance = instances.get((stamp[1], key))
        if instance is None:
            instance = _instantiate_body(decl, op.schema.name, args)
            if stamp == default_stamp():
                instances[stamp[1], key] = instance
            if instance.converters is None:
                ready[key if len(key) > 1 else key[0]] = instance.function
        function, converts, checked = instance
        if checked:
            decl.shape_rule(*args)  # type: ignore[misc]
        try:
            if converts is None:
                return wrap(function(*[arg._array for arg in args]))
            return wrap(function(*[convert(arg) for convert, arg in zip(converts, args, strict=True)]))
        except ValueError:
            decl.shape_rule(*args)  # type: ignore[misc]  # says which shapes do not broadcast
            raise

    shortcut = {1: _add_unary_shortcut, 2: _add_binary_shortcut}.get(len(op.schema.arguments))
    return general if shortcut is None else shortcut(general, ready)


def _add_unary_shortcut(
    general: Callable[..., Tensor], ready: dict[Any, Callable[..., Any]]
) -> Callable[..., Tensor]:
    """Return ``general`` with a shortcut for a tensor of a known dtype."""

    def kernel(self: Any) -> Tensor:
        if isinstance(self, Tensor):
            array = self._array
            function = ready.get(array.dtype)
            if function is not None:
                return wrap(function(array))
        return general(self)

    return kernel


def _add_binary_shortcut(
    general: Callable[..., Tensor], ready: dict[Any, Callable[..., Any]]
) -> Callable[..., Tensor]:
    """Return ``general`` with a shortcut for two tensors of known dtypes."""

    def kernel(self: Any, other: Any) -> Tensor:
        if isinstance(self, Tensor) and isinstance(other, Tensor):
            one, two = self._array, other._array
            function = ready.get((one.dtype, two.dtype))
            if function is not None:
                try:
                    return wrap(function(one, two))
                except ValueError:
                    pass  # the shapes do not broadcast; `general` raises the error
        return general(self, other)

    return kernel
