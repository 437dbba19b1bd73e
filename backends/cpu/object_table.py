"""Tables of constants and Python objects that compiled code uses."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ...lowering.lower import Lowered
from ...lowering.thunks import NodeThunk
from ...named_tuple import NamedTuple
from .bounds import OutOfBoundsReport
from .callback import make_callback


class EmbeddedBody(NamedTuple):
    """A graph whose code is a function of the module: the entries of its own table of objects."""

    lowered: Lowered
    items: list[TableItem]


TableItem = NodeThunk | EmbeddedBody | OutOfBoundsReport


class ObjectTable:
    """The table of addresses passed to code in addition to its arguments: constants' data, then callbacks.

    The code itself refers to neither, so that equal graphs share it. The executable keeps this object alive.
    """

    def __init__(self, constants: list[Any], callables: list[Any]):
        self.arrays = [np.ascontiguousarray(tensor._array) for tensor in constants]
        self.callables = callables
        objects = (c.address if isinstance(c, ObjectTable) else id(c) for c in callables)
        addresses = [*(a.__array_interface__["data"][0] for a in self.arrays), *objects]
        self.words = (ctypes.c_void_p * max(len(addresses), 1))(*addresses)

    @property
    def address(self) -> int:
        """The address of the table."""
        return ctypes.addressof(self.words)


def make_object_table(body: EmbeddedBody) -> ObjectTable:
    """Return the table of a graph's constants and callables."""
    tensors = [tensor for _, tensor in body.lowered.folded]
    return ObjectTable(tensors, [_make_table_object(item) for item in body.items])


def _make_table_object(item: TableItem) -> Any:
    """Return the entry of the table of objects for a callback, a bounds check or the body of a loop."""
    if isinstance(item, EmbeddedBody):
        return make_object_table(item)
    return item.report if isinstance(item, OutOfBoundsReport) else make_callback(item)
