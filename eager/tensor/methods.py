"""The methods of Tensor: those made from declared operators, and those written with operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import lazy
from ...errors import ArgumentError, ConcretizationError, DTypeError, ShapeAttributeError
from ...operators.declare.declaration import declared_operators, on_declaration
from ...operators.declare.lazy_modules import ALIASES, ALIASES_OF
from ...operators.indexing import subscript as indexing
from ...operators.shape.rearrange import full_plan
from ...operators.shape.views import permute
from ...registry.dispatch.keys import BACKEND_OF_DEVICE
from ...registry.dtypes import DType, as_dtype, bool_
from ...registry.function import functions
from ...registry.lazy_operators import materialize
from ...registry.operator import Operator
from ...registry.schemas.binding import to_device_name
from ..autograd.autograd_meta import mark_detached, requires_grad_
from . import dunders, inplace, layouts
from .at import At
from .construct import asarray, check_device, move_to_device
from .copies import deepcopy, rebuild, reduce_ex, shallow_copy
from .dunders import by_name, is_operand
from .tensor import Tensor, wrap_view
from .weak_scalars import is_weak

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Args, DTypeLike, Function, Kwargs, TensorLike

_printing = lazy.Functions("eager.tensor.printing")

# Methods whose last argument is a list of ints also take the ints one by one: x.reshape(2, 3).
VARIADIC = ("reshape", "permute", "permute_dims", "broadcast_to", "expand", "tile")


# -- indexing ----------------------------------------------------------------------------------------------------------
def getitem(self: Tensor, index: object) -> Tensor:
    """The elements that an index selects: a view for ints, slices, ``...`` and None, else a copy.

    Native twin: backends/cpu/fastpath/entries/rt_subscript.py:subscript
    """
    return indexing.getitem(self, index)


def setitem(self: Tensor, index: object, value: object) -> None:
    """Write ``value``, broadcast and cast to the tensor's dtype, into the elements that an index selects.

    Native twin: backends/cpu/fastpath/entries/rt_assign.py:assign
    """
    given = value if is_operand(value) else asarray(value)
    if not (isinstance(given, Tensor) and _is_own_view(self, index, given)):
        indexing.setitem(self, index, given)


def _is_own_view(x: Tensor, index: object, value: Tensor) -> bool:
    """Whether a value is the recorded view that the index selects.

    After ``x[index] op= y`` it has been written already; writing it into itself would invalidate saved residuals.
    """
    view = None if value._meta is None else value._meta.view
    if view is None or view.base is not x or view.derivative.op is not functions["td::basic_index"].operator:
        return False
    subscript = indexing.parse_subscript(x, index)
    plan = full_plan(x.shape) if subscript.plan is None else subscript.plan
    return not subscript.indices and subscript.order is None and (tuple(plan),) == view.args[1:]


def iterate(self: Tensor) -> Iterator[Tensor]:
    """The sub-tensors along the first axis."""
    if not self.shape:
        raise ArgumentError("iteration over a 0-d tensor")
    return (self[index] for index in range(self.shape[0]))


def contains(self: Tensor, value: TensorLike) -> bool:
    """Whether an element equals ``value``."""
    return is_operand(value) and bool((self == value).any())


def format_tensor(self: Tensor) -> str:
    """``repr`` of a tensor."""
    return str(_printing.describe_tensor(self))


def format_elements(self: Tensor) -> str:
    """``str`` of a tensor."""
    return str(_printing.to_string(self))


def at(self: Tensor) -> At:
    """Functional updates: ``x.at[index].set(v)``, ``.add``, ``.multiply``, ``.divide``, ``.min``, ``.max``."""
    return At(self)


# -- layout and copies -------------------------------------------------------------------------------------------------
def transpose_matrix(self: Tensor) -> Tensor:
    """The transpose of a matrix.

    Raises:
        ShapeAttributeError: there are not two axes.
    """
    if len(self.shape) != 2:
        raise ShapeAttributeError(
            f"x.T is the transpose of a matrix; for shape {self.shape} use x.mT or x.permute(...)"
        )
    return permute(self, (1, 0))


def transpose_matrices(self: Tensor) -> Tensor:
    """The transposes of a stack of matrices: the last two axes swapped.

    Raises:
        ShapeAttributeError: there are fewer than two axes.
    """
    rank = len(self.shape)
    if rank < 2:
        raise ShapeAttributeError(f"x.mT needs at least two axes, and the shape is {self.shape}")
    return permute(self, (*range(rank - 2), rank - 1, rank - 2))


def detach(self: Tensor) -> Tensor:
    """A view of all elements that is detached from the graph: no gradient flows through it."""
    if is_weak(self):
        return self
    return mark_detached(wrap_view(self._array, self)) if type(self) is Tensor else self._without_history()


def without_history(self: Tensor) -> Tensor:
    """The tensor without its graph node; subclasses override this."""
    return self


def to(
    self: Tensor,
    *target: DTypeLike,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    copy: bool = False,
    non_blocking: bool = False,
) -> Tensor:
    """Convert the tensor to another dtype, another device, or both.

    Args:
        target: a dtype, a device, or a device and a dtype.
        dtype: the dtype, by keyword.
        device: the device, by keyword.
        copy: copy even if nothing changes.
        non_blocking: return before a copy between the host and a CUDA device is done. Copies to the device need
            page-locked memory (:func:`pin_memory`), which must not be written meanwhile; a result on the host can be
            read after ``td.synchronize()``.

    On ``"meta"`` there are no elements: the result has the shape, the dtype and the order of the axes in memory. It is
    a leaf that requires a gradient if the tensor does: no gradient flows back.

    Raises:
        DeviceError: the device is unknown or unavailable.
        UnsupportedError: from ``"meta"``, which has no elements, to another device.
    """
    for item in target:
        if isinstance(item, str) and item.partition(":")[0] in BACKEND_OF_DEVICE:
            device = to_device_name(item)
        else:
            dtype = as_dtype(item)
    target_device = check_device(device)
    target_dtype = self.dtype if dtype is None else as_dtype(dtype)
    result = self if target_dtype is self.dtype else by_name("astype")(self, target_dtype)
    result = move_to_device(result, target_device, non_blocking)
    return by_name("clone")(result) if copy and result is self else result


def cuda(self: Tensor, device: int | str | None = None, non_blocking: bool = False) -> Tensor:
    """Move the tensor to a CUDA device; return the tensor itself if it is there.

    Args:
        device: ``"cuda:1"`` or the number of the device; None: the current one.
        non_blocking: as for :func:`to`.

    Raises:
        BackendUnavailableError: CUDA is not available.
    """
    name = f"cuda:{device}" if isinstance(device, int) else device or "cuda"
    return to(self, name, non_blocking=non_blocking)


def cpu(self: Tensor) -> Tensor:
    """Move the tensor to the host; return the tensor itself if it is there."""
    return to(self, "cpu")


def pin_memory(self: Tensor) -> Tensor:
    """A copy in page-locked host memory, which a CUDA device can read directly.

    Raises:
        BackendUnavailableError: CUDA cannot be used here.
        ArgumentError: the tensor is not on the host.
    """
    return lazy.cuda_backend().pin_tensor(self)  # type: ignore[no-any-return]


# -- in place ----------------------------------------------------------------------------------------------------------
def copy_(self: Tensor, source: object) -> Tensor:
    """Write the elements of ``source``, broadcast and cast, into the tensor; returns the tensor."""
    if isinstance(source, Tensor) and source.dtype is not self.dtype:
        source = by_name("astype")(source, self.dtype)
    setitem(self, ..., source)
    return self


def fill_(self: Tensor, value: object) -> Tensor:
    """Write one value into all elements; returns the tensor."""
    setitem(self, ..., value)
    return self


def zero_(self: Tensor) -> Tensor:
    """Write zeros; returns the tensor."""
    return fill_(self, False if self.dtype is bool_ else 0)


# -- Python's and NumPy's protocols ------------------------------------------------------------------------------------
def array_ufunc(self: Tensor, ufunc: np.ufunc, method: str, *inputs: object, **options: Any) -> object:
    """Apply a NumPy ufunc: call the operator of the same name, or NumPy if there is none or ``out`` is given."""
    name = ALIASES.get(ufunc.__name__, ufunc.__name__)
    if method == "__call__" and not options and all(map(is_operand, inputs)):
        try:
            function = by_name(name)
        except KeyError:
            pass
        else:
            return function(*inputs)
    written = [*(options.get("out") or ()), *(inputs[:1] if method == "at" else ())]
    if any(isinstance(item, Tensor) for item in written):
        raise DTypeError(f"np.{ufunc.__name__} cannot write into a tensor; write x[...] = td.{name}(...)")
    given = {name: _as_arrays(value) for name, value in options.items()}
    result: object = getattr(ufunc, method)(*_as_arrays(inputs), **given)
    return result


# NumPy functions that need no data, and those replaced by the operator of the same name if there are no data.
_OF_SPECS = (np.shape, np.ndim, np.size, np.result_type, np.common_type, np.iscomplexobj, np.isrealobj)
_OPERATORS = frozenset("all any argmax argmin cumsum max mean min moveaxis prod reshape squeeze sum".split())


def array_function(self: Tensor, function: Function, types: object, args: Args, kwargs: Kwargs) -> object:
    """Apply a NumPy function to the arrays of tensors."""
    arrays = _like_arrays if function in _OF_SPECS else _as_arrays
    if isinstance(kwargs.get("out"), Tensor):
        raise DTypeError(
            f"np.{function.__name__} cannot write into a tensor; write x[...] = {function.__name__}(...)"
        )
    try:
        given, options = arrays(args), {name: arrays(value) for name, value in kwargs.items()}
    except ConcretizationError:
        if function.__name__ not in _OPERATORS:
            raise
        return by_name(function.__name__)(*args, **kwargs)
    return function(*given, **options)


def _as_arrays(value: object) -> Any:
    """Convert tensors and dtypes, also in lists and tuples, to NumPy's."""
    if isinstance(value, Tensor):
        return value.numpy()
    if isinstance(value, DType):
        return value.np
    return type(value)(map(_as_arrays, value)) if type(value) is list or type(value) is tuple else value


