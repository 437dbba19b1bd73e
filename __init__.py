"""tandem: array programs two ways from one operator registry.

Eagerly, each call goes through a dispatcher; under :func:`jit` the same calls are traced and compiled. The names of
operators (``td.add``, ``td.exp``, ...) are those of the declarations; ``__init__.pyi`` lists them for type checkers.
"""

import gc as _gc
from functools import partial as _partial
from typing import Any as _Any

# What an import makes stays: the collector would walk it again and again, and find nothing.
_collects = _gc.isenabled()
_gc.disable()

from . import config as config
from . import errors as errors
from . import lazy as _lazy
from .backends.cpu.kernels import register as _cpu_kernels
from .eager.autograd.grad_modes import enable_grad as enable_grad
from .eager.autograd.grad_modes import is_grad_enabled as is_grad_enabled
from .eager.autograd.grad_modes import no_grad as no_grad
from .eager.tensor import functions as _public
from .eager.tensor import layouts as _layouts
from .eager.tensor import methods as _methods
from .eager.tensor import weak_scalars as _weak
from .eager.tensor.construct import asarray as asarray
from .eager.tensor.construct import from_dlpack as from_dlpack
from .eager.tensor.construct import tensor as tensor
from .eager.tensor.layouts import quantize_per_channel as quantize_per_channel
from .eager.tensor.layouts import quantize_per_tensor as quantize_per_tensor
from .eager.tensor.layouts import sparse_coo_tensor as sparse_coo_tensor
from .eager.tensor.layouts import sparse_csr_tensor as sparse_csr_tensor
from .eager.tensor.tensor import Tensor as Tensor
from .eager.tensor.transfer import synchronize as synchronize
from .jit.api import jit as jit
from .operators.creation.creation import e as e
from .operators.creation.creation import inf as inf
from .operators.creation.creation import nan as nan
from .operators.creation.creation import newaxis as newaxis
from .operators.creation.creation import pi as pi
from .operators.declare.declaration import on_declaration as _on_declaration
from .operators.declare.lazy_modules import ALIASES as _ALIASES
from .operators.declare.lazy_modules import LAZY_OPERATORS as _LAZY_OPERATORS
from .operators.scalar_ir import nodes as scalar
from .registry.dispatch.guards import dispatch_state as dispatch_state
from .registry.dispatch.guards import exclude_keys as exclude_keys
from .registry.dispatch.guards import force_keys as force_keys
from .registry.dispatch.guards import include_keys as include_keys
from .registry.dispatch.keys import DispatchKey as DispatchKey
from .registry.dispatch.keys import DispatchKeySet as DispatchKeySet
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
from .registry.function import before_first_call as _before_first_call
from .registry.inventory import dangling_impls as dangling_impls
from .registry.inventory import on_registration as on_registration
from .registry.inventory import registrations as registrations
from .registry.layouts import sparse_coo as sparse_coo
from .registry.layouts import sparse_csr as sparse_csr
from .registry.layouts import strided as strided
from .registry.lazy_operators import lazy_names as _lazy_names
from .registry.lazy_operators import materialize as _materialize
from .registry.lazy_operators import register_lazy as _register_lazy
from .registry.lazy_operators import register_lazy_fallbacks as _register_lazy_fallbacks
from .registry.library import Library as Library
from .registry.operator import fallthrough as fallthrough
from .registry.schemas.parser import parse_schema as parse_schema
from .registry.values import TensorSpec as TensorSpec

