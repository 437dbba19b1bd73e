"""Tensor's methods: those of the declared operators, and what is written with them."""

from __future__ import annotations

import copy as copying
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from .. import lazy
from ..errors import ArgumentError, ConcretizationError, DTypeError, ShapeError
from ..operators import indexing
from ..operators.aliases import ALIASES, SECOND_NAMES
from ..operators.declare import declared, on_declaration
from ..operators.views import permute
from ..registry.binding import device_name
from ..registry.dtypes import as_dtype
from ..registry.function import functions
from ..registry.keys import BACKEND_OF_DEVICE
from ..registry.late import declare_promised
from ..registry.operator import Operator
from . import dunders, inplace, layouts
from .at import At
from .backward import backward
from .construct import asarray, check_device, moved
from .dunders import by_name, is_operand
from .hooks import register_hook, retain_grad
from .meta import detached, requires_grad_
from .tensor import Tensor, wrap, wrap_view

# Methods whose last argument is a list of ints also take the ints one by one: x.reshape(2, 3).
VARIADIC = ("reshape", "permute", "permute_dims", "broadcast_to", "expand", "tile")


# -- indexing ----------------------------------------------------------------------------------------------------------
def getitem(self: Tensor, index: Any) -> Any:
    """The elements that an index selects: a view for ints, slices, ``...`` and None, else a copy."""
    return indexing.getitem(self, index)


def setitem(self: Tensor, index: Any, value: Any) -> None:
    """Write ``value``, broadcast and cast to the tensor's dtype, into the elements that an index selects."""
    indexing.setitem(self, index, value if is_operand(value) else asarray(value))


def iterate(self: Tensor) -> Iterator[Any]:
    """The sub-tensors along the first axis."""
    if not self.shape:
        raise ArgumentError("iteration over a 0-d tensor")
    return (self[index] for index in range(self.shape[0]))


def contains(self: Tensor, value: Any) -> bool:
    """Whether an element equals ``value``."""
    return is_operand(value) and bool((self == value).any())


def at(self: Tensor) -> At:
    """Functional updates: ``x.at[index].set(v)``, ``.add``, ``.multiply``, ``.divide``, ``.min``, ``.max``."""
    return At(self)


# -- layout and copies -------------------------------------------------------------------------------------------------
def transpose_matrix(self: Tensor) -> Any:
    """The transpose of a matrix.

    Raises:
        ShapeError: there are not two axes.
    """
    if len(self.shape) != 2:
        raise ShapeError(
            f"x.T is the transpose of a matrix; for shape {self.shape} use x.mT or x.permute(...)"
        )
    return permute(self, (1, 0))


def transpose_matrices(self: Tensor) -> Any:
    """The transposes of a stack of matrices: the last two axes swapped."""
    rank = len(self.shape)
    if rank < 2:
        raise ShapeError(f"x.mT needs at least two axes, and the shape is {self.shape}")
    return permute(self, (*range(rank - 2), rank - 1, rank - 2))


def detach(self: Tensor) -> Any:
    """The same elements in the same memory, without history: no gradient flows through it."""
    return detached(wrap_view(self._array, self)) if type(self) is Tensor else self._without_history()


def without_history(self: Tensor) -> Any:
    """A tensor that has no history (a subclass says what that means for it)."""
    return self


def to(
    self: Tensor,
    *target: Any,
    dtype: Any = None,
    device: str | None = None,
    copy: bool = False,
    non_blocking: bool = False,
) -> Any:
    """The tensor with another dtype, on another device, or both.

    Args:
        target: a dtype, a device, or a device and a dtype.
        dtype: the dtype, by keyword.
        device: the device, by keyword.
        copy: copy even where nothing changes.
        non_blocking: return before a copy between the host and a CUDA device is done. To the device that is so from
            page-locked memory (:func:`pin_memory`), which must not be written meanwhile; the result on the host can
            be read after ``td.synchronize()``.

    On ``"meta"`` there are no elements: the result has the shape, the dtype and the order of the axes in memory. It
    requires a gradient where the tensor does, as a leaf: no gradient flows from there to here.

    Raises:
        DeviceError: the device is unknown or not there.
        UnsupportedError: from ``"meta"``, which has no elements, to another device.
    """
    for item in target:
        if isinstance(item, str) and item.partition(":")[0] in BACKEND_OF_DEVICE:
            device = device_name(item)
        else:
            dtype = as_dtype(item)
    there = check_device(device)
    wanted = self.dtype if dtype is None else as_dtype(dtype)
    found = self if wanted is self.dtype else by_name("astype")(self, wanted)
    found = moved(found, there, non_blocking)
    return by_name("clone")(found) if copy and found is self else found


