"""Made by `python -m tandem.eager.stubs` from the declarations of the operators."""

import builtins as _b
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as _np

from ..registry.dtypes import DType
from ..registry.values import TensorBase
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
        """The magnitude of each element; the most negative integer stays as it is."""
    def absolute(
        self,
    ) -> Tensor:
        """The magnitude of each element; the most negative integer stays as it is."""
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
        """Whether all elements over axes are true (not zero); True where there are none."""
    def angle(
        self,
    ) -> Tensor:
        """The angle of each element in the complex plane, in radians: 0 or pi where it is real."""
    def any(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """Whether an element over axes is true (not zero); False where there are none."""
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
        """The bits of each element turned over; the logical not of a bool."""
    def bitwise_left_shift(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The bits of `self` moved up by `other`; those shifted out are lost."""
    def bitwise_left_shift_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The bits of `self` moved up by `other`; those shifted out are lost."""
    def bitwise_not(
        self,
    ) -> Tensor:
        """The bits of each element turned over; the logical not of a bool."""
    def bitwise_not_(
        self,
    ) -> Tensor:
        """The bits of each element turned over; the logical not of a bool."""
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
        """The bits of `self` moved down by `other`; the sign stays."""
    def bitwise_right_shift_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The bits of `self` moved down by `other`; the sign stays."""
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
        """Each element rounded up; integers stay as they are."""
    def ceil_(
        self,
    ) -> Tensor:
        """Each element rounded up; integers stay as they are."""
    def clip(
        self,
        min: _TensorLike | None = None,
        max: _TensorLike | None = None,
    ) -> Tensor:
        """The tensor with its elements limited to an interval."""
    def clone(
        self,
    ) -> Tensor:
        """A copy with memory of its own, laid out in row-major order."""
    def conj(
        self,
    ) -> Tensor:
        """The complex conjugate of each element; real elements stay as they are."""
    def contiguous(
        self,
    ) -> Tensor:
        """The tensor in row-major order: a view of the same memory if it lies so already, else a ..."""
    def copysign(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The magnitude of `self` with the sign of `other`, also that of -0.0."""
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
        """The cross products of vectors in space."""
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
        """The differences of neighbours along an axis, ``n`` times."""
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
        """The elements that are positive, and alpha * (exp(self) - 1) for the others."""
    def eq(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether two tensors are equal, elementwise; NaN equals nothing."""
    def equal(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether two tensors are equal, elementwise; NaN equals nothing."""
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
        """1 - erf(self), exact where erf is close to 1 too."""
    def erfc_(
        self,
    ) -> Tensor:
        """1 - erf(self), exact where erf is close to 1 too."""
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
        """exp(self) - 1, exact for small elements too."""
    def expm1_(
        self,
    ) -> Tensor:
        """exp(self) - 1, exact for small elements too."""
    def flatten(
        self,
        start_dim: _b.int = 0,
        end_dim: _b.int = -1,
    ) -> Tensor:
        """Several axes as one; without dims all of them. Also called ``ravel``."""
    def flip(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
    ) -> Tensor:
        """A view with the elements in reverse order along some axes."""
    def floor(
        self,
    ) -> Tensor:
        """Each element rounded down; integers stay as they are."""
    def floor_(
        self,
    ) -> Tensor:
        """Each element rounded down; integers stay as they are."""
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
        """The larger of two elements, the other one if one is NaN."""
    def fmin(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The smaller of two elements, the other one if one is NaN."""
    def fmod(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """What division rounded towards zero leaves, with the sign of the dividend; 0 for an inte..."""
    def fmod_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """What division rounded towards zero leaves, with the sign of the dividend; 0 for an inte..."""
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
        """The length of the hypotenuse, sqrt(self**2 + other**2), without overflow on the way."""
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
        """Whether an element is infinite, of either sign; never so for integers."""
    def isnan(
        self,
    ) -> Tensor:
        """Whether an element is NaN; never so for integers."""
    def kron(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The Kronecker product: each element of ``self`` times the whole of ``other``, laid out ..."""
    def layer_norm(
        self,
        normalized_shape: Sequence[_b.int] | _b.int,
        weight: _TensorLike | None = None,
        bias: _TensorLike | None = None,
        eps: _b.float = ...,
    ) -> Tensor:
        """The tensor shifted and scaled to mean 0 and variance 1 over its last axes."""
    def le(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether `self` is at most `other`, elementwise."""
    def leaky_relu(
        self,
        negative_slope: _b.float = ...,
    ) -> Tensor:
        """The elements that are positive, and the others times a slope."""
    def left_shift(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The bits of `self` moved up by `other`; those shifted out are lost."""
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
        """log(1 + self), exact for small elements too."""
    def log1p_(
        self,
    ) -> Tensor:
        """log(1 + self), exact for small elements too."""
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
        """The logarithm of softmax, exact also where softmax rounds to 0."""
    def logaddexp(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """log(exp(self) + exp(other)), without overflow on the way."""
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
        """The logarithm of the sum of exponentials over axes, without overflow on the way."""
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
        """A view with some axes at new places, the others in their order."""
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
        """Numbers in the place of NaN and infinities; no gradient flows to those."""
    def ne(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """Whether two tensors differ, elementwise; NaN differs from everything."""
    def neg(
        self,
    ) -> Tensor:
        """The negative of each element; unsigned integers and the most negative integer wrap round."""
    def neg_(
        self,
    ) -> Tensor:
        """The negative of each element; unsigned integers and the most negative integer wrap round."""
    def negative(
        self,
    ) -> Tensor:
        """The negative of each element; unsigned integers and the most negative integer wrap round."""
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
        """Whether two tensors differ, elementwise; NaN differs from everything."""
    def one_hot(
        self,
        num_classes: _b.int,
        *,
        axis: _b.int = -1,
        dtype: _DTypeLike | None = None,
    ) -> Tensor:
        """One at the place of each class, zero elsewhere."""
    def outer(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The outer product of two vectors."""
    def pad(
        self,
        width: Any,
        *,
        value: _Number = 0,
    ) -> Tensor:
        """The tensor with a margin of one value around it."""
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
        """`self` to the power `other`; a tensor of negative integers to integers gives truncated ..."""
    def pow_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """`self` to the power `other`; a tensor of negative integers to integers gives truncated ..."""
    def power(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """`self` to the power `other`; a tensor of negative integers to integers gives truncated ..."""
    def prod(
        self,
        axis: Sequence[_b.int] | _b.int | None = None,
        *,
        dtype: _DTypeLike | None = None,
        keepdims: _b.bool = False,
    ) -> Tensor:
        """The product of the elements over axes; 1 where there are none."""
    def ravel(
        self,
        start_dim: _b.int = 0,
        end_dim: _b.int = -1,
    ) -> Tensor:
        """Several axes as one; without dims all of them. Also called ``ravel``."""
    def real(
        self,
    ) -> Tensor:
        """The real part of each element; real elements are their own."""
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
        """What `floor_divide` leaves, with the sign of the divisor; 0 for an integer divided by z..."""
    def remainder_(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """What `floor_divide` leaves, with the sign of the divisor; 0 for an integer divided by z..."""
    def repeat(
        self,
        repeats: _b.int,
        axis: _b.int | None = None,
    ) -> Tensor:
        """Each element, or slice along an axis, several times in a row."""
    def reshape(
        self,
        *shape: Sequence[_b.int] | _b.int,
    ) -> Tensor:
        """The same elements in row-major order under another shape: a view where the strides allo..."""
    def right_shift(
        self,
        other: _TensorLike,
    ) -> Tensor:
        """The bits of `self` moved down by `other`; the sign stays."""
    def roll(
        self,
        shift: Sequence[_b.int] | _b.int,
        axis: Sequence[_b.int] | _b.int | None = None,
    ) -> Tensor:
        """The elements moved along axes; what leaves at one end comes in at the other."""
    def round(
        self,
    ) -> Tensor:
        """Each element rounded to the nearest integer, halves to the even one; integers stay as t..."""
    def round_(
        self,
    ) -> Tensor:
        """Each element rounded to the nearest integer, halves to the even one; integers stay as t..."""
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
        """1 / (1 + exp(-self)), without overflow on the way."""
    def sigmoid_(
        self,
    ) -> Tensor:
        """1 / (1 + exp(-self)), without overflow on the way."""
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
        """Whether the sign is negative, also that of -0.0 and of NaN."""
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
        """sin(pi * self) / (pi * self), and 1 at 0; its derivatives of any order hold there too."""
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
        """Exponentials scaled to sum to one along an axis."""
    def softplus(
        self,
    ) -> Tensor:
        """log(1 + exp(self)), without overflow on the way."""
    def softplus_(
        self,
    ) -> Tensor:
        """log(1 + exp(self)), without overflow on the way."""
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
        sections: Any,
        axis: _b.int = 0,
    ) -> tuple[Tensor, ...]:
        """The tensor in parts along an axis, as views."""
    def sqrt(
        self,
    ) -> Tensor:
        """The square root of each element; NaN for negative real ones."""
    def sqrt_(
        self,
    ) -> Tensor:
        """The square root of each element; NaN for negative real ones."""
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
        """The sum of the elements over axes; 0 where there are none."""
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
        """The elements at the places of ``indices``, whose values say where along one axis: argso..."""
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
        axes: Any = 2,
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
        """Each element rounded towards zero; integers stay as they are."""
    def trunc_(
        self,
    ) -> Tensor:
        """Each element rounded towards zero; integers stay as they are."""
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
        function: Any,
        types: Any,
        args: Any,
        kwargs: Any,
    ) -> Any:
        """NumPy's functions on tensors: in NumPy, on the tensors' arrays."""
    def __array_ufunc__(
        self,
        ufunc: Any,
        method: _b.str,
        *inputs: Any,
        **options: Any,
    ) -> Any:
        """NumPy's ufuncs on tensors: the operator of the same name; in NumPy where there is none,..."""
    def __contains__(
        self,
        value: Any,
    ) -> _b.bool:
        """Whether an element equals ``value``."""
    def __copy__(
        self,
    ) -> Tensor:
        """A copy in new memory (as NumPy's)."""
    def __deepcopy__(
        self,
        memo: dict[_b.int, Any],
    ) -> Tensor:
        """A copy in new memory; a leaf stays a leaf, with a copy of its gradient."""
    def __getitem__(
        self,
        index: Any,
    ) -> Any:
        """The elements that an index selects: a view for ints, slices, ``...`` and None, else a c..."""
    def __iter__(
        self,
    ) -> Iterator[Any]:
        """The sub-tensors along the first axis."""
    def __reduce_ex__(
        self,
        protocol: Any,
    ) -> Any:
        """Pickle: the elements and whether gradients are wanted; a history cannot be pickled."""
    def __setitem__(
        self,
        index: Any,
        value: Any,
    ) -> None:
        """Write ``value``, broadcast and cast to the tensor's dtype, into the elements that an in..."""
    def _without_history(
        self,
    ) -> Any:
        """A tensor that has no history (a subclass says what that means for it)."""
    def backward(
        self,
        gradient: Any = None,
        retain_graph: _b.bool | None = None,
        create_graph: _b.bool = False,
    ) -> None:
        """Add the gradient of this tensor by each leaf that it depends on to the leaf's ``grad``."""
    def coalesce(
        self,
    ) -> Any:
        """A sparse tensor with its places sorted, each once, the values of equal places added; a ..."""
    def copy_(
        self,
        source: Any,
    ) -> Tensor:
        """Write the elements of ``source``, broadcast and cast, into the tensor; returns the tensor."""
    def cpu(
        self,
    ) -> Any:
        """The tensor in the host's memory; itself if it lies there."""
    def cuda(
        self,
        device: Any = None,
        non_blocking: _b.bool = False,
    ) -> Any:
        """The tensor on a CUDA device; itself if it lies there."""
    def detach(
        self,
    ) -> Any:
        """The same elements in the same memory, without history: no gradient flows through it."""
    def fill_(
        self,
        value: Any,
    ) -> Tensor:
        """Write one value into all elements; returns the tensor."""
    def pin_memory(
        self,
    ) -> Tensor:
        """A copy in page-locked memory of the host, from which a CUDA device reads by itself."""
    def register_hook(
        self,
        hook: Any,
    ) -> Any:
        """Have a function called with the gradient of this tensor, each time that ``backward`` ha..."""
    def requires_grad_(
        self,
        requires_grad: _b.bool = True,
    ) -> Tensor:
        """Record operations on this tensor from now on, or stop recording; returns the tensor."""
    def retain_grad(
        self,
    ) -> None:
        """Have ``backward`` fill ``grad`` of this tensor too, though it is the result of an opera..."""
    def to(
        self,
        *target: Any,
        dtype: Any = None,
        device: _b.str | None = None,
        copy: _b.bool = False,
        non_blocking: _b.bool = False,
    ) -> Any:
        """The tensor with another dtype, on another device, or both."""
    def to_dense(
        self,
    ) -> Any:
        """The tensor with all its elements stored; a dense tensor itself."""
    def to_sparse(
        self,
        layout: _b.str = "sparse_coo",
    ) -> Any:
        """The tensor with only the elements that are not zero stored."""
    def to_sparse_coo(
        self,
    ) -> Any:
        """The tensor in the layout ``td.sparse_coo``."""
    def to_sparse_csr(
        self,
    ) -> Any:
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
