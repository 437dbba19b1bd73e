"""Tensor subclasses that handle operators themselves, and the kernel of the Python key.

Such a class has a method ``__tandem_dispatch__`` and creates its tensors with ``Tensor._make_wrapper``: they have a
shape, a dtype and a device but no memory; their contents are in their attributes. Operator calls reach the
class below autograd and autocast, so gradients are recorded above it.

Source: ``__torch_dispatch__`` and ``Tensor._make_wrapper_subclass`` of PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ...errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from ...operators.declare.declaration import LIBRARY
from ...registry.dispatch.guards import adjust_keys
from ...registry.dispatch.keys import AUTOCAST, AUTOGRAD, BACKEND_OF_DEVICE, BACKENDS, DispatchKey, below
from ...registry.dtypes import as_dtype, float32
from ...registry.operator import Operator
from ...registry.values import Device, as_device, to_device_name
from ..autograd.autograd_meta import make_leaf
from ..tensor.results import flat
from ..tensor.tensor import EAGER, Tensor, storage_of
from .dispatch_mode import PYTHON, handle, innermost, overriding
from .levels import LevelTensor, below_autograd

if TYPE_CHECKING:
    from ...registry.types import Args, DTypeLike, Kwargs

BELOW = below(DispatchKey.Python)
# Calls by a mode below autograd are not recorded, or cast, a second time.
ABOVE = AUTOGRAD | 1 << DispatchKey.ADInplaceOrView | AUTOCAST


# -- the kernel --------------------------------------------------------------------------------------------------------
def python_kernel(op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> object:
    """Pass a call to a mode opened below autograd, else to the classes of its tensors; the fallback of the Python key.

    Composites are decomposed first, so that handlers see the same operators whether gradients are recorded or not.
    """
    if is_decomposed(op, keyset):
        return op.dispatch(keyset & BELOW, args, kwargs)
    position = innermost(op, PYTHON)
    if position is not None:
        with adjust_keys(exclude=ABOVE):
            return handle(position, PYTHON, op, args, kwargs)
    if any(isinstance(item, LevelTensor) for item in flat((args, tuple(kwargs.values())))):
        return below_autograd(op, args, kwargs)
    types = overriding(args, kwargs)
    if not types:
        return op.dispatch(keyset & BELOW, args, kwargs)
    return _call_handlers(op, types, args, kwargs)


def is_decomposed(op: Operator, keyset: int) -> bool:
    """Whether the kernel below is the body of a composite."""
    if op.registered("CompositeImplicit") is None:
        return False
    bits = keyset & BACKENDS
    return bool(bits) and op.table[bits.bit_length() - 1].kind == "composite_implicit"


def _call_handlers(op: Operator, types: tuple[type, ...], args: Args, kwargs: Kwargs) -> object:
    for kind in types:
        handler = getattr(kind, "__tandem_dispatch__", None)
        if handler is None:
            raise UnsupportedError(
                f"{op.name} was called with a {kind.__name__}, and that class has no __tandem_dispatch__; add "
                "@classmethod def __tandem_dispatch__(cls, op, types, args, kwargs)"
            )
        result = handler(op, types, args, kwargs)
        if result is not NotImplemented:
            return op.contract.checked(result, f"{kind.__name__}.__tandem_dispatch__")
    names = ", ".join(kind.__name__ for kind in types)
    raise ArgumentError(
        f"{op.name}: no class among the arguments handles the call; __tandem_dispatch__ of {names} returned "
        "NotImplemented"
    )


# -- tensors without memory --------------------------------------------------------------------------------------------
class _Flags:
    c_contiguous = writeable = True


class ArrayPlaceholder:
    """Placeholder for the ndarray of a tensor without memory: has a shape and a dtype, raises for its elements."""

    __slots__ = ("device", "dtype", "of", "shape")
    base = None
    flags = _Flags

    def __init__(self, of: type, shape: tuple[int, ...], dtype: np.dtype[Any], device: str):
        self.of, self.shape, self.dtype, self.device = of, shape, dtype, device

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes that the elements would take."""
        return math.prod(self.shape) * self.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes to step over, in row-major order."""
        sizes = [max(size, 1) for size in self.shape]
        return tuple(math.prod(sizes[i + 1 :]) * self.itemsize for i in range(len(sizes)))

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        self.refuse(f"the array's {name}")

    def __array__(self, *args: object, **kwargs: object) -> NoReturn:
        self.refuse("the elements")

    def refuse(self, what: str) -> NoReturn:
        """Raise the error for an access to memory that does not exist."""
        raise UnsupportedError(
            f"{what}: a {self.of.__name__} has no memory of its own; use the contents in its attributes, or "
            f"handle the operator in {self.of.__name__}.__tandem_dispatch__"
        )


# Members for classes that do not define them: those of Tensor would access memory.
def _device(self: Tensor) -> Device:
    """The device given to ``_make_wrapper``."""
    return as_device(self._array.device)


def _host(self: Tensor, what: str) -> NoReturn:
    placeholder: ArrayPlaceholder = self._array
    placeholder.refuse(what)


def _describe(self: Tensor) -> str:
    grad = ", requires_grad=True" if self.requires_grad else ""
    return f"<{type(self).__name__} {self.spec}{grad}>"


def _alias(self: Tensor) -> Tensor:
    """Another object with the same attributes, without a graph node."""
    tensor = object.__new__(type(self))
    for name in _slots_of(type(self)):
        if hasattr(self, name):
            setattr(tensor, name, getattr(self, name))
    if hasattr(tensor, "__dict__"):
        tensor.__dict__.update(self.__dict__)
    tensor._storage = storage_of(self)
    tensor._meta, tensor._keys = None, self._keys & ~AUTOGRAD
    return tensor


def _slots_of(kind: type) -> list[str]:
    """The names of all slots of a class."""
    names: list[str] = []
    for base in kind.__mro__:
        slots: str | Sequence[str] = base.__dict__.get("__slots__", ())
        names += (slots,) if isinstance(slots, str) else slots
    return [name for name in names if not name.startswith("__")]


_DEFAULTS: dict[str, object] = {
    "device": property(_device),
    "_host": _host,
    "_alias": _alias,
    "_without_history": _alias,
    "__repr__": _describe,
    "__str__": _describe,
}


def _prepare(kind: object) -> None:
    """Check a class at its first tensor and set the members that a tensor without memory needs."""
    if not isinstance(kind, type) or not issubclass(kind, Tensor) or kind is Tensor:
        raise ArgumentError(f"_make_wrapper takes a class derived from Tensor, not {kind!r}")
    if not callable(getattr(kind, "__tandem_dispatch__", None)):
        raise ArgumentError(
            f"_make_wrapper: {kind.__name__} needs @classmethod def __tandem_dispatch__(cls, op, types, args, kwargs)"
        )
    for name, value in _DEFAULTS.items():
        if getattr(kind, name) is getattr(Tensor, name):
            setattr(kind, name, value)
    EAGER.add(kind)


def make_wrapper(
    cls: type[Tensor],
    shape: Sequence[int],
    dtype: DTypeLike = float32,
    device: str = "cpu",
    *,
    requires_grad: bool = False,
) -> Any:
    """Create a tensor of a class that handles operators itself: a shape, a dtype and a device, without memory.

    Its contents are stored in attributes. Called from the ``__new__`` of the class.

    Args:
        cls: the class; it is derived from Tensor and has ``__tandem_dispatch__``.
        shape: its shape.
        dtype: its dtype.
        device: its device.
        requires_grad: whether operations on it are recorded, above the class.

    Returns:
        The tensor.

    Raises:
        ArgumentError: the class is not derived from Tensor, or lacks ``__tandem_dispatch__``.
        ShapeError: a size is negative.
        DTypeError: ``requires_grad`` with an integer or boolean dtype.

    >>> import tandem as td
    >>> class Doubled(td.Tensor):
    ...     def __new__(cls, half):
    ...         self = td.Tensor._make_wrapper(cls, half.shape, half.dtype)
    ...         self.half = half
    ...         return self
    ...     @classmethod
    ...     def __tandem_dispatch__(cls, op, types, args, kwargs):
    ...         return op(*[x.half * 2 if isinstance(x, cls) else x for x in args], **kwargs)
    >>> Doubled(td.asarray([1.0, 2.0])) + 1
    tensor([3., 5.])
    """
    if cls not in EAGER or cls is Tensor:
        _prepare(cls)
    sizes = tuple(int(size) for size in shape)
    if any(size < 0 for size in sizes):
        raise ShapeError(f"_make_wrapper: sizes are not negative, and the shape is {sizes}")
    kind, name = as_dtype(dtype), to_device_name(device)
    if requires_grad and not kind.is_inexact:
        raise DTypeError(
            f"_make_wrapper: a {kind} tensor cannot require a gradient; use a floating-point dtype"
        )
    tensor = object.__new__(cls)
    tensor._array = ArrayPlaceholder(cls, sizes, np.dtype(kind.np), name)
    tensor._keys = PYTHON | 1 << BACKEND_OF_DEVICE[name.partition(":")[0]]
    tensor._meta = tensor._storage = None
    return make_leaf(tensor) if requires_grad else tensor


Tensor._make_wrapper = staticmethod(make_wrapper)
LIBRARY.fallback(python_kernel, DispatchKey.Python)
