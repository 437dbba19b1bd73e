"""Tensor layouts: strided, sparse COO and sparse CSR."""

from __future__ import annotations

from ..errors import ArgumentError, ValueArgumentError
from .formatting import short_repr


class Layout(str):
    """A layout: a string that prints as ``tandem.<name>``.

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


def as_layout(value: object) -> Layout:
    """Convert a name to a layout.

    Raises:
        ArgumentError: the name is not a string.
        ValueArgumentError: no layout has that name.
    """
    if not isinstance(value, str):
        raise ArgumentError(
            f"a layout is td.strided, td.sparse_coo or td.sparse_csr, not {short_repr(value)}"
        )
    result = LAYOUTS.get(value)
    if result is None:
        raise ValueArgumentError(f"unknown layout {value!r}; the layouts are {', '.join(LAYOUTS)}")
    return result
