"""The Array API standard's protocol: ``x.__array_namespace__()``, its inspection functions, ``x.to_device``.

Source: the Array API standard 2025.12, sections "Inspection" and "Device support".
"""

from __future__ import annotations

import sys
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

from .... import lazy
from ....errors import ArgumentError, ValueArgumentError
from ....operators.declare import shape_rules
from ....registry import dtypes as known
from ....registry.dtype_functions import isdtype
from ....registry.dtypes import DEFAULT_INT, DType, default_complex, default_float
from ....registry.values import MAX_RANK, describe
from ..construct import check_device, move_to_device

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ..tensor import Tensor

_cuda = lazy.Module(".backends.cuda.public")
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
_DTYPES: tuple[DType, ...] = (
    known.bool_,
    *(known.int8, known.int16, known.int32, known.int64),
    *(known.uint8, known.uint16, known.uint32, known.uint64),
    *(known.float32, known.float64, known.complex64, known.complex128),
)


def find_namespace(api_version: str | None) -> ModuleType:
    """The module ``tandem``, for a version of the standard; see :func:`..methods.array_namespace`.

    A version before 2025.12 differs in one thing: ``__array_namespace_info__().devices()`` returns a list.
    """
    if api_version not in (None, *VERSIONS):
        raise ValueArgumentError(
            f"__array_namespace__: api_version must be one of {', '.join(VERSIONS)}, not {api_version!r}"
        )
    newest = sys.modules[lazy.__package__]
    return newest if api_version in (None, VERSIONS[-1]) else _make_earlier_namespace(newest, api_version)


class _EarlierNamespace(ModuleType):
    """The module ``tandem`` for an earlier version of the standard: it has the attributes of the module."""

    newest: ModuleType

    def __getattr__(self, name: str) -> object:
        return getattr(self.newest, name)

    def __dir__(self) -> list[str]:
        return dir(self.newest)


@cache
def _make_earlier_namespace(newest: ModuleType, version: str) -> ModuleType:
    earlier = _EarlierNamespace(newest.__name__, newest.__doc__)
    vars(earlier).update(
        newest=newest, __array_api_version__=version, __array_namespace_info__=_EarlierNamespaceInfo
    )
    return earlier


def to_device(
    self: Tensor, device: str, /, *, stream: AbstractContextManager[object] | None = None
) -> Tensor:
    """Move the tensor to a device; return the tensor itself if it is there.

    Args:
        device: the device.
        stream: the ``td.cuda.Stream`` that copies to or from a CUDA device; None: the current one.

    Raises:
        DeviceError: the device is unknown or unavailable.
        ArgumentError: ``stream`` is not a stream, or neither device is a CUDA device.
    """
    target = check_device(device)
    if stream is None:
        return move_to_device(self, target)
    if not hasattr(stream, "__enter__") or not any("cuda" in str(name) for name in (target, self.device)):
        raise ArgumentError(
            f"to_device: stream is a td.cuda.Stream for copies to or from CUDA, not {describe(stream)}"
        )
    with stream:
        return move_to_device(self, target)


class __array_namespace_info__:
    """Inspection of the namespace, as in the Array API standard.

    >>> import tandem as td
    >>> td.__array_namespace_info__().default_device()
    'cpu'
    """

    def capabilities(self) -> dict[str, bool | int]:
        """The optional behaviours: boolean indexing, results whose shape depends on data, the most axes."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": MAX_RANK}

    def default_device(self) -> str:
        """The device of new tensors."""
        return "cpu"

    def default_dtypes(self, *, device: str | None = None) -> dict[str, DType]:
        """The dtypes of results where none is given, by kind; the same on all devices."""
        check_device(device)
        return {
            "real floating": default_float(),
            "complex floating": default_complex(),
            "integral": DEFAULT_INT,
            "indexing": DEFAULT_INT,
        }

    def dtypes(
        self, *, device: str | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, DType]:
        """The dtypes of the standard by name.

        Args:
            device: a device; the dtypes are the same on all.
            kind: a kind of :func:`tandem.isdtype`, or a tuple of them; None for all.

        Raises:
            ValueArgumentError: there is no such kind.
        """
        check_device(device)
        return {dtype.name: dtype for dtype in _DTYPES if kind is None or isdtype(dtype, kind)}

    def devices(self) -> tuple[str, ...]:
        """The devices that can hold data."""
        return ("cpu", *(f"cuda:{index}" for index in range(_cuda.device_count())))


class _EarlierNamespaceInfo(__array_namespace_info__):
    """Inspection of the namespace before the version 2025.12 of the standard."""

    def devices(self) -> list[str]:  # type: ignore[override]
        """The devices that can hold data, as a list."""
        return list(super().devices())


def broadcast_shapes(*shapes: int | tuple[int, ...]) -> tuple[int, ...]:
    """The shape that shapes broadcast to.

    Args:
        shapes: tuples of ints; an int means one axis.

    Raises:
        ShapeError: the shapes do not broadcast.

    >>> import tandem as td
    >>> td.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    tuples = [(shape,) if isinstance(shape, int) else tuple(shape) for shape in shapes]
    checked = [shape_rules.check_shape("broadcast_shapes", shape) for shape in tuples]
    return shape_rules.broadcast_shapes("broadcast_shapes", *checked)
