"""``torch.device`` and ``torch.Size``: names of devices, and shapes."""

from __future__ import annotations

from ..registry.values import Device

device = Device
Size: type[tuple[int, ...]] = tuple  # a shape is a tuple: torch.Size([2, 3]) == (2, 3)
