"""``torch.device``, ``torch.Size`` and ``torch.memory_format``: names of devices, shapes, and orders of elements."""

from __future__ import annotations

from ..registry.values import Device

device = Device
Size: type[tuple[int, ...]] = tuple  # a shape is a tuple: torch.Size([2, 3]) == (2, 3)


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
