"""identity, logspace, geomspace, tri, vander, and the indices of grids, triangles and diagonals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ...errors import ShapeError, ValueArgumentError
from ...registry.dtypes import ALL, DEFAULT_INT, FLOATS, INTEGERS, NUMERIC, DType, default_float, float64
from ...registry.values import converters
from ..declare.declaration import ErrorInput, SampleInput, TensorSample
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.shape_rules import check_shape, spec_of
from ..elementwise.arithmetic import pow
from ..elementwise.casting import cast
from ..elementwise.comparison import ge
from ..shape.joining import concat, stack
from ..shape.views import broadcast_to, reshape
from .creation import arange, eye, full, linspace

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...registry.types import Array, ArrayModule, Shape, Tensor

_OPTIONS = """
    dtype: its dtype; None: {dtype}.
    device: its device; None: the CPU."""


def _doc(summary: str, args: str, returns: str, example: str, dtype: str = "", raises: str = "") -> str:
    options = _OPTIONS.format(dtype=dtype) if dtype else ""
    errors = f"\n\nRaises:\n    {raises}" if raises else ""
    return make_docstring(summary, f"Args:\n    {args}{options}\n\nReturns:\n    {returns}{errors}", example)


@composite(
    "identity(SymInt n, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
    doc=_doc(
        "A square matrix with ones on the main diagonal.",
        "n: the number of rows and columns.",
        "A tensor of shape ``(n, n)``.",
        "td.identity(2) -> [[1.0, 0.0], [0.0, 1.0]]",
        "float32",
    ),
    reference="numpy.identity",
    samples=lambda dtype: [SampleInput((n,), {"dtype": dtype}) for n in (0, 1, 3)],
    errors=lambda: [ErrorInput((-1,), ValueError, "negative")],
    dtypes=ALL,
    method=False,
)
def identity(n: int, *, dtype: DType | None, device: str | None) -> Tensor:
    return eye(n, dtype=dtype, device=device)


@composite(
    "tri(SymInt n_rows, SymInt? n_cols=None, int k=0, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
    doc=_doc(
        "A matrix with ones on and below a diagonal, and zeros above it.",
        "n_rows: the number of rows.\n    n_cols: the number of columns; None: ``n_rows``.\n"
        "    k: the offset of the diagonal; positive: above the main one.",
        "A tensor of shape ``(n_rows, n_cols)``.",
        "td.tri(2, 3) -> [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]",
        "float32",
    ),
    reference="references.numpy_functions.tri",
    samples=lambda dtype: [
        SampleInput(args, {"dtype": dtype}) for args in ((3,), (2, 4), (4, 2, 1), (3, 3, -1), (0, 2))
    ],
    errors=lambda: [ErrorInput((-1,), ValueError, "negative")],
    dtypes=ALL,
    method=False,
    spellings={"N": "n_rows", "M": "n_cols"},
)
def tri(n_rows: int, n_cols: int | None, k: int, *, dtype: DType | None, device: str | None) -> Tensor:
    rows, columns = check_shape("tri", (n_rows, n_rows if n_cols is None else n_cols))
    row = reshape(arange(rows, device=device), (rows, 1))
    return cast(ge(row + k, arange(columns, device=device)), dtype or default_float())


_SPACE_SAMPLES = ((50,), (4,), (1,), (0,))


@composite(
    "logspace(float start, float stop, int num=50, *, bool endpoint=True, float base=10.0, ScalarType? dtype=None, "
    "Device? device=None) -> Tensor",
    doc=_doc(
        "Numbers whose logarithms are evenly spaced, from base**start to base**stop.",
        "start: the first exponent.\n    stop: the last exponent.\n    num: the number of values.\n"
        "    endpoint: whether ``base**stop`` is one of the values.\n    base: the base.",
        "A 1-d tensor, computed in float64 and rounded once.",
        "td.logspace(0, 2, 3) -> [1.0, 10.0, 100.0]",
        "float32",
        "ShapeError: ``num`` is negative.",
    ),
    reference="references.numpy_functions.logspace",
    samples=lambda dtype: [
        *(SampleInput((-1.0, 2.0, n), {"dtype": dtype}) for n in (0, 1, 4, 50)),
        SampleInput((0, 4, 5), {"dtype": dtype, "base": 2.0, "endpoint": False}),
    ],
    errors=lambda: [ErrorInput((0, 1, -1), ValueError, "negative")],
    dtypes=FLOATS,
    method=False,
)
def logspace(
    start: float,
    stop: float,
    num: int,
    *,
    endpoint: bool,
    base: float,
    dtype: DType | None,
    device: str | None,
) -> Tensor:
    exponents = linspace(start, stop, num, endpoint=endpoint, dtype=float64, device=device)
    return cast(pow(base, exponents), dtype or default_float())


@composite(
    "geomspace(float start, float stop, int num=50, *, bool endpoint=True, ScalarType? dtype=None, "
    "Device? device=None) -> Tensor",
    doc=_doc(
        "A geometric progression of numbers from start to stop.",
        "start: the first value.\n    stop: the last value, of the same sign.\n    num: the number of values.\n"
        "    endpoint: whether ``stop`` is one of the values.",
        "A 1-d tensor, computed in float64 and rounded once.",
        "td.geomspace(1, 8, 4) -> [1.0, 2.0, 4.0, 8.0]",
        "float32",
        "ValueArgumentError: a bound is 0, or the signs differ.\n    ShapeError: ``num`` is negative.",
    ),
    reference="references.numpy_functions.geomspace",
    samples=lambda dtype: [
        *(SampleInput((0.5, 32.0, n), {"dtype": dtype}) for n in (0, 1, 4, 50)),
        SampleInput((-2.0, -9.0, 5), {"dtype": dtype, "endpoint": False}),
    ],
    errors=lambda: [
        ErrorInput((0, 1), ValueError, "sign"),
        ErrorInput((-1, 1), ValueError, "sign"),
        ErrorInput((1, 2, -1), ValueError, "negative"),
    ],
    dtypes=FLOATS,
    method=False,
)
def geomspace(
    start: float, stop: float, num: int, *, endpoint: bool, dtype: DType | None, device: str | None
) -> Tensor:
    if not start * stop > 0:
        raise ValueArgumentError(f"geomspace: the bounds need one sign and not be 0: {start} and {stop}")
    exponents = linspace(0.0, math.log2(stop / start), num, endpoint=endpoint, dtype=float64, device=device)
    return cast(start * pow(2.0, exponents), dtype or default_float())


@composite(
    "vander(Tensor self, int? n=None, bool increasing=False) -> Tensor",
    doc=_doc(
        "The matrix of the powers of the elements of a vector: a row for each element.",
        "self: a tensor of one axis.\n    n: the number of columns; None: the number of elements.\n"
        "    increasing: whether powers increase from left to right.",
        "A tensor of two axes.",
        "td.vander(td.asarray([2, 3]), 3) -> [[4, 2, 1], [9, 3, 1]]",
        raises="ShapeError: the tensor does not have one axis, or ``n`` is negative.",
    ),
    reference="references.numpy_functions.vander",
    samples=lambda dtype: [
        SampleInput((TensorSample((4,)),)),
        SampleInput((TensorSample((3,)), 2, True)),
        SampleInput((TensorSample((3,)), 0)),
    ],
    errors=lambda: [ErrorInput((TensorSample((2, 2)),), ValueError, "axis")],
    dtypes=NUMERIC,
    method=False,
    tolerance={"float16": 1e-2, "bfloat16": 8e-2},
    spellings={"N": "n"},
)
def vander(self: Tensor, n: int | None, increasing: bool) -> Tensor:
    spec = spec_of(self)
    if len(spec.shape) != 1:
        raise ShapeError(f"vander: needs a tensor of one axis, not of shape {spec.shape}")
    count = check_shape("vander", (spec.size if n is None else n,))[0]
    if not count:
        return full((spec.size, 0), 0, dtype=spec.dtype, device=spec.device)
    powers = [full(spec.shape, 1, dtype=spec.dtype, device=spec.device)]
    while len(powers) < count:
        powers.append(powers[-1] * self)
    return stack(powers if increasing else powers[::-1], -1)


# -- indices -----------------------------------------------------------------------------------------------------------
@composite(
    "indices(SymInt[] dimensions, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
    doc=_doc(
        "The indices of a grid: along the first axis one grid for each dimension.",
        "dimensions: the shape of the grid.",
        "A tensor of shape ``(len(dimensions), *dimensions)``.",
        "td.indices((1, 2)) -> [[[0, 0]], [[0, 1]]]",
        "int64",
        "ShapeError: a size is negative.",
    ),
    reference="references.numpy_functions.indices",
    samples=lambda dtype: [
        SampleInput((shape,), {"dtype": dtype}) for shape in ((2, 3), (4,), (2, 0), (1, 2, 3))
    ],
    errors=lambda: [ErrorInput(((-1,),), ValueError, "negative")],
    dtypes=INTEGERS,
    method=False,
)
def indices(dimensions: Shape, *, dtype: DType | None, device: str | None) -> Tensor:
    shape = check_shape("indices", dimensions)
    rank = len(shape)
    if not rank:
        return full((0,), 0, dtype=dtype or DEFAULT_INT, device=device)
    rows = [
        reshape(
            arange(size, dtype=dtype or DEFAULT_INT, device=device),
            (1,) * at + (size,) + (1,) * (rank - at - 1),
        )
        for at, size in enumerate(shape)
    ]
    return concat([broadcast_to(row, (1, *shape)) for row in rows], 0)


def _triangle_doc(name: str, part: str, example: str) -> str:
    text = f"""Args:
    n: the number of rows.
    k: the offset of the diagonal; positive: above the main one.
    m: the number of columns; None: ``n``.

