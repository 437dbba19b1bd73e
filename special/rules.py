"""Declare elementwise operators that SciPy computes, in float64 with one rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import lazy
from ..operators.declare import batching
from ..operators.declare.derivatives import Partials
from ..operators.declare.docstrings import elementwise_doc, make_docstring
from ..operators.declare.kinds import array_op, elementwise_shape_rule
from ..operators.declare.native_kernel import NativeKernel, NativeLoop
from ..operators.declare.quiet import call_quietly
from ..operators.declare.shape_rules import compute_dtype, spec_of
from ..registry.dtypes import REAL, as_dtype, bool_, float64
from ..registry.schemas.parser import parse_schema
from ..registry.values import TensorSpec

if TYPE_CHECKING:
    from ..operators.declare.declaration import Errors, Samples
    from ..registry.function import OperatorFunction
    from ..registry.types import Array, ArrayModule, Function, Number, Tensor

scipy_special = lazy.Module("scipy.special")

DTYPES = (bool_, *REAL)
_WIDEN = dict.fromkeys(DTYPES, float64)
Span = tuple[float, float]


def scipy_reference(name: str) -> Callable[..., Array]:
    """SciPy's function of float64 arrays: the reference."""

    def reference(*args: Array | Number) -> Array:
        wide = [np.asarray(arg).astype(np.float64) if isinstance(arg, np.ndarray) else arg for arg in args]
        result: Array = getattr(scipy_special, name)(*wide)
        return result

    return reference


def scipy_kernel(name: str, own: str) -> Callable[..., Array]:
    """The array kernel that computes SciPy's ``name`` in float64."""

    def kernel(xp: ArrayModule, *args: Array | Number) -> Array:
        arrays: list[Any] = [arg if type(arg) in (int, float) else xp.asarray(arg) for arg in args]
        specs = [arg if type(arg) in (int, float) else TensorSpec((), as_dtype(arg.dtype)) for arg in arrays]
        wide = [
            xp.full((), arg, xp.float64) if type(arg) in (int, float) else arg.astype(xp.float64)
            for arg in arrays
        ]
        functions = getattr(xp, "special", None) or scipy_special  # a device's library may bring its own
        result = call_quietly(getattr(functions, name), *wide)
        return xp.asarray(result).astype(compute_dtype(own, "float", DTYPES, specs).np)

    return kernel


def scipy_op(
    name: str,
    doc: str,
    example: str,
    *spans: Span,
    arguments: tuple[str, ...] = ("self",),
    derivative: dict[str, Function | int],
    samples: Samples | None = None,
    errors: Errors | None = None,
    loop: NativeLoop | None = None,
) -> OperatorFunction[Tensor]:
    """Declare an operator that is a function of ``scipy.special``.

    Args:
        name: its name in SciPy; the operator's name has the prefix ``special_``.
        doc: one sentence.
        example: ``"call -> result"``, a doctest.
        spans: for each argument the interval of the tests' random values.
        arguments: their names.
        derivative: the partial derivatives by argument name; a missing argument has none.
        samples, errors: replacements of the default ones.
        loop: its inner loop, where SciPy's function is not a ufunc.

    Returns:
        The operator's function.
    """
    own = f"special_{name}"
    schema = f"{own}({', '.join(f'Tensor {argument}' for argument in arguments)}) -> Tensor"
    return array_op(
        "special",
        schema,
        elementwise_shape_rule(own, "float", DTYPES),
        scipy_kernel(name, own),
        doc=make_docstring(doc, elementwise_doc(parse_schema(schema), DTYPES, "float"), example),
        reference=scipy_reference(name),
        dtypes=DTYPES,
        derivative=Partials(derivative),
        batching=batching.elementwise,
        native=NativeKernel((loop or NativeLoop("scipy.special", name),), widen=_WIDEN),
        samples=samples or ("samples.special.interval_samples", *spans),
        errors=errors or ("samples.kinds.elementwise_errors", len(arguments), DTYPES),
        method=False,
    )


def float_spec(name: str, x: TensorSpec) -> TensorSpec:
    """The spec of a float function of a tensor: its shape, and its float dtype."""
    spec = spec_of(x)
    return TensorSpec(spec.shape, compute_dtype(name, "float", DTYPES, (spec,)), spec.device)
