"""Layouts: how a tensor's elements are stored."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError, ValueArgumentError
from .text import shown


class Layout(str):
    """A layout by its name; equal to the string.

    >>> import tandem as td
    >>> td.zeros(3).layout, td.sparse_csr == "sparse_csr"
    (tandem.strided, True)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"tandem.{self}"


strided = Layout("strided")
sparse_coo = Layout("sparse_coo")
sparse_csr = Layout("sparse_csr")
LAYOUTS: dict[str, Layout] = {layout: layout for layout in (strided, sparse_coo, sparse_csr)}


def as_layout(value: Any) -> Layout:
    """The layout of a name.

    Raises:
        ArgumentError: it is no string.
        ValueArgumentError: no layout has that name.
    """
    if not isinstance(value, str):
        raise ArgumentError(f"a layout is td.strided, td.sparse_coo or td.sparse_csr, not {shown(value)}")
    found = LAYOUTS.get(value)
    if found is None:
        raise ValueArgumentError(f"unknown layout {value!r}; the layouts are {', '.join(LAYOUTS)}")
    return found
