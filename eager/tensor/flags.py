"""``x.flags``: layout and writability of the memory, with the names of NumPy."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import ArgumentError

# NumPy's abbreviations.
_SHORT = {"C": "c_contiguous", "F": "f_contiguous", "W": "writeable", "A": "aligned", "O": "owndata"}


class MemoryFlags:
    """The flags of a tensor without an ndarray, with NumPy's names as attributes and as keys.

    Args:
        shape: the lengths of the axes.
        strides: elements to step over, per axis.
        owns_data: whether no other tensor shares the memory.

    >>> from tandem.eager.tensor.flags import MemoryFlags
    >>> flags = MemoryFlags((2, 3), (1, 2), True)
    >>> flags.c_contiguous, flags["F_CONTIGUOUS"], flags["W"]
    (False, True, True)
    """

    __slots__ = ("aligned", "c_contiguous", "f_contiguous", "owndata", "writeable", "writebackifcopy")

    def __init__(self, shape: Sequence[int], strides: Sequence[int], owns_data: bool):
        self.c_contiguous = _is_dense(shape[::-1], strides[::-1])
        self.f_contiguous = _is_dense(shape, strides)
        self.owndata = owns_data
        self.writeable = all(step or size < 2 for size, step in zip(shape, strides))
        self.aligned, self.writebackifcopy = True, False

    contiguous = property(lambda self: self.c_contiguous, doc="Whether the elements are in row-major order.")
    fortran = property(lambda self: self.f_contiguous, doc="Whether the elements are in column-major order.")
    forc = property(
        lambda self: self.c_contiguous or self.f_contiguous, doc="Whether there are no gaps between elements."
    )
    fnc = property(
        lambda self: self.f_contiguous and not self.c_contiguous,
        doc="Whether only the order of Fortran holds.",
    )

    def __getitem__(self, key: str) -> bool:
        name = _SHORT.get(key, str(key).lower())
        if name not in self.__slots__:
            raise ArgumentError(f"x.flags has {', '.join(map(str.upper, self.__slots__))}, not {key!r}")
        return bool(getattr(self, name))

    def __repr__(self) -> str:
        return "\n".join(f"  {name.upper()} : {getattr(self, name)}" for name in self.__slots__)


def _is_dense(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements follow each other in memory, the first axis the fastest."""
    step = 1
    for size, stride in zip(sizes, strides):
        if size != 1 and stride != step:
            return 0 in sizes
        step *= size
    return True
