"""Index specs: how an operator reads or writes elements at integer positions, which lowering compiles from.

The first arguments of such an operator are a tensor and index tensors for consecutive axes, then the value that is
written, if it writes, and the first indexed axis. The result of a read, and the value, have the broadcast shape of the
indices in the place of the indexed axes.
"""

from __future__ import annotations

from collections.abc import Callable

from ...named_tuple import NamedTuple


class IndexSpec(NamedTuple):
    """The access of an operator at integer positions.

    Attributes:
        writes: whether the operator returns a copy with written elements; otherwise it returns the elements.
        combine: from the operator's keyword arguments to the node of the scalar IR that combines the old element with
            the value; an empty string if the value replaces it.
    """

    writes: bool = False
    combine: Callable[..., str] = lambda: ""