Returns:
    Two int64 tensors of one axis: rows and columns.

Raises:
    ShapeError: a size is negative.

>>> [i.tolist() for i in td.{name}(2)]
{example}
"""
    return make_docstring(f"The indices of the elements on and {part} a diagonal of a matrix.", text, "")


def _triangle(name: str, n: int, k: int, m: int | None) -> tuple[Tensor, ...]:
    rows, columns = check_shape(name, (n, n if m is None else m))
    result = getattr(np, name)(rows, k, columns)
    return tuple(converters[np.ndarray](np.asarray(part, np.int64)) for part in result)


def _triangle_of_array(
    xp: ArrayModule, n: int, k: int, m: int | None, compare: Callable[..., Array]
) -> object:
    """The indices where ``compare(row + k, column)``."""
    columns = n if m is None else m
    if n < 0 or columns < 0:
        return NotImplemented
    first = max(-n, min(k, columns))  # beyond these offsets the diagonal is outside of the matrix
    rows = xp.arange(first, first + n).reshape(n, 1)
    return tuple([part.copy() for part in compare(rows, xp.arange(columns)).nonzero()])


@composite(
    "tril_indices(int n, int k=0, int? m=None) -> (Tensor rows, Tensor columns)",
    doc=_triangle_doc("tril_indices", "below", "[[0, 1, 1], [0, 0, 1]]"),
    reference="numpy.tril_indices",
    eager_kernel=lambda xp, n, k, m: _triangle_of_array(xp, n, k, m, xp.greater_equal),
    samples=lambda dtype: [SampleInput(args) for args in ((3,), (2, 1), (3, -1, 4), (0,))],
    errors=lambda: [ErrorInput((-1,), ValueError, "negative")],
    dtypes=INTEGERS[3:4],
    method=False,
)
def tril_indices(n: int, k: int, m: int | None) -> tuple[Tensor, ...]:
    return _triangle("tril_indices", n, k, m)


@composite(
    "triu_indices(int n, int k=0, int? m=None) -> (Tensor rows, Tensor columns)",
    doc=_triangle_doc("triu_indices", "above", "[[0, 0, 1], [0, 1, 1]]"),
    reference="numpy.triu_indices",
    eager_kernel=lambda xp, n, k, m: _triangle_of_array(xp, n, k, m, xp.less_equal),
    samples=lambda dtype: [SampleInput(args) for args in ((3,), (2, 1), (3, -1, 4), (0,))],
    errors=lambda: [ErrorInput((-1,), ValueError, "negative")],
    dtypes=INTEGERS[3:4],
    method=False,
)
def triu_indices(n: int, k: int, m: int | None) -> tuple[Tensor, ...]:
    return _triangle("triu_indices", n, k, m)


@composite(
    "diag_indices(int n, int ndim=2) -> Tensor[]",
    doc=make_docstring(
        "The indices of the main diagonal of a tensor whose axes all have one length.",
        """Args:
    n: the length of the axes.
    ndim: the number of axes.

Returns:
    A tuple of ``ndim`` int64 tensors of one axis.

>>> [i.tolist() for i in td.diag_indices(2)]
[[0, 1], [0, 1]]
""",
        "",
    ),
    reference="numpy.diag_indices",
    samples=lambda dtype: [SampleInput(args) for args in ((3,), (2, 3), (0,))],
    errors=lambda: [ErrorInput((-1,), ValueError, "negative")],
    dtypes=INTEGERS[3:4],
    method=False,
)
def diag_indices(n: int, ndim: int) -> tuple[Tensor, ...]:
    (size,) = check_shape("diag_indices", (n,))
    return tuple(arange(size) for _ in range(ndim))
