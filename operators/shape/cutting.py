"""array_split, vsplit, hsplit and dsplit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from ...errors import ShapeError, ValueArgumentError
from ...registry.dtypes import ALL
from ..declare.declaration import ErrorInput, TensorSample
from ..declare.kinds import composite
from ..declare.shape_rules import normalize_axis, spec_of
from .splitting import split

if TYPE_CHECKING:
    from ...registry.types import Tensor

MOST_PARTS = 2**24
"""Parts of one call, which are tensors of their own: a mistaken number would take all memory."""
_SPELLINGS = {"indices_or_sections": "sections"}


@composite(
    "array_split(Tensor(a) self, Any sections, int axis=0) -> Tensor(a)[]",
    doc="""The tensor in parts along an axis, as views, whose lengths differ by at most 1.

    Args:
        self: a tensor of at least one axis.
        sections: the number of parts, or a list of the positions to split at.
        axis: the axis to split.

    Returns:
        A tuple of tensors; the longer ones are first.

    Raises:
        ValueArgumentError: the number of parts is not positive, or more than 2**24.
        ArgumentError: ``sections`` is neither an int nor a list of ints.
        OutOfBoundsError: there is no such axis.

    >>> [x.tolist() for x in td.array_split(td.arange(5), 3)]
    [[0, 1], [2, 3], [4]]
    """,
    reference="references.numpy_functions.array_split",
    samples="samples.stacking.array_split_samples",
    errors=lambda: [
        ErrorInput((TensorSample((3,)), 0), ValueError, "positive"),
        ErrorInput((TensorSample((3,)), 2**80), ValueError, "at most"),
        ErrorInput((TensorSample((3,)), 1, 1), IndexError, "out of bounds"),
    ],
    dtypes=ALL,
    method=False,
    spellings=_SPELLINGS,
)
def array_split(self: Tensor, sections: int | Sequence[int], axis: int) -> tuple[Tensor, ...]:
    if isinstance(sections, int):
        if not 0 < sections <= MOST_PARTS:
            raise ValueArgumentError(
                f"array_split: the number of parts must be positive and at most {MOST_PARTS}, not {sections}"
            )
        shape = spec_of(self).shape
        size, longer = divmod(shape[normalize_axis("array_split", axis, len(shape))], sections)
        sections = list(accumulate([size + (at < longer) for at in range(sections - 1)]))
    return split(self, sections, axis)


def _split_axis(name: str, self: Tensor, sections: int | Sequence[int], axis: int) -> tuple[Tensor, ...]:
    rank = len(spec_of(self).shape)
    if rank <= axis:
        raise ShapeError(f"{name}: a tensor of {rank} axes; needs at least {axis + 1} axes")
    return split(self, sections, axis)


def _doc(name: str, ordinal: str, example: str) -> str:
    return f"""The tensor in parts along {ordinal}, as views.

    Args:
        self: a tensor that has the axis.
        sections: the number of equal parts, or a list of the positions to split at.

    Returns:
        A tuple of tensors.

    Raises:
        ShapeError: the tensor does not have the axis.
        ValueArgumentError: the axis cannot be split into equal parts.

    >>> [x.tolist() for x in td.{name}({example}
    """


@composite(
    "vsplit(Tensor(a) self, Any sections) -> Tensor(a)[]",
    doc=_doc("vsplit", "the first axis", "td.asarray([[1, 2], [3, 4]]), 2)]\n    [[[1, 2]], [[3, 4]]]"),
    reference="references.numpy_functions.vsplit",
    samples="samples.stacking.axis_split_samples",
    errors="samples.stacking.axis_split_errors",
    dtypes=ALL,
    spellings=_SPELLINGS,
)
def vsplit(self: Tensor, sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    if len(spec_of(self).shape) == 1:
        raise ShapeError("vsplit: a tensor of 1 axes; needs at least 2 axes")
    return _split_axis("vsplit", self, sections, 0)


@composite(
    "hsplit(Tensor(a) self, Any sections) -> Tensor(a)[]",
    doc=_doc("hsplit", "the second axis, or a vector's only one", "td.asarray([1, 2]), 2)]\n    [[1], [2]]"),
    reference="references.numpy_functions.hsplit",
    samples="samples.stacking.axis_split_samples",
    errors="samples.stacking.axis_split_errors",
    dtypes=ALL,
    spellings=_SPELLINGS,
)
def hsplit(self: Tensor, sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    return _split_axis("hsplit", self, sections, 0 if len(spec_of(self).shape) == 1 else 1)


@composite(
    "dsplit(Tensor(a) self, Any sections) -> Tensor(a)[]",
    doc=_doc("dsplit", "the third axis", "td.asarray([[[1, 2]]]), 2)]\n    [[[[1]]], [[[2]]]]"),
    reference="references.numpy_functions.dsplit",
    samples="samples.stacking.axis_split_samples",
    errors=lambda: [ErrorInput((TensorSample((2, 2)), 2), ValueError, "axes")],
    dtypes=ALL,
    spellings=_SPELLINGS,
)
def dsplit(self: Tensor, sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    return _split_axis("dsplit", self, sections, 2)
