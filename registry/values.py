"""Base types of arguments: TensorBase, Device, TensorSpec, conversions to tensors, and descriptions for messages."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError, DeviceError
from ..named_tuple import NamedTuple
from .dispatch.keys import BACKEND_OF_DEVICE
from .dispatch.state import state
from .dtypes import DType
from .formatting import short_repr

if TYPE_CHECKING:
    from .dims import Dim
    from .operator import Operator
    from .types import Args, Kwargs, Tensor


class TensorBase:
    """Base class of the tensor classes; the registry reads only the key set ``_keys`` of an instance."""

    __slots__ = ()
    _keys: int


def to_device_name(value: object) -> str:
    """Check the name of a device: ``cpu``, ``meta``, ``cuda`` or ``cuda:1``.

    Raises:
        DeviceError: the device does not exist.
    """
    name = str(value)
    kind, colon, index = name.partition(":")
    if not isinstance(value, str) or kind not in BACKEND_OF_DEVICE or (colon and not index.isdigit()):
        raise DeviceError(
            f"unknown device {value!r}; the devices are {', '.join(BACKEND_OF_DEVICE)} and cuda:<index>"
        )
    return name


class Device(str):
    """The name of a device, a str, with PyTorch's attributes; ``x.device`` is one for a tensor of any class.

    Args:
        type: ``"cpu"``, ``"cuda"``, ``"meta"``, with an index as in ``"cuda:1"`` or without.
        index: the number of the device, if ``type`` has none.

    Raises:
        DeviceError: the device does not exist.
        ArgumentError: the index is given twice.

    >>> import tandem as td
    >>> device = td.zeros(2).device
    >>> device, device == "cpu", device.type, device.index
    ('cpu', True, 'cpu', None)
    """

    __slots__ = ()

    def __new__(cls, type: str | int, index: int | None = None) -> Device:
        """Check the name and join its parts."""
        name = f"cuda:{type}" if isinstance(type, int) else type
        if index is not None and isinstance(name, str) and ":" in name:
            raise ArgumentError(f"device: {name!r} has an index already, and index={index} is given")
        return super().__new__(cls, to_device_name(name if index is None else f"{name}:{index}"))

    @property
    def type(self) -> str:
        """The name without the index."""
        return self.partition(":")[0]

    @property
    def index(self) -> int | None:  # type: ignore[override]  # str.index, which PyTorch's class lacks
        """The number of the device; None if the name has none."""
        number = self.partition(":")[2]
        return int(number) if number else None

    def __reduce__(self) -> tuple[Callable[[str], Device], tuple[str]]:
        """Pickle the name without a check: its backend may be registered later."""
        return as_device, (str(self),)


_devices: dict[str, Device] = {}


def as_device(name: str) -> Device:
    """The device with the name of a tensor's memory, which is not checked."""
    device = _devices.get(name)
    if device is None:
        device = _devices[name] = str.__new__(Device, name)
    return device


def make_device_getter(get_name: Callable[[Any], str]) -> Callable[[Any], Device]:
    """Make the getter of an attribute ``device`` from one that returns the name."""
    return lambda self: as_device(get_name(self))


ALIGNMENT = 64  # of buffers in a workspace, in bytes
# The most axes that an array of NumPy can have.
MAX_RANK = 64


class TensorSpec(NamedTuple):
    """Shape, dtype and device of a tensor without its data; shape rules take and return these."""

    shape: tuple[Dim, ...]
    dtype: DType
    device: str = "cpu"

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> Dim:
        """Number of elements."""
        return math.prod(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"


# The types of Python scalars, narrowest first.
SCALARS = (bool, int, float, complex)

# type -> function that converts such a value to a tensor where a schema says Tensor (ndarray, np.generic, ...).
converters: dict[type, Callable[[Any], Tensor]] = {}

# Types of traced Python numbers -> function that converts an instance to a 0-d tensor. Instances have the attribute
# ``python_type``, the number's type.
traced_number_types: dict[type, Callable[[Any], Tensor]] = {}

# Called with tensors that are made of numbers while keys are included in calls, as during a trace.
number_listeners: list[Callable[[Tensor], None]] = []


def note_number(x: Tensor) -> None:
    """Tell the listeners of a new tensor that was made of a number: a traced function has its value as a constant."""
    if state.include:
        for listener in number_listeners:
            listener(x)


_DEPTH = 4  # of nested lists; one may hold itself


def describe(value: object, depth: int = 0) -> str:
    """A short description of an argument for error messages: ``float32[3,4]``, ``[float32[2], 1]``, ``'x'``."""
    if isinstance(value, (TensorBase, TensorSpec)):
        shape, dtype = getattr(value, "shape", ()), getattr(value, "dtype", "?")
        return f"{dtype}[{','.join(map(str, shape))}]"
    if isinstance(value, (list, tuple)):
        if depth == _DEPTH:
            return "[...]"
        items = [describe(item, depth + 1) for item in value[:4]]
        return f"[{', '.join(items)}{', ...' if len(value) > 4 else ''}]"
    if type(value) is int and value.bit_length() > 300:
        return f"int of {value.bit_length()} bits"  # Python refuses to print the largest
    text = short_repr(value)
    return f"{type(value).__name__} {text if len(text) <= 40 else text[:37] + '...'}"


def tensors_of(op: Operator, args: Args, kwargs: Kwargs) -> list[Any]:
    """The tensors among the arguments of a bound call."""
    binder = op.binder
    values = [args[index] for index, _ in binder.tensor_positions]
    values += [kwargs[name] for name in binder.tensor_keywords]
    flat = [item for value in values for item in (value if isinstance(value, (tuple, list)) else (value,))]
    return [value for value in flat if isinstance(value, TensorBase)]


def align_up(nbytes: Dim) -> Dim:
    """The next multiple of the alignment; at least one, so that buffers are distinct."""
    if not isinstance(nbytes, int):
        return nbytes.round_up(ALIGNMENT) if nbytes > 0 else ALIGNMENT
    return max(-(-nbytes // ALIGNMENT), 1) * ALIGNMENT
