"""choose, select and piecewise: elements of several tensors, chosen by indices or by conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...errors import DTypeError, ValueArgumentError
from ...registry.dtypes import ALL, INTEGERS, bool_, int64
from ..creation.creation import full
from ..declare.array_arguments import accept_arrays
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.shape_rules import broadcast_shapes, is_tensor, spec_of
from ..elementwise.casting import cast
from ..elementwise.comparison import lt
from ..elementwise.selection import clip, where
from ..shape.joining import numbers_to_tensors, stack, unstack
from ..shape.rearrange import expand_dims, squeeze
from ..shape.views import broadcast_to
from .take import take_along_axis

if TYPE_CHECKING:
    from ...registry.types import Function, Number, Tensor

MODES = ("raise", "wrap", "clip")


def bound_indices(name: str, indices: Tensor, size: int, mode: str) -> Tensor:
    """Indices as int64 that are out of bounds only with the mode ``"raise"``, and then not negative.

    Raises:
        DTypeError: the indices are not integers.
        ValueArgumentError: another mode.
    """
    dtype = spec_of(indices).dtype
    if not dtype.is_integer and dtype is not bool_:
        raise DTypeError(f"{name}: indices are integers, not {dtype}")
    if mode not in MODES:
        raise ValueArgumentError(f"{name}: mode is 'raise', 'wrap' or 'clip', not {mode!r}")
    wide = cast(indices, int64)
    if mode == "raise":
        return where(lt(wide, 0), size, wide)
    return wide % size if mode == "wrap" else clip(wide, 0, size - 1)


@composite(
    "choose(Tensor self, Tensor[] choices, str mode='raise') -> Tensor",
    doc=make_docstring(
        "For each element, an index, the element of the choice with that index.",
        """Args:
    self: a tensor of integers.
    choices: a list of tensors and numbers, whose shapes broadcast with that of ``self``.
    mode: an index out of bounds ``"raise"``s an error, ``"wrap"``s around, or is ``"clip"``ped.

Returns:
    A new tensor of the broadcast shape and the promoted dtype of the choices.

Raises:
    OutOfBoundsError: an index is out of bounds.
    DTypeError: the indices are not integers.
    ShapeError: the shapes do not broadcast.
    ValueArgumentError: there are no choices, or the mode is another one.""",
        "td.choose(td.asarray([1, 0]), [td.asarray([1, 2]), td.asarray([3, 4])]) -> [3, 2]",
    ),
    reference="references.numpy_functions.choose",
    samples="samples.indexing.choose_samples",
    errors="samples.indexing.choose_errors",
    dtypes=INTEGERS,
    method=False,
    spellings={"a": "self"},
)
def choose(self: Tensor, choices: Sequence[Tensor], mode: str) -> Tensor:
    if not choices:
        raise ValueArgumentError("choose: needs at least one choice")
    shape = broadcast_shapes("choose", *(spec_of(one).shape for one in (self, *choices)))
    indices = broadcast_to(bound_indices("choose", self, len(choices), mode), shape)
    rows = stack([broadcast_to(one, shape) for one in numbers_to_tensors(choices)], 0)
    return squeeze(take_along_axis(rows, expand_dims(indices, 0), 0), 0)


@composite(
    "select(Tensor[] condlist, Tensor[] choicelist, Tensor? default=None) -> Tensor",
    doc=make_docstring(
        "For each element, the element of the first choice whose condition is true.",
        """Args:
    condlist: a list of tensors of bools.
    choicelist: a list of as many tensors and numbers; the shapes broadcast.
    default: the elements where no condition is true; None: 0.

Returns:
    A new tensor of the broadcast shape and the promoted dtype of the choices and the default.

Raises:
    ValueArgumentError: there are no conditions, or the lists differ in length.
    DTypeError: a condition does not consist of bools.
    ShapeError: the shapes do not broadcast.""",
        "td.select([td.asarray([True, False])], [td.asarray([1, 2])], 7) -> [1, 7]",
    ),
    reference="references.numpy_functions.select",
    samples="samples.indexing.select_samples",
    errors="samples.indexing.select_errors",
    dtypes=ALL,
    method=False,
)
def select(condlist: Sequence[Tensor], choicelist: Sequence[Tensor], default: Tensor | None) -> Tensor:
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueArgumentError(
            f"select: needs as many choices as conditions, and at least one; not {len(condlist)} conditions and "
            f"{len(choicelist)} choices"
        )
    for condition in condlist:
        if spec_of(condition).dtype is not bool_:
            raise DTypeError(f"select: a condition has bools, not {spec_of(condition).dtype}")
    choices: list[Tensor] = [*numbers_to_tensors([*choicelist, 0 if default is None else default])]
    result = choices.pop()
    for condition, choice in zip(reversed(condlist), reversed(choices)):
        result = where(condition, choice, result)
    return result


def _split_conditions(x: Tensor, condlist: Sequence[Tensor] | Tensor) -> Sequence[Tensor]:
    """A list of conditions: of one condition, or of the rows of a tensor of one more axis."""
    if isinstance(condlist, Sequence):
        return list(condlist)
    return unstack(condlist, 0) if len(spec_of(condlist).shape) > len(spec_of(x).shape) else [condlist]


@accept_arrays
def piecewise(
    x: Tensor,
    condlist: Sequence[Tensor] | Tensor,
    funclist: Sequence[Function | Number],
    *args: object,
    **kwargs: object,
) -> Tensor:
    """A function that is defined in pieces: for each element, the last function whose condition is true.

    Args:
        x: any tensor.
        condlist: a list of tensors of bools of the shape of ``x``, or one such tensor.
        funclist: a function or a number for each condition, and perhaps one more for the elements where no condition is
            true; without it they are 0. Every function is called with the whole of ``x``, as in JAX.
        args, kwargs: more arguments of the functions.

    Returns:
        A new tensor of the shape and dtype of ``x``.

    Raises:
        ValueArgumentError: the number of functions does not fit the number of conditions.
        ShapeError: the shapes do not broadcast.

    >>> import tandem as td
    >>> x = td.asarray([-2.0, 3.0])
    >>> td.piecewise(x, [x < 0, x >= 0], [lambda x: -x, lambda x: x * 10]).tolist()
    [2.0, 30.0]
    """
    spec, conditions, pieces = spec_of(x), _split_conditions(x, condlist), list(funclist)
    if len(pieces) == len(conditions):
        pieces.append(0)
    if len(pieces) != len(conditions) + 1:
        raise ValueArgumentError(
            f"piecewise: {len(conditions)} conditions need {len(conditions)} or {len(conditions) + 1} functions, "
            f"not {len(pieces)}"
        )
    pieces.insert(0, pieces.pop())
    result = full(spec.shape, 0, dtype=spec.dtype, device=spec.device)
    for condition, piece in zip([True, *conditions], pieces):
        values = piece(x, *args, **kwargs) if callable(piece) else piece
        values = cast(values, spec.dtype) if is_tensor(values) else values
        result = where(condition, values, result)
    return result