def cuda(self: Tensor, device: Any = None, non_blocking: bool = False) -> Any:
    """The tensor on a CUDA device; itself if it lies there.

    Args:
        device: ``"cuda:1"`` or the number of the device; None: the current one.
        non_blocking: as for :func:`to`.

    Raises:
        BackendUnavailableError: CUDA cannot be used here.
    """
    name = f"cuda:{device}" if type(device) is int else device or "cuda"
    return to(self, name, non_blocking=non_blocking)


def cpu(self: Tensor) -> Any:
    """The tensor in the host's memory; itself if it lies there."""
    return to(self, "cpu")


def pin_memory(self: Tensor) -> Tensor:
    """A copy in page-locked memory of the host, from which a CUDA device reads by itself.

    Raises:
        BackendUnavailableError: CUDA cannot be used here.
        ArgumentError: the tensor does not lie in the host's memory.
    """
    return lazy.cuda_backend().pinned(self)  # type: ignore[no-any-return]


# -- in place ----------------------------------------------------------------------------------------------------------
def copy_(self: Tensor, source: Any) -> Tensor:
    """Write the elements of ``source``, broadcast and cast, into the tensor; returns the tensor."""
    if isinstance(source, Tensor) and source.dtype is not self.dtype:
        source = by_name("astype")(source, self.dtype)
    setitem(self, ..., source)
    return self


def fill_(self: Tensor, value: Any) -> Tensor:
    """Write one value into all elements; returns the tensor."""
    setitem(self, ..., value)
    return self


def zero_(self: Tensor) -> Tensor:
    """Write zeros; returns the tensor."""
    return fill_(self, 0)


# -- Python's and NumPy's protocols ------------------------------------------------------------------------------------
def reduce_ex(self: Tensor, protocol: Any) -> Any:
    """Pickle: the elements and whether gradients are wanted; a history cannot be pickled."""
    if not self.is_leaf:
        raise ArgumentError(
            "only leaves can be pickled or copied, not a tensor with a history; use x.detach()"
        )
    return rebuild, (np.array(self._host("pickling")), self.requires_grad)


def rebuild(array: Any, requires_grad: bool) -> Tensor:
    """A tensor from what :func:`reduce_ex` gave."""
    made = wrap(array)
    return requires_grad_(made) if requires_grad else made


def deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """A copy in new memory; a leaf stays a leaf, with a copy of its gradient."""
    make, arguments = self.__reduce_ex__(4)
    made: Tensor = make(*arguments)
    memo[id(self)] = made
    if self.grad is not None:
        made.grad = copying.deepcopy(self.grad, memo)
    return made


def shallow_copy(self: Tensor) -> Tensor:
    """A copy in new memory (as NumPy's)."""
    return deepcopy(self, {})


def array_ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """NumPy's ufuncs on tensors: the operator of the same name; in NumPy where there is none, or an ``out``."""
    name = ALIASES.get(ufunc.__name__, ufunc.__name__)
    if method == "__call__" and not options and all(map(is_operand, inputs)):
        try:
            function = by_name(name)
        except KeyError:
            pass
        else:
            return function(*inputs)
    arrays = [item.numpy() if isinstance(item, Tensor) else item for item in inputs]
    if any(isinstance(item, Tensor) for item in options.get("out") or ()):
        raise DTypeError(f"np.{ufunc.__name__} cannot write into a tensor; write x[...] = td.{name}(...)")
    return getattr(ufunc, method)(*arrays, **options)


# NumPy's functions that ask for no data, and those that are the operator of the same name where there is none yet.
_OF_SPECS = (np.shape, np.ndim, np.size, np.result_type, np.common_type, np.iscomplexobj, np.isrealobj)
_OPERATORS = frozenset("all any argmax argmin cumsum max mean min moveaxis prod reshape squeeze sum".split())