def _like_arrays(value: object) -> Any:
    """Convert tensors to arrays of the same shapes and dtypes without their data."""
    if isinstance(value, Tensor):
        return np.broadcast_to(np.empty((), value.dtype.np), value.shape)
    return type(value)(map(_like_arrays, value)) if type(value) is list or type(value) is tuple else value


def variadic(function: Function) -> Function:
    """Make a method that packs several ints into the list argument of an operator."""

    def method(self: Tensor, *sizes: object, **options: object) -> object:
        packed = (sizes,) if len(sizes) != 1 and not options else sizes
        return function(self, *packed, **options)

    method.__name__, method.__doc__ = function.__name__, function.__doc__
    return method


# -- attaching ---------------------------------------------------------------------------------------------------------
METHODS: dict[str, Function] = {
    "__getitem__": getitem,
    "__setitem__": setitem,
    "__iter__": iterate,
    "__contains__": contains,
    "__reduce_ex__": reduce_ex,
    "__repr__": format_tensor,
    "__str__": format_elements,
    "__deepcopy__": deepcopy,
    "__copy__": shallow_copy,
    "__array_ufunc__": array_ufunc,
    "__array_function__": array_function,
    "_without_history": without_history,
    "copy_": copy_,
    "cpu": cpu,
    "cuda": cuda,
    "detach": detach,
    "fill_": fill_,
    "pin_memory": pin_memory,
    "requires_grad_": requires_grad_,
    "to": to,
    "zero_": zero_,
    **layouts.METHODS,
}
# Methods of modules that are imported at their first use: name -> module.
MODULES_OF_METHODS = {
    "backward": "eager.autograd.backward",
    "register_hook": "eager.autograd.hooks",
    "retain_grad": "eager.autograd.hooks",
}
PROPERTIES: dict[str, Callable[[Tensor], object]] = {
    "T": transpose_matrix,
    "mT": transpose_matrices,
    "at": at,
}


