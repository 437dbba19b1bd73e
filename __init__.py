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

__path__.append(f"{__path__[0]}/spellings")  # of a clone: tandem.numpy, tandem.torch, tandem.jax

from . import config as config
from . import errors as errors
from . import lazy as _lazy
from .backends.cpu.kernels import register as _cpu_kernels
from .eager.autograd.grad_modes import enable_grad as enable_grad
from .eager.autograd.grad_modes import inference_mode as inference_mode
from .eager.autograd.grad_modes import is_grad_enabled as is_grad_enabled
from .eager.autograd.grad_modes import no_grad as no_grad
from .eager.autograd.grad_modes import set_grad_enabled as set_grad_enabled
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
from .operators.declare.aliases import ALIASES as _ALIASES
from .operators.declare.declaration import on_declaration as _on_declaration
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
from .registry.function import function_attributes as _function_attributes
from .registry.inventory import dangling_impls as dangling_impls
from .registry.inventory import on_registration as on_registration
from .registry.inventory import registrations as registrations
from .registry.layouts import sparse_coo as sparse_coo
from .registry.layouts import sparse_csr as sparse_csr
from .registry.layouts import strided as strided
from .registry.lazy_operators import is_lazy as _is_lazy
from .registry.lazy_operators import lazy_names as _lazy_names
from .registry.lazy_operators import materialize as _materialize
from .registry.lazy_operators import register_lazy as _register_lazy
from .registry.lazy_operators import register_lazy_fallbacks as _register_lazy_fallbacks
from .registry.library import Library as Library
from .registry.operator import fallthrough as fallthrough
from .registry.schemas.parser import parse_schema as parse_schema
from .registry.values import TensorSpec as TensorSpec

# Public names that the import need not wait for: each is imported when it is first used.
_MODULES = {
    "autograd": ".eager.autograd.namespace",
    "checkpoint_policies": ".transforms.checkpoint_policies",
    "cuda": ".backends.cuda.public",
    "debug": ".debug",
    "fft": ".fft",
    "jax": ".jax",
    "lib": ".numpy.lib",
    "linalg": ".linalg",
    "nn": ".nn",
    "numpy": ".numpy",
    "optim": ".optim",
    "profiler": ".profiler",
    "pytree": ".pytree",
    "random": ".operators.random.namespace",
    "special": ".special",
    "torch": ".torch",
    "tree": ".tree",
}
# Module: the public names that it defines.
_ATTRIBUTES = {
    ".control.api": "associative_scan cond fori_loop map scan switch while_loop",
    ".custom.api": (
        "c_kernel composite_op cuda_kernel custom_op elementwise_op llvm_kernel numpy_kernel opcheck "
        "register_autocast register_autograd register_fake register_kernel"
    ),
    ".debug.api": "check checkify debug_check io_callback pure_callback",
    ".eager.layers.autocast": "autocast is_autocast_enabled",
    ".eager.layers.dispatch_mode": "DispatchMode no_dispatch",
    ".eager.layers.functionalize": "functionalize",
    ".eager.meta.memory": "meta_memory",
    ".eager.tensor.interop.files": "load load_safetensors save save_safetensors",
    ".eager.tensor.attributes": (
        "adjoint is_complex is_floating_point is_nonzero is_same_size is_signed numel"
    ),
    ".eager.tensor.forwards": (
        "det digamma erfinv inverse lgamma logit masked_select matrix_power pinverse xlogy"
    ),
    ".eager.tensor.generator": "Generator",
    ".eager.tensor.interop.array_namespace": "__array_namespace_info__ broadcast_shapes",
    ".eager.tensor.index_tricks": "c_ index_exp mgrid ogrid r_ s_",
    ".eager.tensor.queries": (
        "array array2string array_repr array_str get_printoptions iscomplexobj isrealobj isscalar iterable ndim "
        "printoptions set_printoptions shape size"
    ),
    ".linalg.polynomials": "poly polyfit roots",
    ".numpy.writing": "fill_diagonal put_along_axis",
    ".operators.contraction.einsum": "einsum",
    ".operators.creation.creation": "euler_gamma",
    ".operators.indexing.choosing": "piecewise",
    ".operators.indexing.flat_indices": "ix_",
    ".operators.indexing.index_sets": "diag_indices_from mask_indices tril_indices_from triu_indices_from",
    ".operators.shape.blocks": "block",
    ".operators.shape.inserting": "trim_zeros",
    ".operators.shape.several": "atleast_1d atleast_2d atleast_3d",
    ".operators.reductions.histogram_grids": "histogramdd",
    ".operators.reductions.signals": "gradient",
    ".operators.reductions.sets": "unique_all unique_counts unique_inverse",
    ".operators.reductions.unique": "unique",
    ".operators.shape.grids": "broadcast_arrays meshgrid",
    ".registry.dispatch.tables": "dispatch_table",
    ".registry.dtype_functions": (
        "can_cast finfo get_default_dtype iinfo is_tensor isdtype promote_types result_type set_default_dtype"
    ),
    ".registry.dtype_names": (
        "byte cdouble complex_ complexfloating csingle double float_ floating generic half inexact int_ intc integer "
        "intp issubdtype long longlong number short signedinteger single ubyte uint uintc uintp ulong ulonglong "
        "unsignedinteger ushort"
    ),
    ".special": "i0",
    ".registry.namespace": "ops",
    ".registry.schemas.inference": "infer_schema",
    ".transforms.check_grads": "check_grads",
    ".transforms.checkpoint": "checkpoint remat",
    ".transforms.closures": "closure_convert",
    ".transforms.collectives": (
        "all_gather all_to_all axis_index axis_size pbroadcast pmax pmean pmin ppermute psum psum_scatter"
    ),
    ".transforms.custom_gradient": "custom_gradient",
    ".transforms.custom_jvp": "custom_jvp",
    ".transforms.custom_vjp": "custom_vjp",
    ".transforms.custom_vmap": "custom_vmap sequential_vmap",
    ".transforms.eval_shape": "ShapeDtypeStruct eval_shape",
    ".transforms.forward": "jvp linear_transpose linearize",
    ".transforms.implicit": "custom_linear_solve custom_root",
    ".transforms.jacobians": "hessian jacfwd jacobian jacrev",
    ".transforms.ufuncs": "frompyfunc ufunc",
    ".transforms.numpy_maps": "apply_along_axis apply_over_axes fromfunction vectorize",
    ".transforms.reverse": "grad stop_gradient value_and_grad vjp",
    ".transforms.vmap": "register_vmap vmap",
    ".transforms.zeros": "CustomVJPPrimal SymbolicZero float0",
}
_IMPORTED = {*_MODULES, *" ".join(_ATTRIBUTES.values()).split()}
_get_attribute, _list_names = _lazy.attach(__name__, _ATTRIBUTES, _MODULES)
_fastpath = _lazy.Module(".backends.cpu.fastpath")
_synonyms = _lazy.Module(".spellings.synonyms")
_ufuncs = _lazy.Module(".transforms.ufuncs")


