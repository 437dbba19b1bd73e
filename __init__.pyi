"""Made by `python -m tandem.eager.tensor.type_stubs` from the declarations of the operators."""

import builtins as _b
from collections.abc import Sequence
from typing import Any

import numpy as _np

from . import config as config
from . import debug as debug
from . import errors as errors
from . import fft as fft
from . import linalg as linalg
from . import profiler as profiler
from . import pytree as pytree
from . import special as special
from . import tree as tree
from .backends.cuda import public as _cuda
from .control.api import associative_scan as associative_scan
from .control.api import cond as cond
from .control.api import fori_loop as fori_loop
from .control.api import map as map
from .control.api import scan as scan
from .control.api import switch as switch
from .control.api import while_loop as while_loop
from .custom.api import c_kernel as c_kernel
from .custom.api import composite_op as composite_op
from .custom.api import cuda_kernel as cuda_kernel
from .custom.api import custom_op as custom_op
from .custom.api import elementwise_op as elementwise_op
from .custom.api import llvm_kernel as llvm_kernel
from .custom.api import numpy_kernel as numpy_kernel
from .custom.api import opcheck as opcheck
from .custom.api import register_autocast as register_autocast
from .custom.api import register_autograd as register_autograd
from .custom.api import register_fake as register_fake
from .custom.api import register_kernel as register_kernel
from .debug.api import check as check
from .debug.api import checkify as checkify
from .debug.api import debug_check as debug_check
from .debug.api import io_callback as io_callback
from .debug.api import pure_callback as pure_callback
from .eager.autograd import namespace as _autograd
from .eager.autograd.grad_modes import enable_grad as enable_grad
from .eager.autograd.grad_modes import is_grad_enabled as is_grad_enabled
from .eager.autograd.grad_modes import no_grad as no_grad
from .eager.layers.autocast import autocast as autocast
from .eager.layers.autocast import is_autocast_enabled as is_autocast_enabled
from .eager.layers.dispatch_mode import DispatchMode as DispatchMode
from .eager.layers.dispatch_mode import no_dispatch as no_dispatch
from .eager.layers.functionalize import functionalize as functionalize
from .eager.meta.memory import meta_memory as meta_memory
from .eager.tensor.construct import asarray as asarray
from .eager.tensor.construct import from_dlpack as from_dlpack
from .eager.tensor.construct import tensor as tensor
from .eager.tensor.generator import Generator as Generator
from .eager.tensor.layouts import quantize_per_channel as quantize_per_channel
from .eager.tensor.layouts import quantize_per_tensor as quantize_per_tensor
from .eager.tensor.layouts import sparse_coo_tensor as sparse_coo_tensor
from .eager.tensor.layouts import sparse_csr_tensor as sparse_csr_tensor
from .eager.tensor.tensor import Tensor as Tensor
from .eager.tensor.transfer import synchronize as synchronize
from .jit.api import jit as jit
from .operators.contraction.einsum import einsum as einsum
from .operators.creation.creation import e as e
from .operators.creation.creation import inf as inf
from .operators.creation.creation import nan as nan
from .operators.creation.creation import newaxis as newaxis
from .operators.creation.creation import pi as pi
from .operators.random import namespace as _random
from .operators.scalar_ir import nodes as _scalar
from .registry.dispatch.guards import dispatch_state as dispatch_state
from .registry.dispatch.guards import exclude_keys as exclude_keys
from .registry.dispatch.guards import force_keys as force_keys
from .registry.dispatch.guards import include_keys as include_keys
from .registry.dispatch.keys import DispatchKey as DispatchKey
from .registry.dispatch.keys import DispatchKeySet as DispatchKeySet
from .registry.dispatch.tables import dispatch_table as dispatch_table
from .registry.dispatch.trace import show_dispatch_trace as show_dispatch_trace
from .registry.dtypes import DType as DType
from .registry.dtypes import bfloat16 as bfloat16
from .registry.dtypes import bool_ as bool_
from .registry.dtypes import complex64 as complex64
from .registry.dtypes import complex128 as complex128
from .registry.dtypes import float16 as float16
from .registry.dtypes import float32 as float32
from .registry.dtypes import float64 as float64
from .registry.dtypes import int8 as int8
from .registry.dtypes import int16 as int16
from .registry.dtypes import int32 as int32
from .registry.dtypes import int64 as int64
from .registry.dtypes import uint8 as uint8
from .registry.dtypes import uint16 as uint16
from .registry.dtypes import uint32 as uint32
from .registry.dtypes import uint64 as uint64
from .registry.external_devices import register_device as register_device
from .registry.inventory import dangling_impls as dangling_impls
from .registry.inventory import on_registration as on_registration
from .registry.inventory import registrations as registrations
from .registry.layouts import sparse_coo as sparse_coo
from .registry.layouts import sparse_csr as sparse_csr
from .registry.layouts import strided as strided
from .registry.library import Library as Library
from .registry.namespace import ops as ops
from .registry.operator import fallthrough as fallthrough
from .registry.schemas.inference import infer_schema as infer_schema
from .registry.schemas.parser import parse_schema as parse_schema
from .registry.values import TensorSpec as TensorSpec
from .transforms import checkpoint_policies as checkpoint_policies
from .transforms.check_grads import check_grads as check_grads
from .transforms.checkpoint import checkpoint as _remat
from .transforms.checkpoint import checkpoint as checkpoint
from .transforms.closures import closure_convert as closure_convert
from .transforms.collectives import all_gather as all_gather
from .transforms.collectives import all_to_all as all_to_all
from .transforms.collectives import axis_index as axis_index
from .transforms.collectives import axis_size as axis_size
from .transforms.collectives import pbroadcast as pbroadcast
from .transforms.collectives import pmax as pmax
from .transforms.collectives import pmean as pmean
from .transforms.collectives import pmin as pmin
from .transforms.collectives import ppermute as ppermute
from .transforms.collectives import psum as psum
from .transforms.collectives import psum_scatter as psum_scatter
from .transforms.custom_gradient import custom_gradient as custom_gradient
from .transforms.custom_jvp import custom_jvp as custom_jvp
from .transforms.custom_vjp import custom_vjp as custom_vjp
from .transforms.custom_vmap import custom_vmap as custom_vmap
from .transforms.custom_vmap import sequential_vmap as sequential_vmap
from .transforms.eval_shape import ShapeDtypeStruct as ShapeDtypeStruct
from .transforms.eval_shape import eval_shape as eval_shape
from .transforms.forward import jvp as jvp
from .transforms.forward import linear_transpose as linear_transpose
from .transforms.forward import linearize as linearize
from .transforms.implicit import custom_linear_solve as custom_linear_solve
from .transforms.implicit import custom_root as custom_root
from .transforms.jacobians import hessian as hessian
from .transforms.jacobians import jacfwd as jacfwd
from .transforms.jacobians import jacrev as _jacobian
from .transforms.jacobians import jacrev as jacrev
from .transforms.reverse import grad as grad
from .transforms.reverse import stop_gradient as stop_gradient
from .transforms.reverse import value_and_grad as value_and_grad
from .transforms.reverse import vjp as vjp
from .transforms.vmap import register_vmap as register_vmap
from .transforms.vmap import vmap as vmap
from .transforms.zeros import CustomVJPPrimal as CustomVJPPrimal
from .transforms.zeros import SymbolicZero as SymbolicZero
from .transforms.zeros import float0 as float0

