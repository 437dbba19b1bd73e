"""Made by `python -m tandem.eager.tensor.type_stubs` from the declarations of the operators."""

import builtins as _b
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any, SupportsIndex, overload

import numpy as _np

from ...linalg.results import QRResult, SlogdetResult
from ...operators.declare.named_results import (
    Histogram,
    MinAndMax,
    SingularVectors,
    TriangularSolution,
    ValuesAndIndices,
)
from ...registry.dtypes import DType
from ...registry.types import Args, Function, Kwargs
from ...registry.values import TensorBase
from ..autograd.graph_functions import GraphFunction
from ..autograd.hooks import Hook, RemovableHandle
from ..sparse.tensor import SparseTensor
from .at import At
from .flags import MemoryFlags
from .generator import Generator
from .tensor import Tensor

_Number = _b.bool | _b.int | _b.float | _b.complex
_TensorLike = Tensor | _Number | _np.ndarray[Any, Any] | _np.generic
_DTypeLike = DType | _b.str | _b.type[Any] | _np.dtype[Any]

class TensorMethods(TensorBase):
    __slots__ = ()
    def abs(
        self,
    ) -> Tensor:
        """The magnitude of each element; the most negative integer and bools are unchanged."""
    def abs_(
        self,
    ) -> Tensor:
        """The magnitude of each element; the most negative integer and bools are unchanged."""
    def absolute(
        self,
    ) -> Tensor:
        """The magnitude of each element; the most negative integer and bools are unchanged."""
    def absolute_(
        self,
    ) -> Tensor:
        """The magnitude of each element; the most negative integer and bools are unchanged."""
    def acos(
        self,
    ) -> Tensor:
        """The angle whose cosine is each element, in [0, pi]; NaN outside of [-1, 1]."""
    def acos_(
        self,
    ) -> Tensor:
        """The angle whose cosine is each element, in [0, pi]; NaN outside of [-1, 1]."""
    def acosh(
        self,
    ) -> Tensor:
        """The number at least 0 whose hyperbolic cosine is each element; NaN below 1."""
    def acosh_(
        self,
    ) -> Tensor:
        """The number at least 0 whose hyperbolic cosine is each element; NaN below 1."""
    @overload
    def add(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Sum of two tensors, elementwise; `or` on bools."""
    @overload
    def add(
        self,
        other: _TensorLike,
        *,
        alpha: _Number,
    ) -> Tensor:
        """`self + alpha * other`."""
    @overload
    def add_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Sum of two tensors, elementwise; `or` on bools."""
    @overload
    def add_(
        self,
        other: _TensorLike,
        *,
        alpha: _Number,
    ) -> Tensor:
        """`self + alpha * other`."""
    def addbmm(
        self,
        batch1: _TensorLike,
        batch2: _TensorLike,
        *,
        beta: _Number = 1,
        alpha: _Number = 1,
    ) -> Tensor:
        """`beta * self + alpha * sum(batch1 @ batch2)`, with the sum over the stack."""
    def addbmm_(
        self,
        batch1: _TensorLike,
        batch2: _TensorLike,
        *,
        beta: _Number = 1,
        alpha: _Number = 1,
    ) -> Tensor:
        """`beta * self + alpha * sum(batch1 @ batch2)`, with the sum over the stack."""
    def addcdiv(
        self,
        tensor1: _TensorLike,
        tensor2: _TensorLike,
        *,
        value: _Number = 1,
    ) -> Tensor:
        """`self + value * tensor1 / tensor2`."""
    def addcdiv_(
        self,
        tensor1: _TensorLike,
        tensor2: _TensorLike,
        *,
        value: _Number = 1,
    ) -> Tensor:
        """`self + value * tensor1 / tensor2`."""
    def addcmul(
        self,
        tensor1: _TensorLike,
        tensor2: _TensorLike,
        *,
        value: _Number = 1,
    ) -> Tensor:
        """`self + value * tensor1 * tensor2`."""
    def addcmul_(
        self,
        tensor1: _TensorLike,
        tensor2: _TensorLike,
        *,
        value: _Number = 1,
    ) -> Tensor:
        """`self + value * tensor1 * tensor2`."""
    def addmm(
        self,
        mat1: _TensorLike,
        mat2: _TensorLike,
        *,
        beta: _Number = 1,
        alpha: _Number = 1,
    ) -> Tensor:
        """`beta * self + alpha * (mat1 @ mat2)`, of matrices."""
    def addmm_(
        self,
        mat1: _TensorLike,
        mat2: _TensorLike,
        *,
        beta: _Number = 1,
        alpha: _Number = 1,
    ) -> Tensor:
        """`beta * self + alpha * (mat1 @ mat2)`, of matrices."""
    def addmv(
        self,
        mat: _TensorLike,
        vec: _TensorLike,
        *,
        beta: _Number = 1,
        alpha: _Number = 1,
    ) -> Tensor:
        """`beta * self + alpha * (mat @ vec)`, of a matrix and a vector."""
    def addmv_(
        self,
        mat: _TensorLike,
        vec: _TensorLike,
        *,
        beta: _Number = 1,
        alpha: _Number = 1,
    ) -> Tensor:
        """`beta * self + alpha * (mat @ vec)`, of a matrix and a vector."""
    def addr(
        self,
        vec1: _TensorLike,
        vec2: _TensorLike,
        *,
        beta: _Number = 1,
        alpha: _Number = 1,
    ) -> Tensor:
        """`beta * self + alpha * outer(vec1, vec2)`, of vectors."""
    def addr_(
        self,
        vec1: _TensorLike,
        vec2: _TensorLike,
        *,
        beta: _Number = 1,
        alpha: _Number = 1,
    ) -> Tensor:
        """`beta * self + alpha * outer(vec1, vec2)`, of vectors."""
    @overload
    def all(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """Whether all elements over axes are true (not zero); True if there are none."""
    @overload
    def all(
        self,
        dim: Sequence[_b.int] | _b.int | None = None,
        *,
        keepdim: _b.bool = False,
    ) -> Tensor:
        """Whether all elements over axes are true (not zero); True if there are none."""
    def allclose(
        self,
        other: _TensorLike,
        rtol: _b.float = ...,
        atol: _b.float = ...,
        equal_nan: _b.bool = False,
    ) -> Tensor:
        """Whether all elements are close, as in `isclose`."""
    @overload
    def amax(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """The largest element over axes; NaN if there is one. It is `max` without the overloads t..."""
    @overload
    def amax(
        self,
        dim: Sequence[_b.int] | _b.int | None = None,
        *,
        keepdim: _b.bool = False,
    ) -> Tensor:
        """The largest element over axes; NaN if there is one. It is `max` without the overloads t..."""
    @overload
    def amin(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """The smallest element over axes; NaN if there is one. It is `min` without the overloads ..."""
    @overload
    def amin(
        self,
        dim: Sequence[_b.int] | _b.int | None = None,
        *,
        keepdim: _b.bool = False,
    ) -> Tensor:
        """The smallest element over axes; NaN if there is one. It is `min` without the overloads ..."""
    @overload
    def aminmax(
        self,
        *,
        axis: _b.int | None = None,
        keepdims: _b.bool = False,
    ) -> MinAndMax:
        """The smallest and the largest element, of all or along an axis; NaN if there is one."""
    @overload
    def aminmax(
        self,
        *,
        dim: _b.int | None = None,
        keepdim: _b.bool = False,
    ) -> MinAndMax:
        """The smallest and the largest element, of all or along an axis; NaN if there is one."""
    def angle(
        self,
    ) -> Tensor:
        """The angle of each element in the complex plane, in radians: 0 or pi for real elements."""
    @overload
    def any(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """Whether an element over axes is true (not zero); False if there are none."""
    @overload
    def any(
        self,
        dim: Sequence[_b.int] | _b.int | None = None,
        *,
        keepdim: _b.bool = False,
    ) -> Tensor:
        """Whether an element over axes is true (not zero); False if there are none."""
    def arccos(
        self,
    ) -> Tensor:
        """The angle whose cosine is each element, in [0, pi]; NaN outside of [-1, 1]."""
    def arccos_(
        self,
    ) -> Tensor:
        """The angle whose cosine is each element, in [0, pi]; NaN outside of [-1, 1]."""
    def arccosh(
        self,
    ) -> Tensor:
        """The number at least 0 whose hyperbolic cosine is each element; NaN below 1."""
    def arccosh_(
        self,
    ) -> Tensor:
        """The number at least 0 whose hyperbolic cosine is each element; NaN below 1."""
    def arcsin(
        self,
    ) -> Tensor:
        """The angle whose sine is each element, in [-pi/2, pi/2]; NaN outside of [-1, 1]."""
    def arcsin_(
        self,
    ) -> Tensor:
        """The angle whose sine is each element, in [-pi/2, pi/2]; NaN outside of [-1, 1]."""
    def arcsinh(
        self,
    ) -> Tensor:
        """The number whose hyperbolic sine is each element."""
    def arcsinh_(
        self,
    ) -> Tensor:
        """The number whose hyperbolic sine is each element."""
    def arctan(
        self,
    ) -> Tensor:
        """The angle whose tangent is each element, in [-pi/2, pi/2]."""
    def arctan2(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The angle of the point (other, self), in [-pi, pi]."""
    def arctan2_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The angle of the point (other, self), in [-pi, pi]."""
    def arctan_(
        self,
    ) -> Tensor:
        """The angle whose tangent is each element, in [-pi/2, pi/2]."""
    def arctanh(
        self,
    ) -> Tensor:
        """The number whose hyperbolic tangent is each element; NaN outside of [-1, 1]."""
    def arctanh_(
        self,
    ) -> Tensor:
        """The number whose hyperbolic tangent is each element; NaN outside of [-1, 1]."""
    @overload
    def argmax(
        self,
        axis: _b.int | None = None,
        *,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """The index of the largest element along an axis or of all; the first of several; NaN if ..."""
    @overload
    def argmax(
        self,
        dim: _b.int | None = None,
        *,
        keepdim: _b.bool = False,
    ) -> Tensor:
        """The index of the largest element along an axis or of all; the first of several; NaN if ..."""
    @overload
    def argmin(
        self,
        axis: _b.int | None = None,
        *,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """The index of the smallest element along an axis or of all; the first of several; NaN if..."""
    @overload
    def argmin(
        self,
        dim: _b.int | None = None,
        *,
        keepdim: _b.bool = False,
    ) -> Tensor:
        """The index of the smallest element along an axis or of all; the first of several; NaN if..."""
    @overload
    def argsort(
        self,
        *,
        axis: _b.int = -1,
        descending: _b.bool = False,
        stable: _b.bool = True,
    ) -> Tensor:
        """The positions of the elements in sorted order along an axis."""
    @overload
    def argsort(
        self,
        *,
        dim: _b.int = -1,
        descending: _b.bool = False,
        stable: _b.bool = True,
    ) -> Tensor:
        """The positions of the elements in sorted order along an axis."""
    def argwhere(
        self,
        *,
        size: _b.int | None = None,
        fill_value: _b.int = 0,
    ) -> Tensor:
        """The indices of the elements that are not zero, a row for each."""
    def as_strided(
        self,
        size: Sequence[_b.int] | _b.int,
        stride: Sequence[_b.int] | _b.int,
        storage_offset: _b.int | None = None,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """A view of a tensor's elements, in row-major order, with given sizes and strides."""
    def asin(
        self,
    ) -> Tensor:
        """The angle whose sine is each element, in [-pi/2, pi/2]; NaN outside of [-1, 1]."""
    def asin_(
        self,
    ) -> Tensor:
        """The angle whose sine is each element, in [-pi/2, pi/2]; NaN outside of [-1, 1]."""
    def asinh(
        self,
    ) -> Tensor:
        """The number whose hyperbolic sine is each element."""
    def asinh_(
        self,
    ) -> Tensor:
        """The number whose hyperbolic sine is each element."""
    def astype(
        self,
        dtype: _DTypeLike,
        *,
        copy: _b.bool = True,
        device: _b.str | None = None,
    ) -> Tensor:
        """The tensor with another dtype."""
    def atan(
        self,
    ) -> Tensor:
        """The angle whose tangent is each element, in [-pi/2, pi/2]."""
    def atan2(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The angle of the point (other, self), in [-pi, pi]."""
    def atan2_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The angle of the point (other, self), in [-pi, pi]."""
    def atan_(
        self,
    ) -> Tensor:
        """The angle whose tangent is each element, in [-pi/2, pi/2]."""
    def atanh(
        self,
    ) -> Tensor:
        """The number whose hyperbolic tangent is each element; NaN outside of [-1, 1]."""
    def atanh_(
        self,
    ) -> Tensor:
        """The number whose hyperbolic tangent is each element; NaN outside of [-1, 1]."""
    def baddbmm(
        self,
        batch1: _TensorLike,
        batch2: _TensorLike,
        *,
        beta: _Number = 1,
        alpha: _Number = 1,
    ) -> Tensor:
        """`beta * self + alpha * (batch1 @ batch2)`, of stacks of matrices."""
    def baddbmm_(
        self,
        batch1: _TensorLike,
        batch2: _TensorLike,
        *,
        beta: _Number = 1,
        alpha: _Number = 1,
    ) -> Tensor:
        """`beta * self + alpha * (batch1 @ batch2)`, of stacks of matrices."""
    def bincount(
        self,
        weights: _TensorLike | None = None,
        minlength: _b.int = 0,
        *,
        length: _b.int | None = None,
    ) -> Tensor:
        """How often each integer from 0 occurs in a vector."""
    def bitwise_and(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The bits set in both elements."""
    def bitwise_and_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The bits set in both elements."""
    def bitwise_invert(
        self,
    ) -> Tensor:
        """The inverted bits of each element; the logical not of a bool."""
    def bitwise_invert_(
        self,
    ) -> Tensor:
        """The inverted bits of each element; the logical not of a bool."""
    def bitwise_left_shift(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The bits of `self` shifted left by `other`; bits shifted out are lost."""
    def bitwise_left_shift_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The bits of `self` shifted left by `other`; bits shifted out are lost."""
    def bitwise_not(
        self,
    ) -> Tensor:
        """The inverted bits of each element; the logical not of a bool."""
    def bitwise_not_(
        self,
    ) -> Tensor:
        """The inverted bits of each element; the logical not of a bool."""
    def bitwise_or(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The bits set in either element."""
    def bitwise_or_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The bits set in either element."""
    def bitwise_right_shift(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The bits of `self` shifted right by `other`; the sign is kept."""
    def bitwise_right_shift_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The bits of `self` shifted right by `other`; the sign is kept."""
    def bitwise_xor(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The bits set in exactly one of two elements."""
    def bitwise_xor_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The bits set in exactly one of two elements."""
    def bmm(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The products of two stacks of matrices."""
    @overload
    def broadcast_to(
        self,
        shape: Sequence[_b.int] | _b.int,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """A view with the tensor repeated along new leading axes and axes of length 1."""
    @overload
    def broadcast_to(
        self,
        *shape: _b.int,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """A view with the tensor repeated along new leading axes and axes of length 1."""
    def ceil(
        self,
    ) -> Tensor:
        """Each element rounded up; integers are unchanged."""
    def ceil_(
        self,
    ) -> Tensor:
        """Each element rounded up; integers are unchanged."""
    @overload
    def chunk(
        self,
        chunks: _b.int,
        axis: _b.int = 0,
    ) -> tuple[Tensor, ...]:
        """The tensor in parts of equal length along an axis; the last may be shorter, and there m..."""
    @overload
    def chunk(
        self,
        chunks: _b.int,
        dim: _b.int = 0,
    ) -> tuple[Tensor, ...]:
        """The tensor in parts of equal length along an axis; the last may be shorter, and there m..."""
    def clamp(
        self,
        min: _TensorLike | None = None,
        max: _TensorLike | None = None,
    ) -> Tensor:
        """The tensor with its elements limited to an interval."""
    def clamp_(
        self,
        min: _TensorLike | None = None,
        max: _TensorLike | None = None,
    ) -> Tensor:
        """The tensor with its elements limited to an interval."""
    def clamp_max(
        self,
        max: _TensorLike,
    ) -> Tensor:
        """The tensor with its elements lowered to an upper bound, as `clip` with `max` only."""
    def clamp_max_(
        self,
        max: _TensorLike,
    ) -> Tensor:
        """The tensor with its elements lowered to an upper bound, as `clip` with `max` only."""
    def clamp_min(
        self,
        min: _TensorLike,
    ) -> Tensor:
        """The tensor with its elements raised to a lower bound, as `clip` with `min` only."""
    def clamp_min_(
        self,
        min: _TensorLike,
    ) -> Tensor:
        """The tensor with its elements raised to a lower bound, as `clip` with `min` only."""
    def clip(
        self,
        min: _TensorLike | None = None,
        max: _TensorLike | None = None,
    ) -> Tensor:
        """The tensor with its elements limited to an interval."""
    def clip_(
        self,
        min: _TensorLike | None = None,
        max: _TensorLike | None = None,
    ) -> Tensor:
        """The tensor with its elements limited to an interval."""
    def clone(
        self,
    ) -> Tensor:
        """A copy of the tensor, in row-major order."""
    def conj(
        self,
    ) -> Tensor:
        """The complex conjugate of each element; real elements are unchanged."""
    def conj_(
        self,
    ) -> Tensor:
        """The complex conjugate of each element; real elements are unchanged."""
    def conjugate(
        self,
    ) -> Tensor:
        """The complex conjugate of each element; real elements are unchanged."""
    def conjugate_(
        self,
    ) -> Tensor:
        """The complex conjugate of each element; real elements are unchanged."""
    def contiguous(
        self,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """The tensor in row-major order: a view of the same memory if it is contiguous already, e..."""
    def copy(
        self,
    ) -> Tensor:
        """A copy of the tensor, in row-major order."""
    def copysign(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The magnitude of `self` with the sign of `other`, including -0.0."""
    def copysign_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The magnitude of `self` with the sign of `other`, including -0.0."""
    def corrcoef(
        self,
        other: _TensorLike | None = None,
        rowvar: _b.bool = True,
    ) -> Tensor:
        """The correlation coefficients of variables."""
    def cos(
        self,
    ) -> Tensor:
        """The cosine of each element."""
    def cos_(
        self,
    ) -> Tensor:
        """The cosine of each element."""
    def cosh(
        self,
    ) -> Tensor:
        """The hyperbolic cosine of each element."""
    def cosh_(
        self,
    ) -> Tensor:
        """The hyperbolic cosine of each element."""
    @overload
    def count_nonzero(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """The number of elements over axes that are not zero; NaN is not zero."""
    @overload
    def count_nonzero(
        self,
        dim: Sequence[_b.int] | _b.int | None = None,
        *,
        keepdim: _b.bool = False,
    ) -> Tensor:
        """The number of elements over axes that are not zero; NaN is not zero."""
    def cov(
        self,
        other: _TensorLike | None = None,
        rowvar: _b.bool = True,
        bias: _b.bool = False,
        ddof: _b.int | None = None,
        *,
        fweights: _TensorLike | None = None,
        aweights: _TensorLike | None = None,
    ) -> Tensor:
        """The covariance matrix of variables."""
    @overload
    def cross(
        self,
        other: _TensorLike,
        *,
        axis: _b.int = -1,
    ) -> Tensor:
        """The cross products of three-dimensional vectors."""
    @overload
    def cross(
        self,
        other: _TensorLike,
        *,
        dim: _b.int = -1,
    ) -> Tensor:
        """The cross products of three-dimensional vectors."""
    @overload
    def cummax(
        self,
        axis: _b.int,
    ) -> ValuesAndIndices:
        """The largest element up to and including each along an axis, and its index."""
    @overload
    def cummax(
        self,
        dim: _b.int,
    ) -> ValuesAndIndices:
        """The largest element up to and including each along an axis, and its index."""
    @overload
    def cummin(
        self,
        axis: _b.int,
    ) -> ValuesAndIndices:
        """The smallest element up to and including each along an axis, and its index."""
    @overload
    def cummin(
        self,
        dim: _b.int,
    ) -> ValuesAndIndices:
        """The smallest element up to and including each along an axis, and its index."""
    @overload
    def cumprod(
        self,
        axis: _b.int | None = None,
        *,
        dtype: _DTypeLike | None = None,
    ) -> Tensor:
        """The products of the elements up to and including each along an axis."""
    @overload
    def cumprod(
        self,
        dim: _b.int | None = None,
        *,
        dtype: _DTypeLike | None = None,
    ) -> Tensor:
        """The products of the elements up to and including each along an axis."""
    @overload
    def cumprod_(
        self,
        axis: _b.int | None = None,
        *,
        dtype: _DTypeLike | None = None,
    ) -> Tensor:
        """The products of the elements up to and including each along an axis."""
    @overload
    def cumprod_(
        self,
        dim: _b.int | None = None,
        *,
        dtype: _DTypeLike | None = None,
    ) -> Tensor:
        """The products of the elements up to and including each along an axis."""
    @overload
    def cumsum(
        self,
        axis: _b.int | None = None,
        *,
        dtype: _DTypeLike | None = None,
    ) -> Tensor:
        """The sums of the elements up to and including each along an axis."""
    @overload
    def cumsum(
        self,
        dim: _b.int | None = None,
        *,
        dtype: _DTypeLike | None = None,
    ) -> Tensor:
        """The sums of the elements up to and including each along an axis."""
    @overload
    def cumsum_(
        self,
        axis: _b.int | None = None,
        *,
        dtype: _DTypeLike | None = None,
    ) -> Tensor:
        """The sums of the elements up to and including each along an axis."""
    @overload
    def cumsum_(
        self,
        dim: _b.int | None = None,
        *,
        dtype: _DTypeLike | None = None,
    ) -> Tensor:
        """The sums of the elements up to and including each along an axis."""
    def deg2rad(
        self,
    ) -> Tensor:
        """Each angle converted from degrees to radians."""
    def deg2rad_(
        self,
    ) -> Tensor:
        """Each angle converted from degrees to radians."""
    def degrees(
        self,
    ) -> Tensor:
        """Each angle converted from radians to degrees."""
    def degrees_(
        self,
    ) -> Tensor:
        """Each angle converted from radians to degrees."""
    def diag(
        self,
        k: _b.int = 0,
    ) -> Tensor:
        """The square matrix with a vector on a diagonal, or the diagonal of a matrix."""
    def diagflat(
        self,
        k: _b.int = 0,
    ) -> Tensor:
        """A square matrix with the elements, in order, on a diagonal."""
    def diagonal(
        self,
        offset: _b.int = 0,
        axis1: _b.int = 0,
        axis2: _b.int = 1,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """A diagonal of each matrix in a stack."""
    @overload
    def diff(
        self,
        *,
        n: _b.int = 1,
        axis: _b.int = -1,
        prepend: _TensorLike | None = None,
        append: _TensorLike | None = None,
    ) -> Tensor:
        """The n-th differences of neighbours along an axis."""
    @overload
    def diff(
        self,
        *,
        n: _b.int = 1,
        dim: _b.int = -1,
        prepend: _TensorLike | None = None,
        append: _TensorLike | None = None,
    ) -> Tensor:
        """The n-th differences of neighbours along an axis."""
    @overload
    def div(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Quotient of two tensors, elementwise."""
    @overload
    def div(
        self,
        other: _TensorLike,
        *,
        rounding_mode: _b.str | None,
    ) -> Tensor:
        """Quotients that are rounded."""
    @overload
    def div_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Quotient of two tensors, elementwise."""
    @overload
    def div_(
        self,
        other: _TensorLike,
        *,
        rounding_mode: _b.str | None,
    ) -> Tensor:
        """Quotients that are rounded."""
    @overload
    def divide(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Quotient of two tensors, elementwise."""
    @overload
    def divide(
        self,
        other: _TensorLike,
        *,
        rounding_mode: _b.str | None,
    ) -> Tensor:
        """Quotients that are rounded."""
    @overload
    def divide_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Quotient of two tensors, elementwise."""
    @overload
    def divide_(
        self,
        other: _TensorLike,
        *,
        rounding_mode: _b.str | None,
    ) -> Tensor:
        """Quotients that are rounded."""
    def dot(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The sum over the last axis of `self` and the second last (or only) one of `other`."""
    def dsplit(
        self,
        sections: _b.int | Sequence[_b.int],
    ) -> tuple[Tensor, ...]:
        """The tensor in parts along the third axis, as views."""
    def elu(
        self,
        alpha: _b.float = ...,
    ) -> Tensor:
        """The positive elements, and alpha * (exp(self) - 1) for the others."""
    def elu_(
        self,
        alpha: _b.float = ...,
    ) -> Tensor:
        """The positive elements, and alpha * (exp(self) - 1) for the others."""
    def eq(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether two tensors are equal, elementwise; NaN is not equal to itself."""
    def eq_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether two tensors are equal, elementwise; NaN is not equal to itself."""
    def equal(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether two tensors are equal, elementwise; NaN is not equal to itself."""
    def equal_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether two tensors are equal, elementwise; NaN is not equal to itself."""
    def erf(
        self,
    ) -> Tensor:
        """The error function of each element."""
    def erf_(
        self,
    ) -> Tensor:
        """The error function of each element."""
    def erfc(
        self,
    ) -> Tensor:
        """1 - erf(self), accurate where erf is close to 1 too."""
    def erfc_(
        self,
    ) -> Tensor:
        """1 - erf(self), accurate where erf is close to 1 too."""
    def exp(
        self,
    ) -> Tensor:
        """e to the power of each element."""
    def exp2(
        self,
    ) -> Tensor:
        """2 to the power of each element."""
    def exp2_(
        self,
    ) -> Tensor:
        """2 to the power of each element."""
    def exp_(
        self,
    ) -> Tensor:
        """e to the power of each element."""
    @overload
    def expand(
        self,
        shape: Sequence[_b.int] | _b.int,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """``broadcast_to`` where -1 keeps a size."""
    @overload
    def expand(
        self,
        *shape: _b.int,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """``broadcast_to`` where -1 keeps a size."""
    @overload
    def expand_dims(
        self,
        axis: Sequence[_b.int] | _b.int = ...,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """A view with new axes of length 1; also called ``unsqueeze``."""
    @overload
    def expand_dims(
        self,
        dim: Sequence[_b.int] | _b.int = ...,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """A view with new axes of length 1; also called ``unsqueeze``."""
    def expm1(
        self,
    ) -> Tensor:
        """exp(self) - 1, accurate for small elements too."""
    def expm1_(
        self,
    ) -> Tensor:
        """exp(self) - 1, accurate for small elements too."""
    def fix(
        self,
    ) -> Tensor:
        """Each element rounded towards zero; integers are unchanged."""
    def fix_(
        self,
    ) -> Tensor:
        """Each element rounded towards zero; integers are unchanged."""
    def flatten(
        self,
        start_dim: _b.int = 0,
        end_dim: _b.int = -1,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """Consecutive axes merged into one; by default all of them. Also called ``ravel``."""
    @overload
    def flip(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """A view with the elements in reverse order along some axes."""
    @overload
    def flip(
        self,
        *axis: _b.int,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """A view with the elements in reverse order along some axes."""
    @overload
    def flip(
        self,
        dim: Sequence[_b.int] | _b.int | None = None,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """A view with the elements in reverse order along some axes."""
    def fliplr(
        self,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """The tensor reversed along the second axis."""
    def flipud(
        self,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """The tensor reversed along the first axis."""
    def float_power(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """self to the power other, as a float, also of integers."""
    def float_power_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """self to the power other, as a float, also of integers."""
    def floor(
        self,
    ) -> Tensor:
        """Each element rounded down; integers are unchanged."""
    def floor_(
        self,
    ) -> Tensor:
        """Each element rounded down; integers are unchanged."""
    def floor_divide(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The quotient rounded down, elementwise; 0 for an integer divided by zero."""
    def floor_divide_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The quotient rounded down, elementwise; 0 for an integer divided by zero."""
    def fmax(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The larger of two elements; if one is NaN, the other."""
    def fmax_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The larger of two elements; if one is NaN, the other."""
    def fmin(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The smaller of two elements; if one is NaN, the other."""
    def fmin_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The smaller of two elements; if one is NaN, the other."""
    def fmod(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The remainder of division rounded towards zero, with the sign of the dividend; 0 for in..."""
    def fmod_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The remainder of division rounded towards zero, with the sign of the dividend; 0 for in..."""
    def frac(
        self,
    ) -> Tensor:
        """The fractional part of each element, with its sign; 0 for integers."""
    def frac_(
        self,
    ) -> Tensor:
        """The fractional part of each element, with its sign; 0 for integers."""
    def frexp(
        self,
    ) -> tuple[Tensor, Tensor]:
        """Each element as mantissa * 2**exponent, with the mantissa's magnitude in [0.5, 1)."""
    @overload
    def gather(
        self,
        axis: _b.int,
        index: _TensorLike,
    ) -> Tensor:
        """The elements at positions along one axis; unlike for `take_along_axis`, axes do not bro..."""
    @overload
    def gather(
        self,
        dim: _b.int,
        index: _TensorLike,
    ) -> Tensor:
        """The elements at positions along one axis; unlike for `take_along_axis`, axes do not bro..."""
    def gcd(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The greatest common divisor of two integers; 0 of two zeros."""
    def gcd_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The greatest common divisor of two integers; 0 of two zeros."""
    def ge(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether `self` is at least `other`, elementwise."""
    def ge_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether `self` is at least `other`, elementwise."""
    def gelu(
        self,
        *,
        approximate: _b.str = "none",
    ) -> Tensor:
        """The Gaussian error linear unit."""
    def ger(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The outer product of two vectors."""
    def greater(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether `self` is greater than `other`, elementwise."""
    def greater_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether `self` is greater than `other`, elementwise."""
    def greater_equal(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether `self` is at least `other`, elementwise."""
    def greater_equal_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether `self` is at least `other`, elementwise."""
    def gt(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether `self` is greater than `other`, elementwise."""
    def gt_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether `self` is greater than `other`, elementwise."""
    def heaviside(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """0 for negative elements of `self`, 1 for positive ones, and `other` for 0; NaN for NaN."""
    def heaviside_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """0 for negative elements of `self`, 1 for positive ones, and `other` for 0; NaN for NaN."""
    def hsplit(
        self,
        sections: _b.int | Sequence[_b.int],
    ) -> tuple[Tensor, ...]:
        """The tensor in parts along the second axis, or a vector's only one, as views."""
    def hypot(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The length of the hypotenuse, sqrt(self**2 + other**2), without intermediate overflow."""
    def hypot_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The length of the hypotenuse, sqrt(self**2 + other**2), without intermediate overflow."""
    @overload
    def index_add(
        self,
        axis: _b.int,
        index: _TensorLike,
        source: _TensorLike,
        *,
        alpha: _Number = 1,
    ) -> Tensor:
        """A copy of the tensor with slices added at positions along an axis; a position that repe..."""
    @overload
    def index_add(
        self,
        dim: _b.int,
        index: _TensorLike,
        source: _TensorLike,
        *,
        alpha: _Number = 1,
    ) -> Tensor:
        """A copy of the tensor with slices added at positions along an axis; a position that repe..."""
    @overload
    def index_add_(
        self,
        axis: _b.int,
        index: _TensorLike,
        source: _TensorLike,
        *,
        alpha: _Number = 1,
    ) -> Tensor:
        """A copy of the tensor with slices added at positions along an axis; a position that repe..."""
    @overload
    def index_add_(
        self,
        dim: _b.int,
        index: _TensorLike,
        source: _TensorLike,
        *,
        alpha: _Number = 1,
    ) -> Tensor:
        """A copy of the tensor with slices added at positions along an axis; a position that repe..."""
    @overload
    def index_copy(
        self,
        axis: _b.int,
        index: _TensorLike,
        source: _TensorLike,
    ) -> Tensor:
        """A copy of the tensor with slices written to positions along an axis."""
    @overload
    def index_copy(
        self,
        dim: _b.int,
        index: _TensorLike,
        source: _TensorLike,
    ) -> Tensor:
        """A copy of the tensor with slices written to positions along an axis."""
    @overload
    def index_copy_(
        self,
        axis: _b.int,
        index: _TensorLike,
        source: _TensorLike,
    ) -> Tensor:
        """A copy of the tensor with slices written to positions along an axis."""
    @overload
    def index_copy_(
        self,
        dim: _b.int,
        index: _TensorLike,
        source: _TensorLike,
    ) -> Tensor:
        """A copy of the tensor with slices written to positions along an axis."""
    @overload
    def index_fill(
        self,
        axis: _b.int,
        index: _TensorLike,
        value: _TensorLike,
    ) -> Tensor:
        """A copy of the tensor with one value written to the slices at positions along an axis."""
    @overload
    def index_fill(
        self,
        dim: _b.int,
        index: _TensorLike,
        value: _TensorLike,
    ) -> Tensor:
        """A copy of the tensor with one value written to the slices at positions along an axis."""
    @overload
    def index_fill_(
        self,
        axis: _b.int,
        index: _TensorLike,
        value: _TensorLike,
    ) -> Tensor:
        """A copy of the tensor with one value written to the slices at positions along an axis."""
    @overload
    def index_fill_(
        self,
        dim: _b.int,
        index: _TensorLike,
        value: _TensorLike,
    ) -> Tensor:
        """A copy of the tensor with one value written to the slices at positions along an axis."""
    @overload
    def index_select(
        self,
        axis: _b.int,
        index: _TensorLike,
    ) -> Tensor:
        """The slices at positions along an axis."""
    @overload
    def index_select(
        self,
        dim: _b.int,
        index: _TensorLike,
    ) -> Tensor:
        """The slices at positions along an axis."""
    def inner(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The sum of products over the last axes."""
    def invert(
        self,
    ) -> Tensor:
        """The inverted bits of each element; the logical not of a bool."""
    def invert_(
        self,
    ) -> Tensor:
        """The inverted bits of each element; the logical not of a bool."""
    def isclose(
        self,
        other: _TensorLike,
        rtol: _b.float = ...,
        atol: _b.float = ...,
        equal_nan: _b.bool = False,
    ) -> Tensor:
        """Whether abs(self - other) <= atol + rtol * abs(other), elementwise; infinities are clos..."""
    def isfinite(
        self,
    ) -> Tensor:
        """Whether an element is neither infinite nor NaN."""
    def isfinite_(
        self,
    ) -> Tensor:
        """Whether an element is neither infinite nor NaN."""
    def isinf(
        self,
    ) -> Tensor:
        """Whether an element is infinite, of either sign; False for integers."""
    def isinf_(
        self,
    ) -> Tensor:
        """Whether an element is infinite, of either sign; False for integers."""
    def isnan(
        self,
    ) -> Tensor:
        """Whether an element is NaN; False for integers."""
    def isnan_(
        self,
    ) -> Tensor:
        """Whether an element is NaN; False for integers."""
    def isneginf(
        self,
    ) -> Tensor:
        """Whether an element is negative infinity."""
    def isneginf_(
        self,
    ) -> Tensor:
        """Whether an element is negative infinity."""
    def isposinf(
        self,
    ) -> Tensor:
        """Whether an element is positive infinity."""
    def isposinf_(
        self,
    ) -> Tensor:
        """Whether an element is positive infinity."""
    def isreal(
        self,
    ) -> Tensor:
        """Whether the imaginary part of an element is 0."""
    def isreal_(
        self,
    ) -> Tensor:
        """Whether the imaginary part of an element is 0."""
    def kron(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The Kronecker product: a block of ``other`` times each element of ``self``."""
    @overload
    def kthvalue(
        self,
        k: _b.int,
        axis: _b.int = -1,
        *,
        keepdims: _b.bool = False,
    ) -> ValuesAndIndices:
        """The k-th smallest elements along an axis, and their indices."""
    @overload
    def kthvalue(
        self,
        k: _b.int,
        dim: _b.int = -1,
        *,
        keepdim: _b.bool = False,
    ) -> ValuesAndIndices:
        """The k-th smallest elements along an axis, and their indices."""
    def layer_norm(
        self,
        normalized_shape: Sequence[_b.int] | _b.int,
        weight: _TensorLike | None = None,
        bias: _TensorLike | None = None,
        eps: _b.float = ...,
    ) -> Tensor:
        """Layer normalization: shift and scale to mean 0 and variance 1 over the last axes."""
    def lcm(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The least common multiple of two integers; 0 if one of them is 0."""
    def lcm_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The least common multiple of two integers; 0 if one of them is 0."""
    def ldexp(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """self * 2**other."""
    def ldexp_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """self * 2**other."""
    def le(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether `self` is at most `other`, elementwise."""
    def le_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether `self` is at most `other`, elementwise."""
    def leaky_relu(
        self,
        negative_slope: _b.float = ...,
    ) -> Tensor:
        """The positive elements, and the others times a slope."""
    def leaky_relu_(
        self,
        negative_slope: _b.float = ...,
    ) -> Tensor:
        """The positive elements, and the others times a slope."""
    def left_shift(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The bits of `self` shifted left by `other`; bits shifted out are lost."""
    def left_shift_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The bits of `self` shifted left by `other`; bits shifted out are lost."""
    def lerp(
        self,
        end: _TensorLike,
        weight: _TensorLike,
    ) -> Tensor:
        """The points between two tensors: `self + weight * (end - self)`."""
    def lerp_(
        self,
        end: _TensorLike,
        weight: _TensorLike,
    ) -> Tensor:
        """The points between two tensors: `self + weight * (end - self)`."""
    def less(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether `self` is less than `other`, elementwise; complex numbers by the real part, the..."""
    def less_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether `self` is less than `other`, elementwise; complex numbers by the real part, the..."""
    def less_equal(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether `self` is at most `other`, elementwise."""
    def less_equal_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether `self` is at most `other`, elementwise."""
    def log(
        self,
    ) -> Tensor:
        """The natural logarithm of each element; -inf for 0, NaN below."""
    def log10(
        self,
    ) -> Tensor:
        """The logarithm of each element to base 10."""
    def log10_(
        self,
    ) -> Tensor:
        """The logarithm of each element to base 10."""
    def log1p(
        self,
    ) -> Tensor:
        """log(1 + self), accurate for small elements too."""
    def log1p_(
        self,
    ) -> Tensor:
        """log(1 + self), accurate for small elements too."""
    def log2(
        self,
    ) -> Tensor:
        """The logarithm of each element to base 2."""
    def log2_(
        self,
    ) -> Tensor:
        """The logarithm of each element to base 2."""
    def log_(
        self,
    ) -> Tensor:
        """The natural logarithm of each element; -inf for 0, NaN below."""
    @overload
    def log_softmax(
        self,
        axis: _b.int = -1,
    ) -> Tensor:
        """The logarithm of softmax, accurate where softmax rounds to 0 too."""
    @overload
    def log_softmax(
        self,
        dim: _b.int = -1,
    ) -> Tensor:
        """The logarithm of softmax, accurate where softmax rounds to 0 too."""
    def logaddexp(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """log(exp(self) + exp(other)), without intermediate overflow."""
    def logaddexp2(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """log2(2**self + 2**other), without intermediate overflow."""
    def logaddexp2_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """log2(2**self + 2**other), without intermediate overflow."""
    def logaddexp_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """log(exp(self) + exp(other)), without intermediate overflow."""
    @overload
    def logcumsumexp(
        self,
        axis: _b.int | None = None,
        *,
        dtype: _DTypeLike | None = None,
    ) -> Tensor:
        """The logarithms of the sums of exponentials of the elements up to and including each alo..."""
    @overload
    def logcumsumexp(
        self,
        dim: _b.int | None = None,
        *,
        dtype: _DTypeLike | None = None,
    ) -> Tensor:
        """The logarithms of the sums of exponentials of the elements up to and including each alo..."""
    def logical_and(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether both elements are true (not zero)."""
    def logical_and_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether both elements are true (not zero)."""
    def logical_not(
        self,
    ) -> Tensor:
        """Whether an element is false (zero)."""
    def logical_not_(
        self,
    ) -> Tensor:
        """Whether an element is false (zero)."""
    def logical_or(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether either element is true (not zero)."""
    def logical_or_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether either element is true (not zero)."""
    def logical_xor(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether exactly one of two elements is true (not zero)."""
    def logical_xor_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether exactly one of two elements is true (not zero)."""
    @overload
    def logsumexp(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """The logarithm of the sum of exponentials over axes, without intermediate overflow."""
    @overload
    def logsumexp(
        self,
        dim: Sequence[_b.int] | _b.int | None = None,
        *,
        keepdim: _b.bool = False,
    ) -> Tensor:
        """The logarithm of the sum of exponentials over axes, without intermediate overflow."""
    def lt(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether `self` is less than `other`, elementwise; complex numbers by the real part, the..."""
    def lt_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether `self` is less than `other`, elementwise; complex numbers by the real part, the..."""
    def masked_fill(
        self,
        mask: _TensorLike,
        value: _TensorLike,
    ) -> Tensor:
        """A copy of the tensor with one value where a mask is true."""
    def masked_fill_(
        self,
        mask: _TensorLike,
        value: _TensorLike,
    ) -> Tensor:
        """A copy of the tensor with one value where a mask is true."""
    def masked_scatter(
        self,
        mask: _TensorLike,
        source: _TensorLike,
    ) -> Tensor:
        """A copy of the tensor with the elements of a source, in order, where a mask is true."""
    def masked_scatter_(
        self,
        mask: _TensorLike,
        source: _TensorLike,
    ) -> Tensor:
        """A copy of the tensor with the elements of a source, in order, where a mask is true."""
    def matmul(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The matrix product; also ``x @ y``."""
    def matrix_transpose(
        self,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """The transposes of a stack of matrices: a view with the last two axes exchanged; also ``..."""
    @overload
    def max(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """The largest element over axes; NaN if there is one."""
    @overload
    def max(
        self,
        *,
        dim: _b.int,
        keepdim: _b.bool = False,
    ) -> ValuesAndIndices:
        """The largest elements along an axis, and their indices."""
    def maximum(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The larger of two elements; NaN if either is NaN."""
    def maximum_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The larger of two elements; NaN if either is NaN."""
    @overload
    def mean(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """The arithmetic mean of the elements over axes."""
    @overload
    def mean(
        self,
        dim: Sequence[_b.int] | _b.int | None = None,
        *,
        keepdim: _b.bool = False,
    ) -> Tensor:
        """The arithmetic mean of the elements over axes."""
    @overload
    def median(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """The median of the elements: the mean of the two in the middle for an even number."""
    @overload
    def median(
        self,
        *,
        dim: _b.int,
        keepdim: _b.bool = False,
    ) -> ValuesAndIndices:
        """The medians along an axis, and their indices: the lower of the two in the middle for an..."""
    @overload
    def min(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """The smallest element over axes; NaN if there is one."""
    @overload
    def min(
        self,
        *,
        dim: _b.int,
        keepdim: _b.bool = False,
    ) -> ValuesAndIndices:
        """The smallest elements along an axis, and their indices."""
    def minimum(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The smaller of two elements; NaN if either is NaN."""
    def minimum_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The smaller of two elements; NaN if either is NaN."""
    def mm(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The product of two matrices."""
    def mod(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The remainder of `floor_divide`, with the sign of the divisor; 0 for an integer divided..."""
    def mod_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The remainder of `floor_divide`, with the sign of the divisor; 0 for an integer divided..."""
    @overload
    def mode(
        self,
        axis: _b.int = -1,
        *,
        keepdims: _b.bool = False,
    ) -> ValuesAndIndices:
        """The most frequent elements along an axis, and the index of the last of each; the smalle..."""
    @overload
    def mode(
        self,
        dim: _b.int = -1,
        *,
        keepdim: _b.bool = False,
    ) -> ValuesAndIndices:
        """The most frequent elements along an axis, and the index of the last of each; the smalle..."""
    def moveaxis(
        self,
        source: Sequence[_b.int] | _b.int,
        destination: Sequence[_b.int] | _b.int,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """A view with some axes moved to new positions; the others keep their order."""
    def movedim(
        self,
        source: Sequence[_b.int] | _b.int,
        destination: Sequence[_b.int] | _b.int,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """A view with some axes moved to new positions; the others keep their order."""
    def mul(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Product of two tensors, elementwise; `and` on bools."""
    def mul_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Product of two tensors, elementwise; `and` on bools."""
    def multiply(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Product of two tensors, elementwise; `and` on bools."""
    def multiply_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Product of two tensors, elementwise; `and` on bools."""
    def mv(
        self,
        vec: _TensorLike,
    ) -> Tensor:
        """The product of a matrix and a vector."""
    def nan_to_num(
        self,
        *,
        nan: _b.float = ...,
        posinf: _b.float | None = None,
        neginf: _b.float | None = None,
    ) -> Tensor:
        """Replace NaN and infinities by numbers; no gradient flows to the replaced elements."""
    def nan_to_num_(
        self,
        *,
        nan: _b.float = ...,
        posinf: _b.float | None = None,
        neginf: _b.float | None = None,
    ) -> Tensor:
        """Replace NaN and infinities by numbers; no gradient flows to the replaced elements."""
    @overload
    def nanmean(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        dtype: _DTypeLike | None = None,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """The arithmetic mean of the elements that are not NaN; NaN if there are none."""
    @overload
    def nanmean(
        self,
        dim: Sequence[_b.int] | _b.int | None = None,
        *,
        dtype: _DTypeLike | None = None,
        keepdim: _b.bool = False,
    ) -> Tensor:
        """The arithmetic mean of the elements that are not NaN; NaN if there are none."""
    @overload
    def nanmedian(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """The median of the elements that are not NaN."""
    @overload
    def nanmedian(
        self,
        *,
        dim: _b.int,
        keepdim: _b.bool = False,
    ) -> ValuesAndIndices:
        """The medians of the elements that are not NaN along an axis, and their indices; the lowe..."""
    @overload
    def nanquantile(
        self,
        q: _TensorLike,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        method: _b.str = "linear",
        keepdims: _b.bool = False,
    ) -> Tensor:
        """The quantiles of the elements that are not NaN."""
    @overload
    def nanquantile(
        self,
        q: _TensorLike,
        dim: Sequence[_b.int] | _b.int | None = None,
        *,
        method: _b.str = "linear",
        keepdim: _b.bool = False,
    ) -> Tensor:
        """The quantiles of the elements that are not NaN."""
    @overload
    def nansum(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        dtype: _DTypeLike | None = None,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """The sum of the elements that are not NaN; 0 if there are none."""
    @overload
    def nansum(
        self,
        dim: Sequence[_b.int] | _b.int | None = None,
        *,
        dtype: _DTypeLike | None = None,
        keepdim: _b.bool = False,
    ) -> Tensor:
        """The sum of the elements that are not NaN; 0 if there are none."""
    @overload
    def narrow(
        self,
        axis: _b.int,
        start: _b.int,
        length: _b.int,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """The slice of a given length along an axis."""
    @overload
    def narrow(
        self,
        dim: _b.int,
        start: _b.int,
        length: _b.int,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """The slice of a given length along an axis."""
    def ne(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether two tensors differ, elementwise; NaN differs from itself."""
    def ne_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether two tensors differ, elementwise; NaN differs from itself."""
    def neg(
        self,
    ) -> Tensor:
        """The negative of each element; unsigned integers and the most negative integer wrap around."""
    def neg_(
        self,
    ) -> Tensor:
        """The negative of each element; unsigned integers and the most negative integer wrap around."""
    def negative(
        self,
    ) -> Tensor:
        """The negative of each element; unsigned integers and the most negative integer wrap around."""
    def negative_(
        self,
    ) -> Tensor:
        """The negative of each element; unsigned integers and the most negative integer wrap around."""
    def nextafter(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The next representable number after `self` towards `other`; `other` if they are equal."""
    def nextafter_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The next representable number after `self` towards `other`; `other` if they are equal."""
    def nonzero(
        self,
        *,
        size: _b.int | None = None,
        fill_value: _b.int = 0,
    ) -> tuple[Tensor, ...]:
        """The positions of the elements that are not zero."""
    def not_equal(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether two tensors differ, elementwise; NaN differs from itself."""
    def not_equal_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether two tensors differ, elementwise; NaN differs from itself."""
    @overload
    def one_hot(
        self,
        num_classes: _b.int,
        *,
        axis: _b.int = -1,
        dtype: _DTypeLike | None = None,
    ) -> Tensor:
        """Encode integers as one-hot vectors: one at the index of the class, zero elsewhere."""
    @overload
    def one_hot(
        self,
        num_classes: _b.int,
        *,
        dim: _b.int = -1,
        dtype: _DTypeLike | None = None,
    ) -> Tensor:
        """Encode integers as one-hot vectors: one at the index of the class, zero elsewhere."""
    def outer(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The outer product of two vectors."""
    def pad(
        self,
        width: _b.int | Sequence[_b.int | Sequence[_b.int]] | dict[_b.int, _b.int | Sequence[_b.int]],
        mode: _b.str = "constant",
        *,
        value: _b.complex | Tensor | Sequence[object] | None = None,
        stat_length: _b.int | Sequence[object] | None = None,
        end_values: _b.complex | Tensor | Sequence[object] | None = None,
        reflect_type: _b.str | None = None,
    ) -> Tensor:
        """The tensor padded: with a constant, copies or reflections of elements, ramps, or statis..."""
    @overload
    def permute(
        self,
        axes: Sequence[_b.int] | _b.int,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """A view with the axes in another order; also called ``permute_dims``."""
    @overload
    def permute(
        self,
        *axes: _b.int,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """A view with the axes in another order; also called ``permute_dims``."""
    @overload
    def permute_dims(
        self,
        axes: Sequence[_b.int] | _b.int,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """A view with the axes in another order; also called ``permute_dims``."""
    @overload
    def permute_dims(
        self,
        *axes: _b.int,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """A view with the axes in another order; also called ``permute_dims``."""
    def positive(
        self,
    ) -> Tensor:
        """A copy of the tensor."""
    def positive_(
        self,
    ) -> Tensor:
        """A copy of the tensor."""
    def pow(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """`self` to the power `other`; integers to a tensor of negative integers return truncated..."""
    def pow_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """`self` to the power `other`; integers to a tensor of negative integers return truncated..."""
    def power(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """`self` to the power `other`; integers to a tensor of negative integers return truncated..."""
    def power_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """`self` to the power `other`; integers to a tensor of negative integers return truncated..."""
    @overload
    def prod(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        dtype: _DTypeLike | None = None,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """The product of the elements over axes; 1 if there are none."""
    @overload
    def prod(
        self,
        dim: Sequence[_b.int] | _b.int | None = None,
        *,
        dtype: _DTypeLike | None = None,
        keepdim: _b.bool = False,
    ) -> Tensor:
        """The product of the elements over axes; 1 if there are none."""
    @overload
    def quantile(
        self,
        q: _TensorLike,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        method: _b.str = "linear",
        keepdims: _b.bool = False,
    ) -> Tensor:
        """The quantiles of the elements."""
    @overload
    def quantile(
        self,
        q: _TensorLike,
        dim: Sequence[_b.int] | _b.int | None = None,
        *,
        method: _b.str = "linear",
        keepdim: _b.bool = False,
    ) -> Tensor:
        """The quantiles of the elements."""
    def rad2deg(
        self,
    ) -> Tensor:
        """Each angle converted from radians to degrees."""
    def rad2deg_(
        self,
    ) -> Tensor:
        """Each angle converted from radians to degrees."""
    def radians(
        self,
    ) -> Tensor:
        """Each angle converted from degrees to radians."""
    def radians_(
        self,
    ) -> Tensor:
        """Each angle converted from degrees to radians."""
    def ravel(
        self,
        start_dim: _b.int = 0,
        end_dim: _b.int = -1,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """Consecutive axes merged into one; by default all of them. Also called ``ravel``."""
    def reciprocal(
        self,
    ) -> Tensor:
        """One over each element."""
    def reciprocal_(
        self,
    ) -> Tensor:
        """One over each element."""
    def relu(
        self,
    ) -> Tensor:
        """The positive part of each element; NaN stays NaN."""
    def relu_(
        self,
    ) -> Tensor:
        """The positive part of each element; NaN stays NaN."""
    def remainder(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The remainder of `floor_divide`, with the sign of the divisor; 0 for an integer divided..."""
    def remainder_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The remainder of `floor_divide`, with the sign of the divisor; 0 for an integer divided..."""
    @overload
    def repeat(
        self,
        repeats: _b.int | Sequence[_b.int] | Tensor,
        axis: _b.int | None = None,
    ) -> Tensor:
        """Each element, or slice along an axis, repeated."""
    @overload
    def repeat(
        self,
        repeats: _b.int | Sequence[_b.int] | Tensor,
        dim: _b.int | None = None,
    ) -> Tensor:
        """Each element, or slice along an axis, repeated."""
    @overload
    def repeat_interleave(
        self,
        repeats: _b.int | Sequence[_b.int] | Tensor,
        axis: _b.int | None = None,
    ) -> Tensor:
        """Each element, or slice along an axis, repeated."""
    @overload
    def repeat_interleave(
        self,
        repeats: _b.int | Sequence[_b.int] | Tensor,
        dim: _b.int | None = None,
    ) -> Tensor:
        """Each element, or slice along an axis, repeated."""
    @overload
    def reshape(
        self,
        shape: Sequence[_b.int] | _b.int,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """The elements in row-major order in another shape: a view if the strides allow it, else ..."""
    @overload
    def reshape(
        self,
        *shape: _b.int,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """The elements in row-major order in another shape: a view if the strides allow it, else ..."""
    def right_shift(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The bits of `self` shifted right by `other`; the sign is kept."""
    def right_shift_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The bits of `self` shifted right by `other`; the sign is kept."""
    @overload
    def roll(
        self,
        shift: Sequence[_b.int] | _b.int,
        axis: Sequence[_b.int] | _b.int | None = None,
    ) -> Tensor:
        """The elements rolled along axes: those shifted out at one end enter at the other."""
    @overload
    def roll(
        self,
        shift: Sequence[_b.int] | _b.int,
        dim: Sequence[_b.int] | _b.int | None = None,
    ) -> Tensor:
        """The elements rolled along axes: those shifted out at one end enter at the other."""
    def rot90(
        self,
        k: _b.int = 1,
        axes: Sequence[_b.int] | _b.int = ...,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """The tensor turned by 90 degrees in the plane of two axes, from the first to the second."""
    @overload
    def round(
        self,
    ) -> Tensor:
        """Each element rounded to the nearest integer, halves to the even one; integers are uncha..."""
    @overload
    def round(
        self,
        decimals: _b.int,
    ) -> Tensor:
        """Each element rounded to a number of decimal digits, halves to the even digit."""
    @overload
    def round_(
        self,
    ) -> Tensor:
        """Each element rounded to the nearest integer, halves to the even one; integers are uncha..."""
    @overload
    def round_(
        self,
        decimals: _b.int,
    ) -> Tensor:
        """Each element rounded to a number of decimal digits, halves to the even digit."""
    def rsqrt(
        self,
    ) -> Tensor:
        """One over the square root of each element."""
    def rsqrt_(
        self,
    ) -> Tensor:
        """One over the square root of each element."""
    @overload
    def scatter(
        self,
        axis: _b.int,
        index: _TensorLike,
        src: _TensorLike,
        *,
        reduce: _b.str | None = None,
    ) -> Tensor:
        """A copy of the tensor with values written to positions along one axis."""
    @overload
    def scatter(
        self,
        dim: _b.int,
        index: _TensorLike,
        src: _TensorLike,
        *,
        reduce: _b.str | None = None,
    ) -> Tensor:
        """A copy of the tensor with values written to positions along one axis."""
    @overload
    def scatter_(
        self,
        axis: _b.int,
        index: _TensorLike,
        src: _TensorLike,
        *,
        reduce: _b.str | None = None,
    ) -> Tensor:
        """A copy of the tensor with values written to positions along one axis."""
    @overload
    def scatter_(
        self,
        dim: _b.int,
        index: _TensorLike,
        src: _TensorLike,
        *,
        reduce: _b.str | None = None,
    ) -> Tensor:
        """A copy of the tensor with values written to positions along one axis."""
    @overload
    def scatter_add(
        self,
        axis: _b.int,
        index: _TensorLike,
        src: _TensorLike,
    ) -> Tensor:
        """A copy of the tensor with values added at positions along one axis; a position that rep..."""
    @overload
    def scatter_add(
        self,
        dim: _b.int,
        index: _TensorLike,
        src: _TensorLike,
    ) -> Tensor:
        """A copy of the tensor with values added at positions along one axis; a position that rep..."""
    @overload
    def scatter_add_(
        self,
        axis: _b.int,
        index: _TensorLike,
        src: _TensorLike,
    ) -> Tensor:
        """A copy of the tensor with values added at positions along one axis; a position that rep..."""
    @overload
    def scatter_add_(
        self,
        dim: _b.int,
        index: _TensorLike,
        src: _TensorLike,
    ) -> Tensor:
        """A copy of the tensor with values added at positions along one axis; a position that rep..."""
    @overload
    def scatter_reduce(
        self,
        axis: _b.int,
        index: _TensorLike,
        src: _TensorLike,
        reduce: _b.str,
        *,
        include_self: _b.bool = True,
    ) -> Tensor:
        """A copy of the tensor with elements at positions along one axis combined with all values..."""
    @overload
    def scatter_reduce(
        self,
        dim: _b.int,
        index: _TensorLike,
        src: _TensorLike,
        reduce: _b.str,
        *,
        include_self: _b.bool = True,
    ) -> Tensor:
        """A copy of the tensor with elements at positions along one axis combined with all values..."""
    @overload
    def scatter_reduce_(
        self,
        axis: _b.int,
        index: _TensorLike,
        src: _TensorLike,
        reduce: _b.str,
        *,
        include_self: _b.bool = True,
    ) -> Tensor:
        """A copy of the tensor with elements at positions along one axis combined with all values..."""
    @overload
    def scatter_reduce_(
        self,
        dim: _b.int,
        index: _TensorLike,
        src: _TensorLike,
        reduce: _b.str,
        *,
        include_self: _b.bool = True,
    ) -> Tensor:
        """A copy of the tensor with elements at positions along one axis combined with all values..."""
    def searchsorted(
        self,
        other: _TensorLike,
        side: _b.str = "left",
        sorter: _TensorLike | None = None,
    ) -> Tensor:
        """The positions at which values can be inserted into a sorted tensor so that it stays sor..."""
    def sgn(
        self,
    ) -> Tensor:
        """-1, 0 or 1 by the sign of each element, NaN for NaN; for complex numbers self / abs(self)."""
    def sgn_(
        self,
    ) -> Tensor:
        """-1, 0 or 1 by the sign of each element, NaN for NaN; for complex numbers self / abs(self)."""
    def sigmoid(
        self,
    ) -> Tensor:
        """1 / (1 + exp(-self)), without intermediate overflow."""
    def sigmoid_(
        self,
    ) -> Tensor:
        """1 / (1 + exp(-self)), without intermediate overflow."""
    def sign(
        self,
    ) -> Tensor:
        """-1, 0 or 1 by the sign of each element, NaN for NaN; for complex numbers self / abs(self)."""
    def sign_(
        self,
    ) -> Tensor:
        """-1, 0 or 1 by the sign of each element, NaN for NaN; for complex numbers self / abs(self)."""
    def signbit(
        self,
    ) -> Tensor:
        """Whether the sign bit is set, including -0.0 and NaN."""
    def signbit_(
        self,
    ) -> Tensor:
        """Whether the sign bit is set, including -0.0 and NaN."""
    def silu(
        self,
    ) -> Tensor:
        """self * sigmoid(self), also called swish."""
    def silu_(
        self,
    ) -> Tensor:
        """self * sigmoid(self), also called swish."""
    def sin(
        self,
    ) -> Tensor:
        """The sine of each element."""
    def sin_(
        self,
    ) -> Tensor:
        """The sine of each element."""
    def sinc(
        self,
    ) -> Tensor:
        """sin(pi * self) / (pi * self), and 1 at 0, where derivatives of any order are defined too."""
    def sinc_(
        self,
    ) -> Tensor:
        """sin(pi * self) / (pi * self), and 1 at 0, where derivatives of any order are defined too."""
    def sinh(
        self,
    ) -> Tensor:
        """The hyperbolic sine of each element."""
    def sinh_(
        self,
    ) -> Tensor:
        """The hyperbolic sine of each element."""
    @overload
    def softmax(
        self,
        axis: _b.int = -1,
    ) -> Tensor:
        """Softmax: exponentials normalized to sum to one along an axis."""
    @overload
    def softmax(
        self,
        dim: _b.int = -1,
    ) -> Tensor:
        """Softmax: exponentials normalized to sum to one along an axis."""
    def softplus(
        self,
    ) -> Tensor:
        """log(1 + exp(self)), without intermediate overflow."""
    def softplus_(
        self,
    ) -> Tensor:
        """log(1 + exp(self)), without intermediate overflow."""
    @overload
    def sort(
        self,
        *,
        axis: _b.int = -1,
        descending: _b.bool = False,
        stable: _b.bool = True,
    ) -> Tensor:
        """The elements in sorted order along an axis."""
    @overload
    def sort(
        self,
        *,
        dim: _b.int,
        descending: _b.bool = False,
        stable: _b.bool | None = None,
    ) -> ValuesAndIndices:
        """The elements in sorted order along an axis, and their indices."""
    @overload
    def split(
        self,
        sections: _b.int | Sequence[_b.int],
        axis: _b.int = 0,
    ) -> tuple[Tensor, ...]:
        """The tensor in parts along an axis, as views."""
    @overload
    def split(
        self,
        *,
        split_size: _b.int | Sequence[_b.int],
        dim: _b.int = 0,
    ) -> tuple[Tensor, ...]:
        """The tensor in parts of given sizes, as in PyTorch: the keywords ``dim`` and ``split_siz..."""
    @overload
    def split_with_sizes(
        self,
        split_sizes: Sequence[_b.int] | _b.int,
        axis: _b.int = 0,
    ) -> tuple[Tensor, ...]:
        """The tensor in parts of given lengths along an axis."""
    @overload
    def split_with_sizes(
        self,
        split_sizes: Sequence[_b.int] | _b.int,
        dim: _b.int = 0,
    ) -> tuple[Tensor, ...]:
        """The tensor in parts of given lengths along an axis."""
    def sqrt(
        self,
    ) -> Tensor:
        """The square root of each element; NaN for negative real elements."""
    def sqrt_(
        self,
    ) -> Tensor:
        """The square root of each element; NaN for negative real elements."""
    def square(
        self,
    ) -> Tensor:
        """The square of each element."""
    def square_(
        self,
    ) -> Tensor:
        """The square of each element."""
    @overload
    def squeeze(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """A view without axes of length 1."""
    @overload
    def squeeze(
        self,
        dim: Sequence[_b.int] | _b.int | None = None,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """A view without axes of length 1."""
    @overload
    def std(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        correction: _b.float = ...,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """The standard deviation of the elements over axes, the square root of `var`."""
    @overload
    def std(
        self,
        *,
        dim: Sequence[_b.int] | _b.int | None = None,
        unbiased: _b.bool | None = None,
        keepdim: _b.bool = False,
        correction: _b.float | None = None,
    ) -> Tensor:
        """The standard deviation of the elements over axes, the square root of ``var.dim``."""
    @overload
    def sub(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Difference of two tensors, elementwise."""
    @overload
    def sub(
        self,
        other: _TensorLike,
        *,
        alpha: _Number,
    ) -> Tensor:
        """`self - alpha * other`."""
    @overload
    def sub_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Difference of two tensors, elementwise."""
    @overload
    def sub_(
        self,
        other: _TensorLike,
        *,
        alpha: _Number,
    ) -> Tensor:
        """`self - alpha * other`."""
    @overload
    def subtract(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Difference of two tensors, elementwise."""
    @overload
    def subtract(
        self,
        other: _TensorLike,
        *,
        alpha: _Number,
    ) -> Tensor:
        """`self - alpha * other`."""
    @overload
    def subtract_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Difference of two tensors, elementwise."""
    @overload
    def subtract_(
        self,
        other: _TensorLike,
        *,
        alpha: _Number,
    ) -> Tensor:
        """`self - alpha * other`."""
    @overload
    def sum(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        dtype: _DTypeLike | None = None,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """The sum of the elements over axes; 0 if there are none."""
    @overload
    def sum(
        self,
        dim: Sequence[_b.int] | _b.int | None = None,
        *,
        dtype: _DTypeLike | None = None,
        keepdim: _b.bool = False,
    ) -> Tensor:
        """The sum of the elements over axes; 0 if there are none."""
    def swapaxes(
        self,
        axis1: _b.int,
        axis2: _b.int,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """A view with two axes exchanged."""
    def swapdims(
        self,
        axis1: _b.int,
        axis2: _b.int,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """A view with two axes exchanged."""
    def t(
        self,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """The transpose of a matrix; a vector and a tensor without axes are returned as they are."""
    @overload
    def take(
        self,
        indices: _TensorLike,
        axis: _b.int | None = None,
    ) -> Tensor:
        """The slices at integer positions along an axis."""
    @overload
    def take(
        self,
        indices: _TensorLike,
        dim: _b.int | None = None,
    ) -> Tensor:
        """The slices at integer positions along an axis."""
    @overload
    def take_along_axis(
        self,
        indices: _TensorLike,
        axis: _b.int = -1,
    ) -> Tensor:
        """The elements at positions along one axis that ``indices`` has for each element, such as..."""
    @overload
    def take_along_axis(
        self,
        indices: _TensorLike,
        dim: _b.int = -1,
    ) -> Tensor:
        """The elements at positions along one axis that ``indices`` has for each element, such as..."""
    @overload
    def take_along_dim(
        self,
        indices: _TensorLike,
        axis: _b.int = -1,
    ) -> Tensor:
        """The elements at positions along one axis that ``indices`` has for each element, such as..."""
    @overload
    def take_along_dim(
        self,
        indices: _TensorLike,
        dim: _b.int = -1,
    ) -> Tensor:
        """The elements at positions along one axis that ``indices`` has for each element, such as..."""
    def tan(
        self,
    ) -> Tensor:
        """The tangent of each element."""
    def tan_(
        self,
    ) -> Tensor:
        """The tangent of each element."""
    def tanh(
        self,
    ) -> Tensor:
        """The hyperbolic tangent of each element."""
    def tanh_(
        self,
    ) -> Tensor:
        """The hyperbolic tangent of each element."""
    def tensordot(
        self,
        other: _TensorLike,
        axes: _b.int | Sequence[_b.int | Sequence[_b.int]] = 2,
    ) -> Tensor:
        """Products summed over several axes of each operand."""
    @overload
    def tile(
        self,
        repetitions: Sequence[_b.int] | _b.int,
    ) -> Tensor:
        """The tensor repeated as a whole along each axis."""
    @overload
    def tile(
        self,
        *repetitions: _b.int,
    ) -> Tensor:
        """The tensor repeated as a whole along each axis."""
    @overload
    def topk(
        self,
        k: _b.int,
        axis: _b.int = -1,
        *,
        largest: _b.bool = True,
        sorted: _b.bool = True,
    ) -> ValuesAndIndices:
        """The k largest or smallest elements along an axis, and their indices."""
    @overload
    def topk(
        self,
        k: _b.int,
        dim: _b.int = -1,
        *,
        largest: _b.bool = True,
        sorted: _b.bool = True,
    ) -> ValuesAndIndices:
        """The k largest or smallest elements along an axis, and their indices."""
    def trace(
        self,
        offset: _b.int = 0,
        axis1: _b.int = 0,
        axis2: _b.int = 1,
    ) -> Tensor:
        """The sum along a diagonal of each matrix in a stack."""
    @overload
    def transpose(
        self,
        axes: Sequence[_b.int] | _b.int | None = None,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """A view with the axes in another order."""
    @overload
    def transpose(
        self,
        *axes: _b.int,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """A view with the axes in another order."""
    def tril(
        self,
        *,
        k: _b.int = 0,
    ) -> Tensor:
        """The lower triangles of a stack of matrices, zero above."""
    def tril_(
        self,
        *,
        k: _b.int = 0,
    ) -> Tensor:
        """The lower triangles of a stack of matrices, zero above."""
    def triu(
        self,
        *,
        k: _b.int = 0,
    ) -> Tensor:
        """The upper triangles of a stack of matrices, zero below."""
    def triu_(
        self,
        *,
        k: _b.int = 0,
    ) -> Tensor:
        """The upper triangles of a stack of matrices, zero below."""
    @overload
    def true_divide(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Quotient of two tensors, elementwise."""
    @overload
    def true_divide(
        self,
        other: _TensorLike,
        *,
        rounding_mode: _b.str | None,
    ) -> Tensor:
        """Quotients that are rounded."""
    @overload
    def true_divide_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Quotient of two tensors, elementwise."""
    @overload
    def true_divide_(
        self,
        other: _TensorLike,
        *,
        rounding_mode: _b.str | None,
    ) -> Tensor:
        """Quotients that are rounded."""
    def trunc(
        self,
    ) -> Tensor:
        """Each element rounded towards zero; integers are unchanged."""
    def trunc_(
        self,
    ) -> Tensor:
        """Each element rounded towards zero; integers are unchanged."""
    @overload
    def unbind(
        self,
        axis: _b.int = 0,
    ) -> tuple[Tensor, ...]:
        """Split a tensor into views along an axis, which they do not have."""
    @overload
    def unbind(
        self,
        dim: _b.int = 0,
    ) -> tuple[Tensor, ...]:
        """Split a tensor into views along an axis, which they do not have."""
    @overload
    def unflatten(
        self,
        axis: _b.int,
        sizes: Sequence[_b.int] | _b.int,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """The tensor with one axis replaced by several."""
    @overload
    def unflatten(
        self,
        dim: _b.int,
        sizes: Sequence[_b.int] | _b.int,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """The tensor with one axis replaced by several."""
    @overload
    def unfold(
        self,
        axis: _b.int,
        size: _b.int,
        step: _b.int,
    ) -> Tensor:
        """Windows along an axis, as a new last axis."""
    @overload
    def unfold(
        self,
        dim: _b.int,
        size: _b.int,
        step: _b.int,
    ) -> Tensor:
        """Windows along an axis, as a new last axis."""
    @overload
    def unsqueeze(
        self,
        axis: Sequence[_b.int] | _b.int = ...,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """A view with new axes of length 1; also called ``unsqueeze``."""
    @overload
    def unsqueeze(
        self,
        dim: Sequence[_b.int] | _b.int = ...,
        *,
        copy: _b.bool | None = None,
    ) -> Tensor:
        """A view with new axes of length 1; also called ``unsqueeze``."""
    @overload
    def unstack(
        self,
        axis: _b.int = 0,
    ) -> tuple[Tensor, ...]:
        """Split a tensor into views along an axis, which they do not have."""
    @overload
    def unstack(
        self,
        dim: _b.int = 0,
    ) -> tuple[Tensor, ...]:
        """Split a tensor into views along an axis, which they do not have."""
    @overload
    def var(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        correction: _b.float = ...,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """The variance of the elements over axes."""
    @overload
    def var(
        self,
        *,
        dim: Sequence[_b.int] | _b.int | None = None,
        unbiased: _b.bool | None = None,
        keepdim: _b.bool = False,
        correction: _b.float | None = None,
    ) -> Tensor:
        """The variance of the elements over axes, divided by N - 1."""
    def vdot(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The sum of the products of all elements, those of `self` conjugated."""
    @overload
    def vecdot(
        self,
        other: _TensorLike,
        *,
        axis: _b.int = -1,
    ) -> Tensor:
        """The sum of products along one axis; of complex tensors, those with the conjugate of ``s..."""
    @overload
    def vecdot(
        self,
        other: _TensorLike,
        *,
        dim: _b.int = -1,
    ) -> Tensor:
        """The sum of products along one axis; of complex tensors, those with the conjugate of ``s..."""
    def vsplit(
        self,
        sections: _b.int | Sequence[_b.int],
    ) -> tuple[Tensor, ...]:
        """The tensor in parts along the first axis, as views."""
    @property
    def H(self) -> Tensor:
        """The conjugate transpose of a matrix; a view of a real one."""
    @property
    def T(self) -> Tensor:
        """The tensor with all axes in reverse order, as in NumPy: the transpose of a matrix."""
    def __array_function__(
        self,
        function: Function,
        types: object,
        args: Args,
        kwargs: Kwargs,
    ) -> object:
        """Run a NumPy function with tandem, such as ``np.mean(x)``; see :mod:`.interop.numpy_prot..."""
    @property
    def __array_interface__(self) -> dict[_b.str, object]:
        """The memory as NumPy's array interface describes it, which Pillow reads."""
    def __array_namespace__(
        self,
        *,
        api_version: _b.str | None = None,
    ) -> ModuleType:
        """The module ``tandem``, which has the functions of the Array API standard."""
    def __array_ufunc__(
        self,
        ufunc: _np.ufunc,
        method: _b.str,
        *inputs: object,
        **options: Any,
    ) -> object:
        """Run a NumPy ufunc with tandem, such as ``np.add(x, 1)``; see :mod:`.interop.numpy_proto..."""
    def __buffer__(
        self,
        flags: _b.int = 0,
    ) -> memoryview:
        """The elements as a ``memoryview`` on the same memory; ``memoryview(x)`` calls it from Py..."""
    def __bytes__(
        self,
    ) -> bytes:
        """The elements as bytes, in row-major order."""
    def __contains__(
        self,
        value: _TensorLike,
    ) -> _b.bool:
        """Whether an element equals ``value``."""
    def __copy__(
        self,
    ) -> Tensor:
        """A copy in new memory (as NumPy's), of the elements alone."""
    def __deepcopy__(
        self,
        memo: dict[_b.int, object],
    ) -> Tensor:
        """A copy in new memory, which copies of its views share; a leaf stays a leaf, with a copy..."""
    def __dir__(
        self,
    ) -> list[_b.str]:
        """``dir`` of a tensor: the attributes that it has."""
    def __getitem__(
        self,
        index: object,
    ) -> Tensor:
        """The elements that an index selects: a view for ints, slices, ``...`` and None, else a c..."""
    def __iter__(
        self,
    ) -> Iterator[Tensor]:
        """The sub-tensors along the first axis."""
    def __reduce_ex__(
        self,
        protocol: SupportsIndex,
    ) -> tuple[Function, Args]:
        """Reduce a leaf to its elements, or its storage if memory is shared, and its autograd flags."""
    def __repr__(
        self,
    ) -> _b.str:
        """``repr`` of a tensor."""
    def __setitem__(
        self,
        index: object,
        value: object,
    ) -> None:
        """Write ``value``, broadcast and cast to the tensor's dtype, into the elements that an in..."""
    def __str__(
        self,
    ) -> _b.str:
        """``str`` of a tensor."""
    def _become_shape(
        self,
        shape: _b.int | Sequence[_b.int],
    ) -> None:
        """Set ``x.shape``: the same elements in another shape, without a copy; one size may be -1."""
    def _repr_html_(
        self,
    ) -> _b.str:
        """The HTML that notebooks show."""
    @property
    def _version(self) -> _b.int:
        """The number of in-place writes into the memory."""
    def _without_history(
        self,
    ) -> Tensor:
        """The tensor without its graph node; subclasses override this."""
    def adjoint(
        self,
    ) -> Tensor:
        """The conjugate transposes of a stack of matrices; a view of real ones."""
    def apply_(
        self,
        function: Callable[[object], object],
    ) -> Tensor:
        """Replace each element by ``function(element)``, called with Python numbers; return the t..."""
    def argpartition(
        self,
        kth: _b.int,
        axis: _b.int = -1,
    ) -> Tensor:
        """The indices that put the k-th smallest element at its sorted position, smaller ones bef..."""
    @property
    def at(self) -> At:
        """Functional updates: ``x.at[index].set(v)``, ``.add``, ``.multiply``, ``.divide``, ``.mi..."""
    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: _b.bool | None = None,
        create_graph: _b.bool = False,
        inputs: Tensor | Sequence[Tensor] | None = None,
    ) -> None:
        """Add the gradient of this tensor by each leaf that it depends on to the leaf's ``grad``."""
    def bernoulli(
        self,
        p: _b.float | None = None,
        *,
        generator: Generator | None = None,
        out: Tensor | None = None,
    ) -> Tensor:
        """Ones with the probabilities of the elements, or ``p``, and zeros, in the dtype of the t..."""
    def bernoulli_(
        self,
        p: Tensor | _b.float = 0.5,
        *,
        generator: Generator | None = None,
    ) -> Tensor:
        """Fill the tensor with ones, with probabilities ``p``, and zeros."""
    def bfloat16(
        self,
    ) -> Tensor:
        """Convert the tensor to bfloat16; return the tensor itself if it has that dtype."""
    def block_until_ready(
        self,
    ) -> Tensor:
        """Wait until the work on all devices is done, and return the tensor, as in JAX."""
    def bool(
        self,
    ) -> Tensor:
        """Convert the tensor to bool; return the tensor itself if it has that dtype."""
    def byte(
        self,
    ) -> Tensor:
        """Convert the tensor to uint8; return the tensor itself if it has that dtype."""
    def cauchy_(
        self,
        median: _b.float = 0.0,
        sigma: _b.float = 1.0,
        *,
        generator: Generator | None = None,
    ) -> Tensor:
        """Fill the tensor with random numbers of a Cauchy distribution."""
    def cdouble(
        self,
    ) -> Tensor:
        """Convert the tensor to complex128; return the tensor itself if it has that dtype."""
    def cfloat(
        self,
    ) -> Tensor:
        """Convert the tensor to complex64; return the tensor itself if it has that dtype."""
    def char(
        self,
    ) -> Tensor:
        """Convert the tensor to int8; return the tensor itself if it has that dtype."""
    def cholesky(
        self,
        upper: _b.bool = False,
    ) -> Tensor:
        """The Cholesky factors of positive definite matrices: :func:`tandem.linalg.cholesky`."""
    def cholesky_inverse(
        self,
        upper: _b.bool = False,
    ) -> Tensor:
        """The inverses of the matrices with given Cholesky factors."""
    def cholesky_solve(
        self,
        L: Tensor,
        upper: _b.bool = False,
    ) -> Tensor:
        """The solutions of ``A @ x = input`` for the matrices ``A`` with the Cholesky factors ``L``."""
    def coalesce(
        self,
    ) -> Tensor:
        """Sort the indices of a sparse tensor and add values of equal indices; return a dense ten..."""
    def compress(
        self,
        condition: _TensorLike,
        axis: _b.int | None = None,
    ) -> Tensor:
        """The slices along an axis where a condition is true; None: of the flattened tensor."""
    def conj_physical(
        self,
    ) -> Tensor:
        """The complex conjugate of each element."""
    def conj_physical_(
        self,
    ) -> Tensor:
        """The complex conjugate of each element."""
    def const_data_ptr(
        self,
    ) -> _b.int:
        """The address of the first element."""
    def copy_(
        self,
        source: object,
    ) -> Tensor:
        """Write the elements of ``source``, broadcast and cast, into the tensor; returns the tensor."""
    def cpu(
        self,
    ) -> Tensor:
        """Move the tensor to the host; return the tensor itself if it is there."""
    def cuda(
        self,
        device: _b.int | _b.str | None = None,
        non_blocking: _b.bool = False,
    ) -> Tensor:
        """Move the tensor to a CUDA device; return the tensor itself if it is there."""
    @property
    def data(self) -> Tensor:
        """The elements without the graph: a tensor on the same memory with a version of its own."""
    @data.setter
    def data(self, value: Tensor) -> None: ...
    def data_ptr(
        self,
    ) -> _b.int:
        """The address of the first element."""
    def delete(
        self,
    ) -> None:
        """Release a tensor's memory, as ``jax.Array.delete`` does; its later use is an error. Vie..."""
    def dense_dim(
        self,
    ) -> _b.int:
        """The number of axes without indices: none of a sparse tensor, all of a dense one."""
    def det(
        self,
    ) -> Tensor:
        """The determinants of a stack of square matrices: :func:`tandem.linalg.det`."""
    def detach(
        self,
    ) -> Tensor:
        """A view of all elements that is detached from the graph: no gradient flows through it."""
    def detach_(
        self,
    ) -> Tensor:
        """Detach the tensor from the graph: it becomes a leaf that requires no gradient. Returns ..."""
    def diag_embed(
        self,
        offset: _b.int = 0,
        dim1: _b.int = -2,
        dim2: _b.int = -1,
    ) -> Tensor:
        """Matrices whose diagonals are the last axis of the tensor, along two new axes."""
    def diagonal_scatter(
        self,
        src: Tensor,
        offset: _b.int = 0,
        dim1: _b.int = 0,
        dim2: _b.int = 1,
    ) -> Tensor:
        """A copy of the tensor with ``src`` on a diagonal of its matrices."""
    def digamma(
        self,
    ) -> Tensor:
        """The derivative of `lgamma`: :func:`tandem.special.digamma`."""
    def digamma_(
        self,
    ) -> Tensor:
        """The derivative of `lgamma`: :func:`tandem.special.digamma`."""
    def dim(
        self,
    ) -> _b.int:
        """The number of axes."""
    def dim_order(
        self,
    ) -> tuple[_b.int, ...]:
        """The axes in the order of their strides, the largest first."""
    def dist(
        self,
        other: Tensor,
        p: _b.float = 2,
    ) -> Tensor:
        """The norm of the difference of two tensors that broadcast."""
    def double(
        self,
    ) -> Tensor:
        """Convert the tensor to float64; return the tensor itself if it has that dtype."""
    def element_size(
        self,
    ) -> _b.int:
        """The bytes of one element."""
    def erfinv(
        self,
    ) -> Tensor:
        """The inverse of the error function: :func:`tandem.special.erfinv`."""
    def erfinv_(
        self,
    ) -> Tensor:
        """The inverse of the error function: :func:`tandem.special.erfinv`."""
    def expand_as(
        self,
        other: Tensor,
    ) -> Tensor:
        """A view broadcast to the shape of another tensor."""
    def exponential_(
        self,
        lambd: _b.float = 1.0,
        *,
        generator: Generator | None = None,
    ) -> Tensor:
        """Fill the tensor with random numbers of an exponential distribution of rate ``lambd``."""
    def fill(
        self,
        value: object,
    ) -> None:
        """Write one value into all elements."""
    def fill_(
        self,
        value: object,
    ) -> Tensor:
        """Write one value into all elements; returns the tensor."""
    def fill_diagonal_(
        self,
        fill_value: _TensorLike,
        wrap: _b.bool = False,
    ) -> Tensor:
        """Write a value to the diagonal, in place; ``wrap``: it begins again below the square par..."""
    @property
    def flags(self) -> MemoryFlags:
        """Layout and writability of the memory, as in NumPy: ``x.flags.c_contiguous``, ``x.flags[..."""
    def float(
        self,
    ) -> Tensor:
        """Convert the tensor to float32; return the tensor itself if it has that dtype."""
    def geometric_(
        self,
        p: _b.float,
        *,
        generator: Generator | None = None,
    ) -> Tensor:
        """Fill the tensor with the numbers of trials up to the first success, whose probability i..."""
    def geqrf(
        self,
    ) -> tuple[Tensor, Tensor]:
        """The QR factorization as LAPACK's geqrf returns it: R with the reflections below its dia..."""
    def get_device(
        self,
    ) -> _b.int:
        """The number of the CUDA device; -1 on the host."""
    @property
    def grad_fn(self) -> GraphFunction | None:
        """The recorded operation that computed the tensor, with ``name()`` and ``next_functions``..."""
    def half(
        self,
    ) -> Tensor:
        """Convert the tensor to float16; return the tensor itself if it has that dtype."""
    def hardshrink(
        self,
        lambd: _b.float = 0.5,
    ) -> Tensor:
        """The elements whose magnitude is greater than ``lambd``; 0 in place of the others."""
    def histc(
        self,
        bins: _b.int = 100,
        min: _b.float = 0,
        max: _b.float = 0,
    ) -> Tensor:
        """The numbers of elements in intervals of equal width, in the dtype of the tensor."""
    def histogram(
        self,
        bins: _b.int | Tensor,
        *,
        range: tuple[_b.float, _b.float] | None = None,
        weight: Tensor | None = None,
        density: _b.bool = False,
    ) -> Histogram:
        """The numbers of elements between bounds, or the sums of their weights, and the bounds."""
    def i0(
        self,
    ) -> Tensor:
        """The modified Bessel function of order 0: :func:`tandem.special.i0`."""
    def i0_(
        self,
    ) -> Tensor:
        """The modified Bessel function of order 0: :func:`tandem.special.i0`."""
    def igamma(
        self,
        other: Tensor,
    ) -> Tensor:
        """The regularized lower incomplete gamma function: :func:`tandem.special.gammainc`."""
    def igamma_(
        self,
        other: Tensor,
    ) -> Tensor:
        """The regularized lower incomplete gamma function: :func:`tandem.special.gammainc`."""
    def igammac(
        self,
        other: Tensor,
    ) -> Tensor:
        """The regularized upper incomplete gamma function: :func:`tandem.special.gammaincc`."""
    def igammac_(
        self,
        other: Tensor,
    ) -> Tensor:
        """The regularized upper incomplete gamma function: :func:`tandem.special.gammaincc`."""
    @property
    def imag(self) -> Tensor:
        """A view of the imaginary part of each element; 0 for real elements."""
    @imag.setter
    def imag(self, value: _TensorLike) -> None: ...
    def index_put(
        self,
        indices: Sequence[Tensor],
        values: _TensorLike,
        accumulate: _b.bool = False,
    ) -> Tensor:
        """A copy of the tensor with values written, or added, to the elements that index tensors ..."""
    def index_put_(
        self,
        indices: Sequence[Tensor],
        values: _TensorLike,
        accumulate: _b.bool = False,
    ) -> Tensor:
        """Write values, or add them, to the elements that index tensors select; return the tensor."""
    def index_reduce(
        self,
        dim: _b.int,
        index: Tensor,
        source: Tensor,
        reduce: _b.str,
        *,
        include_self: _b.bool = True,
    ) -> Tensor:
        """A copy of the tensor with slices combined into its slices at indices along an axis."""
    def index_reduce_(
        self,
        dim: _b.int,
        index: Tensor,
        source: Tensor,
        reduce: _b.str,
        *,
        include_self: _b.bool = True,
    ) -> Tensor:
        """A copy of the tensor with slices combined into its slices at indices along an axis."""
    def int(
        self,
    ) -> Tensor:
        """Convert the tensor to int32; return the tensor itself if it has that dtype."""
    def inverse(
        self,
    ) -> Tensor:
        """The inverses of a stack of square matrices: :func:`tandem.linalg.inv`."""
    def is_complex(
        self,
    ) -> _b.bool:
        """Whether the elements are complex numbers."""
    def is_conj(
        self,
    ) -> _b.bool:
        """False: conjugates are computed at once, so no tensor is a delayed one."""
    @property
    def is_cpu(self) -> _b.bool:
        """Whether the tensor is on the device 'cpu'."""
    @property
    def is_cuda(self) -> _b.bool:
        """Whether the tensor is on the device 'cuda'."""
    def is_deleted(
        self,
    ) -> _b.bool:
        """Whether the memory of a tensor is gone, as for JAX's arrays."""
    def is_floating_point(
        self,
    ) -> _b.bool:
        """Whether the elements are real floating-point numbers."""
    def is_inference(
        self,
    ) -> _b.bool:
        """False: tensors made in ``inference_mode`` are ordinary ones."""
    @property
    def is_meta(self) -> _b.bool:
        """Whether the tensor is on the device 'meta'."""
    def is_nonzero(
        self,
    ) -> _b.bool:
        """Whether the only element differs from zero."""
    def is_same_size(
        self,
        other: Tensor,
    ) -> _b.bool:
        """Whether two tensors have the same shape."""
    def is_set_to(
        self,
        tensor: Tensor,
    ) -> _b.bool:
        """Whether two tensors have the same memory, shape and strides."""
    def is_signed(
        self,
    ) -> _b.bool:
        """Whether the dtype has negative numbers."""
    @property
    def is_sparse(self) -> _b.bool:
        """Whether the tensor is sparse, with coordinates and values (COO)."""
    def istft(
        self,
        n_fft: _b.int,
        hop_length: _b.int | None = None,
        win_length: _b.int | None = None,
        window: Tensor | None = None,
        center: _b.bool = True,
        normalized: _b.bool = False,
        onesided: _b.bool | None = None,
        length: _b.int | None = None,
        return_complex: _b.bool = False,
    ) -> Tensor:
        """The signal with given spectra of its parts: the inverse of :func:`stft`."""
    def lgamma(
        self,
    ) -> Tensor:
        """The logarithm of the magnitude of the gamma function: :func:`tandem.special.gammaln`."""
    def lgamma_(
        self,
    ) -> Tensor:
        """The logarithm of the magnitude of the gamma function: :func:`tandem.special.gammaln`."""
    def log_normal_(
        self,
        mean: _b.float = 1.0,
        std: _b.float = 2.0,
        *,
        generator: Generator | None = None,
    ) -> Tensor:
        """Fill the tensor with exponentials of random numbers of a normal distribution."""
    def logdet(
        self,
    ) -> Tensor:
        """The logarithms of determinants; NaN for negative ones, minus infinity for 0."""
    def logit(
        self,
        eps: _b.float | None = None,
    ) -> Tensor:
        """log(x / (1 - x)): :func:`tandem.special.logit`, of x limited to the interval from ``eps..."""
    def logit_(
        self,
        eps: _b.float | None = None,
    ) -> Tensor:
        """log(x / (1 - x)): :func:`tandem.special.logit`, of x limited to the interval from ``eps..."""
    def long(
        self,
    ) -> Tensor:
        """Convert the tensor to int64; return the tensor itself if it has that dtype."""
    def lu(
        self,
        pivot: _b.bool = True,
        get_infos: _b.bool = False,
    ) -> tuple[Tensor, ...]:
        """The LU factors and the exchanges of rows: :func:`tandem.linalg.lu_factor`; zeros as ``i..."""
    def lu_solve(
        self,
        LU_data: Tensor,
        LU_pivots: Tensor,
    ) -> Tensor:
        """The solutions of ``A @ x = b`` for matrices with given LU factors: :func:`tandem.linalg..."""
    @property
    def mH(self) -> Tensor:
        """The conjugate transposes of a stack of matrices; a view of real ones."""
    @property
    def mT(self) -> Tensor:
        """The transposes of a stack of matrices: the last two axes swapped."""
    def map_(
        self,
        other: Tensor,
        function: Callable[[object, object], object],
    ) -> Tensor:
        """Replace each element by ``function(element, element of other)``, and return the tensor."""
    def masked_select(
        self,
        mask: Tensor,
    ) -> Tensor:
        """The elements where a mask is true, as a vector; the shapes broadcast."""
    def matrix_exp(
        self,
    ) -> Tensor:
        """The exponentials of square matrices: :func:`tandem.linalg.matrix_exp`."""
    def matrix_power(
        self,
        n: _b.int,
    ) -> Tensor:
        """The powers of a stack of square matrices: :func:`tandem.linalg.matrix_power`."""
    def msort(
        self,
    ) -> Tensor:
        """The elements in order along the first axis."""
    def multinomial(
        self,
        num_samples: _b.int,
        replacement: _b.bool = False,
        *,
        generator: Generator | None = None,
        out: Tensor | None = None,
    ) -> Tensor:
        """Indices that are drawn with the weights of a vector, or of the rows of a matrix."""
    def mvlgamma(
        self,
        p: _b.int,
    ) -> Tensor:
        """The logarithm of the multivariate gamma function of dimension ``p``."""
    def mvlgamma_(
        self,
        p: _b.int,
    ) -> Tensor:
        """The logarithm of the multivariate gamma function of dimension ``p``."""
    def narrow_copy(
        self,
        dim: _b.int,
        start: _b.int,
        length: _b.int,
    ) -> Tensor:
        """A copy of a slice of an axis."""
    def ndimension(
        self,
    ) -> _b.int:
        """The number of axes."""
    def nelement(
        self,
    ) -> _b.int:
        """The number of elements."""
    def new_empty(
        self,
        *shape: _b.int | Sequence[_b.int],
        dtype: _DTypeLike | None = None,
        device: _b.str | None = None,
        requires_grad: _b.bool = False,
    ) -> Tensor:
        """A tensor for values to be written, with the dtype and on the device of this one; its el..."""
    def new_full(
        self,
        shape: Sequence[_b.int],
        fill_value: object,
        *,
        dtype: _DTypeLike | None = None,
        device: _b.str | None = None,
        requires_grad: _b.bool = False,
    ) -> Tensor:
        """A tensor of one value with the dtype and on the device of this one."""
    def new_ones(
        self,
        *shape: _b.int | Sequence[_b.int],
        dtype: _DTypeLike | None = None,
        device: _b.str | None = None,
        requires_grad: _b.bool = False,
    ) -> Tensor:
        """A tensor of ones with the dtype and on the device of this one."""
    def new_tensor(
        self,
        data: _TensorLike | Sequence[object],
        *,
        dtype: _DTypeLike | None = None,
        device: _b.str | None = None,
        requires_grad: _b.bool = False,
    ) -> Tensor:
        """A tensor of a copy of ``data`` with the dtype and on the device of this one."""
    def new_zeros(
        self,
        *shape: _b.int | Sequence[_b.int],
        dtype: _DTypeLike | None = None,
        device: _b.str | None = None,
        requires_grad: _b.bool = False,
    ) -> Tensor:
        """A tensor of zeros with the dtype and on the device of this one."""
    def nonzero_static(
        self,
        *,
        size: _b.int,
        fill_value: _b.int = -1,
    ) -> Tensor:
        """The indices of the first ``size`` elements that are not 0, as rows; rows of ``fill_valu..."""
    def norm(
        self,
        p: _b.float | _b.str | None = "fro",
        dim: _b.int | Sequence[_b.int] | None = None,
        keepdim: _b.bool = False,
        *,
        dtype: _DTypeLike | None = None,
    ) -> Tensor:
        """The norms of vectors along axes, or of all elements; ``"nuc"``: the sum of a matrix's s..."""
    def normal_(
        self,
        mean: _b.float = 0.0,
        std: _b.float = 1.0,
        *,
        generator: Generator | None = None,
    ) -> Tensor:
        """Fill the tensor with random numbers of a normal distribution."""
    def numel(
        self,
    ) -> _b.int:
        """The number of elements."""
    def orgqr(
        self,
        tau: Tensor,
    ) -> Tensor:
        """The first columns of the products of Householder reflections."""
    def ormqr(
        self,
        tau: Tensor,
        other: Tensor,
        left: _b.bool = True,
        transpose: _b.bool = False,
    ) -> Tensor:
        """The product of a matrix with the square Q of Householder reflections."""
    def pin_memory(
        self,
    ) -> Tensor:
        """A copy in page-locked host memory, which a CUDA device can read directly."""
    def pinverse(
        self,
    ) -> Tensor:
        """The pseudoinverses of a stack of matrices: :func:`tandem.linalg.pinv`."""
    def polygamma(
        self,
        n: _b.int,
    ) -> Tensor:
        """The n-th derivative of :func:`tandem.special.digamma`."""
    def polygamma_(
        self,
        n: _b.int,
    ) -> Tensor:
        """The n-th derivative of :func:`tandem.special.digamma`."""
    def put(
        self,
        indices: _TensorLike,
        values: _TensorLike,
        mode: _b.str = "raise",
    ) -> None:
        """Write values at positions of the flattened tensor."""
    def put_(
        self,
        index: Tensor,
        source: Tensor,
        accumulate: _b.bool = False,
    ) -> Tensor:
        """Write values, or add them, at indices of the flattened tensor, in place."""
    def qr(
        self,
        some: _b.bool = True,
    ) -> QRResult:
        """The factors Q and R; ``some=False``: with a square Q."""
    def random_(
        self,
        from_: _b.int | None = None,
        to: _b.int | None = None,
        *,
        generator: Generator | None = None,
    ) -> Tensor:
        """Fill the tensor with random integers: below one bound, from one to below the other, or ..."""
    @property
    def real(self) -> Tensor:
        """A view of the real part of each element; the tensor itself if they are real."""
    @real.setter
    def real(self, value: _TensorLike) -> None: ...
    def register_hook(
        self,
        hook: Hook,
    ) -> RemovableHandle:
        """Register a backward hook, a function of the gradient of this tensor."""
    def register_post_accumulate_grad_hook(
        self,
        hook: Hook,
    ) -> RemovableHandle:
        """Register a function of this leaf that ``backward`` calls when it has added to ``grad``."""
    def renorm(
        self,
        p: _b.float,
        dim: _b.int,
        maxnorm: _b.float,
    ) -> Tensor:
        """The tensor with each sub-tensor along an axis scaled down to a norm of at most ``maxnor..."""
    def renorm_(
        self,
        p: _b.float,
        dim: _b.int,
        maxnorm: _b.float,
    ) -> Tensor:
        """The tensor with each sub-tensor along an axis scaled down to a norm of at most ``maxnor..."""
    def requires_grad_(
        self,
        requires_grad: _b.bool = True,
    ) -> Tensor:
        """Record operations on this tensor from now on, or stop recording; return the tensor."""
    def reshape_as(
        self,
        other: Tensor,
    ) -> Tensor:
        """The elements in the shape of another tensor: a view where possible."""
    def resize_(
        self,
        *sizes: _b.int | Sequence[_b.int],
    ) -> Tensor:
        """Change the shape in place; a larger tensor gets new memory, whose additional elements a..."""
    def resize_as_(
        self,
        tensor: Tensor,
    ) -> Tensor:
        """Change the shape in place to that of another tensor, as :func:`resize_`."""
    def resolve_conj(
        self,
    ) -> Tensor:
        """The tensor itself: conjugates are computed at once."""
    def resolve_neg(
        self,
    ) -> Tensor:
        """The tensor itself: negations are computed at once."""
    def retain_grad(
        self,
    ) -> None:
        """Store the gradient in ``grad`` during ``backward``, although the tensor is not a leaf."""
    @property
    def retains_grad(self) -> _b.bool:
        """Whether ``retain_grad`` was called, so that ``backward`` fills ``grad`` although the te..."""
    def select(
        self,
        axis: _b.int,
        index: _b.int,
    ) -> Tensor:
        """The view of the slice at one position along an axis, which is removed."""
    def select_scatter(
        self,
        src: Tensor,
        dim: _b.int,
        index: _b.int,
    ) -> Tensor:
        """A copy of the tensor with ``src`` at one index along an axis."""
    def set_(
        self,
        source: Tensor,
    ) -> Tensor:
        """Let the tensor share the memory, shape and strides of another one of the same dtype."""
    def short(
        self,
    ) -> Tensor:
        """Convert the tensor to int16; return the tensor itself if it has that dtype."""
    def slice_scatter(
        self,
        src: Tensor,
        dim: _b.int = 0,
        start: _b.int | None = None,
        end: _b.int | None = None,
        step: _b.int = 1,
    ) -> Tensor:
        """A copy of the tensor with ``src`` in a slice of an axis."""
    def slogdet(
        self,
    ) -> SlogdetResult:
        """The signs of determinants and the logarithms of their magnitudes: :func:`tandem.linalg...."""
    def sparse_dim(
        self,
    ) -> _b.int:
        """The number of axes that have indices: all of a sparse tensor, none of a dense one."""
    def squeeze_(
        self,
        dim: _b.int | Sequence[_b.int] | None = None,
    ) -> Tensor:
        """Remove axes of length 1 in place, all or the given ones; other axes stay."""
    def stft(
        self,
        n_fft: _b.int,
        hop_length: _b.int | None = None,
        win_length: _b.int | None = None,
        window: Tensor | None = None,
        center: _b.bool = True,
        pad_mode: _b.str = "reflect",
        normalized: _b.bool = False,
        onesided: _b.bool | None = None,
        return_complex: _b.bool | None = None,
    ) -> Tensor:
        """The spectra of overlapping parts of a signal."""
    def stride(
        self,
        axis: _b.int | None = None,
    ) -> _b.int | tuple[_b.int, ...]:
        """The elements to step over from one index to the next: of one axis, or of all as a tuple."""
    def sum_to_size(
        self,
        *size: _b.int | Sequence[_b.int],
    ) -> Tensor:
        """The sum over the axes that broadcasting a tensor of a shape to this one's would repeat."""
    def svd(
        self,
        some: _b.bool = True,
        compute_uv: _b.bool = True,
    ) -> SingularVectors:
        """Singular values, and the vectors as the columns of U and V: ``input = U @ diag(S) @ V.m..."""
    def swapaxes_(
        self,
        axis0: _b.int,
        axis1: _b.int,
    ) -> Tensor:
        """Exchange two axes in place, without a copy."""
    def swapdims_(
        self,
        dim0: _b.int,
        dim1: _b.int,
    ) -> Tensor:
        """Exchange two axes in place, without a copy."""
    def t_(
        self,
    ) -> Tensor:
        """Exchange the two axes of a matrix in place, without a copy."""
    def tensor_split(
        self,
        indices_or_sections: _b.int | Sequence[_b.int],
        dim: _b.int = 0,
    ) -> tuple[Tensor, ...]:
        """Views of a number of parts of almost one size, or cut at the given indices."""
    def to(
        self,
        *target: _DTypeLike | Tensor | None,
        dtype: _DTypeLike | None = None,
        device: _b.str | None = None,
        copy: _b.bool = False,
        non_blocking: _b.bool = False,
        memory_format: object = None,
    ) -> Tensor:
        """Convert the tensor to another dtype, another device, or both."""
    def to_dense(
        self,
    ) -> Tensor:
        """Convert to a dense tensor; return a dense tensor itself."""
    def to_device(
        self,
        device: _b.str,
        *,
        stream: AbstractContextManager[object] | None = None,
    ) -> Tensor:
        """Move the tensor to a device; return the tensor itself if it is there."""
    def to_sparse(
        self,
        layout: _b.str = "sparse_coo",
    ) -> SparseTensor:
        """Convert to a sparse tensor, which stores only the elements that are not zero."""
    def to_sparse_coo(
        self,
    ) -> SparseTensor:
        """The tensor in the layout ``td.sparse_coo``."""
    def to_sparse_csr(
        self,
    ) -> SparseTensor:
        """The matrix in the layout ``td.sparse_csr``."""
    def tobytes(
        self,
        order: _b.str = "C",
    ) -> bytes:
        """The elements as bytes, in the order of the last axis first; ``"F"``: of the first."""
    def tofile(
        self,
        fid: object,
        sep: _b.str = "",
        format: _b.str = "%s",
    ) -> None:
        """Write the elements to a file, as bytes, or as text with a separator."""
    def transpose_(
        self,
        dim0: _b.int,
        dim1: _b.int,
    ) -> Tensor:
        """Exchange two axes in place, without a copy."""
    def triangular_solve(
        self,
        A: Tensor,
        upper: _b.bool = True,
        transpose: _b.bool = False,
        unitriangular: _b.bool = False,
    ) -> TriangularSolution:
        """The solutions of ``A @ x = input`` for triangular matrices, and the matrices."""
    def type(
        self,
        dtype: _DTypeLike | Callable[..., Tensor] | None = None,
    ) -> Tensor | _b.str:
        """Convert the tensor to a dtype; without an argument, return the name of its dtype."""
    def type_as(
        self,
        other: Tensor,
    ) -> Tensor:
        """Convert the tensor to the dtype of another and move it to the device of that."""
    def uniform_(
        self,
        from_: _b.float = 0.0,
        to: _b.float = 1.0,
        *,
        generator: Generator | None = None,
    ) -> Tensor:
        """Fill the tensor with uniform random numbers between two bounds."""
    def unique(
        self,
        sorted: _b.bool = True,
        return_inverse: _b.bool = False,
        return_counts: _b.bool = False,
        dim: _b.int | None = None,
        *,
        size: _b.int | None = None,
        fill_value: _b.float | None = None,
    ) -> Tensor | tuple[Tensor, ...]:
        """The different elements, or slices along ``dim``, always in ascending order; their group..."""
    def unique_consecutive(
        self,
        return_inverse: _b.bool = False,
        return_counts: _b.bool = False,
        dim: _b.int | None = None,
    ) -> Tensor | tuple[Tensor, ...]:
        """The tensor without the elements that equal the one before; with ``dim``, slices along t..."""
    def unsqueeze_(
        self,
        dim: _b.int,
    ) -> Tensor:
        """Insert an axis of length 1 in place."""
    def untyped_storage(
        self,
    ) -> object:
        """The memory that it shares with its views: its address and size in bytes."""
    def view(
        self,
        *shape: _b.int | Sequence[_b.int] | _DTypeLike,
        dtype: _DTypeLike | None = None,
    ) -> Tensor:
        """A view of the same elements in another shape, or of the same memory as elements of anot..."""
    def view_as(
        self,
        other: Tensor,
    ) -> Tensor:
        """A view in the shape of another tensor."""
    def where(
        self,
        condition: Tensor,
        y: _TensorLike,
    ) -> Tensor:
        """The elements of the tensor where a condition is true, and those of ``y`` elsewhere."""
    def xlogy(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """self * log(other), and 0 where ``self`` is 0: :func:`tandem.special.xlogy`."""
    def xlogy_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """self * log(other), and 0 where ``self`` is 0: :func:`tandem.special.xlogy`."""
    def zero_(
        self,
    ) -> Tensor:
        """Write zeros; returns the tensor."""
    def __add__(self, other: _TensorLike) -> Tensor: ...
    def __radd__(self, other: _TensorLike) -> Tensor: ...
    def __iadd__(self, other: _TensorLike) -> Tensor: ...
    def __sub__(self, other: _TensorLike) -> Tensor: ...
    def __rsub__(self, other: _TensorLike) -> Tensor: ...
    def __isub__(self, other: _TensorLike) -> Tensor: ...
    def __mul__(self, other: _TensorLike) -> Tensor: ...
    def __rmul__(self, other: _TensorLike) -> Tensor: ...
    def __imul__(self, other: _TensorLike) -> Tensor: ...
    def __truediv__(self, other: _TensorLike) -> Tensor: ...
    def __rtruediv__(self, other: _TensorLike) -> Tensor: ...
    def __itruediv__(self, other: _TensorLike) -> Tensor: ...
    def __floordiv__(self, other: _TensorLike) -> Tensor: ...
    def __rfloordiv__(self, other: _TensorLike) -> Tensor: ...
    def __ifloordiv__(self, other: _TensorLike) -> Tensor: ...
    def __mod__(self, other: _TensorLike) -> Tensor: ...
    def __rmod__(self, other: _TensorLike) -> Tensor: ...
    def __imod__(self, other: _TensorLike) -> Tensor: ...
    def __pow__(self, other: _TensorLike) -> Tensor: ...
    def __rpow__(self, other: _TensorLike) -> Tensor: ...
    def __ipow__(self, other: _TensorLike) -> Tensor: ...
    def __matmul__(self, other: _TensorLike) -> Tensor: ...
    def __rmatmul__(self, other: _TensorLike) -> Tensor: ...
    def __imatmul__(self, other: _TensorLike) -> Tensor: ...
    def __and__(self, other: _TensorLike) -> Tensor: ...
    def __rand__(self, other: _TensorLike) -> Tensor: ...
    def __iand__(self, other: _TensorLike) -> Tensor: ...
    def __or__(self, other: _TensorLike) -> Tensor: ...
    def __ror__(self, other: _TensorLike) -> Tensor: ...
    def __ior__(self, other: _TensorLike) -> Tensor: ...
    def __xor__(self, other: _TensorLike) -> Tensor: ...
    def __rxor__(self, other: _TensorLike) -> Tensor: ...
    def __ixor__(self, other: _TensorLike) -> Tensor: ...
    def __lshift__(self, other: _TensorLike) -> Tensor: ...
    def __rlshift__(self, other: _TensorLike) -> Tensor: ...
    def __ilshift__(self, other: _TensorLike) -> Tensor: ...
    def __rshift__(self, other: _TensorLike) -> Tensor: ...
    def __rrshift__(self, other: _TensorLike) -> Tensor: ...
    def __irshift__(self, other: _TensorLike) -> Tensor: ...
    def __eq__(self, other: _TensorLike) -> Tensor: ...  # type: ignore[override]
    def __ne__(self, other: _TensorLike) -> Tensor: ...  # type: ignore[override]
    def __lt__(self, other: _TensorLike) -> Tensor: ...
    def __le__(self, other: _TensorLike) -> Tensor: ...
    def __gt__(self, other: _TensorLike) -> Tensor: ...
    def __ge__(self, other: _TensorLike) -> Tensor: ...
    def __neg__(self) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __abs__(self) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
