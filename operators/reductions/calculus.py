"""ediff1d, trapezoid and polyval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import ShapeError
from ...registry.dtypes import NUMERIC
from ..creation.creation import full
from ..declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.shape_rules import normalize_axis, promoted_dtype, result_dtype, spec_of
from ..elementwise.casting import cast
from ..indexing.slicing import basic_index
from ..reductions.folds import sum
from ..shape.joining import concat
from ..shape.rearrange import flatten
from ..shape.splitting import diff, slice_axis
from ..shape.views import reshape

if TYPE_CHECKING:
    from ...registry.types import Tensor


@composite(
    "ediff1d(Tensor self, Tensor? to_end=None, Tensor? to_begin=None) -> Tensor",
    doc=make_docstring(
        "The differences of neighbours in the flattened tensor.",
        """Args:
    self: tensor of numeric dtype, any shape.
    to_end: values to append; they are cast to the dtype of ``self``.
    to_begin: values to put in front.

Returns:
    A new tensor of one axis.""",
        "td.ediff1d(td.asarray([1, 4, 9]), 0) -> [3, 5, 0]",
    ),
    reference="numpy.ediff1d",
    samples=lambda dtype: [
        *(SampleInput((TensorSample((3, 4), layout=layout),)) for layout in LAYOUTS),
        SampleInput((TensorSample((4,)), TensorSample((2,)), TensorSample((1, 2)))),
        SampleInput((TensorSample((1,)),)),
    ],
    dtypes=NUMERIC,
    method=False,
    tolerance={"float16": 1e-2, "bfloat16": 8e-2},
    promotes=True,
)
def ediff1d(self: Tensor, to_end: Tensor | None, to_begin: Tensor | None) -> Tensor:
    dtype = spec_of(self).dtype
    before, after = (
        [] if one is None else [cast(reshape(one, (spec_of(one).size,)), dtype)] for one in (to_begin, to_end)
    )
    parts = [*before, diff(flatten(self)), *after]
    return concat(parts) if len(parts) > 1 else parts[0]


@composite(
    "trapezoid(Tensor self, Tensor? x=None, float dx=1.0, int axis=-1) -> Tensor",
    doc=make_docstring(
        "The integral along an axis by the trapezoidal rule.",
        """Args:
    self: the values to integrate, of numeric dtype.
    x: the positions of the values: a vector, or a tensor of the same shape; None: evenly spaced.
    dx: the distance of the values without ``x``.
    axis: the axis to integrate along.

Returns:
    A tensor without the axis, of floating dtype.

Raises:
    ShapeError: the positions do not fit the values.
    OutOfBoundsError: there is no such axis.""",
        "td.trapezoid(td.asarray([1.0, 2.0, 4.0])) -> 4.5",
    ),
    reference="references.numpy_functions.trapezoid",
    samples=lambda dtype: [
        *(SampleInput((TensorSample((3, 4), layout=layout),)) for layout in LAYOUTS),
        SampleInput((TensorSample((3, 4)), None, 0.5, 0)),
        SampleInput((TensorSample((3, 4)), TensorSample((4,)))),
        SampleInput((TensorSample((3, 4)), TensorSample((3, 4)), 1.0, 0)),
        SampleInput((TensorSample((1,)),)),
    ],
    errors=lambda: [
        ErrorInput((TensorSample((3,)), None, 1.0, 1), IndexError, "out of bounds"),
        ErrorInput((TensorSample((2, 3)), TensorSample((4,))), ValueError, "trapezoid"),
    ],
    dtypes=NUMERIC,
    method=False,
    tolerance={"float16": 1e-2, "bfloat16": 8e-2, "float32": 1e-5},
    autocast="float32",
)
def trapezoid(self: Tensor, x: Tensor | None, dx: float, axis: int) -> Tensor:
    shape = spec_of(self).shape
    along = normalize_axis("trapezoid", axis, len(shape))
    tensors = [self] if x is None else [self, x]
    y = cast(self, result_dtype("float", promoted_dtype("trapezoid", tensors)))
    size = shape[along]
    pairs = slice_axis(y, along, 1, size) + slice_axis(y, along, 0, size - 1)
    if x is None:
        return sum(pairs, along) * (0.5 * dx)
    x_shape = spec_of(x).shape
    if x_shape not in (shape, (size,)):
        raise ShapeError(f"trapezoid: positions of shape {x_shape} do not fit values of shape {shape}")
    steps = diff(cast(x, y.dtype), axis=0 if len(x_shape) == 1 else along)
    if x_shape != shape:
        steps = reshape(steps, (-1,) + (1,) * (len(shape) - along - 1))
    return sum(pairs * steps, along) * 0.5


@composite(
    "polyval(Tensor self, Tensor x) -> Tensor",
    doc=make_docstring(
        "The values of a polynomial, by Horner's scheme.",
        """Args:
    self: the coefficients, a tensor of one axis; that of the highest power is first.
    x: where to evaluate, any shape.

Returns:
    A tensor of the shape of ``x``, of the promoted dtype.

Raises:
    ShapeError: the coefficients do not have one axis.""",
        "td.polyval(td.asarray([1, 0, 2]), td.asarray([2, 3])) -> [6, 11]",
    ),
    reference="numpy.polyval",
    samples=lambda dtype: [
        SampleInput((TensorSample((3,)), TensorSample((2, 3)))),
        SampleInput((TensorSample((1,)), TensorSample((4,)))),
        SampleInput((TensorSample((4,)), TensorSample(()))),
        SampleInput((TensorSample((0,)), TensorSample((2,)))),
    ],
    errors=lambda: [ErrorInput((TensorSample((2, 2)), TensorSample((2,))), ValueError, "axis")],
    dtypes=NUMERIC,
    method=False,
    tolerance={"float16": 2e-2, "bfloat16": 2e-1, "float32": 1e-5, "complex64": 2e-5},
    spellings={"p": "self"},
)
def polyval(self: Tensor, x: Tensor) -> Tensor:
    spec = spec_of(self)
    if len(spec.shape) != 1:
        raise ShapeError(f"polyval: the coefficients need one axis, not shape {spec.shape}")
    dtype = promoted_dtype("polyval", (self, x))
    result = full(spec_of(x).shape, 0, dtype=dtype, device=spec.device)
    for at in range(spec.size):
        result = result * x + basic_index(self, (at,))
    return result
