"""``torch.device``, ``torch.Size`` and ``torch.memory_format``: names of devices, shapes, and orders of elements."""

from __future__ import annotations

from ..errors import ArgumentError
from ..registry.schemas.binding import to_device_name

Size: type[tuple[int, ...]] = tuple  # a shape is a tuple: torch.Size([2, 3]) == (2, 3)


class device(str):
    """The name of a device, a str, with PyTorch's attributes.

    Args:
        type: ``"cpu"``, ``"cuda"``, ``"meta"``, with an index as in ``"cuda:1"`` or without.
        index: the number of the device, if ``type`` has none.

    Raises:
        DeviceError: the device does not exist.
        ArgumentError: the index is given twice.

    >>> import tandem.torch as torch
    >>> torch.device("cuda", 1), torch.device("cuda:1").type, torch.device("cuda:1").index
    ('cuda:1', 'cuda', 1)
    """

    __slots__ = ()

    def __new__(cls, type: str | int, index: int | None = None) -> device:
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


class memory_format(str):
    """The name of an order of elements in memory, which functions accept; all tensors that they make are row-major.

    >>> import tandem.torch as torch
    >>> torch.ones(1, 2, 3, 3).contiguous(memory_format=torch.channels_last).stride()
    (18, 9, 3, 1)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"torch.{self}"


contiguous_format, preserve_format = memory_format("contiguous_format"), memory_format("preserve_format")
channels_last, channels_last_3d = memory_format("channels_last"), memory_format("channels_last_3d")
