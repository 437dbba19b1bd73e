"""atleast_1d, atleast_2d and atleast_3d of one tensor or of several."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...registry.native_type import accept_entry
from ..declare.array_arguments import accept_arrays
from . import stacking
from .joining import number_to_tensor

if TYPE_CHECKING:
    from ...registry.types import Tensor


def _apply_to_all(
    function: Callable[[Tensor], Tensor], tensors: tuple[Tensor, ...]
) -> Tensor | tuple[Tensor, ...]:
    return (
        function(tensors[0]) if len(tensors) == 1 else tuple([function(number_to_tensor(x)) for x in tensors])
    )


@accept_entry("map_tensors", "atleast_1d")
@accept_arrays
def atleast_1d(*tensors: Tensor) -> Tensor | tuple[Tensor, ...]:
    """The tensor with at least one axis; of several tensors a tuple.

    >>> import tandem as td
    >>> [x.shape for x in td.atleast_1d(td.asarray(3), td.ones(2))]
    [(1,), (2,)]
    """
    return _apply_to_all(stacking.atleast_1d, tensors)


@accept_entry("map_tensors", "atleast_2d")
@accept_arrays
def atleast_2d(*tensors: Tensor) -> Tensor | tuple[Tensor, ...]:
    """The tensor with at least two axes, of which new ones are in front; of several tensors a tuple.

    >>> import tandem as td
    >>> td.atleast_2d(td.ones(2)).shape
    (1, 2)
    """
    return _apply_to_all(stacking.atleast_2d, tensors)


@accept_entry("map_tensors", "atleast_3d")
@accept_arrays
def atleast_3d(*tensors: Tensor) -> Tensor | tuple[Tensor, ...]:
    """The tensor with at least three axes, new ones around the others as in NumPy; of several tensors a tuple.

    >>> import tandem as td
    >>> td.atleast_3d(td.ones(2)).shape
    (1, 2, 1)
    """
    return _apply_to_all(stacking.atleast_3d, tensors)