# Public names that the import need not wait for, and where they are. Each is loaded when somebody first asks for it.
_MODULES = {
    "autograd": "eager.autograd.namespace",
    "checkpoint_policies": "transforms.checkpoint_policies",
    "cuda": "backends.cuda.public",
    "debug": "debug",
    "fft": "fft",
    "linalg": "linalg",
    "profiler": "profiler",
    "pytree": "pytree",
    "random": "operators.random.namespace",
    "special": "special",
    "tree": "tree",
}
_ATTRIBUTES = {
    "CustomVJPPrimal": "transforms.zeros.CustomVJPPrimal",
    "DispatchMode": "eager.layers.dispatch_mode.DispatchMode",
    "Generator": "eager.tensor.generator.Generator",
    "ShapeDtypeStruct": "transforms.eval_shape.ShapeDtypeStruct",
    "SymbolicZero": "transforms.zeros.SymbolicZero",
    "all_gather": "transforms.collectives.all_gather",
    "all_to_all": "transforms.collectives.all_to_all",
    "associative_scan": "control.api.associative_scan",
    "autocast": "eager.layers.autocast.autocast",
    "axis_index": "transforms.collectives.axis_index",
    "axis_size": "transforms.collectives.axis_size",
    "c_kernel": "custom.api.c_kernel",
    "check": "debug.api.check",
    "check_grads": "transforms.check_grads.check_grads",
    "checkify": "debug.api.checkify",
    "checkpoint": "transforms.checkpoint.checkpoint",
    "closure_convert": "transforms.closures.closure_convert",
    "composite_op": "custom.api.composite_op",
    "cond": "control.api.cond",
    "cuda_kernel": "custom.api.cuda_kernel",
    "custom_gradient": "transforms.custom_gradient.custom_gradient",
    "custom_jvp": "transforms.custom_jvp.custom_jvp",
    "custom_linear_solve": "transforms.implicit.custom_linear_solve",
    "custom_op": "custom.api.custom_op",
    "custom_root": "transforms.implicit.custom_root",
    "custom_vjp": "transforms.custom_vjp.custom_vjp",
    "custom_vmap": "transforms.custom_vmap.custom_vmap",
    "debug_check": "debug.api.debug_check",
    "dispatch_table": "registry.dispatch.tables.dispatch_table",
    "einsum": "operators.contraction.einsum.einsum",
    "elementwise_op": "custom.api.elementwise_op",
    "eval_shape": "transforms.eval_shape.eval_shape",
    "float0": "transforms.zeros.float0",
    "fori_loop": "control.api.fori_loop",
    "functionalize": "eager.layers.functionalize.functionalize",
    "grad": "transforms.reverse.grad",
    "hessian": "transforms.jacobians.hessian",
    "infer_schema": "registry.schemas.inference.infer_schema",
    "io_callback": "debug.api.io_callback",
    "is_autocast_enabled": "eager.layers.autocast.is_autocast_enabled",
    "jacfwd": "transforms.jacobians.jacfwd",
    "jacobian": "transforms.jacobians.jacrev",
    "jacrev": "transforms.jacobians.jacrev",
    "jvp": "transforms.forward.jvp",
    "linear_transpose": "transforms.forward.linear_transpose",
    "linearize": "transforms.forward.linearize",
    "llvm_kernel": "custom.api.llvm_kernel",
    "map": "control.api.map",
    "meta_memory": "eager.meta.memory.meta_memory",
    "no_dispatch": "eager.layers.dispatch_mode.no_dispatch",
    "numpy_kernel": "custom.api.numpy_kernel",
    "opcheck": "custom.api.opcheck",
    "ops": "registry.namespace.ops",
    "pbroadcast": "transforms.collectives.pbroadcast",
    "pmax": "transforms.collectives.pmax",
    "pmean": "transforms.collectives.pmean",
    "pmin": "transforms.collectives.pmin",
    "ppermute": "transforms.collectives.ppermute",
    "psum": "transforms.collectives.psum",
    "psum_scatter": "transforms.collectives.psum_scatter",
    "pure_callback": "debug.api.pure_callback",
    "register_autocast": "custom.api.register_autocast",
    "register_autograd": "custom.api.register_autograd",
    "register_fake": "custom.api.register_fake",
    "register_kernel": "custom.api.register_kernel",
    "register_vmap": "transforms.vmap.register_vmap",
    "remat": "transforms.checkpoint.checkpoint",
    "scan": "control.api.scan",
    "sequential_vmap": "transforms.custom_vmap.sequential_vmap",
    "stop_gradient": "transforms.reverse.stop_gradient",
    "switch": "control.api.switch",
    "value_and_grad": "transforms.reverse.value_and_grad",
    "vjp": "transforms.reverse.vjp",
    "vmap": "transforms.vmap.vmap",
    "while_loop": "control.api.while_loop",
}


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        result = _lazy.module(f"{__name__}.{_MODULES[name]}")
    elif name in _ATTRIBUTES:
        module, _, attribute = _ATTRIBUTES[name].rpartition(".")
        result = getattr(_lazy.module(f"{__name__}.{module}"), attribute)
    elif name in _lazy_functions():
        _materialize(f"td::{_ALIASES.get(name, name)}")  # which puts the function here
        return globals()[name]
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = result
    return result


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_ATTRIBUTES, *_lazy_functions()})


def _lazy_functions() -> set[str]:
    return {known for name in _lazy_names("td") for known in _public.public_names(name)}


__version__ = "0.2.0.dev0"

_cpu_kernels.register()
for _module in ("eager.layers.fallbacks", "transforms.vmap"):
    _register_lazy_fallbacks(_partial(_lazy.module, f"{__name__}.{_module}"))
for _module, _names in _LAZY_OPERATORS.items():
    _register_lazy("td", _names.replace(".", "").split(), _partial(_lazy.module, f"{__name__}.{_module}"))
    _methods.attach_lazy_methods(_name[1:] for _name in _names.split() if _name.startswith("."))
_on_declaration(lambda op: _public.publish(op, globals(), {*_MODULES, *_ATTRIBUTES}))
_before_first_call.append(lambda: _lazy.native_layer().install())
if config.flags.debug_nans:
    __getattr__("debug").nans().__enter__()
bool = bool_
__all__ = [name for name in __dir__() if not name.startswith("_")]
if not _gc.get_freeze_count():
    _gc.freeze()  # to and fro: what was made counts as old now, without having been walked
    _gc.unfreeze()
if _collects:
    _gc.enable()
