"""Changing the dtype, and copying."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import lazy
from ..errors import DTypeError
from ..registry.dtypes import ALL, DType, as_dtype, bfloat16
from ..registry.values import TensorSpec
from . import batching
from . import scalar as s
from .declare import Bad, Draw, Sample
from .derivatives import Linear, Rule
from .kinds import LAYOUTS, composite, library
from .rules import is_tensor, spec_of
from .scalar_numpy import convert

references = lazy.Functions("operators.references")


# -- cast --------------------------------------------------------------------------------------------------------------
def _cast_meta(self: Any, dtype: DType) -> TensorSpec:
    spec = spec_of(self)
    if spec.dtype.kind == "c" and dtype.kind not in "bc":
        raise DTypeError(f"astype: {spec.dtype} to {dtype} would drop the imaginary part; take real(x) first")
    return TensorSpec(spec.shape, dtype, spec.device)


def _cast_kernel(xp: Any, self: Any, dtype: DType) -> Any:
    array = xp.asarray(self)
    if array.dtype == bfloat16.np and dtype.is_integer:
        array = array.astype(xp.float32)  # whose conversions to integers are defined
    with xp.errstate(all="ignore"):
        return convert(array, dtype)


def _cast_samples(dtype: DType) -> Iterable[Sample]:
    for target in ALL:
        if not (dtype.kind == "c" and target.kind not in "bc"):
            # what does not fit an integer type is tested with the scalar IR
            low = 0.0 if target.kind == "u" else -3.0
            yield Sample((Draw((3, 4), low, layout="transposed"), target))
    for layout in LAYOUTS:
        yield Sample((Draw((3, 4), layout=layout), dtype))
    yield Sample((Draw(()), dtype))
    yield Sample((Draw((0, 2)), dtype))


_ERRORS = [
    Bad((Draw((2,)), "float12"), TypeError, "not a dtype"),
    Bad((Draw((2,), dtype=as_dtype("complex64")), "float32"), TypeError, "imaginary"),
]


def _cast_transpose(g: Any, self_spec: TensorSpec) -> Any:
    if g.dtype.kind == "c" and self_spec.dtype.kind != "c":
        g = batching.operator("real")(g)
    return cast(g, self_spec.dtype)


cast: Any = library(
    "cast",
    "cast(Tensor self, ScalarType dtype) -> Tensor",
    _cast_meta,
    _cast_kernel,
    body=s.cast,
    doc="""A new tensor with the elements converted to another dtype.

    Floats become integers by truncation; NaN and what does not fit have the results that :mod:`tandem.operators.scalar`
    lists, the same on every backend.

    Args:
        self: any tensor.
        dtype: the dtype of the result.

    Returns:
        A new tensor, also where the dtype is the same.

    Raises:
        DTypeError: complex to real.

    >>> td.ops.td.cast(td.asarray([1.7, -1.7]), td.int32).tolist()
    [1, -1]
    """,
    reference=references.cast,
    dtypes=ALL,
    derivative=Linear({"self": _cast_transpose}),
    batching=batching.pointwise,
    samples=_cast_samples,
    errors=lambda: _ERRORS,
    method=False,
)


@composite(
    "astype(Tensor self, ScalarType dtype, *, bool copy=True) -> Tensor",
    doc="""The tensor with another dtype.

    Args:
        self: any tensor.
        dtype: the dtype of the result.
        copy: whether to copy where the dtype is the same; if not, the result is ``self``.

    Returns:
        A tensor of that dtype. Floats become integers by truncation.

    Raises:
        DTypeError: complex to real: take ``real(x)`` first.

    >>> td.astype(td.asarray([1.5, 2.5]), td.int64).tolist()
    [1, 2]
    """,
    reference=references.cast,
    samples=_cast_samples,
    errors=lambda: _ERRORS,
    dtypes=ALL,
)
def astype(self: Any, dtype: DType, *, copy: bool) -> Any:
    if not copy and is_tensor(self) and self.dtype is dtype:
        return self
    return cast(self, dtype)


# -- copies ------------------------------------------------------------------------------------------------------------
def _same_meta(self: Any) -> TensorSpec:
    return spec_of(self)


def _layout_samples(dtype: DType) -> Iterable[Sample]:
    for layout in LAYOUTS:
        yield Sample((Draw((3, 4), layout=layout),))
    yield Sample((Draw(()),))
    yield Sample((Draw((2, 0)),))


clone = library(
    "copy",
    "clone(Tensor self) -> Tensor",
    _same_meta,
    lambda xp, self: xp.array(self, order="C"),
    doc="""A copy with memory of its own, laid out in row-major order.

    Args:
        self: any tensor.

    Returns:
        A new tensor, equal to ``self``.

    >>> x = td.zeros(2)
    >>> td.clone(x).tolist()
    [0.0, 0.0]
    """,
    reference=references.identity,
    dtypes=ALL,
    derivative=Linear({"self": lambda g: g}),
    batching=batching.pointwise,
    samples=_layout_samples,
    errors=lambda: [Bad((None,), TypeError, "Tensor")],
)

contiguous = library(
    "copy",
    "contiguous(Tensor(a) self) -> Tensor(a)",
    _same_meta,
    lambda xp, self: xp.asarray(self, order="C"),
    doc="""The tensor in row-major order: a view of the same memory if it lies so already, else a copy.

    Args:
        self: any tensor.

    Returns:
        A tensor equal to ``self`` for which ``is_contiguous()`` is true.

    >>> td.contiguous(td.eye(2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """,
    reference=references.identity,
    dtypes=ALL,
    derivative=Linear({"self": lambda g: g}),
    batching=batching.pointwise,
    samples=_layout_samples,
    errors=lambda: [Bad((None,), TypeError, "Tensor")],
)

stop_gradient = library(
    "view",
    "stop_gradient(Tensor(a) self) -> Tensor(a)",
    _same_meta,
    lambda xp, self: xp.asarray(self)[...],
    doc="""The tensor as a constant: no derivative flows through it, in either mode.

    Args:
        self: any tensor.

    Returns:
        A view of the tensor.

    >>> td.stop_gradient(td.ones(2)).requires_grad
    False
    """,
    reference=references.identity,
    dtypes=ALL,
    derivative=Rule(vjp={}),
    batching=batching.pointwise,
    samples=_layout_samples,
    errors=lambda: [Bad((None,), TypeError, "Tensor")],
    method=False,
)