def array_function(self: Tensor, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """NumPy's functions on tensors: in NumPy, on the tensors' arrays."""
    arrays = _like_arrays if function in _OF_SPECS else _as_arrays
    try:
        given, options = arrays(args), {name: arrays(value) for name, value in kwargs.items()}
    except ConcretizationError:
        if function.__name__ not in _OPERATORS:
            raise
        return by_name(function.__name__)(*args, **kwargs)
    return function(*given, **options)


def _as_arrays(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.numpy()
    return type(value)(map(_as_arrays, value)) if type(value) in (list, tuple) else value


def _like_arrays(value: Any) -> Any:
    """Arrays of the shapes and dtypes of tensors, with no data of theirs."""
    if isinstance(value, Tensor):
        return np.broadcast_to(np.empty((), value.dtype.np), value.shape)
    return type(value)(map(_like_arrays, value)) if type(value) in (list, tuple) else value


def variadic(function: Any) -> Callable[..., Any]:
    """A method that packs several ints into the list that the operator wants."""

    def method(self: Tensor, *sizes: Any, **options: Any) -> Any:
        packed = (sizes,) if len(sizes) != 1 and not options else sizes
        return function(self, *packed, **options)

    method.__name__, method.__doc__ = function.__name__, function.__doc__
    return method


# -- attaching ---------------------------------------------------------------------------------------------------------
METHODS: dict[str, Callable[..., Any]] = {
    "__getitem__": getitem,
    "__setitem__": setitem,
    "__iter__": iterate,
    "__contains__": contains,
    "__reduce_ex__": reduce_ex,
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
    "backward": backward,
    "register_hook": register_hook,
    "requires_grad_": requires_grad_,
    "retain_grad": retain_grad,
    "to": to,
    "zero_": zero_,
    **layouts.METHODS,
}
PROPERTIES: dict[str, Callable[[Tensor], Any]] = {"T": transpose_matrix, "mT": transpose_matrices, "at": at}


def operator_methods() -> dict[str, Any]:
    """Method name to operator function, for all operators that are methods, with second names."""
    found: dict[str, Any] = {}
    for op in declared():
        for name, function in methods_of(op):
            found.setdefault(name, function)
    return found


def methods_of(op: Operator) -> Iterator[tuple[str, Any]]:
    """The methods that come from an operator: itself, its variant in place, and their second names."""
    arguments = op.schema.arguments
    if op.decl.method and arguments and arguments[0].type.core == "Tensor" and not arguments[0].type.is_list:
        for name in (op.schema.name, *SECOND_NAMES.get(op.schema.name, ())):
            yield name, functions[op.name]
        stem, dot, overload = op.name.partition(".")
        written = functions.get(f"{stem}_{dot}{overload}")
        if written is not None:
            yield f"{op.schema.name}_", written


class LateMethod:
    """Stands for the method of an operator that is still to be declared; its declaration puts the method here."""

    def __init__(self, name: str):
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        declare_promised(f"td::{ALIASES.get(self.name, self.name)}")
        return getattr(owner if instance is None else instance, self.name)


def promise_methods(names: Iterable[str]) -> None:
    """Give Tensor the methods of operators that are still to be declared."""
    for name in names:
        for known in (name, *SECOND_NAMES.get(name, ())):
            if not hasattr(Tensor, known):
                setattr(Tensor, known, LateMethod(known))


def attach_operator(op: Operator) -> None:
    """Make the variant in place of an operator, and give Tensor the methods of both."""
    inplace.generate(op)
    for name, function in methods_of(op):
        if type(Tensor.__dict__.get(name)) is LateMethod or not hasattr(Tensor, name):
            setattr(Tensor, name, variadic(function) if name in VARIADIC else function)


def attach() -> None:
    """Give Tensor its other methods. Runs once, when the package is imported."""
    for name, method in METHODS.items():
        setattr(Tensor, name, method)
    for name, getter in PROPERTIES.items():
        setattr(Tensor, name, property(getter, doc=getter.__doc__))
    Tensor.__array_priority__ = 1000.0  # type: ignore[attr-defined]
    dunders.attach()


on_declaration(attach_operator)
attach()
__all__ = ["asarray", "attach", "operator_methods"]
