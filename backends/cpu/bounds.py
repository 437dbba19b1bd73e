"""Errors of compiled bounds checks."""

from __future__ import annotations

import ctypes

from ...errors import OutOfBoundsError
from ...named_tuple import NamedTuple
from .codegen.index_maps import Check


class OutOfBoundsReport(NamedTuple):
    """Raises the error of a kernel's failed bounds check.

    Attributes:
        checks: the checks of the kernel.
    """

    checks: tuple[Check, ...]

    def report(self, address: int) -> None:
        """Raise the error that the kernel's status describes.

        Args:
            address: of the status: the number of the failed check plus one, and the index.

        Raises:
            OutOfBoundsError: always.
        """
        number, index = (ctypes.c_int64 * 2).from_address(address)
        index_map, axis = self.checks[number - 1]
        raise OutOfBoundsError(
            f"{index_map.op}: index {index} is out of bounds for axis {axis.axis} with size {axis.size} "
            f"(shape {index_map.shape})"
        )
