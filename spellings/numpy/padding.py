"""``pad`` with a function of the caller, as NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ValueArgumentError
from ..operators.declare.shape_rules import normalize_axis, spec_of
from ..operators.shape import padding
from ..operators.shape.rearrange import moveaxis
from .array_likes import name_operator

if TYPE_CHECKING:
    from ..registry.types import Tensor

    Width = int | Sequence[Any] | Mapping[int, Any]


@name_operator(padding.pad)
def pad(
    array: Tensor,
    pad_width: Width,
    mode: str | Callable[..., Any] = "constant",
    **options: Any,  # noqa: ANN401
) -> Tensor:
    """A tensor with elements before and after those along each axis.

    Args:
        array: a tensor of any dtype and shape.
        pad_width: how many elements: one number, a pair, a pair for each axis, or a dict of axes.
        mode: one of the modes of ``td.pad``; or a function ``f(vector, width, axis, options)``, which writes into each
            vector along each axis of the padded tensor, a view of it.
        options: those of the mode, such as ``constant_values``; or the last argument of the function.

    >>> import tandem.numpy as np
    >>> def write_ends(vector, width, axis, options):
    ...     vector[: width[0]] = vector[len(vector) - width[1] :] = options["value"]
    >>> np.pad([1, 2], 1, write_ends, value=7).tolist()
    [7, 1, 2, 7]

    Source: ``numpy.pad``.
    """
    if not callable(mode):
        return padding.pad(array, pad_width, mode, **options)
    widths = _find_widths(pad_width, len(spec_of(array).shape))
    result = padding.pad(array, widths, "constant")
    for axis, width in enumerate(widths):
        rows = moveaxis(result, axis, -1)
        for index in np.ndindex(*spec_of(rows).shape[:-1]):
            mode(rows[index], width, axis, options)
    return result


def _find_widths(pad_width: Width, rank: int) -> list[tuple[int, int]]:
    """The numbers of elements before and after those of each axis."""
    if isinstance(pad_width, Mapping):
        chosen = {normalize_axis("pad", axis, rank): np.broadcast_to(w, 2) for axis, w in pad_width.items()}
        pairs = [chosen.get(axis, (0, 0)) for axis in range(rank)]
    else:
        try:
            pairs = list(np.broadcast_to(np.asarray(pad_width), (rank, 2)))
        except ValueError:
            raise ValueArgumentError(f"pad: widths {pad_width} do not fit {rank} axes") from None
    return [(int(before), int(after)) for before, after in pairs]