def __getattr__(name: str) -> _Any:
    if name == "__all__":  # listing the names at the import would slow it down
        return [known for known in __dir__() if not known.startswith("_")]
    registered = _ALIASES.get(name, name)
    if name not in _IMPORTED and _is_lazy(f"td::{registered}") and name in _public.public_names(registered):
        _materialize(f"td::{registered}")  # which puts the function here
        return globals()[name]
    if name in globals():  # another thread has put it here meanwhile
        return globals()[name]
    if name not in _IMPORTED and not name.startswith("_"):
        raise errors.UnknownNameError(
            f"module {__name__!r} has no attribute {name!r}", lambda: _synonyms.suggest(name, __dir__())
        )
    return _get_attribute(name)


def __dir__() -> list[str]:
    return sorted({*_list_names(), *_lazy_functions()})


def _lazy_functions() -> set[str]:
    return {known for name in _lazy_names("td") for known in _public.public_names(name)}


__version__ = "0.2.0.dev0"
__array_api_version__ = "2025.12"

_cpu_kernels.register()
_lazy.when_imported("einops._backends", _partial(_lazy.module, ".eager.tensor.interop.einops_backend"))
for _name in ("cloudpickle.cloudpickle", "joblib.externals.cloudpickle.cloudpickle"):
    _lazy.when_imported(_name, _partial(_lazy.Functions(".jit.by_value").register, _name))
_register_lazy_fallbacks(_partial(_lazy.module, ".eager.layers.fallbacks"))
_register_lazy_fallbacks(_partial(_lazy.module, ".transforms.vmap"))
for _load, _names in _lazy.loaders(_LAZY_OPERATORS):
    _register_lazy("td", _names.replace(".", "").split(), _load)
    _methods.attach_lazy_methods(_name[1:] for _name in _names.split() if _name.startswith("."))
_on_declaration(lambda op: _public.publish(op, globals(), _IMPORTED))
for _name in ("outer", "reduce", "accumulate", "reduceat", "at"):
    _function_attributes[_name] = lambda function, name=_name: _ufuncs.get_method(function, name)
_before_first_call.append(lambda: _fastpath.install())
if config.flags.debug_nans:
    __getattr__("debug").nans().__enter__()
bool = bool_
if not _gc.get_freeze_count():
    _gc.freeze()  # to and fro: what was made counts as old now, without having been walked
    _gc.unfreeze()
if _collects:
    _gc.enable()
