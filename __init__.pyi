"""Made by `python -m tandem.eager.tensor.type_stubs` from the declarations of the operators."""

import builtins as _b
from collections.abc import Sequence
from typing import Any, overload

import numpy as _np

from . import config as config
from . import debug as debug
from . import errors as errors
from . import fft as fft
from . import jax as jax
from . import linalg as linalg
from . import nn as nn
from . import numpy as numpy
from . import optim as optim
from . import profiler as profiler
from . import pytree as pytree
from . import special as special
from . import torch as torch
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
from .eager.autograd.grad_modes import inference_mode as inference_mode
from .eager.autograd.grad_modes import is_grad_enabled as is_grad_enabled
from .eager.autograd.grad_modes import no_grad as no_grad
from .eager.autograd.grad_modes import set_grad_enabled as set_grad_enabled
from .eager.layers.autocast import autocast as autocast
from .eager.layers.autocast import is_autocast_enabled as is_autocast_enabled
from .eager.layers.dispatch_mode import DispatchMode as DispatchMode
from .eager.layers.dispatch_mode import no_dispatch as no_dispatch
from .eager.layers.functionalize import functionalize as functionalize
from .eager.meta.memory import meta_memory as meta_memory
from .eager.tensor.attributes import adjoint as adjoint
from .eager.tensor.attributes import is_complex as is_complex
from .eager.tensor.attributes import is_floating_point as is_floating_point
from .eager.tensor.attributes import is_nonzero as is_nonzero
from .eager.tensor.attributes import is_same_size as is_same_size
from .eager.tensor.attributes import is_signed as is_signed
from .eager.tensor.attributes import numel as numel
from .eager.tensor.construct import asarray as asarray
from .eager.tensor.construct import from_dlpack as from_dlpack
from .eager.tensor.construct import tensor as tensor
from .eager.tensor.forwards import det as det
from .eager.tensor.forwards import digamma as digamma
from .eager.tensor.forwards import erfinv as erfinv
from .eager.tensor.forwards import inverse as inverse
from .eager.tensor.forwards import lgamma as lgamma
from .eager.tensor.forwards import logit as logit
from .eager.tensor.forwards import masked_select as masked_select
from .eager.tensor.forwards import matrix_power as matrix_power
from .eager.tensor.forwards import pinverse as pinverse
from .eager.tensor.forwards import xlogy as xlogy
from .eager.tensor.generator import Generator as Generator
from .eager.tensor.index_tricks import c_ as c_
from .eager.tensor.index_tricks import index_exp as index_exp
from .eager.tensor.index_tricks import mgrid as mgrid
from .eager.tensor.index_tricks import ogrid as ogrid
from .eager.tensor.index_tricks import r_ as r_
from .eager.tensor.index_tricks import s_ as s_
from .eager.tensor.interop.array_namespace import __array_namespace_info__ as __array_namespace_info__
from .eager.tensor.interop.array_namespace import broadcast_shapes as broadcast_shapes
from .eager.tensor.interop.files import load as load
from .eager.tensor.interop.files import load_safetensors as load_safetensors
from .eager.tensor.interop.files import save as save
from .eager.tensor.interop.files import save_safetensors as save_safetensors
from .eager.tensor.layouts import quantize_per_channel as quantize_per_channel
from .eager.tensor.layouts import quantize_per_tensor as quantize_per_tensor
from .eager.tensor.layouts import sparse_coo_tensor as sparse_coo_tensor
from .eager.tensor.layouts import sparse_csr_tensor as sparse_csr_tensor
from .eager.tensor.queries import array as array
from .eager.tensor.queries import array2string as array2string
from .eager.tensor.queries import array_repr as array_repr
from .eager.tensor.queries import array_str as array_str
from .eager.tensor.queries import get_printoptions as get_printoptions
from .eager.tensor.queries import iscomplexobj as iscomplexobj
from .eager.tensor.queries import isrealobj as isrealobj
from .eager.tensor.queries import isscalar as isscalar
from .eager.tensor.queries import iterable as iterable
from .eager.tensor.queries import ndim as ndim
from .eager.tensor.queries import printoptions as printoptions
from .eager.tensor.queries import set_printoptions as set_printoptions
from .eager.tensor.queries import shape as shape
from .eager.tensor.queries import size as size
from .eager.tensor.tensor import Tensor as Tensor
from .eager.tensor.transfer import synchronize as synchronize
from .jit.api import jit as jit
from .linalg.polynomials import poly as poly
from .linalg.polynomials import polyfit as polyfit
from .linalg.polynomials import roots as roots
from .numpy import lib as lib
from .numpy.writing import fill_diagonal as fill_diagonal
from .numpy.writing import put_along_axis as put_along_axis
from .operators.contraction.einsum import einsum as einsum
from .operators.creation.creation import e as e
from .operators.creation.creation import euler_gamma as euler_gamma
from .operators.creation.creation import inf as inf
from .operators.creation.creation import nan as nan
from .operators.creation.creation import newaxis as newaxis
from .operators.creation.creation import pi as pi
from .operators.declare.named_results import MinAndMax, ValuesAndIndices
from .operators.indexing.choosing import piecewise as piecewise
from .operators.indexing.flat_indices import ix_ as ix_
from .operators.indexing.index_sets import diag_indices_from as diag_indices_from
from .operators.indexing.index_sets import mask_indices as mask_indices
from .operators.indexing.index_sets import tril_indices_from as tril_indices_from
from .operators.indexing.index_sets import triu_indices_from as triu_indices_from
from .operators.random import namespace as _random
from .operators.reductions.histogram_grids import histogramdd as histogramdd
from .operators.reductions.sets import unique_all as unique_all
from .operators.reductions.sets import unique_counts as unique_counts
from .operators.reductions.sets import unique_inverse as unique_inverse
from .operators.reductions.signals import gradient as gradient
from .operators.reductions.unique import unique as unique
from .operators.scalar_ir import nodes as _scalar
from .operators.shape.blocks import block as block
from .operators.shape.grids import broadcast_arrays as broadcast_arrays
from .operators.shape.grids import meshgrid as meshgrid
from .operators.shape.inserting import trim_zeros as trim_zeros
from .operators.shape.several import atleast_1d as atleast_1d
from .operators.shape.several import atleast_2d as atleast_2d
from .operators.shape.several import atleast_3d as atleast_3d
from .registry.dispatch.guards import dispatch_state as dispatch_state
from .registry.dispatch.guards import exclude_keys as exclude_keys
from .registry.dispatch.guards import force_keys as force_keys
from .registry.dispatch.guards import include_keys as include_keys
from .registry.dispatch.keys import DispatchKey as DispatchKey
from .registry.dispatch.keys import DispatchKeySet as DispatchKeySet
from .registry.dispatch.tables import dispatch_table as dispatch_table
from .registry.dispatch.trace import show_dispatch_trace as show_dispatch_trace
from .registry.dtype_functions import can_cast as can_cast
from .registry.dtype_functions import finfo as finfo
from .registry.dtype_functions import get_default_dtype as get_default_dtype
from .registry.dtype_functions import iinfo as iinfo
from .registry.dtype_functions import is_tensor as is_tensor
from .registry.dtype_functions import isdtype as isdtype
from .registry.dtype_functions import promote_types as promote_types
from .registry.dtype_functions import result_type as result_type
from .registry.dtype_functions import set_default_dtype as set_default_dtype
from .registry.dtype_names import byte as byte
from .registry.dtype_names import cdouble as cdouble
from .registry.dtype_names import complex_ as complex_
from .registry.dtype_names import complexfloating as complexfloating
from .registry.dtype_names import csingle as csingle
from .registry.dtype_names import double as double
from .registry.dtype_names import float_ as float_
from .registry.dtype_names import floating as floating
from .registry.dtype_names import generic as generic
from .registry.dtype_names import half as half
from .registry.dtype_names import inexact as inexact
from .registry.dtype_names import int_ as int_
from .registry.dtype_names import intc as intc
from .registry.dtype_names import integer as integer
from .registry.dtype_names import intp as intp
from .registry.dtype_names import issubdtype as issubdtype
from .registry.dtype_names import long as long
from .registry.dtype_names import longlong as longlong
from .registry.dtype_names import number as number
from .registry.dtype_names import short as short
from .registry.dtype_names import signedinteger as signedinteger
from .registry.dtype_names import single as single
from .registry.dtype_names import ubyte as ubyte
from .registry.dtype_names import uint as uint
from .registry.dtype_names import uintc as uintc
from .registry.dtype_names import uintp as uintp
from .registry.dtype_names import ulong as ulong
from .registry.dtype_names import ulonglong as ulonglong
from .registry.dtype_names import unsignedinteger as unsignedinteger
from .registry.dtype_names import ushort as ushort
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
from .special import i0 as i0
from .transforms import checkpoint_policies as checkpoint_policies
from .transforms.check_grads import check_grads as check_grads
from .transforms.checkpoint import checkpoint as checkpoint
from .transforms.checkpoint import remat as remat
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
from .transforms.jacobians import jacobian as jacobian
from .transforms.jacobians import jacrev as jacrev
from .transforms.numpy_maps import apply_along_axis as apply_along_axis
from .transforms.numpy_maps import apply_over_axes as apply_over_axes
from .transforms.numpy_maps import fromfunction as fromfunction
from .transforms.numpy_maps import vectorize as vectorize
from .transforms.reverse import grad as grad
from .transforms.reverse import stop_gradient as stop_gradient
from .transforms.reverse import value_and_grad as value_and_grad
from .transforms.reverse import vjp as vjp
from .transforms.ufuncs import frompyfunc as frompyfunc
from .transforms.ufuncs import ufunc as ufunc
from .transforms.vmap import register_vmap as register_vmap
from .transforms.vmap import vmap as vmap
from .transforms.zeros import CustomVJPPrimal as CustomVJPPrimal
from .transforms.zeros import SymbolicZero as SymbolicZero
from .transforms.zeros import float0 as float0

_Number = _b.bool | _b.int | _b.float | _b.complex
_TensorLike = Tensor | _Number | _np.ndarray[Any, Any] | _np.generic
_DTypeLike = DType | _b.str | _b.type[Any] | _np.dtype[Any]

__version__: _b.str
__array_api_version__: _b.str
bool = bool_
cuda = _cuda
autograd = _autograd
random = _random
scalar = _scalar

def abs(
    self: _TensorLike,
) -> Tensor:
    """The magnitude of each element; the most negative integer and bools are unchanged."""

def absolute(
    self: _TensorLike,
) -> Tensor:
    """The magnitude of each element; the most negative integer and bools are unchanged."""

def acos(
    self: _TensorLike,
) -> Tensor:
    """The angle whose cosine is each element, in [0, pi]; NaN outside of [-1, 1]."""

def acosh(
    self: _TensorLike,
) -> Tensor:
    """The number at least 0 whose hyperbolic cosine is each element; NaN below 1."""

