"""Made by `python -m tandem.eager.tensor.type_stubs` from the declarations of the operators."""

import builtins as _b
from collections.abc import Iterator, Sequence
from typing import Any, SupportsIndex

import numpy as _np

from ...registry.dtypes import DType
from ...registry.types import Args, Function, Kwargs
from ...registry.values import TensorBase
from ..autograd.hooks import Hook, HookHandle
from ..sparse.tensor import SparseTensor
from .at import At
from .tensor import Tensor

_Number = _b.bool | _b.int | _b.float | _b.complex
_TensorLike = Tensor | _Number | _np.ndarray[Any, Any] | _np.generic
_DTypeLike = DType | _b.str | _b.type[Any] | _np.dtype[Any]

class TensorMethods(TensorBase):
    __slots__ = ()
    def abs(
        self,
    ) -> Tensor:
        """The magnitude of each element; the most negative integer is unchanged."""
    def absolute(
        self,
    ) -> Tensor:
        """The magnitude of each element; the most negative integer is unchanged."""
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
    def add(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Sum of two tensors, elementwise; `or` on bools."""
    def add_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Sum of two tensors, elementwise; `or` on bools."""
    def all(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """Whether all elements over axes are true (not zero); True if there are none."""
    def angle(
        self,
    ) -> Tensor:
        """The angle of each element in the complex plane, in radians: 0 or pi for real elements."""
    def any(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """Whether an element over axes is true (not zero); False if there are none."""
    def arccos(
        self,
    ) -> Tensor:
        """The angle whose cosine is each element, in [0, pi]; NaN outside of [-1, 1]."""
    def arccosh(
        self,
    ) -> Tensor:
        """The number at least 0 whose hyperbolic cosine is each element; NaN below 1."""
    def arcsin(
        self,
    ) -> Tensor:
        """The angle whose sine is each element, in [-pi/2, pi/2]; NaN outside of [-1, 1]."""
    def arcsinh(
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
    def arctanh(
        self,
    ) -> Tensor:
        """The number whose hyperbolic tangent is each element; NaN outside of [-1, 1]."""
    def argmax(
        self,
        axis: _b.int | None = None,
        *,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """The index of the largest element along an axis or of all; the first of several; NaN if ..."""
    def argmin(
        self,
        axis: _b.int | None = None,
        *,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """The index of the smallest element along an axis or of all; the first of several; NaN if..."""
    def argsort(
        self,
        *,
        axis: _b.int = -1,
        descending: _b.bool = False,
        stable: _b.bool = True,
    ) -> Tensor:
        """The positions of the elements in sorted order along an axis."""
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
    def broadcast_to(
        self,
        *shape: Sequence[_b.int] | _b.int,
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
    def clip(
        self,
        min: _TensorLike | None = None,
        max: _TensorLike | None = None,
    ) -> Tensor:
        """The tensor with its elements limited to an interval."""
    def clone(
        self,
    ) -> Tensor:
        """A copy in memory of its own, in row-major order."""
    def conj(
        self,
    ) -> Tensor:
        """The complex conjugate of each element; real elements are unchanged."""
    def contiguous(
        self,
    ) -> Tensor:
        """The tensor in row-major order: a view of the same memory if it is contiguous already, e..."""
    def copysign(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The magnitude of `self` with the sign of `other`, including -0.0."""
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
    def cross(
        self,
        other: _TensorLike,
        *,
        axis: _b.int = -1,
    ) -> Tensor:
        """The cross products of three-dimensional vectors."""
    def cumprod(
        self,
        axis: _b.int | None = None,
        *,
        dtype: _DTypeLike | None = None,
    ) -> Tensor:
        """The products of the elements up to and including each along an axis."""
    def cumsum(
        self,
        axis: _b.int | None = None,
        *,
        dtype: _DTypeLike | None = None,
    ) -> Tensor:
        """The sums of the elements up to and including each along an axis."""
    def diag(
        self,
        k: _b.int = 0,
    ) -> Tensor:
        """The square matrix with a vector on a diagonal, or the diagonal of a matrix."""
    def diagonal(
        self,
        offset: _b.int = 0,
        axis1: _b.int = 0,
        axis2: _b.int = 1,
    ) -> Tensor:
        """A diagonal of each matrix in a stack."""
    def diff(
        self,
        *,
        n: _b.int = 1,
        axis: _b.int = -1,
    ) -> Tensor:
        """The n-th differences of neighbours along an axis."""
    def div(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Quotient of two tensors, elementwise."""
    def div_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Quotient of two tensors, elementwise."""
    def divide(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Quotient of two tensors, elementwise."""
    def elu(
        self,
        alpha: _b.float = ...,
    ) -> Tensor:
        """The positive elements, and alpha * (exp(self) - 1) for the others."""
    def eq(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether two tensors are equal, elementwise; NaN is not equal to itself."""
    def equal(
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
    def expand(
        self,
        *shape: Sequence[_b.int] | _b.int,
    ) -> Tensor:
        """``broadcast_to`` where -1 keeps a size."""
    def expand_dims(
        self,
        axis: Sequence[_b.int] | _b.int = ...,
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
    def flatten(
        self,
        start_dim: _b.int = 0,
        end_dim: _b.int = -1,
    ) -> Tensor:
        """Consecutive axes merged into one; by default all of them. Also called ``ravel``."""
    def flip(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
    ) -> Tensor:
        """A view with the elements in reverse order along some axes."""
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
    def fmin(
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
    def ge(
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
    def greater(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether `self` is greater than `other`, elementwise."""
    def greater_equal(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether `self` is at least `other`, elementwise."""
    def gt(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether `self` is greater than `other`, elementwise."""
    def hypot(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The length of the hypotenuse, sqrt(self**2 + other**2), without intermediate overflow."""
    def imag(
        self,
    ) -> Tensor:
        """The imaginary part of each element; 0 for real elements."""
    def isfinite(
        self,
    ) -> Tensor:
        """Whether an element is neither infinite nor NaN."""
    def isinf(
        self,
    ) -> Tensor:
        """Whether an element is infinite, of either sign; False for integers."""
    def isnan(
        self,
    ) -> Tensor:
        """Whether an element is NaN; False for integers."""
    def kron(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The Kronecker product: a block of ``other`` times each element of ``self``."""
    def layer_norm(
        self,
        normalized_shape: Sequence[_b.int] | _b.int,
        weight: _TensorLike | None = None,
        bias: _TensorLike | None = None,
        eps: _b.float = ...,
    ) -> Tensor:
        """Layer normalization: shift and scale to mean 0 and variance 1 over the last axes."""
    def le(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether `self` is at most `other`, elementwise."""
    def leaky_relu(
        self,
        negative_slope: _b.float = ...,
    ) -> Tensor:
        """The positive elements, and the others times a slope."""
    def left_shift(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The bits of `self` shifted left by `other`; bits shifted out are lost."""
    def less(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether `self` is less than `other`, elementwise."""
    def less_equal(
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
    def log_softmax(
        self,
        axis: _b.int = -1,
    ) -> Tensor:
        """The logarithm of softmax, accurate where softmax rounds to 0 too."""
    def logaddexp(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """log(exp(self) + exp(other)), without intermediate overflow."""
    def logical_and(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether both elements are true (not zero)."""
    def logical_not(
        self,
    ) -> Tensor:
        """Whether an element is false (zero)."""
    def logical_or(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether either element is true (not zero)."""
    def logical_xor(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether exactly one of two elements is true (not zero)."""
    def logsumexp(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """The logarithm of the sum of exponentials over axes, without intermediate overflow."""
    def lt(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether `self` is less than `other`, elementwise."""
    def matmul(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The matrix product; also ``x @ y``."""
    def matrix_transpose(
        self,
    ) -> Tensor:
        """The transposes of a stack of matrices: a view with the last two axes exchanged; also ``..."""
    def max(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """The largest element over axes; NaN if there is one."""
    def maximum(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The larger of two elements; NaN if either is NaN."""
    def mean(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """The arithmetic mean of the elements over axes."""
    def min(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """The smallest element over axes; NaN if there is one."""
    def minimum(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The smaller of two elements; NaN if either is NaN."""
    def moveaxis(
        self,
        source: Sequence[_b.int] | _b.int,
        destination: Sequence[_b.int] | _b.int,
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
    def nan_to_num(
        self,
        *,
        nan: _b.float = ...,
        posinf: _b.float | None = None,
        neginf: _b.float | None = None,
    ) -> Tensor:
        """Replace NaN and infinities by numbers; no gradient flows to the replaced elements."""
    def ne(
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
    def one_hot(
        self,
        num_classes: _b.int,
        *,
        axis: _b.int = -1,
        dtype: _DTypeLike | None = None,
    ) -> Tensor:
        """One-hot encoding: one at the index of the class, zero elsewhere."""
    def outer(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The outer product of two vectors."""
    def pad(
        self,
        width: _b.int | Sequence[_b.int | Sequence[_b.int]],
        *,
        value: _Number = 0,
    ) -> Tensor:
        """The tensor padded with a constant."""
    def permute(
        self,
        *axes: Sequence[_b.int] | _b.int,
    ) -> Tensor:
        """A view with the axes in another order; also called ``permute_dims``."""
    def permute_dims(
        self,
        *axes: Sequence[_b.int] | _b.int,
    ) -> Tensor:
        """A view with the axes in another order; also called ``permute_dims``."""
    def positive(
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
    def prod(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        dtype: _DTypeLike | None = None,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """The product of the elements over axes; 1 if there are none."""
    def ravel(
        self,
        start_dim: _b.int = 0,
        end_dim: _b.int = -1,
    ) -> Tensor:
        """Consecutive axes merged into one; by default all of them. Also called ``ravel``."""
    def real(
        self,
    ) -> Tensor:
        """The real part of each element; real elements are unchanged."""
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
    def repeat(
        self,
        repeats: _b.int,
        axis: _b.int | None = None,
    ) -> Tensor:
        """Each element, or slice along an axis, repeated."""
    def reshape(
        self,
        *shape: Sequence[_b.int] | _b.int,
    ) -> Tensor:
        """The elements in row-major order in another shape: a view if the strides allow it, else ..."""
    def right_shift(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The bits of `self` shifted right by `other`; the sign is kept."""
    def roll(
        self,
        shift: Sequence[_b.int] | _b.int,
        axis: Sequence[_b.int] | _b.int | None = None,
    ) -> Tensor:
        """The elements shifted along axes; elements shifted out at one end come in at the other."""
    def round(
        self,
    ) -> Tensor:
        """Each element rounded to the nearest integer, halves to the even one; integers are uncha..."""
    def round_(
        self,
    ) -> Tensor:
        """Each element rounded to the nearest integer, halves to the even one; integers are uncha..."""
    def rsqrt(
        self,
    ) -> Tensor:
        """One over the square root of each element."""
    def rsqrt_(
        self,
    ) -> Tensor:
        """One over the square root of each element."""
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
    def sinh(
        self,
    ) -> Tensor:
        """The hyperbolic sine of each element."""
    def sinh_(
        self,
    ) -> Tensor:
        """The hyperbolic sine of each element."""
    def softmax(
        self,
        axis: _b.int = -1,
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
    def sort(
        self,
        *,
        axis: _b.int = -1,
        descending: _b.bool = False,
        stable: _b.bool = True,
    ) -> Tensor:
        """The elements in sorted order along an axis."""
    def split(
        self,
        sections: _b.int | Sequence[_b.int],
        axis: _b.int = 0,
    ) -> tuple[Tensor, ...]:
        """The tensor in parts along an axis, as views."""
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
    def squeeze(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
    ) -> Tensor:
        """A view without axes of length 1."""
    def std(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        correction: _b.float = ...,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """The standard deviation of the elements over axes, the square root of `var`."""
    def sub(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Difference of two tensors, elementwise."""
    def sub_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Difference of two tensors, elementwise."""
    def subtract(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Difference of two tensors, elementwise."""
    def sum(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        dtype: _DTypeLike | None = None,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """The sum of the elements over axes; 0 if there are none."""
    def swapaxes(
        self,
        dim0: _b.int = -2,
        dim1: _b.int = -1,
    ) -> Tensor:
        """A view with two axes exchanged."""
    def take(
        self,
        indices: _TensorLike,
        axis: _b.int | None = None,
    ) -> Tensor:
        """The slices at integer positions along an axis."""
    def take_along_axis(
        self,
        indices: _TensorLike,
        axis: _b.int = -1,
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
    def tile(
        self,
        *repetitions: Sequence[_b.int] | _b.int,
    ) -> Tensor:
        """Copies of the tensor side by side along each axis."""
    def trace(
        self,
        offset: _b.int = 0,
        axis1: _b.int = 0,
        axis2: _b.int = 1,
    ) -> Tensor:
        """The sum along a diagonal of each matrix in a stack."""
    def transpose(
        self,
        dim0: _b.int = -2,
        dim1: _b.int = -1,
    ) -> Tensor:
        """A view with two axes exchanged."""
    def tril(
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
    def true_divide(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Quotient of two tensors, elementwise."""
    def trunc(
        self,
    ) -> Tensor:
        """Each element rounded towards zero; integers are unchanged."""
    def trunc_(
        self,
    ) -> Tensor:
        """Each element rounded towards zero; integers are unchanged."""
    def unsqueeze(
        self,
        axis: Sequence[_b.int] | _b.int = ...,
    ) -> Tensor:
        """A view with new axes of length 1; also called ``unsqueeze``."""
    def unstack(
        self,
        axis: _b.int = 0,
    ) -> tuple[Tensor, ...]:
        """The sub-tensors along an axis, as views."""
    def var(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        correction: _b.float = ...,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """The variance of the elements over axes."""
    def vecdot(
        self,
        other: _TensorLike,
        *,
        axis: _b.int = -1,
    ) -> Tensor:
        """The sum of products along one axis."""
    def __array_function__(
        self,
        function: Function,
        types: object,
        args: Args,
        kwargs: Kwargs,
    ) -> object:
        """Apply a NumPy function to the arrays of tensors."""
    def __array_ufunc__(
        self,
        ufunc: _np.ufunc,
        method: _b.str,
        *inputs: object,
        **options: Any,
    ) -> object:
        """Apply a NumPy ufunc: call the operator of the same name, or NumPy if there is none or `..."""
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
    def _without_history(
        self,
    ) -> Tensor:
        """The tensor without its graph node; subclasses override this."""
    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: _b.bool | None = None,
        create_graph: _b.bool = False,
    ) -> None:
        """Add the gradient of this tensor by each leaf that it depends on to the leaf's ``grad``."""
    def coalesce(
        self,
    ) -> Tensor:
        """Sort the indices of a sparse tensor and add values of equal indices; return a dense ten..."""
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
    def detach(
        self,
    ) -> Tensor:
        """A view of all elements that is detached from the graph: no gradient flows through it."""
    def fill_(
        self,
        value: object,
    ) -> Tensor:
        """Write one value into all elements; returns the tensor."""
    def pin_memory(
        self,
    ) -> Tensor:
        """A copy in page-locked host memory, which a CUDA device can read directly."""
    def register_hook(
        self,
        hook: Hook,
    ) -> HookHandle:
        """Call a function with the gradient of this tensor whenever ``backward`` has computed it."""
    def requires_grad_(
        self,
        requires_grad: _b.bool = True,
    ) -> Tensor:
        """Record operations on this tensor from now on, or stop recording; return the tensor."""
    def retain_grad(
        self,
    ) -> None:
        """Make ``backward`` fill ``grad`` of this tensor too, although it is not a leaf."""
    def to(
        self,
        *target: _DTypeLike,
        dtype: _DTypeLike | None = None,
        device: _b.str | None = None,
        copy: _b.bool = False,
        non_blocking: _b.bool = False,
    ) -> Tensor:
        """Convert the tensor to another dtype, another device, or both."""
    def to_dense(
        self,
    ) -> Tensor:
        """Convert to a dense tensor; return a dense tensor itself."""
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
    def zero_(
        self,
    ) -> Tensor:
        """Write zeros; returns the tensor."""
    @property
    def T(self) -> Tensor:
        """The transpose of a matrix."""
    @property
    def at(self) -> At:
        """Functional updates: ``x.at[index].set(v)``, ``.add``, ``.multiply``, ``.divide``, ``.mi..."""
    @property
    def mT(self) -> Tensor:
        """The transposes of a stack of matrices: the last two axes swapped."""
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
