"""tandem: array programs two ways from one operator registry.

Eagerly, each call goes through a dispatcher; under :func:`jit` the same calls are traced and compiled. The names of
operators (``td.add``, ``td.exp``, ...) are those of the declarations; ``__init__.pyi`` lists them for type checkers.
"""

import gc as _gc

# What an import makes stays: the collector would walk it again and again, and find nothing.
_collects = _gc.isenabled()
_gc.disable()

from . import config as config
from . import debug as debug
from . import errors as errors
from . import lazy as _lazy
from . import profiler as profiler
from . import pytree as pytree
from . import tree as tree
from .backends.cpu import kernels as _cpu_kernels
from .control.doors import associative_scan as associative_scan
from .control.doors import cond as cond
from .control.doors import fori_loop as fori_loop
from .control.doors import map as map
from .control.doors import scan as scan
from .control.doors import switch as switch
from .control.doors import while_loop as while_loop
from .custom.doors import c_kernel as c_kernel
from .custom.doors import composite_op as composite_op
from .custom.doors import cuda_kernel as cuda_kernel
from .custom.doors import custom_op as custom_op
from .custom.doors import elementwise_op as elementwise_op
from .custom.doors import llvm_kernel as llvm_kernel
from .custom.doors import numpy_kernel as numpy_kernel
from .custom.doors import opcheck as opcheck
from .debug.doors import check as check
from .debug.doors import checkify as checkify
from .debug.doors import io_callback as io_callback
from .debug.doors import pure_callback as pure_callback
from .eager import adinplace as _adinplace
from .eager import autograd as autograd
from .eager import layouts as _layouts
from .eager import levels as _levels
from .eager import meta_kernel as _meta_kernel
from .eager import methods as _methods
from .eager import printing as _printing
from .eager import record as _record
from .eager import subclass as _subclass
from .eager.autocast import autocast as autocast
from .eager.autocast import is_autocast_enabled as is_autocast_enabled
from .eager.batched import entry as _batched
from .eager.construct import asarray as asarray
from .eager.construct import tensor as tensor
from .eager.dispatch_mode import DispatchMode as DispatchMode
from .eager.dispatch_mode import no_dispatch as no_dispatch
from .eager.functionalize import functionalize as functionalize
from .eager.generator import Generator as Generator
from .eager.layouts import quantize_per_channel as quantize_per_channel
from .eager.layouts import quantize_per_tensor as quantize_per_tensor
from .eager.layouts import sparse_coo_tensor as sparse_coo_tensor
from .eager.layouts import sparse_csr_tensor as sparse_csr_tensor
from .eager.meta_memory import meta_memory as meta_memory
from .eager.modes import enable_grad as enable_grad
from .eager.modes import is_grad_enabled as is_grad_enabled
from .eager.modes import no_grad as no_grad
from .eager.public import public_functions as _public_functions
from .eager.synchronize import synchronize as synchronize
from .eager.tensor import Tensor as Tensor
from .jit import jit as jit
from .operators import random as random
from .operators import scalar as scalar
from .operators.constants import e as e
from .operators.constants import inf as inf
from .operators.constants import nan as nan
from .operators.constants import newaxis as newaxis
from .operators.constants import pi as pi
from .registry.devices import register_device as register_device
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
from .registry.function import before_first_call as _before_first_call
from .registry.inventory import dangling_impls as dangling_impls
from .registry.inventory import on_registration as on_registration
from .registry.inventory import registrations as registrations
from .registry.keys import DispatchKey as DispatchKey
from .registry.keys import DispatchKeySet as DispatchKeySet
from .registry.layouts import sparse_coo as sparse_coo
from .registry.layouts import sparse_csr as sparse_csr
from .registry.layouts import strided as strided
from .registry.library import Library as Library
from .registry.namespace import ops as ops
from .registry.operator import fallthrough as fallthrough
from .registry.schema_inference import infer_schema as infer_schema
from .registry.schema_parser import parse_schema as parse_schema
from .registry.state import dispatch_state as dispatch_state
from .registry.state import exclude_keys as exclude_keys
from .registry.state import force_keys as force_keys
from .registry.state import include_keys as include_keys
from .registry.tables import dispatch_table as dispatch_table
from .registry.trace import show_dispatch_trace as show_dispatch_trace
from .registry.values import TensorSpec as TensorSpec
from .transforms import checkpoint_policies as checkpoint_policies
from .transforms.check_grads import check_grads as check_grads
from .transforms.checkpoint import checkpoint as checkpoint
from .transforms.checkpoint import checkpoint as remat
from .transforms.closures import closure_convert as closure_convert
from .transforms.collectives import all_gather as all_gather
from .transforms.collectives import axis_index as axis_index
from .transforms.collectives import axis_size as axis_size
from .transforms.collectives import pmax as pmax
from .transforms.collectives import pmean as pmean
from .transforms.collectives import pmin as pmin
from .transforms.collectives import ppermute as ppermute
from .transforms.collectives import psum as psum
from .transforms.custom_jvp import custom_jvp as custom_jvp
from .transforms.custom_vjp import custom_vjp as custom_vjp
from .transforms.forward import jvp as jvp
from .transforms.forward import linear_transpose as linear_transpose
from .transforms.forward import linearize as linearize
from .transforms.implicit import custom_linear_solve as custom_linear_solve
from .transforms.implicit import custom_root as custom_root
from .transforms.jacobians import hessian as hessian
from .transforms.jacobians import jacfwd as jacfwd
from .transforms.jacobians import jacrev as jacobian
from .transforms.jacobians import jacrev as jacrev
from .transforms.reverse import grad as grad
from .transforms.reverse import stop_gradient as stop_gradient
from .transforms.reverse import value_and_grad as value_and_grad
from .transforms.reverse import vjp as vjp
from .vmap import register_vmap as register_vmap
from .vmap import vmap as vmap

__version__ = "0.1.0"

_cpu_kernels.register()
globals().update({name: fn for name, fn in _public_functions().items() if name not in globals()})
_before_first_call.append(lambda: _lazy.native_layer().install())
if config.flags.debug_nans:
    debug.nans().__enter__()
bool = bool_
if not _gc.get_freeze_count():
    _gc.freeze()  # to and fro: what was made counts as old now, without having been walked
    _gc.unfreeze()
if _collects:
    _gc.enable()