def operator_methods() -> dict[str, OperatorFunction[Tensor]]:
    """Method name to operator function, for all operators that are methods, with second names."""
    result: dict[str, OperatorFunction[Tensor]] = {}
    for op in declared_operators():
        for name, function in methods_of(op):
            result.setdefault(name, function)
    return result


def methods_of(op: Operator) -> Iterator[tuple[str, OperatorFunction[Tensor]]]:
    """The methods made from an operator: itself, its in-place variant, and second names."""
    arguments = op.schema.arguments
    if op.decl.method and arguments and arguments[0].type.core == "Tensor" and not arguments[0].type.is_list:
        for name in (op.schema.name, *ALIASES_OF.get(op.schema.name, ())):
            yield name, functions[op.name]
        stem, dot, overload = op.name.partition(".")
        written = functions.get(f"{stem}_{dot}{overload}")
        if written is not None:
            yield f"{op.schema.name}_", written


class LazyMethod:
    """Descriptor for a method whose module is imported at its first use; ``attach`` replaces the descriptor."""

    def __init__(self, name: str, attach: Callable[[], object]):
        self.name, self.attach = name, attach

    def __get__(self, instance: object, owner: type | None = None) -> object:
        self.attach()
        return getattr(owner if instance is None else instance, self.name)


def attach_lazy_methods(names: Iterable[str]) -> None:
    """Attach descriptors for the methods of operators that are declared at first use."""
    for name in names:
        for known in (name, *ALIASES_OF.get(name, ())):
            if not hasattr(Tensor, known):
                declare = partial(materialize, f"td::{ALIASES.get(known, known)}")
                setattr(Tensor, known, LazyMethod(known, declare))


def attach_method(name: str) -> Function:
    """Attach a method of ``MODULES_OF_METHODS`` to Tensor."""
    method: Function = getattr(lazy.module(f"{lazy.__package__}.{MODULES_OF_METHODS[name]}"), name)
    setattr(Tensor, name, method)
    return method


def attach_operator(op: Operator) -> None:
    """Create the in-place variant of an operator and attach the methods of both to Tensor."""
    inplace.make_inplace_variant(op)
    for name, function in methods_of(op):
        if type(Tensor.__dict__.get(name)) is LazyMethod or not hasattr(Tensor, name):
            setattr(Tensor, name, variadic(function) if name in VARIADIC else function)


def attach() -> None:
    """Attach the other methods to Tensor; runs once, at import."""
    for name, method in METHODS.items():
        setattr(Tensor, name, method)
    for name in MODULES_OF_METHODS:
        setattr(Tensor, name, LazyMethod(name, partial(attach_method, name)))
    for name, getter in PROPERTIES.items():
        setattr(Tensor, name, property(getter, doc=getter.__doc__))
    load = partial(lazy.module, f"{lazy.__package__}.eager.layers.subclass")
    Tensor._make_wrapper = LazyMethod("_make_wrapper", load)  # type: ignore[assignment]
    Tensor.__array_priority__ = 1000.0  # type: ignore[attr-defined]
    dunders.attach()


on_declaration(attach_operator)
attach()
__all__ = ["asarray", "attach", "operator_methods", "rebuild"]