@overload
def add(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Sum of two tensors, elementwise; `or` on bools."""

@overload
def add(
    self: _TensorLike,
    other: _TensorLike,
    *,
    alpha: _Number,
) -> Tensor:
    """`self + alpha * other`."""

def addbmm(
    self: _TensorLike,
    batch1: _TensorLike,
    batch2: _TensorLike,
    *,
    beta: _Number = 1,
    alpha: _Number = 1,
) -> Tensor:
    """`beta * self + alpha * sum(batch1 @ batch2)`, with the sum over the stack."""

def addcdiv(
    self: _TensorLike,
    tensor1: _TensorLike,
    tensor2: _TensorLike,
    *,
    value: _Number = 1,
) -> Tensor:
    """`self + value * tensor1 / tensor2`."""

def addcmul(
    self: _TensorLike,
    tensor1: _TensorLike,
    tensor2: _TensorLike,
    *,
    value: _Number = 1,
) -> Tensor:
    """`self + value * tensor1 * tensor2`."""

def addmm(
    self: _TensorLike,
    mat1: _TensorLike,
    mat2: _TensorLike,
    *,
    beta: _Number = 1,
    alpha: _Number = 1,
) -> Tensor:
    """`beta * self + alpha * (mat1 @ mat2)`, of matrices."""

def addmv(
    self: _TensorLike,
    mat: _TensorLike,
    vec: _TensorLike,
    *,
    beta: _Number = 1,
    alpha: _Number = 1,
) -> Tensor:
    """`beta * self + alpha * (mat @ vec)`, of a matrix and a vector."""

def addr(
    self: _TensorLike,
    vec1: _TensorLike,
    vec2: _TensorLike,
    *,
    beta: _Number = 1,
    alpha: _Number = 1,
) -> Tensor:
    """`beta * self + alpha * outer(vec1, vec2)`, of vectors."""

@overload
def all(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    keepdims: _b.bool = False,
) -> Tensor:
    """Whether all elements over axes are true (not zero); True if there are none."""

@overload
def all(
    self: _TensorLike,
    dim: Sequence[_b.int] | _b.int | None = None,
    *,
    keepdim: _b.bool = False,
) -> Tensor:
    """Whether all elements over axes are true (not zero); True if there are none."""

def allclose(
    self: _TensorLike,
    other: _TensorLike,
    rtol: _b.float = ...,
    atol: _b.float = ...,
    equal_nan: _b.bool = False,
) -> Tensor:
    """Whether all elements are close, as in `isclose`."""

@overload
def amax(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    keepdims: _b.bool = False,
) -> Tensor:
    """The largest element over axes; NaN if there is one. It is `max` without the overloads t..."""

@overload
def amax(
    self: _TensorLike,
    dim: Sequence[_b.int] | _b.int | None = None,
    *,
    keepdim: _b.bool = False,
) -> Tensor:
    """The largest element over axes; NaN if there is one. It is `max` without the overloads t..."""

@overload
def amin(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    keepdims: _b.bool = False,
) -> Tensor:
    """The smallest element over axes; NaN if there is one. It is `min` without the overloads ..."""

@overload
def amin(
    self: _TensorLike,
    dim: Sequence[_b.int] | _b.int | None = None,
    *,
    keepdim: _b.bool = False,
) -> Tensor:
    """The smallest element over axes; NaN if there is one. It is `min` without the overloads ..."""

@overload
def aminmax(
    self: _TensorLike,
    *,
    axis: _b.int | None = None,
    keepdims: _b.bool = False,
) -> MinAndMax:
    """The smallest and the largest element, of all or along an axis; NaN if there is one."""

@overload
def aminmax(
    self: _TensorLike,
    *,
    dim: _b.int | None = None,
    keepdim: _b.bool = False,
) -> MinAndMax:
    """The smallest and the largest element, of all or along an axis; NaN if there is one."""

def angle(
    self: _TensorLike,
) -> Tensor:
    """The angle of each element in the complex plane, in radians: 0 or pi for real elements."""

@overload
def any(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    keepdims: _b.bool = False,
) -> Tensor:
    """Whether an element over axes is true (not zero); False if there are none."""

@overload
def any(
    self: _TensorLike,
    dim: Sequence[_b.int] | _b.int | None = None,
    *,
    keepdim: _b.bool = False,
) -> Tensor:
    """Whether an element over axes is true (not zero); False if there are none."""

@overload
def append(
    self: _TensorLike,
    values: _TensorLike,
    axis: _b.int | None = None,
) -> Tensor:
    """The tensor with values appended along an axis."""

@overload
def append(
    self: _TensorLike,
    values: _TensorLike,
    dim: _b.int | None = None,
) -> Tensor:
    """The tensor with values appended along an axis."""

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

@overload
def argmax(
    self: _TensorLike,
    axis: _b.int | None = None,
    *,
    keepdims: _b.bool = False,
) -> Tensor:
    """The index of the largest element along an axis or of all; the first of several; NaN if ..."""

@overload
def argmax(
    self: _TensorLike,
    dim: _b.int | None = None,
    *,
    keepdim: _b.bool = False,
) -> Tensor:
    """The index of the largest element along an axis or of all; the first of several; NaN if ..."""

@overload
def argmin(
    self: _TensorLike,
    axis: _b.int | None = None,
    *,
    keepdims: _b.bool = False,
) -> Tensor:
    """The index of the smallest element along an axis or of all; the first of several; NaN if..."""

@overload
def argmin(
    self: _TensorLike,
    dim: _b.int | None = None,
    *,
    keepdim: _b.bool = False,
) -> Tensor:
    """The index of the smallest element along an axis or of all; the first of several; NaN if..."""

@overload
def argpartition(
    self: _TensorLike,
    kth: Sequence[_b.int] | _b.int,
    axis: _b.int | None = -1,
) -> Tensor:
    """The positions that put the smaller elements in front of the kth and the others behind it."""

@overload
def argpartition(
    self: _TensorLike,
    kth: Sequence[_b.int] | _b.int,
    dim: _b.int | None = -1,
) -> Tensor:
    """The positions that put the smaller elements in front of the kth and the others behind it."""

def argselect(
    self: _TensorLike,
    ranks: _TensorLike,
) -> Tensor:
    """The positions of the elements at ranks in sorted order: ``take_along_axis(argsort(self)..."""

@overload
def argsort(
    self: _TensorLike,
    *,
    axis: _b.int = -1,
    descending: _b.bool = False,
    stable: _b.bool = True,
) -> Tensor:
    """The positions of the elements in sorted order along an axis."""

@overload
def argsort(
    self: _TensorLike,
    *,
    dim: _b.int = -1,
    descending: _b.bool = False,
    stable: _b.bool = True,
) -> Tensor:
    """The positions of the elements in sorted order along an axis."""

@overload
def argtopk(
    self: _TensorLike,
    k: _b.int,
    *,
    axis: _b.int = -1,
    descending: _b.bool = True,
) -> Tensor:
    """The positions of the first ``k`` elements in sorted order along an axis: a part of args..."""

@overload
def argtopk(
    self: _TensorLike,
    k: _b.int,
    *,
    dim: _b.int = -1,
    descending: _b.bool = True,
) -> Tensor:
    """The positions of the first ``k`` elements in sorted order along an axis: a part of args..."""

def argwhere(
    self: _TensorLike,
    *,
    size: _b.int | None = None,
    fill_value: _b.int = 0,
) -> Tensor:
    """The indices of the elements that are not zero, a row for each."""

def around(
    self: _TensorLike,
    decimals: _b.int = 0,
) -> Tensor:
    """Each element rounded to some decimals, halves to even."""

def array_equal(
    self: _TensorLike,
    other: _TensorLike,
    equal_nan: _b.bool = False,
) -> Tensor:
    """Whether two tensors have the same shape and elements."""

def array_equiv(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Whether two tensors broadcast and have the same elements then."""

@overload
def array_split(
    self: _TensorLike,
    sections: _b.int | Sequence[_b.int],
    axis: _b.int = 0,
) -> tuple[Tensor, ...]:
    """The tensor in parts along an axis, as views, whose lengths differ by at most 1."""

@overload
def array_split(
    self: _TensorLike,
    sections: _b.int | Sequence[_b.int],
    dim: _b.int = 0,
) -> tuple[Tensor, ...]:
    """The tensor in parts along an axis, as views, whose lengths differ by at most 1."""

def as_strided(
    self: _TensorLike,
    size: Sequence[_b.int] | _b.int,
    stride: Sequence[_b.int] | _b.int,
    storage_offset: _b.int | None = None,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """A view of a tensor's elements, in row-major order, with given sizes and strides."""

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
    device: _b.str | None = None,
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

@overload
def average(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    weights: _TensorLike | None = None,
    *,
    keepdims: _b.bool = False,
) -> Tensor:
    """The weighted mean of the elements over axes."""

@overload
def average(
    self: _TensorLike,
    dim: Sequence[_b.int] | _b.int | None = None,
    weights: _TensorLike | None = None,
    *,
    keepdim: _b.bool = False,
) -> Tensor:
    """The weighted mean of the elements over axes."""

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

def baddbmm(
    self: _TensorLike,
    batch1: _TensorLike,
    batch2: _TensorLike,
    *,
    beta: _Number = 1,
    alpha: _Number = 1,
) -> Tensor:
    """`beta * self + alpha * (batch1 @ batch2)`, of stacks of matrices."""

def bartlett(
    n: _b.int,
    *,
    dtype: _DTypeLike | None = None,
    device: _b.str | None = None,
) -> Tensor:
    """The Bartlett window: a triangle that is 0 at the ends."""

def bincount(
    self: _TensorLike,
    weights: _TensorLike | None = None,
    minlength: _b.int = 0,
    *,
    length: _b.int | None = None,
) -> Tensor:
    """How often each integer from 0 occurs in a vector."""

def bitcast(
    self: _TensorLike,
    dtype: _DTypeLike,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """The memory of a tensor as elements of another dtype: `x.view(dtype)` of NumPy and PyTorch."""

def bitwise_and(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The bits set in both elements."""

def bitwise_count(
    self: _TensorLike,
) -> Tensor:
    """The number of bits set in the magnitude of each element."""

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

def blackman(
    n: _b.int,
    *,
    dtype: _DTypeLike | None = None,
    device: _b.str | None = None,
) -> Tensor:
    """The Blackman window: a sum of two cosines."""

def block_diag(
    tensors: Sequence[_TensorLike],
) -> Tensor:
    """The matrix with matrices along its diagonal, and zeros elsewhere."""

def bmm(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The products of two stacks of matrices."""

@overload
def broadcast_to(
    self: _TensorLike,
    shape: Sequence[_b.int] | _b.int,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """A view with the tensor repeated along new leading axes and axes of length 1."""

@overload
def broadcast_to(
    self: _TensorLike,
    *shape: _b.int,
    copy: _b.bool | None = None,
) -> Tensor:
    """A view with the tensor repeated along new leading axes and axes of length 1."""

@overload
def cat(
    tensors: Sequence[_TensorLike],
    axis: _b.int | None = 0,
) -> Tensor:
    """Join tensors along an existing axis."""

@overload
def cat(
    tensors: Sequence[_TensorLike],
    dim: _b.int | None = 0,
) -> Tensor:
    """Join tensors along an existing axis."""

def cbrt(
    self: _TensorLike,
) -> Tensor:
    """The cube root of each element."""

def ceil(
    self: _TensorLike,
) -> Tensor:
    """Each element rounded up; integers are unchanged."""

def checkpoint_name(
    self: _TensorLike,
    name: _b.str,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """Name a tensor for the policies of `td.checkpoint`."""

def choose(
    self: _TensorLike,
    choices: Sequence[_TensorLike],
    mode: _b.str = "raise",
) -> Tensor:
    """For each element, an index, the element of the choice with that index."""

@overload
def chunk(
    self: _TensorLike,
    chunks: _b.int,
    axis: _b.int = 0,
) -> tuple[Tensor, ...]:
    """The tensor in parts of equal length along an axis; the last may be shorter, and there m..."""

@overload
def chunk(
    self: _TensorLike,
    chunks: _b.int,
    dim: _b.int = 0,
) -> tuple[Tensor, ...]:
    """The tensor in parts of equal length along an axis; the last may be shorter, and there m..."""

def clamp(
    self: _TensorLike,
    min: _TensorLike | None = None,
    max: _TensorLike | None = None,
) -> Tensor:
    """The tensor with its elements limited to an interval."""

def clamp_max(
    self: _TensorLike,
    max: _TensorLike,
) -> Tensor:
    """The tensor with its elements lowered to an upper bound, as `clip` with `max` only."""

def clamp_min(
    self: _TensorLike,
    min: _TensorLike,
) -> Tensor:
    """The tensor with its elements raised to a lower bound, as `clip` with `min` only."""

def clip(
    self: _TensorLike,
    min: _TensorLike | None = None,
    max: _TensorLike | None = None,
) -> Tensor:
    """The tensor with its elements limited to an interval."""

def clone(
    self: _TensorLike,
) -> Tensor:
    """A copy of the tensor, in row-major order."""

def column_stack(
    tensors: Sequence[_TensorLike],
) -> Tensor:
    """Tensors joined along the second axis, 1-d tensors as columns."""

def complex(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Complex numbers of their real and imaginary parts."""

@overload
def compress(
    condition: _TensorLike,
    self: _TensorLike,
    axis: _b.int | None = None,
    *,
    size: _b.int | None = None,
    fill_value: _Number = 0,
) -> Tensor:
    """The slices of a tensor along an axis where a vector is true."""

@overload
def compress(
    condition: _TensorLike,
    self: _TensorLike,
    dim: _b.int | None = None,
    *,
    size: _b.int | None = None,
    fill_value: _Number = 0,
) -> Tensor:
    """The slices of a tensor along an axis where a vector is true."""

@overload
def concat(
    tensors: Sequence[_TensorLike],
    axis: _b.int | None = 0,
) -> Tensor:
    """Join tensors along an existing axis."""

@overload
def concat(
    tensors: Sequence[_TensorLike],
    dim: _b.int | None = 0,
) -> Tensor:
    """Join tensors along an existing axis."""

@overload
def concatenate(
    tensors: Sequence[_TensorLike],
    axis: _b.int | None = 0,
) -> Tensor:
    """Join tensors along an existing axis."""

@overload
def concatenate(
    tensors: Sequence[_TensorLike],
    dim: _b.int | None = 0,
) -> Tensor:
    """Join tensors along an existing axis."""

def conj(
    self: _TensorLike,
) -> Tensor:
    """The complex conjugate of each element; real elements are unchanged."""

def conjugate(
    self: _TensorLike,
) -> Tensor:
    """The complex conjugate of each element; real elements are unchanged."""

def contiguous(
    self: _TensorLike,
    *,
    copy: _b.bool | None = None,
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

def convolve(
    self: _TensorLike,
    other: _TensorLike,
    mode: _b.str = "full",
) -> Tensor:
    """The convolution of two vectors."""

def copy(
    self: _TensorLike,
) -> Tensor:
    """A copy of the tensor, in row-major order."""

def copysign(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The magnitude of `self` with the sign of `other`, including -0.0."""

def corrcoef(
    self: _TensorLike,
    other: _TensorLike | None = None,
    rowvar: _b.bool = True,
) -> Tensor:
    """The correlation coefficients of variables."""

def correlate(
    self: _TensorLike,
    other: _TensorLike,
    mode: _b.str = "valid",
) -> Tensor:
    """The correlation of two vectors; the second one is conjugated."""

def cos(
    self: _TensorLike,
) -> Tensor:
    """The cosine of each element."""

def cosh(
    self: _TensorLike,
) -> Tensor:
    """The hyperbolic cosine of each element."""

@overload
def count_nonzero(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    keepdims: _b.bool = False,
) -> Tensor:
    """The number of elements over axes that are not zero; NaN is not zero."""

@overload
def count_nonzero(
    self: _TensorLike,
    dim: Sequence[_b.int] | _b.int | None = None,
    *,
    keepdim: _b.bool = False,
) -> Tensor:
    """The number of elements over axes that are not zero; NaN is not zero."""

def cov(
    self: _TensorLike,
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
    self: _TensorLike,
    other: _TensorLike,
    *,
    axis: _b.int = -1,
) -> Tensor:
    """The cross products of three-dimensional vectors."""

@overload
def cross(
    self: _TensorLike,
    other: _TensorLike,
    *,
    dim: _b.int = -1,
) -> Tensor:
    """The cross products of three-dimensional vectors."""

@overload
def cross_entropy(
    self: _TensorLike,
    target: _TensorLike,
    *,
    axis: _b.int = -1,
    reduction: _b.str = "mean",
    label_smoothing: _b.float = ...,
) -> Tensor:
    """Compute the cross-entropy of logits and target classes or probabilities."""

@overload
def cross_entropy(
    self: _TensorLike,
    target: _TensorLike,
    *,
    dim: _b.int = -1,
    reduction: _b.str = "mean",
    label_smoothing: _b.float = ...,
) -> Tensor:
    """Compute the cross-entropy of logits and target classes or probabilities."""

@overload
def cummax(
    self: _TensorLike,
    axis: _b.int,
) -> ValuesAndIndices:
    """The largest element up to and including each along an axis, and its index."""

@overload
def cummax(
    self: _TensorLike,
    dim: _b.int,
) -> ValuesAndIndices:
    """The largest element up to and including each along an axis, and its index."""

@overload
def cummin(
    self: _TensorLike,
    axis: _b.int,
) -> ValuesAndIndices:
    """The smallest element up to and including each along an axis, and its index."""

@overload
def cummin(
    self: _TensorLike,
    dim: _b.int,
) -> ValuesAndIndices:
    """The smallest element up to and including each along an axis, and its index."""

@overload
def cumprod(
    self: _TensorLike,
    axis: _b.int | None = None,
    *,
    dtype: _DTypeLike | None = None,
) -> Tensor:
    """The products of the elements up to and including each along an axis."""

@overload
def cumprod(
    self: _TensorLike,
    dim: _b.int | None = None,
    *,
    dtype: _DTypeLike | None = None,
) -> Tensor:
    """The products of the elements up to and including each along an axis."""

@overload
def cumsum(
    self: _TensorLike,
    axis: _b.int | None = None,
    *,
    dtype: _DTypeLike | None = None,
) -> Tensor:
    """The sums of the elements up to and including each along an axis."""

@overload
def cumsum(
    self: _TensorLike,
    dim: _b.int | None = None,
    *,
    dtype: _DTypeLike | None = None,
) -> Tensor:
    """The sums of the elements up to and including each along an axis."""

@overload
def cumulative_prod(
    self: _TensorLike,
    *,
    axis: _b.int | None = None,
    dtype: _DTypeLike | None = None,
    include_initial: _b.bool = False,
) -> Tensor:
    """The products of the elements up to and including each along an axis."""

@overload
def cumulative_prod(
    self: _TensorLike,
    *,
    dim: _b.int | None = None,
    dtype: _DTypeLike | None = None,
    include_initial: _b.bool = False,
) -> Tensor:
    """The products of the elements up to and including each along an axis."""

@overload
def cumulative_sum(
    self: _TensorLike,
    *,
    axis: _b.int | None = None,
    dtype: _DTypeLike | None = None,
    include_initial: _b.bool = False,
) -> Tensor:
    """The sums of the elements up to and including each along an axis."""

@overload
def cumulative_sum(
    self: _TensorLike,
    *,
    dim: _b.int | None = None,
    dtype: _DTypeLike | None = None,
    include_initial: _b.bool = False,
) -> Tensor:
    """The sums of the elements up to and including each along an axis."""

def deg2rad(
    self: _TensorLike,
) -> Tensor:
    """Each angle converted from degrees to radians."""

def degrees(
    self: _TensorLike,
) -> Tensor:
    """Each angle converted from radians to degrees."""

@overload
def delete(
    self: _TensorLike,
    indices: _b.int | slice | Sequence[_b.int],
    axis: _b.int | None = None,
) -> Tensor:
    """The tensor without the slices at some positions along an axis."""

@overload
def delete(
    self: _TensorLike,
    indices: _b.int | slice | Sequence[_b.int],
    dim: _b.int | None = None,
) -> Tensor:
    """The tensor without the slices at some positions along an axis."""

def diag(
    self: _TensorLike,
    k: _b.int = 0,
) -> Tensor:
    """The square matrix with a vector on a diagonal, or the diagonal of a matrix."""

def diag_indices(
    n: _b.int,
    ndim: _b.int = 2,
) -> tuple[Tensor, ...]:
    """The indices of the main diagonal of a tensor whose axes all have one length."""

def diagflat(
    self: _TensorLike,
    k: _b.int = 0,
) -> Tensor:
    """A square matrix with the elements, in order, on a diagonal."""

def diagonal(
    self: _TensorLike,
    offset: _b.int = 0,
    axis1: _b.int = 0,
    axis2: _b.int = 1,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """A diagonal of each matrix in a stack."""

@overload
def diff(
    self: _TensorLike,
    *,
    n: _b.int = 1,
    axis: _b.int = -1,
    prepend: _TensorLike | None = None,
    append: _TensorLike | None = None,
) -> Tensor:
    """The n-th differences of neighbours along an axis."""

@overload
def diff(
    self: _TensorLike,
    *,
    n: _b.int = 1,
    dim: _b.int = -1,
    prepend: _TensorLike | None = None,
    append: _TensorLike | None = None,
) -> Tensor:
    """The n-th differences of neighbours along an axis."""

def digitize(
    self: _TensorLike,
    bins: _TensorLike,
    right: _b.bool = False,
) -> Tensor:
    """The number of the bin of each element."""

@overload
def div(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Quotient of two tensors, elementwise."""

@overload
def div(
    self: _TensorLike,
    other: _TensorLike,
    *,
    rounding_mode: _b.str | None,
) -> Tensor:
    """Quotients that are rounded."""

@overload
def divide(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Quotient of two tensors, elementwise."""

@overload
def divide(
    self: _TensorLike,
    other: _TensorLike,
    *,
    rounding_mode: _b.str | None,
) -> Tensor:
    """Quotients that are rounded."""

def divmod(
    self: _TensorLike,
    other: _TensorLike,
) -> tuple[Tensor, Tensor]:
    """The quotients rounded down, and the remainders, whose sign is that of `other`."""

def dot(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The sum over the last axis of `self` and the second last (or only) one of `other`."""

def dropout(
    self: _TensorLike,
    key: _TensorLike,
    p: _b.float = ...,
) -> Tensor:
    """Set a random share of the elements to zero, and scale the others so that the mean is un..."""

def dsplit(
    self: _TensorLike,
    sections: _b.int | Sequence[_b.int],
) -> tuple[Tensor, ...]:
    """The tensor in parts along the third axis, as views."""

def dstack(
    tensors: Sequence[_TensorLike],
) -> Tensor:
    """Tensors joined along the third axis, after `atleast_3d`."""

def ediff1d(
    self: _TensorLike,
    to_end: _TensorLike | None = None,
    to_begin: _TensorLike | None = None,
) -> Tensor:
    """The differences of neighbours in the flattened tensor."""

def elu(
    self: _TensorLike,
    alpha: _b.float = ...,
) -> Tensor:
    """The positive elements, and alpha * (exp(self) - 1) for the others."""

@overload
def empty(
    shape: Sequence[_b.int] | _b.int,
    *,
    dtype: _DTypeLike | None = None,
    device: _b.str | None = None,
) -> Tensor:
    """A tensor with unspecified values (zeros today, since the system returns zeroed memory)."""

@overload
def empty(
    *shape: _b.int,
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

@overload
def expand(
    self: _TensorLike,
    shape: Sequence[_b.int] | _b.int,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """``broadcast_to`` where -1 keeps a size."""

@overload
def expand(
    self: _TensorLike,
    *shape: _b.int,
    copy: _b.bool | None = None,
) -> Tensor:
    """``broadcast_to`` where -1 keeps a size."""

@overload
def expand_dims(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int = ...,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """A view with new axes of length 1; also called ``unsqueeze``."""

@overload
def expand_dims(
    self: _TensorLike,
    dim: Sequence[_b.int] | _b.int = ...,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """A view with new axes of length 1; also called ``unsqueeze``."""

def expm1(
    self: _TensorLike,
) -> Tensor:
    """exp(self) - 1, accurate for small elements too."""

def extract(
    condition: _TensorLike,
    self: _TensorLike,
    *,
    size: _b.int | None = None,
    fill_value: _Number = 0,
) -> Tensor:
    """The elements of a tensor where a condition is true."""

def eye(
    n_rows: _b.int,
    n_cols: _b.int | None = None,
    *,
    k: _b.int = 0,
    dtype: _DTypeLike | None = None,
    device: _b.str | None = None,
) -> Tensor:
    """A matrix with ones on one diagonal and zeros elsewhere."""

def fabs(
    self: _TensorLike,
) -> Tensor:
    """The magnitude of each element, as a float."""

def fix(
    self: _TensorLike,
) -> Tensor:
    """Each element rounded towards zero; integers are unchanged."""

def flatnonzero(
    self: _TensorLike,
    *,
    size: _b.int | None = None,
    fill_value: _b.int = 0,
) -> Tensor:
    """The positions of the elements that are not zero in the flattened tensor."""

def flatten(
    self: _TensorLike,
    start_dim: _b.int = 0,
    end_dim: _b.int = -1,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """Consecutive axes merged into one; by default all of them. Also called ``ravel``."""

@overload
def flip(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """A view with the elements in reverse order along some axes."""

@overload
def flip(
    self: _TensorLike,
    *axis: _b.int,
    copy: _b.bool | None = None,
) -> Tensor:
    """A view with the elements in reverse order along some axes."""

@overload
def flip(
    self: _TensorLike,
    dim: Sequence[_b.int] | _b.int | None = None,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """A view with the elements in reverse order along some axes."""

def fliplr(
    self: _TensorLike,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """The tensor reversed along the second axis."""

def flipud(
    self: _TensorLike,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """The tensor reversed along the first axis."""

def float_power(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """self to the power other, as a float, also of integers."""

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

def frac(
    self: _TensorLike,
) -> Tensor:
    """The fractional part of each element, with its sign; 0 for integers."""

def frexp(
    self: _TensorLike,
) -> tuple[Tensor, Tensor]:
    """Each element as mantissa * 2**exponent, with the mantissa's magnitude in [0.5, 1)."""

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

@overload
def gather(
    self: _TensorLike,
    axis: _b.int,
    index: _TensorLike,
) -> Tensor:
    """The elements at positions along one axis; unlike for `take_along_axis`, axes do not bro..."""

@overload
def gather(
    self: _TensorLike,
    dim: _b.int,
    index: _TensorLike,
) -> Tensor:
    """The elements at positions along one axis; unlike for `take_along_axis`, axes do not bro..."""

def gcd(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The greatest common divisor of two integers; 0 of two zeros."""

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

def geomspace(
    start: _b.float,
    stop: _b.float,
    num: _b.int = 50,
    *,
    endpoint: _b.bool = True,
    dtype: _DTypeLike | None = None,
    device: _b.str | None = None,
) -> Tensor:
    """A geometric progression of numbers from start to stop."""

def ger(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The outer product of two vectors."""

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

def hamming(
    n: _b.int,
    *,
    dtype: _DTypeLike | None = None,
    device: _b.str | None = None,
) -> Tensor:
    """The Hamming window: a cosine raised by 0.54."""

def hanning(
    n: _b.int,
    *,
    dtype: _DTypeLike | None = None,
    device: _b.str | None = None,
) -> Tensor:
    """The Hann window: a raised cosine."""

def heaviside(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """0 for negative elements of `self`, 1 for positive ones, and `other` for 0; NaN for NaN."""

def histogram(
    self: _TensorLike,
    bins: Tensor | Sequence[_b.float] | _b.int = 10,
    range: Sequence[_b.float] | _b.float | None = None,
    density: _b.bool | None = None,
    weights: _TensorLike | None = None,
) -> tuple[Tensor, Tensor]:
    """The number of elements in each of some bins, and the edges of the bins."""

def histogram2d(
    self: _TensorLike,
    y: _TensorLike,
    bins: Tensor | Sequence[_b.float | Tensor] | _b.int = 10,
    range: Sequence[tuple[_b.float, ...] | None] | None = None,
    density: _b.bool | None = None,
    weights: _TensorLike | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The number of points in each of some rectangular bins, and the edges of the bins."""

def histogram_bin_edges(
    self: _TensorLike,
    bins: Tensor | Sequence[_b.float] | _b.int = 10,
    range: Sequence[_b.float] | _b.float | None = None,
    weights: _TensorLike | None = None,
) -> Tensor:
    """The edges of the bins of a histogram."""

def hsplit(
    self: _TensorLike,
    sections: _b.int | Sequence[_b.int],
) -> tuple[Tensor, ...]:
    """The tensor in parts along the second axis, or a vector's only one, as views."""

def hstack(
    tensors: Sequence[_TensorLike],
) -> Tensor:
    """Tensors joined as columns: along the second axis, 1-d tensors along their only one."""

def hypot(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The length of the hypotenuse, sqrt(self**2 + other**2), without intermediate overflow."""

def identity(
    n: _b.int,
    *,
    dtype: _DTypeLike | None = None,
    device: _b.str | None = None,
) -> Tensor:
    """A square matrix with ones on the main diagonal."""

def imag(
    self: _TensorLike,
) -> Tensor:
    """The imaginary part of each element; 0 for real elements."""

@overload
def index_add(
    self: _TensorLike,
    axis: _b.int,
    index: _TensorLike,
    source: _TensorLike,
    *,
    alpha: _Number = 1,
) -> Tensor:
    """A copy of the tensor with slices added at positions along an axis; a position that repe..."""

@overload
def index_add(
    self: _TensorLike,
    dim: _b.int,
    index: _TensorLike,
    source: _TensorLike,
    *,
    alpha: _Number = 1,
) -> Tensor:
    """A copy of the tensor with slices added at positions along an axis; a position that repe..."""

@overload
def index_copy(
    self: _TensorLike,
    axis: _b.int,
    index: _TensorLike,
    source: _TensorLike,
) -> Tensor:
    """A copy of the tensor with slices written to positions along an axis."""

@overload
def index_copy(
    self: _TensorLike,
    dim: _b.int,
    index: _TensorLike,
    source: _TensorLike,
) -> Tensor:
    """A copy of the tensor with slices written to positions along an axis."""

@overload
def index_fill(
    self: _TensorLike,
    axis: _b.int,
    index: _TensorLike,
    value: _TensorLike,
) -> Tensor:
    """A copy of the tensor with one value written to the slices at positions along an axis."""

@overload
def index_fill(
    self: _TensorLike,
    dim: _b.int,
    index: _TensorLike,
    value: _TensorLike,
) -> Tensor:
    """A copy of the tensor with one value written to the slices at positions along an axis."""

@overload
def index_reduce(
    self: _TensorLike,
    indices: Sequence[_TensorLike],
    value: _TensorLike,
    axis: _b.int = 0,
    *,
    reduce: _b.str,
) -> Tensor:
    """A copy of the tensor with elements at integer positions combined with all values for ea..."""

@overload
def index_reduce(
    self: _TensorLike,
    indices: Sequence[_TensorLike],
    value: _TensorLike,
    dim: _b.int = 0,
    *,
    reduce: _b.str,
) -> Tensor:
    """A copy of the tensor with elements at integer positions combined with all values for ea..."""

@overload
def index_select(
    self: _TensorLike,
    axis: _b.int,
    index: _TensorLike,
) -> Tensor:
    """The slices at positions along an axis."""

@overload
def index_select(
    self: _TensorLike,
    dim: _b.int,
    index: _TensorLike,
) -> Tensor:
    """The slices at positions along an axis."""

@overload
def indices(
    dimensions: Sequence[_b.int] | _b.int,
    *,
    dtype: _DTypeLike | None = None,
    device: _b.str | None = None,
) -> Tensor:
    """The indices of a grid: along the first axis one grid for each dimension."""

@overload
def indices(
    *dimensions: _b.int,
    dtype: _DTypeLike | None = None,
    device: _b.str | None = None,
) -> Tensor:
    """The indices of a grid: along the first axis one grid for each dimension."""

def inner(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The sum of products over the last axes."""

@overload
def insert(
    self: _TensorLike,
    indices: _b.int | slice | Sequence[_b.int],
    values: _TensorLike,
    axis: _b.int | None = None,
) -> Tensor:
    """The tensor with values inserted along an axis."""

@overload
def insert(
    self: _TensorLike,
    indices: _b.int | slice | Sequence[_b.int],
    values: _TensorLike,
    dim: _b.int | None = None,
) -> Tensor:
    """The tensor with values inserted along an axis."""

def interp(
    self: _TensorLike,
    xp: _TensorLike,
    fp: _TensorLike,
    left: _TensorLike | None = None,
    right: _TensorLike | None = None,
    period: _b.float | None = None,
) -> Tensor:
    """The values of a piecewise linear function."""

def intersect1d(
    self: _TensorLike,
    other: _TensorLike,
    assume_unique: _b.bool = False,
    *,
    size: _b.int | None = None,
    fill_value: _Number = 0,
) -> Tensor:
    """The elements of both tensors."""

def invert(
    self: _TensorLike,
) -> Tensor:
    """The inverted bits of each element; the logical not of a bool."""

def isclose(
    self: _TensorLike,
    other: _TensorLike,
    rtol: _b.float = ...,
    atol: _b.float = ...,
    equal_nan: _b.bool = False,
) -> Tensor:
    """Whether abs(self - other) <= atol + rtol * abs(other), elementwise; infinities are clos..."""

def iscomplex(
    self: _TensorLike,
) -> Tensor:
    """Whether the imaginary part of an element is not 0."""

def isfinite(
    self: _TensorLike,
) -> Tensor:
    """Whether an element is neither infinite nor NaN."""

def isin(
    self: _TensorLike,
    other: _TensorLike,
    *,
    invert: _b.bool = False,
) -> Tensor:
    """Whether each element equals one of some values."""

def isinf(
    self: _TensorLike,
) -> Tensor:
    """Whether an element is infinite, of either sign; False for integers."""

def isnan(
    self: _TensorLike,
) -> Tensor:
    """Whether an element is NaN; False for integers."""

def isneginf(
    self: _TensorLike,
) -> Tensor:
    """Whether an element is negative infinity."""

def isposinf(
    self: _TensorLike,
) -> Tensor:
    """Whether an element is positive infinity."""

def isreal(
    self: _TensorLike,
) -> Tensor:
    """Whether the imaginary part of an element is 0."""

def kaiser(
    n: _b.int,
    beta: _b.float,
    *,
    dtype: _DTypeLike | None = None,
    device: _b.str | None = None,
) -> Tensor:
    """The Kaiser window, by the Bessel function of order 0."""

def kron(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The Kronecker product: a block of ``other`` times each element of ``self``."""

@overload
def kthvalue(
    self: _TensorLike,
    k: _b.int,
    axis: _b.int = -1,
    *,
    keepdims: _b.bool = False,
) -> ValuesAndIndices:
    """The k-th smallest elements along an axis, and their indices."""

@overload
def kthvalue(
    self: _TensorLike,
    k: _b.int,
    dim: _b.int = -1,
    *,
    keepdim: _b.bool = False,
) -> ValuesAndIndices:
    """The k-th smallest elements along an axis, and their indices."""

def layer_norm(
    self: _TensorLike,
    normalized_shape: Sequence[_b.int] | _b.int,
    weight: _TensorLike | None = None,
    bias: _TensorLike | None = None,
    eps: _b.float = ...,
) -> Tensor:
    """Layer normalization: shift and scale to mean 0 and variance 1 over the last axes."""

def lcm(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The least common multiple of two integers; 0 if one of them is 0."""

def ldexp(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """self * 2**other."""

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

def lerp(
    self: _TensorLike,
    end: _TensorLike,
    weight: _TensorLike,
) -> Tensor:
    """The points between two tensors: `self + weight * (end - self)`."""

def less(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Whether `self` is less than `other`, elementwise; complex numbers by the real part, the..."""

def less_equal(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Whether `self` is at most `other`, elementwise."""

@overload
def lexsort(
    keys: Sequence[_TensorLike],
    axis: _b.int = -1,
) -> Tensor:
    """The positions that sort by several keys; the last key is the primary one."""

@overload
def lexsort(
    keys: Sequence[_TensorLike],
    dim: _b.int = -1,
) -> Tensor:
    """The positions that sort by several keys; the last key is the primary one."""

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

@overload
def log_softmax(
    self: _TensorLike,
    axis: _b.int = -1,
) -> Tensor:
    """The logarithm of softmax, accurate where softmax rounds to 0 too."""

@overload
def log_softmax(
    self: _TensorLike,
    dim: _b.int = -1,
) -> Tensor:
    """The logarithm of softmax, accurate where softmax rounds to 0 too."""

def logaddexp(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """log(exp(self) + exp(other)), without intermediate overflow."""

def logaddexp2(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """log2(2**self + 2**other), without intermediate overflow."""

@overload
def logcumsumexp(
    self: _TensorLike,
    axis: _b.int | None = None,
    *,
    dtype: _DTypeLike | None = None,
) -> Tensor:
    """The logarithms of the sums of exponentials of the elements up to and including each alo..."""

@overload
def logcumsumexp(
    self: _TensorLike,
    dim: _b.int | None = None,
    *,
    dtype: _DTypeLike | None = None,
) -> Tensor:
    """The logarithms of the sums of exponentials of the elements up to and including each alo..."""

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

def logspace(
    start: _b.float,
    stop: _b.float,
    num: _b.int = 50,
    *,
    endpoint: _b.bool = True,
    base: _b.float = ...,
    dtype: _DTypeLike | None = None,
    device: _b.str | None = None,
) -> Tensor:
    """Numbers whose logarithms are evenly spaced, from base**start to base**stop."""

@overload
def logsumexp(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    keepdims: _b.bool = False,
) -> Tensor:
    """The logarithm of the sum of exponentials over axes, without intermediate overflow."""

@overload
def logsumexp(
    self: _TensorLike,
    dim: Sequence[_b.int] | _b.int | None = None,
    *,
    keepdim: _b.bool = False,
) -> Tensor:
    """The logarithm of the sum of exponentials over axes, without intermediate overflow."""

def lt(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Whether `self` is less than `other`, elementwise; complex numbers by the real part, the..."""

def masked_fill(
    self: _TensorLike,
    mask: _TensorLike,
    value: _TensorLike,
) -> Tensor:
    """A copy of the tensor with one value where a mask is true."""

def masked_scatter(
    self: _TensorLike,
    mask: _TensorLike,
    source: _TensorLike,
) -> Tensor:
    """A copy of the tensor with the elements of a source, in order, where a mask is true."""

def matmul(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The matrix product; also ``x @ y``."""

def matrix_transpose(
    self: _TensorLike,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """The transposes of a stack of matrices: a view with the last two axes exchanged; also ``..."""

def matvec(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The products of matrices and vectors."""

@overload
def max(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    keepdims: _b.bool = False,
) -> Tensor:
    """The largest element over axes; NaN if there is one."""

@overload
def max(
    self: _TensorLike,
    *,
    dim: _b.int,
    keepdim: _b.bool = False,
) -> ValuesAndIndices:
    """The largest elements along an axis, and their indices."""

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

@overload
def mean(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    keepdims: _b.bool = False,
) -> Tensor:
    """The arithmetic mean of the elements over axes."""

@overload
def mean(
    self: _TensorLike,
    dim: Sequence[_b.int] | _b.int | None = None,
    *,
    keepdim: _b.bool = False,
) -> Tensor:
    """The arithmetic mean of the elements over axes."""

@overload
def median(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    keepdims: _b.bool = False,
) -> Tensor:
    """The median of the elements: the mean of the two in the middle for an even number."""

@overload
def median(
    self: _TensorLike,
    *,
    dim: _b.int,
    keepdim: _b.bool = False,
) -> ValuesAndIndices:
    """The medians along an axis, and their indices: the lower of the two in the middle for an..."""

@overload
def min(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    keepdims: _b.bool = False,
) -> Tensor:
    """The smallest element over axes; NaN if there is one."""

@overload
def min(
    self: _TensorLike,
    *,
    dim: _b.int,
    keepdim: _b.bool = False,
) -> ValuesAndIndices:
    """The smallest elements along an axis, and their indices."""

def minimum(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The smaller of two elements; NaN if either is NaN."""

def mm(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The product of two matrices."""

def mod(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The remainder of `floor_divide`, with the sign of the divisor; 0 for an integer divided..."""

@overload
def mode(
    self: _TensorLike,
    axis: _b.int = -1,
    *,
    keepdims: _b.bool = False,
) -> ValuesAndIndices:
    """The most frequent elements along an axis, and the index of the last of each; the smalle..."""

@overload
def mode(
    self: _TensorLike,
    dim: _b.int = -1,
    *,
    keepdim: _b.bool = False,
) -> ValuesAndIndices:
    """The most frequent elements along an axis, and the index of the last of each; the smalle..."""

def modf(
    self: _TensorLike,
) -> tuple[Tensor, Tensor]:
    """The fractional and the integral part of each element, both with its sign."""

def moveaxis(
    self: _TensorLike,
    source: Sequence[_b.int] | _b.int,
    destination: Sequence[_b.int] | _b.int,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """A view with some axes moved to new positions; the others keep their order."""

def movedim(
    self: _TensorLike,
    source: Sequence[_b.int] | _b.int,
    destination: Sequence[_b.int] | _b.int,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """A view with some axes moved to new positions; the others keep their order."""

def mse_loss(
    self: _TensorLike,
    target: _TensorLike,
    *,
    reduction: _b.str = "mean",
) -> Tensor:
    """Compute the mean squared error of two tensors."""

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

def mv(
    self: _TensorLike,
    vec: _TensorLike,
) -> Tensor:
    """The product of a matrix and a vector."""

def nan_to_num(
    self: _TensorLike,
    *,
    nan: _b.float = ...,
    posinf: _b.float | None = None,
    neginf: _b.float | None = None,
) -> Tensor:
    """Replace NaN and infinities by numbers; no gradient flows to the replaced elements."""

@overload
def nanargmax(
    self: _TensorLike,
    axis: _b.int | None = None,
    *,
    keepdims: _b.bool = False,
) -> Tensor:
    """The index of the largest element that is not NaN, the first of several; -1 if all are NaN."""

@overload
def nanargmax(
    self: _TensorLike,
    dim: _b.int | None = None,
    *,
    keepdim: _b.bool = False,
) -> Tensor:
    """The index of the largest element that is not NaN, the first of several; -1 if all are NaN."""

@overload
def nanargmin(
    self: _TensorLike,
    axis: _b.int | None = None,
    *,
    keepdims: _b.bool = False,
) -> Tensor:
    """The index of the smallest element that is not NaN, the first of several; -1 if all are ..."""

@overload
def nanargmin(
    self: _TensorLike,
    dim: _b.int | None = None,
    *,
    keepdim: _b.bool = False,
) -> Tensor:
    """The index of the smallest element that is not NaN, the first of several; -1 if all are ..."""

@overload
def nancumprod(
    self: _TensorLike,
    axis: _b.int | None = None,
    *,
    dtype: _DTypeLike | None = None,
) -> Tensor:
    """The cumulative products, with NaN counted as 1."""

@overload
def nancumprod(
    self: _TensorLike,
    dim: _b.int | None = None,
    *,
    dtype: _DTypeLike | None = None,
) -> Tensor:
    """The cumulative products, with NaN counted as 1."""

@overload
def nancumsum(
    self: _TensorLike,
    axis: _b.int | None = None,
    *,
    dtype: _DTypeLike | None = None,
) -> Tensor:
    """The cumulative sums, with NaN counted as 0."""

@overload
def nancumsum(
    self: _TensorLike,
    dim: _b.int | None = None,
    *,
    dtype: _DTypeLike | None = None,
) -> Tensor:
    """The cumulative sums, with NaN counted as 0."""

@overload
def nanmax(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    keepdims: _b.bool = False,
) -> Tensor:
    """The largest element that is not NaN; NaN if all are."""

@overload
def nanmax(
    self: _TensorLike,
    dim: Sequence[_b.int] | _b.int | None = None,
    *,
    keepdim: _b.bool = False,
) -> Tensor:
    """The largest element that is not NaN; NaN if all are."""

@overload
def nanmean(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    dtype: _DTypeLike | None = None,
    keepdims: _b.bool = False,
) -> Tensor:
    """The arithmetic mean of the elements that are not NaN; NaN if there are none."""

@overload
def nanmean(
    self: _TensorLike,
    dim: Sequence[_b.int] | _b.int | None = None,
    *,
    dtype: _DTypeLike | None = None,
    keepdim: _b.bool = False,
) -> Tensor:
    """The arithmetic mean of the elements that are not NaN; NaN if there are none."""

@overload
def nanmedian(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    keepdims: _b.bool = False,
) -> Tensor:
    """The median of the elements that are not NaN."""

@overload
def nanmedian(
    self: _TensorLike,
    *,
    dim: _b.int,
    keepdim: _b.bool = False,
) -> ValuesAndIndices:
    """The medians of the elements that are not NaN along an axis, and their indices; the lowe..."""

@overload
def nanmin(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    keepdims: _b.bool = False,
) -> Tensor:
    """The smallest element that is not NaN; NaN if all are."""

@overload
def nanmin(
    self: _TensorLike,
    dim: Sequence[_b.int] | _b.int | None = None,
    *,
    keepdim: _b.bool = False,
) -> Tensor:
    """The smallest element that is not NaN; NaN if all are."""

@overload
def nanpercentile(
    self: _TensorLike,
    q: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    method: _b.str = "linear",
    keepdims: _b.bool = False,
) -> Tensor:
    """The percentiles of the elements that are not NaN."""

@overload
def nanpercentile(
    self: _TensorLike,
    q: _TensorLike,
    dim: Sequence[_b.int] | _b.int | None = None,
    *,
    method: _b.str = "linear",
    keepdim: _b.bool = False,
) -> Tensor:
    """The percentiles of the elements that are not NaN."""

@overload
def nanprod(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    dtype: _DTypeLike | None = None,
    keepdims: _b.bool = False,
) -> Tensor:
    """The product of the elements that are not NaN; 1 if there are none."""

@overload
def nanprod(
    self: _TensorLike,
    dim: Sequence[_b.int] | _b.int | None = None,
    *,
    dtype: _DTypeLike | None = None,
    keepdim: _b.bool = False,
) -> Tensor:
    """The product of the elements that are not NaN; 1 if there are none."""

@overload
def nanquantile(
    self: _TensorLike,
    q: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    method: _b.str = "linear",
    keepdims: _b.bool = False,
) -> Tensor:
    """The quantiles of the elements that are not NaN."""

@overload
def nanquantile(
    self: _TensorLike,
    q: _TensorLike,
    dim: Sequence[_b.int] | _b.int | None = None,
    *,
    method: _b.str = "linear",
    keepdim: _b.bool = False,
) -> Tensor:
    """The quantiles of the elements that are not NaN."""

@overload
def nanstd(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    correction: _b.float = ...,
    dtype: _DTypeLike | None = None,
    keepdims: _b.bool = False,
) -> Tensor:
    """The standard deviation of the elements that are not NaN; NaN if there are too few."""

@overload
def nanstd(
    self: _TensorLike,
    dim: Sequence[_b.int] | _b.int | None = None,
    *,
    correction: _b.float = ...,
    dtype: _DTypeLike | None = None,
    keepdim: _b.bool = False,
) -> Tensor:
    """The standard deviation of the elements that are not NaN; NaN if there are too few."""

@overload
def nansum(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    dtype: _DTypeLike | None = None,
    keepdims: _b.bool = False,
) -> Tensor:
    """The sum of the elements that are not NaN; 0 if there are none."""

@overload
def nansum(
    self: _TensorLike,
    dim: Sequence[_b.int] | _b.int | None = None,
    *,
    dtype: _DTypeLike | None = None,
    keepdim: _b.bool = False,
) -> Tensor:
    """The sum of the elements that are not NaN; 0 if there are none."""

@overload
def nanvar(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    correction: _b.float = ...,
    dtype: _DTypeLike | None = None,
    keepdims: _b.bool = False,
) -> Tensor:
    """The variance of the elements that are not NaN; NaN if there are too few."""

@overload
def nanvar(
    self: _TensorLike,
    dim: Sequence[_b.int] | _b.int | None = None,
    *,
    correction: _b.float = ...,
    dtype: _DTypeLike | None = None,
    keepdim: _b.bool = False,
) -> Tensor:
    """The variance of the elements that are not NaN; NaN if there are too few."""

@overload
def narrow(
    self: _TensorLike,
    axis: _b.int,
    start: _b.int,
    length: _b.int,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """The slice of a given length along an axis."""

@overload
def narrow(
    self: _TensorLike,
    dim: _b.int,
    start: _b.int,
    length: _b.int,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """The slice of a given length along an axis."""

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

def nextafter(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The next representable number after `self` towards `other`; `other` if they are equal."""

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

@overload
def one_hot(
    self: _TensorLike,
    num_classes: _b.int,
    *,
    axis: _b.int = -1,
    dtype: _DTypeLike | None = None,
) -> Tensor:
    """Encode integers as one-hot vectors: one at the index of the class, zero elsewhere."""

@overload
def one_hot(
    self: _TensorLike,
    num_classes: _b.int,
    *,
    dim: _b.int = -1,
    dtype: _DTypeLike | None = None,
) -> Tensor:
    """Encode integers as one-hot vectors: one at the index of the class, zero elsewhere."""

@overload
def ones(
    shape: Sequence[_b.int] | _b.int,
    *,
    dtype: _DTypeLike | None = None,
    device: _b.str | None = None,
) -> Tensor:
    """A tensor of ones."""

@overload
def ones(
    *shape: _b.int,
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

@overload
def packbits(
    self: _TensorLike,
    axis: _b.int | None = None,
    bitorder: _b.str = "big",
) -> Tensor:
    """Eight bits packed into each byte."""

@overload
def packbits(
    self: _TensorLike,
    dim: _b.int | None = None,
    bitorder: _b.str = "big",
) -> Tensor:
    """Eight bits packed into each byte."""

def pad(
    self: _TensorLike,
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
def partition(
    self: _TensorLike,
    kth: Sequence[_b.int] | _b.int,
    axis: _b.int | None = -1,
) -> Tensor:
    """The elements, with those smaller than the kth in front of it and the others behind it."""

@overload
def partition(
    self: _TensorLike,
    kth: Sequence[_b.int] | _b.int,
    dim: _b.int | None = -1,
) -> Tensor:
    """The elements, with those smaller than the kth in front of it and the others behind it."""

@overload
def percentile(
    self: _TensorLike,
    q: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    method: _b.str = "linear",
    keepdims: _b.bool = False,
) -> Tensor:
    """The percentiles of the elements."""

@overload
def percentile(
    self: _TensorLike,
    q: _TensorLike,
    dim: Sequence[_b.int] | _b.int | None = None,
    *,
    method: _b.str = "linear",
    keepdim: _b.bool = False,
) -> Tensor:
    """The percentiles of the elements."""

@overload
def permute(
    self: _TensorLike,
    axes: Sequence[_b.int] | _b.int,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """A view with the axes in another order; also called ``permute_dims``."""

@overload
def permute(
    self: _TensorLike,
    *axes: _b.int,
    copy: _b.bool | None = None,
) -> Tensor:
    """A view with the axes in another order; also called ``permute_dims``."""

@overload
def permute_dims(
    self: _TensorLike,
    axes: Sequence[_b.int] | _b.int,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """A view with the axes in another order; also called ``permute_dims``."""

@overload
def permute_dims(
    self: _TensorLike,
    *axes: _b.int,
    copy: _b.bool | None = None,
) -> Tensor:
    """A view with the axes in another order; also called ``permute_dims``."""

def polyadd(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The sum of two polynomials."""

def polyder(
    self: _TensorLike,
    m: _b.int = 1,
) -> Tensor:
    """The m-th derivative of a polynomial."""

def polydiv(
    self: _TensorLike,
    other: _TensorLike,
) -> tuple[Tensor, Tensor]:
    """The quotient and the remainder of two polynomials."""

def polyint(
    self: _TensorLike,
    m: _b.int = 1,
    k: _TensorLike | None = None,
) -> Tensor:
    """The m-th antiderivative of a polynomial."""

def polymul(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The product of two polynomials."""

def polysub(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The difference of two polynomials."""

def polyval(
    self: _TensorLike,
    x: _TensorLike,
) -> Tensor:
    """The values of a polynomial, by Horner's scheme."""

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

@overload
def prod(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    dtype: _DTypeLike | None = None,
    keepdims: _b.bool = False,
) -> Tensor:
    """The product of the elements over axes; 1 if there are none."""

@overload
def prod(
    self: _TensorLike,
    dim: Sequence[_b.int] | _b.int | None = None,
    *,
    dtype: _DTypeLike | None = None,
    keepdim: _b.bool = False,
) -> Tensor:
    """The product of the elements over axes; 1 if there are none."""

@overload
def ptp(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    keepdims: _b.bool = False,
) -> Tensor:
    """The largest element less the smallest one ('peak to peak')."""

@overload
def ptp(
    self: _TensorLike,
    dim: Sequence[_b.int] | _b.int | None = None,
    *,
    keepdim: _b.bool = False,
) -> Tensor:
    """The largest element less the smallest one ('peak to peak')."""

@overload
def quantile(
    self: _TensorLike,
    q: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    method: _b.str = "linear",
    keepdims: _b.bool = False,
) -> Tensor:
    """The quantiles of the elements."""

@overload
def quantile(
    self: _TensorLike,
    q: _TensorLike,
    dim: Sequence[_b.int] | _b.int | None = None,
    *,
    method: _b.str = "linear",
    keepdim: _b.bool = False,
) -> Tensor:
    """The quantiles of the elements."""

def rad2deg(
    self: _TensorLike,
) -> Tensor:
    """Each angle converted from radians to degrees."""

def radians(
    self: _TensorLike,
) -> Tensor:
    """Each angle converted from degrees to radians."""

def ravel(
    self: _TensorLike,
    start_dim: _b.int = 0,
    end_dim: _b.int = -1,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """Consecutive axes merged into one; by default all of them. Also called ``ravel``."""

def ravel_multi_index(
    multi_index: Sequence[_TensorLike],
    dims: Sequence[_b.int] | _b.int,
    mode: _b.str = "raise",
    order: _b.str = "C",
) -> Tensor:
    """The positions in the flattened tensor of elements with some indices."""

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

@overload
def repeat(
    self: _TensorLike,
    repeats: _b.int | Sequence[_b.int] | Tensor,
    axis: _b.int | None = None,
) -> Tensor:
    """Each element, or slice along an axis, repeated."""

@overload
def repeat(
    self: _TensorLike,
    repeats: _b.int | Sequence[_b.int] | Tensor,
    dim: _b.int | None = None,
) -> Tensor:
    """Each element, or slice along an axis, repeated."""

@overload
def repeat_interleave(
    self: _TensorLike,
    repeats: _b.int | Sequence[_b.int] | Tensor,
    axis: _b.int | None = None,
) -> Tensor:
    """Each element, or slice along an axis, repeated."""

@overload
def repeat_interleave(
    self: _TensorLike,
    repeats: _b.int | Sequence[_b.int] | Tensor,
    dim: _b.int | None = None,
) -> Tensor:
    """Each element, or slice along an axis, repeated."""

@overload
def reshape(
    self: _TensorLike,
    shape: Sequence[_b.int] | _b.int,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """The elements in row-major order in another shape: a view if the strides allow it, else ..."""

@overload
def reshape(
    self: _TensorLike,
    *shape: _b.int,
    copy: _b.bool | None = None,
) -> Tensor:
    """The elements in row-major order in another shape: a view if the strides allow it, else ..."""

@overload
def resize(
    self: _TensorLike,
    shape: Sequence[_b.int] | _b.int,
) -> Tensor:
    """The elements in order, repeated or cut to fill a shape; zeros if there are none."""

@overload
def resize(
    self: _TensorLike,
    *shape: _b.int,
) -> Tensor:
    """The elements in order, repeated or cut to fill a shape; zeros if there are none."""

def right_shift(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The bits of `self` shifted right by `other`; the sign is kept."""

def rint(
    self: _TensorLike,
) -> Tensor:
    """Each element rounded to the nearest integer, halves to the even one, as a float."""

@overload
def roll(
    self: _TensorLike,
    shift: Sequence[_b.int] | _b.int,
    axis: Sequence[_b.int] | _b.int | None = None,
) -> Tensor:
    """The elements rolled along axes: those shifted out at one end enter at the other."""

@overload
def roll(
    self: _TensorLike,
    shift: Sequence[_b.int] | _b.int,
    dim: Sequence[_b.int] | _b.int | None = None,
) -> Tensor:
    """The elements rolled along axes: those shifted out at one end enter at the other."""

@overload
def rollaxis(
    self: _TensorLike,
    axis: _b.int,
    start: _b.int = 0,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """The tensor with one axis moved in front of another; `moveaxis` is easier to read."""

@overload
def rollaxis(
    self: _TensorLike,
    dim: _b.int,
    start: _b.int = 0,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """The tensor with one axis moved in front of another; `moveaxis` is easier to read."""

def rot90(
    self: _TensorLike,
    k: _b.int = 1,
    axes: Sequence[_b.int] | _b.int = ...,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """The tensor turned by 90 degrees in the plane of two axes, from the first to the second."""

@overload
def round(
    self: _TensorLike,
) -> Tensor:
    """Each element rounded to the nearest integer, halves to the even one; integers are uncha..."""

@overload
def round(
    self: _TensorLike,
    decimals: _b.int,
) -> Tensor:
    """Each element rounded to a number of decimal digits, halves to the even digit."""

def row_stack(
    tensors: Sequence[_TensorLike],
) -> Tensor:
    """Tensors joined as rows: along the first axis, 1-d tensors as matrices of one row."""

def rsqrt(
    self: _TensorLike,
) -> Tensor:
    """One over the square root of each element."""

def rsub(
    self: _TensorLike,
    other: _TensorLike,
    *,
    alpha: _Number = 1,
) -> Tensor:
    """`other - alpha * self`."""

@overload
def running_argmax(
    self: _TensorLike,
    axis: _b.int,
) -> Tensor:
    """The index of the largest element up to and including each along an axis."""

@overload
def running_argmax(
    self: _TensorLike,
    dim: _b.int,
) -> Tensor:
    """The index of the largest element up to and including each along an axis."""

@overload
def running_argmin(
    self: _TensorLike,
    axis: _b.int,
) -> Tensor:
    """The index of the smallest element up to and including each along an axis."""

@overload
def running_argmin(
    self: _TensorLike,
    dim: _b.int,
) -> Tensor:
    """The index of the smallest element up to and including each along an axis."""

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

@overload
def scatter(
    self: _TensorLike,
    axis: _b.int,
    index: _TensorLike,
    src: _TensorLike,
    *,
    reduce: _b.str | None = None,
) -> Tensor:
    """A copy of the tensor with values written to positions along one axis."""

@overload
def scatter(
    self: _TensorLike,
    dim: _b.int,
    index: _TensorLike,
    src: _TensorLike,
    *,
    reduce: _b.str | None = None,
) -> Tensor:
    """A copy of the tensor with values written to positions along one axis."""

@overload
def scatter_add(
    self: _TensorLike,
    axis: _b.int,
    index: _TensorLike,
    src: _TensorLike,
) -> Tensor:
    """A copy of the tensor with values added at positions along one axis; a position that rep..."""

@overload
def scatter_add(
    self: _TensorLike,
    dim: _b.int,
    index: _TensorLike,
    src: _TensorLike,
) -> Tensor:
    """A copy of the tensor with values added at positions along one axis; a position that rep..."""

@overload
def scatter_reduce(
    self: _TensorLike,
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
    self: _TensorLike,
    dim: _b.int,
    index: _TensorLike,
    src: _TensorLike,
    reduce: _b.str,
    *,
    include_self: _b.bool = True,
) -> Tensor:
    """A copy of the tensor with elements at positions along one axis combined with all values..."""

def searchsorted(
    self: _TensorLike,
    other: _TensorLike,
    side: _b.str = "left",
    sorter: _TensorLike | None = None,
) -> Tensor:
    """The positions at which values can be inserted into a sorted tensor so that it stays sor..."""

def segment_max(
    data: _TensorLike,
    segment_ids: _TensorLike,
    num_segments: _b.int | None = None,
    indices_are_sorted: _b.bool = False,
    unique_indices: _b.bool = False,
) -> Tensor:
    """The largest elements of the rows of each segment; NaN if there is one."""

def segment_min(
    data: _TensorLike,
    segment_ids: _TensorLike,
    num_segments: _b.int | None = None,
    indices_are_sorted: _b.bool = False,
    unique_indices: _b.bool = False,
) -> Tensor:
    """The smallest elements of the rows of each segment; NaN if there is one."""

def segment_prod(
    data: _TensorLike,
    segment_ids: _TensorLike,
    num_segments: _b.int | None = None,
    indices_are_sorted: _b.bool = False,
    unique_indices: _b.bool = False,
) -> Tensor:
    """The products of the rows of each segment."""

def segment_sum(
    data: _TensorLike,
    segment_ids: _TensorLike,
    num_segments: _b.int | None = None,
    indices_are_sorted: _b.bool = False,
    unique_indices: _b.bool = False,
) -> Tensor:
    """The sums of the rows of each segment."""

def select(
    condlist: Sequence[_TensorLike],
    choicelist: Sequence[_TensorLike],
    default: _TensorLike | None = None,
) -> Tensor:
    """For each element, the element of the first choice whose condition is true."""

def setdiff1d(
    self: _TensorLike,
    other: _TensorLike,
    assume_unique: _b.bool = False,
    *,
    size: _b.int | None = None,
    fill_value: _Number = 0,
) -> Tensor:
    """The elements of the first tensor that the second one does not have."""

def setxor1d(
    self: _TensorLike,
    other: _TensorLike,
    assume_unique: _b.bool = False,
    *,
    size: _b.int | None = None,
    fill_value: _Number = 0,
) -> Tensor:
    """The elements of one of the tensors alone."""

def sgn(
    self: _TensorLike,
) -> Tensor:
    """-1, 0 or 1 by the sign of each element, NaN for NaN; for complex numbers self / abs(self)."""

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

@overload
def softmax(
    self: _TensorLike,
    axis: _b.int = -1,
) -> Tensor:
    """Softmax: exponentials normalized to sum to one along an axis."""

@overload
def softmax(
    self: _TensorLike,
    dim: _b.int = -1,
) -> Tensor:
    """Softmax: exponentials normalized to sum to one along an axis."""

def softplus(
    self: _TensorLike,
) -> Tensor:
    """log(1 + exp(self)), without intermediate overflow."""

@overload
def sort(
    self: _TensorLike,
    *,
    axis: _b.int = -1,
    descending: _b.bool = False,
    stable: _b.bool = True,
) -> Tensor:
    """The elements in sorted order along an axis."""

@overload
def sort(
    self: _TensorLike,
    *,
    dim: _b.int,
    descending: _b.bool = False,
    stable: _b.bool | None = None,
) -> ValuesAndIndices:
    """The elements in sorted order along an axis, and their indices."""

def sort_complex(
    self: _TensorLike,
) -> Tensor:
    """The elements along the last axis as complex numbers, sorted by real parts, then by imag..."""

@overload
def sort_values(
    self: _TensorLike,
    *,
    axis: _b.int = -1,
    descending: _b.bool = False,
) -> Tensor:
    """The elements in sorted order along an axis; equal elements keep their order."""

@overload
def sort_values(
    self: _TensorLike,
    *,
    dim: _b.int = -1,
    descending: _b.bool = False,
) -> Tensor:
    """The elements in sorted order along an axis; equal elements keep their order."""

def spacing(
    self: _TensorLike,
) -> Tensor:
    """The distance to the next representable number away from zero, with the sign of the elem..."""

@overload
def split(
    self: _TensorLike,
    sections: _b.int | Sequence[_b.int],
    axis: _b.int = 0,
) -> tuple[Tensor, ...]:
    """The tensor in parts along an axis, as views."""

@overload
def split(
    self: _TensorLike,
    *,
    split_size: _b.int | Sequence[_b.int],
    dim: _b.int = 0,
) -> tuple[Tensor, ...]:
    """The tensor in parts of given sizes, as in PyTorch: the keywords ``dim`` and ``split_siz..."""

@overload
def split_with_sizes(
    self: _TensorLike,
    split_sizes: Sequence[_b.int] | _b.int,
    axis: _b.int = 0,
) -> tuple[Tensor, ...]:
    """The tensor in parts of given lengths along an axis."""

@overload
def split_with_sizes(
    self: _TensorLike,
    split_sizes: Sequence[_b.int] | _b.int,
    dim: _b.int = 0,
) -> tuple[Tensor, ...]:
    """The tensor in parts of given lengths along an axis."""

def sqrt(
    self: _TensorLike,
) -> Tensor:
    """The square root of each element; NaN for negative real elements."""

def square(
    self: _TensorLike,
) -> Tensor:
    """The square of each element."""

@overload
def squeeze(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """A view without axes of length 1."""

@overload
def squeeze(
    self: _TensorLike,
    dim: Sequence[_b.int] | _b.int | None = None,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """A view without axes of length 1."""

@overload
def stack(
    tensors: Sequence[_TensorLike],
    axis: _b.int = 0,
) -> Tensor:
    """Join tensors of one shape along a new axis."""

@overload
def stack(
    tensors: Sequence[_TensorLike],
    dim: _b.int = 0,
) -> Tensor:
    """Join tensors of one shape along a new axis."""

@overload
def std(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    correction: _b.float = ...,
    keepdims: _b.bool = False,
) -> Tensor:
    """The standard deviation of the elements over axes, the square root of `var`."""

@overload
def std(
    self: _TensorLike,
    *,
    dim: Sequence[_b.int] | _b.int | None = None,
    unbiased: _b.bool | None = None,
    keepdim: _b.bool = False,
    correction: _b.float | None = None,
) -> Tensor:
    """The standard deviation of the elements over axes, the square root of ``var.dim``."""

@overload
def sub(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Difference of two tensors, elementwise."""

@overload
def sub(
    self: _TensorLike,
    other: _TensorLike,
    *,
    alpha: _Number,
) -> Tensor:
    """`self - alpha * other`."""

@overload
def subtract(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Difference of two tensors, elementwise."""

@overload
def subtract(
    self: _TensorLike,
    other: _TensorLike,
    *,
    alpha: _Number,
) -> Tensor:
    """`self - alpha * other`."""

@overload
def sum(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    dtype: _DTypeLike | None = None,
    keepdims: _b.bool = False,
) -> Tensor:
    """The sum of the elements over axes; 0 if there are none."""

@overload
def sum(
    self: _TensorLike,
    dim: Sequence[_b.int] | _b.int | None = None,
    *,
    dtype: _DTypeLike | None = None,
    keepdim: _b.bool = False,
) -> Tensor:
    """The sum of the elements over axes; 0 if there are none."""

def swapaxes(
    self: _TensorLike,
    axis1: _b.int,
    axis2: _b.int,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """A view with two axes exchanged."""

def swapdims(
    self: _TensorLike,
    axis1: _b.int,
    axis2: _b.int,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """A view with two axes exchanged."""

def t(
    self: _TensorLike,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """The transpose of a matrix; a vector and a tensor without axes are returned as they are."""

@overload
def take(
    self: _TensorLike,
    indices: _TensorLike,
    axis: _b.int | None = None,
) -> Tensor:
    """The slices at integer positions along an axis."""

@overload
def take(
    self: _TensorLike,
    indices: _TensorLike,
    dim: _b.int | None = None,
) -> Tensor:
    """The slices at integer positions along an axis."""

@overload
def take_along_axis(
    self: _TensorLike,
    indices: _TensorLike,
    axis: _b.int = -1,
) -> Tensor:
    """The elements at positions along one axis that ``indices`` has for each element, such as..."""

@overload
def take_along_axis(
    self: _TensorLike,
    indices: _TensorLike,
    dim: _b.int = -1,
) -> Tensor:
    """The elements at positions along one axis that ``indices`` has for each element, such as..."""

@overload
def take_along_dim(
    self: _TensorLike,
    indices: _TensorLike,
    axis: _b.int = -1,
) -> Tensor:
    """The elements at positions along one axis that ``indices`` has for each element, such as..."""

@overload
def take_along_dim(
    self: _TensorLike,
    indices: _TensorLike,
    dim: _b.int = -1,
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

@overload
def tile(
    self: _TensorLike,
    repetitions: Sequence[_b.int] | _b.int,
) -> Tensor:
    """The tensor repeated as a whole along each axis."""

@overload
def tile(
    self: _TensorLike,
    *repetitions: _b.int,
) -> Tensor:
    """The tensor repeated as a whole along each axis."""

@overload
def topk(
    self: _TensorLike,
    k: _b.int,
    axis: _b.int = -1,
    *,
    largest: _b.bool = True,
    sorted: _b.bool = True,
) -> ValuesAndIndices:
    """The k largest or smallest elements along an axis, and their indices."""

@overload
def topk(
    self: _TensorLike,
    k: _b.int,
    dim: _b.int = -1,
    *,
    largest: _b.bool = True,
    sorted: _b.bool = True,
) -> ValuesAndIndices:
    """The k largest or smallest elements along an axis, and their indices."""

def trace(
    self: _TensorLike,
    offset: _b.int = 0,
    axis1: _b.int = 0,
    axis2: _b.int = 1,
) -> Tensor:
    """The sum along a diagonal of each matrix in a stack."""

@overload
def transpose(
    self: _TensorLike,
    axes: Sequence[_b.int] | _b.int | None = None,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """A view with the axes in another order."""

@overload
def transpose(
    self: _TensorLike,
    *axes: _b.int,
    copy: _b.bool | None = None,
) -> Tensor:
    """A view with the axes in another order."""

@overload
def trapezoid(
    self: _TensorLike,
    x: _TensorLike | None = None,
    dx: _b.float = ...,
    axis: _b.int = -1,
) -> Tensor:
    """The integral along an axis by the trapezoidal rule."""

@overload
def trapezoid(
    self: _TensorLike,
    x: _TensorLike | None = None,
    dx: _b.float = ...,
    dim: _b.int = -1,
) -> Tensor:
    """The integral along an axis by the trapezoidal rule."""

def tri(
    n_rows: _b.int,
    n_cols: _b.int | None = None,
    k: _b.int = 0,
    *,
    dtype: _DTypeLike | None = None,
    device: _b.str | None = None,
) -> Tensor:
    """A matrix with ones on and below a diagonal, and zeros above it."""

def tril(
    self: _TensorLike,
    *,
    k: _b.int = 0,
) -> Tensor:
    """The lower triangles of a stack of matrices, zero above."""

def tril_indices(
    n: _b.int,
    k: _b.int = 0,
    m: _b.int | None = None,
) -> tuple[Tensor, Tensor]:
    """The indices of the elements on and below a diagonal of a matrix."""

def triu(
    self: _TensorLike,
    *,
    k: _b.int = 0,
) -> Tensor:
    """The upper triangles of a stack of matrices, zero below."""

def triu_indices(
    n: _b.int,
    k: _b.int = 0,
    m: _b.int | None = None,
) -> tuple[Tensor, Tensor]:
    """The indices of the elements on and above a diagonal of a matrix."""

@overload
def true_divide(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Quotient of two tensors, elementwise."""

@overload
def true_divide(
    self: _TensorLike,
    other: _TensorLike,
    *,
    rounding_mode: _b.str | None,
) -> Tensor:
    """Quotients that are rounded."""

def trunc(
    self: _TensorLike,
) -> Tensor:
    """Each element rounded towards zero; integers are unchanged."""

@overload
def unbind(
    self: _TensorLike,
    axis: _b.int = 0,
) -> tuple[Tensor, ...]:
    """Split a tensor into views along an axis, which they do not have."""

@overload
def unbind(
    self: _TensorLike,
    dim: _b.int = 0,
) -> tuple[Tensor, ...]:
    """Split a tensor into views along an axis, which they do not have."""

@overload
def unflatten(
    self: _TensorLike,
    axis: _b.int,
    sizes: Sequence[_b.int] | _b.int,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """The tensor with one axis replaced by several."""

@overload
def unflatten(
    self: _TensorLike,
    dim: _b.int,
    sizes: Sequence[_b.int] | _b.int,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """The tensor with one axis replaced by several."""

@overload
def unfold(
    self: _TensorLike,
    axis: _b.int,
    size: _b.int,
    step: _b.int,
) -> Tensor:
    """Windows along an axis, as a new last axis."""

@overload
def unfold(
    self: _TensorLike,
    dim: _b.int,
    size: _b.int,
    step: _b.int,
) -> Tensor:
    """Windows along an axis, as a new last axis."""

def union1d(
    self: _TensorLike,
    other: _TensorLike,
    *,
    size: _b.int | None = None,
    fill_value: _Number = 0,
) -> Tensor:
    """The elements of either tensor."""

def unique_values(
    self: _TensorLike,
    *,
    size: _b.int | None = None,
) -> Tensor:
    """The different elements of a tensor."""

@overload
def unpackbits(
    self: _TensorLike,
    axis: _b.int | None = None,
    count: _b.int | None = None,
    bitorder: _b.str = "big",
) -> Tensor:
    """The eight bits of each byte."""

@overload
def unpackbits(
    self: _TensorLike,
    dim: _b.int | None = None,
    count: _b.int | None = None,
    bitorder: _b.str = "big",
) -> Tensor:
    """The eight bits of each byte."""

def unravel_index(
    self: _TensorLike,
    shape: Sequence[_b.int] | _b.int,
    order: _b.str = "C",
) -> tuple[Tensor, ...]:
    """The indices of the elements at positions in the flattened tensor."""

@overload
def unsqueeze(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int = ...,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """A view with new axes of length 1; also called ``unsqueeze``."""

@overload
def unsqueeze(
    self: _TensorLike,
    dim: Sequence[_b.int] | _b.int = ...,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """A view with new axes of length 1; also called ``unsqueeze``."""

@overload
def unstack(
    self: _TensorLike,
    axis: _b.int = 0,
) -> tuple[Tensor, ...]:
    """Split a tensor into views along an axis, which they do not have."""

@overload
def unstack(
    self: _TensorLike,
    dim: _b.int = 0,
) -> tuple[Tensor, ...]:
    """Split a tensor into views along an axis, which they do not have."""

@overload
def unwrap(
    self: _TensorLike,
    discont: _b.float | None = None,
    axis: _b.int = -1,
    *,
    period: _b.float = ...,
) -> Tensor:
    """Angles without jumps: differences of neighbours of more than half a period become small..."""

@overload
def unwrap(
    self: _TensorLike,
    discont: _b.float | None = None,
    dim: _b.int = -1,
    *,
    period: _b.float = ...,
) -> Tensor:
    """Angles without jumps: differences of neighbours of more than half a period become small..."""

def vander(
    self: _TensorLike,
    n: _b.int | None = None,
    increasing: _b.bool = False,
) -> Tensor:
    """The matrix of the powers of the elements of a vector: a row for each element."""

@overload
def var(
    self: _TensorLike,
    axis: Sequence[_b.int] | _b.int | None = None,
    *,
    correction: _b.float = ...,
    keepdims: _b.bool = False,
) -> Tensor:
    """The variance of the elements over axes."""

@overload
def var(
    self: _TensorLike,
    *,
    dim: Sequence[_b.int] | _b.int | None = None,
    unbiased: _b.bool | None = None,
    keepdim: _b.bool = False,
    correction: _b.float | None = None,
) -> Tensor:
    """The variance of the elements over axes, divided by N - 1."""

def vdot(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The sum of the products of all elements, those of `self` conjugated."""

@overload
def vecdot(
    self: _TensorLike,
    other: _TensorLike,
    *,
    axis: _b.int = -1,
) -> Tensor:
    """The sum of products along one axis; of complex tensors, those with the conjugate of ``s..."""

@overload
def vecdot(
    self: _TensorLike,
    other: _TensorLike,
    *,
    dim: _b.int = -1,
) -> Tensor:
    """The sum of products along one axis; of complex tensors, those with the conjugate of ``s..."""

def vecmat(
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """The products of conjugated vectors and matrices."""

def view_part(
    self: _TensorLike,
    imaginary: _b.bool,
    *,
    copy: _b.bool | None = None,
) -> Tensor:
    """A view of the real or the imaginary parts of complex numbers, which `x.real` and `x.ima..."""

def vsplit(
    self: _TensorLike,
    sections: _b.int | Sequence[_b.int],
) -> tuple[Tensor, ...]:
    """The tensor in parts along the first axis, as views."""

def vstack(
    tensors: Sequence[_TensorLike],
) -> Tensor:
    """Tensors joined as rows: along the first axis, 1-d tensors as matrices of one row."""

@overload
def where(
    condition: _TensorLike,
    self: _TensorLike,
    other: _TensorLike,
) -> Tensor:
    """Elements of `self` where the condition is true, of `other` where it is false."""

@overload
def where(
    condition: _TensorLike,
    *,
    size: _b.int | None = None,
    fill_value: _b.int = 0,
) -> tuple[Tensor, ...]:
    """The positions where a condition is true: `td.where` of a condition alone."""

@overload
def zeros(
    shape: Sequence[_b.int] | _b.int,
    *,
    dtype: _DTypeLike | None = None,
    device: _b.str | None = None,
) -> Tensor:
    """A tensor of zeros."""

@overload
def zeros(
    *shape: _b.int,
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
