"""How functions that SciPy computes are declared: element by element, in float64, rounded once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .. import lazy
from ..operators import batching
from ..operators.declare import Bad, Draw, Sample
from ..operators.derivatives import Partials
from ..operators.documents import documented, elementwise_doc
from ..operators.kinds import elementwise_meta, library
from ..operators.quiet import quietly
from ..operators.rules import compute_dtype, spec_of
from ..operators.samples import elementwise_errors
from ..registry.dtypes import REAL, DType, as_dtype, bool_
from ..registry.schema_parser import parse_schema
from ..registry.values import TensorSpec

TAKEN = (bool_, *REAL)
Span = tuple[float, float]


def in_double(name: str) -> Callable[..., Any]:
    """SciPy's function of float64 arrays: the reference."""

    def reference(*args: Any) -> Any:
        wide = [np.asarray(arg).astype(np.float64) if isinstance(arg, np.ndarray) else arg for arg in args]
        return getattr(lazy.scipy_special(), name)(*wide)

    return reference


def from_scipy(name: str, own: str) -> Callable[..., Any]:
    """The array kernel that computes SciPy's ``name`` in float64."""

    def kernel(xp: Any, *args: Any) -> Any:
        arrays = [arg if type(arg) in (int, float) else xp.asarray(arg) for arg in args]
        specs = [arg if type(arg) in (int, float) else TensorSpec((), as_dtype(arg.dtype)) for arg in arrays]
        wide = [
            xp.full((), arg, xp.float64) if type(arg) in (int, float) else arg.astype(xp.float64)
            for arg in arrays
        ]
        found = quietly(getattr(lazy.special_functions(xp), name), *wide)
        return xp.asarray(found).astype(compute_dtype(own, "float", TAKEN, specs).np)

    return kernel


def samples_in(*spans: Span) -> Callable[[DType], Iterable[Sample]]:
    """0-d, empty and small tensors with values in an interval for each argument."""

    def samples(dtype: DType) -> Iterable[Sample]:
        for shape in ((), (0,), (5,), (3, 4)):
            yield Sample(tuple(Draw(shape, *span) for span in spans))
        for layout in ("transposed", "reversed", "strided"):
            yield Sample(tuple(Draw((3, 4), *span, layout=layout) for span in spans))
        if len(spans) > 1:
            shapes = ((3, 1), (4,), ())
            yield Sample(tuple(Draw(shape, *span) for shape, span in zip(shapes, spans)))

    return samples


def special(
    name: str,
    doc: str,
    example: str,
    *spans: Span,
    arguments: tuple[str, ...] = ("self",),
    derivative: dict[str, Any],
    samples: Callable[[DType], Iterable[Sample]] | None = None,
    errors: Callable[[], Iterable[Bad]] | None = None,
) -> Any:
    """Declare a function of SciPy.

    Args:
        name: its name there, and here with ``special_`` in front.
        doc: one sentence.
        example: ``"call -> result"``, a doctest.
        spans: for each argument the interval that the tests draw from.
        arguments: their names.
        derivative: the partial derivatives by argument name; what is missing has none.
        samples, errors: other ones than the usual.

    Returns:
        The operator's function.
    """
    own = f"special_{name}"
    schema = f"{own}({', '.join(f'Tensor {argument}' for argument in arguments)}) -> Tensor"
    return library(
        "special",
        schema,
        elementwise_meta(own, "float", TAKEN),
        from_scipy(name, own),
        doc=documented(doc, elementwise_doc(parse_schema(schema), TAKEN, "float"), example),
        reference=in_double(name),
        dtypes=TAKEN,
        derivative=Partials(derivative),
        batching=batching.elementwise,
        samples=samples or samples_in(*spans),
        errors=errors or (lambda: elementwise_errors(len(arguments), TAKEN)),
        method=False,
    )


def float_spec(name: str, x: Any) -> TensorSpec:
    """The shape of a tensor in the float dtype that a function of it has."""
    spec = spec_of(x)
    return TensorSpec(spec.shape, compute_dtype(name, "float", TAKEN, (spec,)), spec.device)
