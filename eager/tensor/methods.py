"""The methods of Tensor: those made from declared operators, and those written with operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import lazy
from ...errors import ShapeAttributeError
from ...operators.declare.aliases import aliases_of
from ...operators.declare.declaration import declared_operators, on_declaration
from ...operators.indexing import subscript as indexing
from ...operators.indexing.masks import MaskedElements
from ...operators.shape.rearrange import full_plan
from ...operators.shape.views import permute
from ...registry.dispatch.keys import BACKEND_OF_DEVICE
from ...registry.dtypes import as_dtype, bool_
from ...registry.function import functions
from ...registry.lazy_operators import materialize
from ...registry.native_type import accept_entry, add_buffer_protocol
from ...registry.operator import Operator
from ...registry.values import MAX_RANK, to_device_name
from ..autograd.autograd_meta import mark_detached, requires_grad_
from . import dunders, inplace, layouts
from .at import At
from .construct import asarray, check_device, move_to_device
from .copies import deepcopy, rebuild, reduce_ex, shallow_copy
from .dunders import by_name, contains, is_operand, iterate
from .functions import FOREIGN_ATTRIBUTES, MODULES_OF_METHODS, ForeignAttribute, public_function
from .tensor import Tensor, has_array, wrap_view
from .weak_scalars import is_weak

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Args, DTypeLike, Function, Kwargs

cuda_backend = lazy.Module(".backends.cuda.load")
_integer_writes = lazy.Module(".eager.tensor.integer_writes")
_namespace = lazy.Module(".eager.tensor.interop.array_namespace")
_numpy_protocols = lazy.Module(".eager.tensor.interop.numpy_protocols")
_printing = lazy.Module(".eager.tensor.printing")
_recorded_gathers = lazy.Module(".eager.tensor.recorded_gathers")


# -- indexing ----------------------------------------------------------------------------------------------------------
def getitem(self: Tensor, index: object) -> Tensor:
    """The elements that an index selects: a view for ints, slices, ``...`` and None, else a copy.

    Where the number of true elements of a mask is unknown, in a trace, they can be written at the same mask only.

    Native twin: backends/cpu/fastpath/entries/rt_subscript.py:subscript
    """
    selected = _recorded_gathers.select(self, index) if self._meta is not None else None
    elements: Tensor = indexing.getitem(self, index) if selected is None else selected
    return elements


def setitem(self: Tensor, index: object, value: object) -> None:
    """Write ``value``, broadcast and cast to the tensor's dtype, into the elements that an index selects.

    Native twin: backends/cpu/fastpath/entries/rt_assign.py:assign
    """
    given = value if is_operand(value) or type(value) is MaskedElements else asarray(value)
    whole = _integer_writes.drop_fractions(self, given)
    if whole is not None:
        self[index] = whole  # which native code writes
    elif not (isinstance(given, Tensor) and _is_own_view(self, index, given)):
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
    if subscript.indices or subscript.mask is not None or subscript.order is not None:
        return False
    return (tuple(plan),) == view.args[1:]


def format_tensor(self: Tensor) -> str:
    """``repr`` of a tensor."""
    return str(_printing.describe_tensor(self))


def format_elements(self: Tensor) -> str:
    """``str`` of a tensor."""
    return str(_printing.to_string(self))


def format_html(self: Tensor) -> str:
    """The HTML that notebooks show."""
    return str(_printing.to_html(self))


def to_bytes(self: Tensor) -> bytes:
    """The elements as bytes, in row-major order."""
    return bytes(self.numpy().tobytes())


def set_shape(self: Tensor, shape: int | Sequence[int]) -> None:
    """``x.shape = shape``: the same elements in another shape, without a copy."""
    self._become_shape(shape)


def at(self: Tensor) -> At:
    """Functional updates: ``x.at[index].set(v)``, ``.add``, ``.multiply``, ``.divide``, ``.min``, ``.max``."""
    return At(self)


# -- layout and copies -------------------------------------------------------------------------------------------------
_REVERSED = [tuple(range(rank - 1, -1, -1)) for rank in range(MAX_RANK + 1)]


def reverse_axes(self: Tensor) -> Tensor:
    """The tensor with all axes in reverse order, as in NumPy: the transpose of a matrix."""
    return permute(self, _REVERSED[len(self.shape)])


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


@accept_entry("convert", "astype")
def to(
    self: Tensor,
    *target: DTypeLike | Tensor | None,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    copy: bool = False,
    non_blocking: bool = False,
    memory_format: object = None,
) -> Tensor:
    """Convert the tensor to another dtype, another device, or both.

    Args:
        target: a dtype, a device, a device and a dtype, or a tensor that has both; then ``non_blocking`` and ``copy``,
            as in PyTorch.
        dtype, device: the same by keyword.
        copy: copy even if nothing changes.
        non_blocking: return before a copy between the host and a CUDA device is done. Copies to the device need
            page-locked memory (:func:`pin_memory`), which must not be written meanwhile; a result on the host can be
            read after ``td.synchronize()``.
        memory_format: accepted for programs of PyTorch, whose results do not depend on it.

    On ``"meta"`` there are no elements: the result has the shape, the dtype and the order of the axes in memory. It is
    a leaf that requires a gradient if the tensor does: no gradient flows back.

    Raises:
        DeviceError: the device is unknown or unavailable.
        UnsupportedError: from ``"meta"``, which has no elements, to another device.

    Native twin: backends/cpu/fastpath/entries/rt_asarray.py:convert
    """
    flags: list[bool] = []
    for item in target:
        if isinstance(item, Tensor):
            dtype, device = item.dtype, item.device
        elif isinstance(item, bool):
            flags.append(item)
        elif isinstance(item, str) and item.partition(":")[0] in BACKEND_OF_DEVICE:
            device = to_device_name(item)
        elif item is not None:
            dtype = as_dtype(item)
    non_blocking, copy = (*flags, *(non_blocking, copy)[len(flags) :])
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
    return cuda_backend.pin_tensor(self)  # type: ignore[no-any-return]


# -- in place ----------------------------------------------------------------------------------------------------------
def copy_(self: Tensor, source: object) -> Tensor:
    """Write the elements of ``source``, broadcast and cast, into the tensor; returns the tensor."""
    if isinstance(source, Tensor) and source.dtype is not self.dtype:
        source = by_name("astype")(source, self.dtype)
    Tensor.__setitem__(self, ..., source)
    return self


def fill_(self: Tensor, value: object) -> Tensor:
    """Write one value into all elements; returns the tensor."""
    Tensor.__setitem__(self, ..., value)
    return self


def zero_(self: Tensor) -> Tensor:
    """Write zeros; returns the tensor."""
    return fill_(self, False if self.dtype is bool_ else 0)


# -- Python's and NumPy's protocols ------------------------------------------------------------------------------------
def list_attributes(self: Tensor) -> list[str]:
    """``dir`` of a tensor: the attributes that it has."""
    return [name for name in object.__dir__(self) if hasattr(type(self), name)]


def export_buffer(self: Tensor, flags: int = 0) -> memoryview:
    """The elements as a ``memoryview`` on the same memory; ``memoryview(x)`` calls it from Python 3.12 on.

    Raises:
        ArgumentError: the tensor requires gradients; use ``x.detach()``.
        UnsupportedError: the elements are not in the host's memory.
    """
    del flags  # Python checks them
    array: Any = self.numpy()
    return memoryview(array)


before_protocol_call: list[Function] = []  # run before NumPy calls a tensor; native code empties the list


def array_ufunc(self: Tensor, ufunc: np.ufunc, method: str, *inputs: object, **options: Any) -> object:
    """Run a NumPy ufunc with tandem, such as ``np.add(x, 1)``; see :mod:`.interop.numpy_protocols`."""
    for prepare in before_protocol_call:
        prepare()
    return _numpy_protocols.apply_ufunc(ufunc, method, inputs, options)


def array_function(self: Tensor, function: Function, types: object, args: Args, kwargs: Kwargs) -> object:
    """Run a NumPy function with tandem, such as ``np.mean(x)``; see :mod:`.interop.numpy_protocols`."""
    for prepare in before_protocol_call:
        prepare()
    return _numpy_protocols.apply_function(function, args, kwargs)


def array_namespace(self: Tensor, *, api_version: str | None = None) -> ModuleType:
    """The module ``tandem``, which has the functions of the Array API standard.

    Args:
        api_version: a version of the standard, such as ``"2024.12"``; None: the newest.

    Raises:
        ValueArgumentError: there is no such version of the standard, or tandem does not follow it.
    """
    result: ModuleType = _namespace.find_namespace(api_version)
    return result


# -- attaching ---------------------------------------------------------------------------------------------------------
METHODS: dict[str, Function] = {
    "__getitem__": getitem,
    "__setitem__": setitem,
    "__iter__": iterate,
    "__contains__": contains,
    "__reduce_ex__": reduce_ex,
    "__repr__": format_tensor,
    "__str__": format_elements,
    "__buffer__": export_buffer,
    "__bytes__": to_bytes,
    "_repr_html_": format_html,
    "__deepcopy__": deepcopy,
    "__copy__": shallow_copy,
    "__dir__": list_attributes,
    "__array_namespace__": array_namespace,
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
PROPERTIES: dict[str, Callable[[Tensor], object]] = {
    "T": reverse_axes,
    "mT": transpose_matrices,
    "at": at,
}
SETTERS: dict[str, Function] = {"shape": set_shape}


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
        function = public_function(op) if op.decl.result_type else functions[op.name]
        for name in (op.schema.name, *aliases_of(op.schema.name)):
            yield name, function
        written = functions.get(inplace.name_of_variant(op))
        if written is not None:
            for name in (op.schema.name, *aliases_of(op.schema.name)):
                yield f"{name}_", written


def attach_lazy_methods(names: Iterable[str]) -> None:
    """Attach descriptors for the methods of operators that are declared at first use."""
    for name in names:
        declare = partial(materialize, f"td::{name}")
        if not hasattr(Tensor, name):
            setattr(Tensor, name, lazy.Attribute(name, declare))
        aliases = aliases_of(name.removesuffix("_"))
        ending = "_" if aliases and name.endswith("_") else ""
        for alias in aliases:
            if not hasattr(Tensor, alias + ending):
                setattr(Tensor, alias + ending, lazy.Attribute(alias + ending, declare))


def attach_module(load: Callable[[], ModuleType], names: str) -> dict[str, Any]:
    """Attach the methods and properties of a module of ``MODULES_OF_METHODS`` to Tensor, and return them."""
    members = {name: getattr(load(), name) for name in names.split()}
    for name, member in members.items():
        setattr(Tensor, name, member)
    return members


def written_methods() -> dict[str, Any]:
    """The methods and properties that are written in Python, with those of modules that are imported now."""
    result: dict[str, Any] = {**METHODS}
    for load, names in lazy.loaders(MODULES_OF_METHODS):
        result.update(attach_module(load, names))
    for name, getter in PROPERTIES.items():
        result[name] = property(getter, doc=getter.__doc__)
    return result


def attach_operator(op: Operator) -> None:
    """Attach an operator and its in-place variant to Tensor; most variants are created at their first use."""
    if op.decl.kind == "scatter":  # indexing needs them
        inplace.make_inplace(op)
    elif inplace.wants_inplace(op):
        inplace.register_inplace_variant(op, attach_methods)
        attach_lazy_methods([f"{op.schema.name}_"])
    attach_methods(op)


def attach_methods(op: Operator) -> None:
    """Attach the methods made from an operator to Tensor."""
    for name, function in methods_of(op):
        if type(Tensor.__dict__.get(name)) is lazy.Attribute or not hasattr(Tensor, name):
            setattr(Tensor, name, function)


def attach() -> None:
    """Attach the other methods to Tensor; runs once, at import."""
    for name, method in METHODS.items():
        setattr(Tensor, name, method)
    for load, names in lazy.loaders(MODULES_OF_METHODS):
        attach_names = partial(attach_module, load, names)
        for name in names.split():
            setattr(Tensor, name, lazy.Attribute(name, attach_names))
    for name in FOREIGN_ATTRIBUTES:
        setattr(Tensor, name, ForeignAttribute(name))
    for name, getter in PROPERTIES.items():
        setattr(Tensor, name, property(getter, doc=getter.__doc__))
    for name, setter in SETTERS.items():
        setattr(Tensor, name, vars(Tensor)[name].setter(setter))
    load_subclass = partial(lazy.module, ".eager.layers.subclass")
    Tensor._make_wrapper = lazy.Attribute("_make_wrapper", load_subclass)  # type: ignore[assignment]
    Tensor.__array_priority__ = 1000.0  # type: ignore[attr-defined]
    dunders.attach()
    add_buffer_protocol(Tensor, Tensor.numpy, has_array)


on_declaration(attach_operator)
attach()
__all__ = ["asarray", "attach", "operator_methods", "rebuild"]