_Number = _b.bool | _b.int | _b.float | _b.complex
_TensorLike = Tensor | _Number | _np.ndarray[Any, Any] | _np.generic
_DTypeLike = DType | _b.str | _b.type[Any] | _np.dtype[Any]

__version__: _b.str
bool = bool_
cuda = _cuda
autograd = _autograd
random = _random
scalar = _scalar
remat = _remat
jacobian = _jacobian

def abs(
    self: _TensorLike,
) -> Tensor:
    """The magnitude of each element; the most negative integer is unchanged."""

def absolute(
    self: _TensorLike,
) -> Tensor:
    """The magnitude of each element; the most negative integer is unchanged."""

def acos(
    self: _TensorLike,
) -> Tensor:
    """The angle whose cosine is each element, in [0, pi]; NaN outside of [-1, 1]."""

def acosh(
    self: _TensorLike,
) -> Tensor:
    """The number at least 0 whose hyperbolic cosine is each element; NaN below 1."""

def add(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Sum of two tensors, elementwise; `or` on bools."""

def all(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    keepdims: _b.bool = False,
) -> Tensor:
    """Whether all elements over axes are true (not zero); True if there are none."""

def angle(
    self: _TensorLike,
) -> Tensor:
    """The angle of each element in the complex plane, in radians: 0 or pi for real elements."""

def any(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    keepdims: _b.bool = False,
) -> Tensor:
    """Whether an element over axes is true (not zero); False if there are none."""

def arange(
    start: _Number,
    stop: _Number | None = None,
    step: _Number = 1,
    *,
    dtype: _DTypeLike | None = None,
    device: _b.str | None = None,
) -> Tensor:
    """Evenly spaced values ``start + i * step`` from ``start`` to below ``stop``."""

def arccos(
    self: _TensorLike,
) -> Tensor:
    """The angle whose cosine is each element, in [0, pi]; NaN outside of [-1, 1]."""

def arccosh(
    self: _TensorLike,
) -> Tensor:
    """The number at least 0 whose hyperbolic cosine is each element; NaN below 1."""

def arcsin(
    self: _TensorLike,
) -> Tensor:
    """The angle whose sine is each element, in [-pi/2, pi/2]; NaN outside of [-1, 1]."""

def arcsinh(
    self: _TensorLike,
) -> Tensor:
    """The number whose hyperbolic sine is each element."""

def arctan(
    self: _TensorLike,
) -> Tensor:
    """The angle whose tangent is each element, in [-pi/2, pi/2]."""

def arctan2(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The angle of the point (other, self), in [-pi, pi]."""

def arctanh(
    self: _TensorLike,
) -> Tensor:
    """The number whose hyperbolic tangent is each element; NaN outside of [-1, 1]."""

def argmax(
    self: _TensorLike,
    axis: _b.int | None = None,
    *,
    keepdims: _b.bool = False,
) -> Tensor:
    """The index of the largest element along an axis or of all; the first of several; NaN if ..."""

def argmin(
    self: _TensorLike,
    axis: _b.int | None = None,
    *,
    keepdims: _b.bool = False,
) -> Tensor:
    """The index of the smallest element along an axis or of all; the first of several; NaN if..."""

def argsort(
    self: _TensorLike,
    *,
    axis: _b.int = -1,
    descending: _b.bool = False,
    stable: _b.bool = True,
) -> Tensor:
    """The positions of the elements in sorted order along an axis."""

def asin(
    self: _TensorLike,
) -> Tensor:
    """The angle whose sine is each element, in [-pi/2, pi/2]; NaN outside of [-1, 1]."""

def asinh(
    self: _TensorLike,
) -> Tensor:
    """The number whose hyperbolic sine is each element."""

def astype(
    self: _TensorLike,
    dtype: _DTypeLike,
    *,
    copy: _b.bool = True,
) -> Tensor:
    """The tensor with another dtype."""

def atan(
    self: _TensorLike,
) -> Tensor:
    """The angle whose tangent is each element, in [-pi/2, pi/2]."""

def atan2(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The angle of the point (other, self), in [-pi, pi]."""

def atanh(
    self: _TensorLike,
) -> Tensor:
    """The number whose hyperbolic tangent is each element; NaN outside of [-1, 1]."""

def avg_pool1d(
    self: _TensorLike,
    kernel_size: _b.int | Sequence[_b.int],
    stride: _b.int | Sequence[_b.int] | None = None,
    padding: _b.int | _b.str | Sequence[_b.int | Sequence[_b.int]] = 0,
    *,
    count_include_pad: _b.bool = True,
) -> Tensor:
    """The mean of each window."""

def avg_pool2d(
    self: _TensorLike,
    kernel_size: _b.int | Sequence[_b.int],
    stride: _b.int | Sequence[_b.int] | None = None,
    padding: _b.int | _b.str | Sequence[_b.int | Sequence[_b.int]] = 0,
    *,
    count_include_pad: _b.bool = True,
) -> Tensor:
    """The mean of each window."""

def avg_pool3d(
    self: _TensorLike,
    kernel_size: _b.int | Sequence[_b.int],
    stride: _b.int | Sequence[_b.int] | None = None,
    padding: _b.int | _b.str | Sequence[_b.int | Sequence[_b.int]] = 0,
    *,
    count_include_pad: _b.bool = True,
) -> Tensor:
    """The mean of each window."""

def axis_gather(
    self: _TensorLike,
    number: _TensorLike,
    axis_name: object,
    axis_size: _b.int,
) -> Tensor:
    """All examples of the axis of a `vmap`, stacked in front, for each example; what `td.all_..."""

def axis_sum(
    self: _TensorLike,
    axis_name: object,
    axis_size: _b.int,
) -> Tensor:
    """The sum over the axis of a `vmap`, for each example; what `td.psum` calls."""

def bitwise_and(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The bits set in both elements."""

def bitwise_invert(
    self: _TensorLike,
) -> Tensor:
    """The inverted bits of each element; the logical not of a bool."""

def bitwise_left_shift(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The bits of `self` shifted left by `other`; bits shifted out are lost."""

def bitwise_not(
    self: _TensorLike,
) -> Tensor:
    """The inverted bits of each element; the logical not of a bool."""

def bitwise_or(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The bits set in either element."""

def bitwise_right_shift(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The bits of `self` shifted right by `other`; the sign is kept."""

def bitwise_xor(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The bits set in exactly one of two elements."""

def broadcast_to(
    self: _TensorLike,
    shape: Sequence[_b.int] | _b.int,
) -> Tensor:
    """A view with the tensor repeated along new leading axes and axes of length 1."""

def ceil(
    self: _TensorLike,
) -> Tensor:
    """Each element rounded up; integers are unchanged."""

def checkpoint_name(
    self: _TensorLike,
    name: _b.str,
) -> Tensor:
    """Name a tensor for the policies of `td.checkpoint`."""

def clip(
    self: _TensorLike,
    min: _TensorLike | None = None,
    max: _TensorLike | None = None,
) -> Tensor:
    """The tensor with its elements limited to an interval."""

def clone(
    self: _TensorLike,
) -> Tensor:
    """A copy in memory of its own, in row-major order."""

def concat(
    tensors: Sequence[_TensorLike],
    axis: _b.int | None = 0,
) -> Tensor:
    """Tensors joined along an existing axis."""

def conj(
    self: _TensorLike,
) -> Tensor:
    """The complex conjugate of each element; real elements are unchanged."""

def contiguous(
    self: _TensorLike,
) -> Tensor:
    """The tensor in row-major order: a view of the same memory if it is contiguous already, e..."""

def conv1d(
    self: _TensorLike,
    weight: _TensorLike,
    bias: _TensorLike | None = None,
    stride: _b.int | Sequence[_b.int] = 1,
    padding: _b.int | _b.str | Sequence[_b.int | Sequence[_b.int]] = 0,
    dilation: _b.int | Sequence[_b.int] = 1,
    groups: _b.int = 1,
) -> Tensor:
    """A convolution over one axis, a correlation as in other frameworks."""

def conv2d(
    self: _TensorLike,
    weight: _TensorLike,
    bias: _TensorLike | None = None,
    stride: _b.int | Sequence[_b.int] = 1,
    padding: _b.int | _b.str | Sequence[_b.int | Sequence[_b.int]] = 0,
    dilation: _b.int | Sequence[_b.int] = 1,
    groups: _b.int = 1,
) -> Tensor:
    """A convolution over 2 axes, a correlation as in other frameworks."""

def conv3d(
    self: _TensorLike,
    weight: _TensorLike,
    bias: _TensorLike | None = None,
    stride: _b.int | Sequence[_b.int] = 1,
    padding: _b.int | _b.str | Sequence[_b.int | Sequence[_b.int]] = 0,
    dilation: _b.int | Sequence[_b.int] = 1,
    groups: _b.int = 1,
) -> Tensor:
    """A convolution over 3 axes, a correlation as in other frameworks."""

def conv_transpose1d(
    self: _TensorLike,
    weight: _TensorLike,
    bias: _TensorLike | None = None,
    stride: _b.int | Sequence[_b.int] = 1,
    padding: _b.int | Sequence[_b.int] = 0,
    output_padding: _b.int | Sequence[_b.int] = 0,
    groups: _b.int = 1,
    dilation: _b.int | Sequence[_b.int] = 1,
) -> Tensor:
    """The transposed convolution: the transpose of :func:`conv1d` with respect to its input."""

def conv_transpose2d(
    self: _TensorLike,
    weight: _TensorLike,
    bias: _TensorLike | None = None,
    stride: _b.int | Sequence[_b.int] = 1,
    padding: _b.int | Sequence[_b.int] = 0,
    output_padding: _b.int | Sequence[_b.int] = 0,
    groups: _b.int = 1,
    dilation: _b.int | Sequence[_b.int] = 1,
) -> Tensor:
    """The transposed convolution: the transpose of :func:`conv2d` with respect to its input."""

def conv_transpose3d(
    self: _TensorLike,
    weight: _TensorLike,
    bias: _TensorLike | None = None,
    stride: _b.int | Sequence[_b.int] = 1,
    padding: _b.int | Sequence[_b.int] = 0,
    output_padding: _b.int | Sequence[_b.int] = 0,
    groups: _b.int = 1,
    dilation: _b.int | Sequence[_b.int] = 1,
) -> Tensor:
    """The transposed convolution: the transpose of :func:`conv3d` with respect to its input."""

def convolution(
    self: _TensorLike,
    weight: _TensorLike,
    stride: Sequence[_b.int] | _b.int,
    padding: Sequence[_b.int] | _b.int,
    input_dilation: Sequence[_b.int] | _b.int,
    dilation: Sequence[_b.int] | _b.int,
    groups: _b.int = 1,
) -> Tensor:
    """The general convolution, over any number of axes; see also :func:`conv2d`."""

def copysign(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The magnitude of `self` with the sign of `other`, including -0.0."""

def cos(
    self: _TensorLike,
) -> Tensor:
    """The cosine of each element."""

def cosh(
    self: _TensorLike,
) -> Tensor:
    """The hyperbolic cosine of each element."""

def cross(
    self: _TensorLike,
    other: _TensorLike,
    *,
    axis: _b.int = -1,
) -> Tensor:
    """The cross products of three-dimensional vectors."""

def cross_entropy(
    self: _TensorLike,
    target: _TensorLike,
    *,
    axis: _b.int = -1,
    reduction: _b.str = "mean",
    label_smoothing: _b.float = ...,
) -> Tensor:
    """The cross-entropy of softmax probabilities and a target."""

def cumprod(
    self: _TensorLike,
    axis: _b.int | None = None,
    *,
    dtype: _DTypeLike | None = None,
) -> Tensor:
    """The products of the elements up to and including each along an axis."""

def cumsum(
    self: _TensorLike,
    axis: _b.int | None = None,
    *,
    dtype: _DTypeLike | None = None,
) -> Tensor:
    """The sums of the elements up to and including each along an axis."""

def diag(
    self: _TensorLike,
    k: _b.int = 0,
) -> Tensor:
    """The square matrix with a vector on a diagonal, or the diagonal of a matrix."""

def diagonal(
    self: _TensorLike,
    offset: _b.int = 0,
    axis1: _b.int = 0,
    axis2: _b.int = 1,
) -> Tensor:
    """A diagonal of each matrix in a stack."""

def diff(
    self: _TensorLike,
    *,
    n: _b.int = 1,
    axis: _b.int = -1,
) -> Tensor:
    """The n-th differences of neighbours along an axis."""

def div(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Quotient of two tensors, elementwise."""

def divide(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Quotient of two tensors, elementwise."""

def dropout(
    self: _TensorLike,
    key: _TensorLike,
    p: _b.float = ...,
) -> Tensor:
    """Set a random share of the elements to zero, and scale the others so that the mean is un..."""

def elu(
    self: _TensorLike,
    alpha: _b.float = ...,
) -> Tensor:
    """The positive elements, and alpha * (exp(self) - 1) for the others."""

def empty(
    shape: Sequence[_b.int] | _b.int,
    *,
    dtype: _DTypeLike | None = None,
    device: _b.str | None = None,
) -> Tensor:
    """A tensor with unspecified values (zeros today, since the system returns zeroed memory)."""

def empty_like(
    self: _TensorLike,
    *,
    dtype: _DTypeLike | None = None,
    device: _b.str | None = None,
) -> Tensor:
    """A tensor with the shape of another, with unspecified values."""

def eq(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Whether two tensors are equal, elementwise; NaN is not equal to itself."""

def equal(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Whether two tensors are equal, elementwise; NaN is not equal to itself."""

def erf(
    self: _TensorLike,
) -> Tensor:
    """The error function of each element."""

def erfc(
    self: _TensorLike,
) -> Tensor:
    """1 - erf(self), accurate where erf is close to 1 too."""

def exp(
    self: _TensorLike,
) -> Tensor:
    """e to the power of each element."""

def exp2(
    self: _TensorLike,
) -> Tensor:
    """2 to the power of each element."""

def expand(
    self: _TensorLike,
    shape: Sequence[_b.int] | _b.int,
) -> Tensor:
    """``broadcast_to`` where -1 keeps a size."""

def expand_dims(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int = ...,
) -> Tensor:
    """A view with new axes of length 1; also called ``unsqueeze``."""

def expm1(
    self: _TensorLike,
) -> Tensor:
    """exp(self) - 1, accurate for small elements too."""

def eye(
    n_rows: _b.int,
    n_cols: _b.int | None = None,
    *,
    k: _b.int = 0,
    dtype: _DTypeLike | None = None,
    device: _b.str | None = None,
) -> Tensor:
    """A matrix with ones on one diagonal and zeros elsewhere."""

def flatten(
    self: _TensorLike,
    start_dim: _b.int = 0,
    end_dim: _b.int = -1,
) -> Tensor:
    """Consecutive axes merged into one; by default all of them. Also called ``ravel``."""

def flip(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
) -> Tensor:
    """A view with the elements in reverse order along some axes."""

def floor(
    self: _TensorLike,
) -> Tensor:
    """Each element rounded down; integers are unchanged."""

def floor_divide(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The quotient rounded down, elementwise; 0 for an integer divided by zero."""

def fmax(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The larger of two elements; if one is NaN, the other."""

def fmin(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The smaller of two elements; if one is NaN, the other."""

def fmod(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The remainder of division rounded towards zero, with the sign of the dividend; 0 for in..."""

def full(
    shape: Sequence[_b.int] | _b.int,
    fill_value: _TensorLike,
    *,
    dtype: _DTypeLike | None = None,
    device: _b.str | None = None,
) -> Tensor:
    """A tensor of one value."""

def full_like(
    self: _TensorLike,
    fill_value: _TensorLike,
    *,
    dtype: _DTypeLike | None = None,
    device: _b.str | None = None,
) -> Tensor:
    """A tensor of one value, with the shape of another."""

def ge(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Whether `self` is at least `other`, elementwise."""

def gelu(
    self: _TensorLike,
    *,
    approximate: _b.str = "none",
) -> Tensor:
    """The Gaussian error linear unit."""

def greater(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Whether `self` is greater than `other`, elementwise."""

def greater_equal(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Whether `self` is at least `other`, elementwise."""

def gt(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Whether `self` is greater than `other`, elementwise."""

def hypot(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The length of the hypotenuse, sqrt(self**2 + other**2), without intermediate overflow."""

def imag(
    self: _TensorLike,
) -> Tensor:
    """The imaginary part of each element; 0 for real elements."""

def index_reduce(
    self: _TensorLike,
    indices: Sequence[_TensorLike],
    value: _TensorLike,
    axis: _b.int = 0,
    *,
    reduce: _b.str,
) -> Tensor:
    """A copy of the tensor with elements at integer positions combined with all values for ea..."""

def isfinite(
    self: _TensorLike,
) -> Tensor:
    """Whether an element is neither infinite nor NaN."""

def isinf(
    self: _TensorLike,
) -> Tensor:
    """Whether an element is infinite, of either sign; False for integers."""

def isnan(
    self: _TensorLike,
) -> Tensor:
    """Whether an element is NaN; False for integers."""

def kron(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The Kronecker product: a block of ``other`` times each element of ``self``."""

def layer_norm(
    self: _TensorLike,
    normalized_shape: Sequence[_b.int] | _b.int,
    weight: _TensorLike | None = None,
    bias: _TensorLike | None = None,
    eps: _b.float = ...,
) -> Tensor:
    """Layer normalization: shift and scale to mean 0 and variance 1 over the last axes."""

def le(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Whether `self` is at most `other`, elementwise."""

def leaky_relu(
    self: _TensorLike,
    negative_slope: _b.float = ...,
) -> Tensor:
    """The positive elements, and the others times a slope."""

def left_shift(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The bits of `self` shifted left by `other`; bits shifted out are lost."""

def less(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Whether `self` is less than `other`, elementwise."""

def less_equal(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Whether `self` is at most `other`, elementwise."""

def linspace(
    start: _Number,
    stop: _Number,
    num: _b.int,
    *,
    dtype: _DTypeLike | None = None,
    device: _b.str | None = None,
    endpoint: _b.bool = True,
) -> Tensor:
    """``num`` evenly spaced values from ``start`` to ``stop``."""

def log(
    self: _TensorLike,
) -> Tensor:
    """The natural logarithm of each element; -inf for 0, NaN below."""

def log10(
    self: _TensorLike,
) -> Tensor:
    """The logarithm of each element to base 10."""

def log1p(
    self: _TensorLike,
) -> Tensor:
    """log(1 + self), accurate for small elements too."""

def log2(
    self: _TensorLike,
) -> Tensor:
    """The logarithm of each element to base 2."""

def log_softmax(
    self: _TensorLike,
    axis: _b.int = -1,
) -> Tensor:
    """The logarithm of softmax, accurate where softmax rounds to 0 too."""

def logaddexp(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """log(exp(self) + exp(other)), without intermediate overflow."""

def logical_and(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Whether both elements are true (not zero)."""

def logical_not(
    self: _TensorLike,
) -> Tensor:
    """Whether an element is false (zero)."""

def logical_or(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Whether either element is true (not zero)."""

def logical_xor(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Whether exactly one of two elements is true (not zero)."""

def logsumexp(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    keepdims: _b.bool = False,
) -> Tensor:
    """The logarithm of the sum of exponentials over axes, without intermediate overflow."""

def lt(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Whether `self` is less than `other`, elementwise."""

def matmul(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The matrix product; also ``x @ y``."""

def matrix_transpose(
    self: _TensorLike,
) -> Tensor:
    """The transposes of a stack of matrices: a view with the last two axes exchanged; also ``..."""

def max(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    keepdims: _b.bool = False,
) -> Tensor:
    """The largest element over axes; NaN if there is one."""

def max_pool1d(
    self: _TensorLike,
    kernel_size: _b.int | Sequence[_b.int],
    stride: _b.int | Sequence[_b.int] | None = None,
    padding: _b.int | _b.str | Sequence[_b.int | Sequence[_b.int]] = 0,
    dilation: _b.int | Sequence[_b.int] = 1,
) -> Tensor:
    """The largest element of each window."""

def max_pool2d(
    self: _TensorLike,
    kernel_size: _b.int | Sequence[_b.int],
    stride: _b.int | Sequence[_b.int] | None = None,
    padding: _b.int | _b.str | Sequence[_b.int | Sequence[_b.int]] = 0,
    dilation: _b.int | Sequence[_b.int] = 1,
) -> Tensor:
    """The largest element of each window."""

def max_pool3d(
    self: _TensorLike,
    kernel_size: _b.int | Sequence[_b.int],
    stride: _b.int | Sequence[_b.int] | None = None,
    padding: _b.int | _b.str | Sequence[_b.int | Sequence[_b.int]] = 0,
    dilation: _b.int | Sequence[_b.int] = 1,
) -> Tensor:
    """The largest element of each window."""

def maximum(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The larger of two elements; NaN if either is NaN."""

def mean(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    keepdims: _b.bool = False,
) -> Tensor:
    """The arithmetic mean of the elements over axes."""

def min(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    keepdims: _b.bool = False,
) -> Tensor:
    """The smallest element over axes; NaN if there is one."""

def minimum(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The smaller of two elements; NaN if either is NaN."""

def moveaxis(
    self: _TensorLike,
    source: Sequence[_b.int] | _b.int,
    destination: Sequence[_b.int] | _b.int,
) -> Tensor:
    """A view with some axes moved to new positions; the others keep their order."""

def mse_loss(
    self: _TensorLike,
    target: _TensorLike,
    *,
    reduction: _b.str = "mean",
) -> Tensor:
    """The squared differences of two tensors of one shape."""

def mul(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Product of two tensors, elementwise; `and` on bools."""

def multiply(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Product of two tensors, elementwise; `and` on bools."""

def nan_to_num(
    self: _TensorLike,
    *,
    nan: _b.float = ...,
    posinf: _b.float | None = None,
    neginf: _b.float | None = None,
) -> Tensor:
    """Replace NaN and infinities by numbers; no gradient flows to the replaced elements."""

def ne(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Whether two tensors differ, elementwise; NaN differs from itself."""

def neg(
    self: _TensorLike,
) -> Tensor:
    """The negative of each element; unsigned integers and the most negative integer wrap around."""

def negative(
    self: _TensorLike,
) -> Tensor:
    """The negative of each element; unsigned integers and the most negative integer wrap around."""

def nonzero(
    self: _TensorLike,
    *,
    size: _b.int | None = None,
    fill_value: _b.int = 0,
) -> tuple[Tensor, ...]:
    """The positions of the elements that are not zero."""

def not_equal(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Whether two tensors differ, elementwise; NaN differs from itself."""

def one_hot(
    self: _TensorLike,
    num_classes: _b.int,
    *,
    axis: _b.int = -1,
    dtype: _DTypeLike | None = None,
) -> Tensor:
    """One-hot encoding: one at the index of the class, zero elsewhere."""

def ones(
    shape: Sequence[_b.int] | _b.int,
    *,
    dtype: _DTypeLike | None = None,
    device: _b.str | None = None,
) -> Tensor:
    """A tensor of ones."""

def ones_like(
    self: _TensorLike,
    *,
    dtype: _DTypeLike | None = None,
    device: _b.str | None = None,
) -> Tensor:
    """A tensor of ones with the shape of another."""

def outer(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The outer product of two vectors."""

def pad(
    self: _TensorLike,
    width: _b.int | Sequence[_b.int | Sequence[_b.int]],
    *,
    value: _Number = 0,
) -> Tensor:
    """The tensor padded with a constant."""

def permute(
    self: _TensorLike,
    axes: Sequence[_b.int] | _b.int,
) -> Tensor:
    """A view with the axes in another order; also called ``permute_dims``."""

def permute_dims(
    self: _TensorLike,
    axes: Sequence[_b.int] | _b.int,
) -> Tensor:
    """A view with the axes in another order; also called ``permute_dims``."""

def positive(
    self: _TensorLike,
) -> Tensor:
    """A copy of the tensor."""

def pow(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """`self` to the power `other`; integers to a tensor of negative integers return truncated..."""

def power(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """`self` to the power `other`; integers to a tensor of negative integers return truncated..."""

def prod(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    dtype: _DTypeLike | None = None,
    keepdims: _b.bool = False,
) -> Tensor:
    """The product of the elements over axes; 1 if there are none."""

def ravel(
    self: _TensorLike,
    start_dim: _b.int = 0,
    end_dim: _b.int = -1,
) -> Tensor:
    """Consecutive axes merged into one; by default all of them. Also called ``ravel``."""

def real(
    self: _TensorLike,
) -> Tensor:
    """The real part of each element; real elements are unchanged."""

def reciprocal(
    self: _TensorLike,
) -> Tensor:
    """One over each element."""

def recompute_barrier(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The first tensor; equal calls with different second tensors are not merged."""

def relu(
    self: _TensorLike,
) -> Tensor:
    """The positive part of each element; NaN stays NaN."""

def remainder(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The remainder of `floor_divide`, with the sign of the divisor; 0 for an integer divided..."""

def repeat(
    self: _TensorLike,
    repeats: _b.int,
    axis: _b.int | None = None,
) -> Tensor:
    """Each element, or slice along an axis, repeated."""

def reshape(
    self: _TensorLike,
    shape: Sequence[_b.int] | _b.int,
) -> Tensor:
    """The elements in row-major order in another shape: a view if the strides allow it, else ..."""

def right_shift(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The bits of `self` shifted right by `other`; the sign is kept."""

def roll(
    self: _TensorLike,
    shift: Sequence[_b.int] | _b.int,
    axis: Sequence[_b.int] | _b.int | None = None,
) -> Tensor:
    """The elements shifted along axes; elements shifted out at one end come in at the other."""

def round(
    self: _TensorLike,
) -> Tensor:
    """Each element rounded to the nearest integer, halves to the even one; integers are uncha..."""

def rsqrt(
    self: _TensorLike,
) -> Tensor:
    """One over the square root of each element."""

def scaled_dot_product_attention(
    query: _TensorLike,
    key: _TensorLike,
    value: _TensorLike,
    attn_mask: _TensorLike | None = None,
    *,
    is_causal: _b.bool = False,
    scale: _b.float | None = None,
) -> Tensor:
    """Scaled dot-product attention: ``softmax(query @ key.mT * scale) @ value``."""

def sigmoid(
    self: _TensorLike,
) -> Tensor:
    """1 / (1 + exp(-self)), without intermediate overflow."""

def sign(
    self: _TensorLike,
) -> Tensor:
    """-1, 0 or 1 by the sign of each element, NaN for NaN; for complex numbers self / abs(self)."""

def signbit(
    self: _TensorLike,
) -> Tensor:
    """Whether the sign bit is set, including -0.0 and NaN."""

def silu(
    self: _TensorLike,
) -> Tensor:
    """self * sigmoid(self), also called swish."""

def sin(
    self: _TensorLike,
) -> Tensor:
    """The sine of each element."""

def sinc(
    self: _TensorLike,
) -> Tensor:
    """sin(pi * self) / (pi * self), and 1 at 0, where derivatives of any order are defined too."""

def sinh(
    self: _TensorLike,
) -> Tensor:
    """The hyperbolic sine of each element."""

def softmax(
    self: _TensorLike,
    axis: _b.int = -1,
) -> Tensor:
    """Softmax: exponentials normalized to sum to one along an axis."""

def softplus(
    self: _TensorLike,
) -> Tensor:
    """log(1 + exp(self)), without intermediate overflow."""

def sort(
    self: _TensorLike,
    *,
    axis: _b.int = -1,
    descending: _b.bool = False,
    stable: _b.bool = True,
) -> Tensor:
    """The elements in sorted order along an axis."""

def split(
    self: _TensorLike,
    sections: _b.int | Sequence[_b.int],
    axis: _b.int = 0,
) -> tuple[Tensor, ...]:
    """The tensor in parts along an axis, as views."""

def sqrt(
    self: _TensorLike,
) -> Tensor:
    """The square root of each element; NaN for negative real elements."""

def square(
    self: _TensorLike,
) -> Tensor:
    """The square of each element."""

def squeeze(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
) -> Tensor:
    """A view without axes of length 1."""

def stack(
    tensors: Sequence[_TensorLike],
    axis: _b.int = 0,
) -> Tensor:
    """Tensors of one shape joined along a new axis."""

def std(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    correction: _b.float = ...,
    keepdims: _b.bool = False,
) -> Tensor:
    """The standard deviation of the elements over axes, the square root of `var`."""

def sub(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Difference of two tensors, elementwise."""

def subtract(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Difference of two tensors, elementwise."""

def sum(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    dtype: _DTypeLike | None = None,
    keepdims: _b.bool = False,
) -> Tensor:
    """The sum of the elements over axes; 0 if there are none."""

def swapaxes(
    self: _TensorLike,
    dim0: _b.int = -2,
    dim1: _b.int = -1,
) -> Tensor:
    """A view with two axes exchanged."""

def take(
    self: _TensorLike,
    indices: _TensorLike,
    axis: _b.int | None = None,
) -> Tensor:
    """The slices at integer positions along an axis."""

def take_along_axis(
    self: _TensorLike,
    indices: _TensorLike,
    axis: _b.int = -1,
) -> Tensor:
    """The elements at positions along one axis that ``indices`` has for each element, such as..."""

def tan(
    self: _TensorLike,
) -> Tensor:
    """The tangent of each element."""

def tanh(
    self: _TensorLike,
) -> Tensor:
    """The hyperbolic tangent of each element."""

def tensordot(
    self: _TensorLike,
    other: _TensorLike,
    axes: _b.int | Sequence[_b.int | Sequence[_b.int]] = 2,
) -> Tensor:
    """Products summed over several axes of each operand."""

def tile(
    self: _TensorLike,
    repetitions: Sequence[_b.int] | _b.int,
) -> Tensor:
    """Copies of the tensor side by side along each axis."""

def trace(
    self: _TensorLike,
    offset: _b.int = 0,
    axis1: _b.int = 0,
    axis2: _b.int = 1,
) -> Tensor:
    """The sum along a diagonal of each matrix in a stack."""

def transpose(
    self: _TensorLike,
    dim0: _b.int = -2,
    dim1: _b.int = -1,
) -> Tensor:
    """A view with two axes exchanged."""

def tril(
    self: _TensorLike,
    *,
    k: _b.int = 0,
) -> Tensor:
    """The lower triangles of a stack of matrices, zero above."""

def triu(
    self: _TensorLike,
    *,
    k: _b.int = 0,
) -> Tensor:
    """The upper triangles of a stack of matrices, zero below."""

def true_divide(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Quotient of two tensors, elementwise."""

def trunc(
    self: _TensorLike,
) -> Tensor:
    """Each element rounded towards zero; integers are unchanged."""

def unsqueeze(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int = ...,
) -> Tensor:
    """A view with new axes of length 1; also called ``unsqueeze``."""

def unstack(
    self: _TensorLike,
    axis: _b.int = 0,
) -> tuple[Tensor, ...]:
    """The sub-tensors along an axis, as views."""

def var(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    correction: _b.float = ...,
    keepdims: _b.bool = False,
) -> Tensor:
    """The variance of the elements over axes."""

def vecdot(
    self: _TensorLike,
    other: _TensorLike,
    *,
    axis: _b.int = -1,
) -> Tensor:
    """The sum of products along one axis."""

def where(
    condition: _TensorLike,
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Elements of `self` where the condition is true, of `other` where it is false."""

def zeros(
    shape: Sequence[_b.int] | _b.int,
    *,
    dtype: _DTypeLike | None = None,
    device: _b.str | None = None,
) -> Tensor:
    """A tensor of zeros."""

def zeros_like(
    self: _TensorLike,
    *,
    dtype: _DTypeLike | None = None,
    device: _b.str | None = None,
) -> Tensor:
    """A tensor of zeros with the shape of another."""
