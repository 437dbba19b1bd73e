"""``einsum``: sums of products in Einstein notation, computed as matrix products."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING, Any

from ... import lazy
from ...errors import ArgumentError, ShapeError
from ...named_tuple import NamedTuple
from ...registry.dtypes import NUMERIC
from ...registry.values import describe
from ..declare.declaration import ErrorInput, SampleInput, TensorSample
from ..declare.kinds import composite
from ..declare.shape_rules import spec_of
from ..elementwise.casting import astype, clone
from ..reductions.folds import sum
from ..shape.diagonals import diagonal
from ..shape.views import permute, reshape
from .matmul import SUMS, matmul

if TYPE_CHECKING:
    from ...registry.types import DTypeLike, Tensor

opt_einsum = lazy.Module("opt_einsum")

Labels = tuple[str, ...]


class _Term(NamedTuple):
    """A tensor and the label of each of its axes."""

    x: Any
    labels: Labels


# -- parsing -----------------------------------------------------------------------------------------------------------
def _split_labels(equation: str, text: str) -> tuple[list[str], list[str]]:
    """The labels before and after the ellipsis; all are before it if there is none."""
    before, dots, behind = text.partition("...")
    if not all(letter.isalpha() for letter in before + behind):
        raise ArgumentError(
            f"einsum: {equation!r} contains {text!r}; write letters, commas, at most one '...' per operand and one '->'"
        )
    return (list(before), ["...", *behind]) if dots else (list(before), [])


def _label_axes(equation: str, text: str, rank: int) -> Labels:
    """One label for each axis; the axes of an ellipsis are numbered from the right."""
    before, behind = _split_labels(equation, text)
    named = len(before) + max(len(behind) - 1, 0)
    if named > rank or (named < rank and not behind):
        raise ShapeError(f"einsum: {text!r} in {equation!r} names {named} axes, and its operand has {rank}")
    dots = [f"...{rank - named - at}" for at in range(rank - named)]
    return (*before, *dots, *behind[1:])


def _output_labels(
    equation: str, texts: Sequence[str], inputs: Sequence[Labels], written: str | None
) -> Labels:
    """The labels of the result: those after the arrow, or those that occur once, in alphabetical order."""
    most = max((count_ellipsis_axes(labels) for labels in inputs), default=0)
    dots = tuple(f"...{at}" for at in range(most, 0, -1))
    if written is None:
        letters = "".join(texts).replace(".", "")
        return (*dots, *sorted(letter for letter in set(letters) if letters.count(letter) == 1))
    before, behind = _split_labels(equation, written)
    result = (*before, *dots, *behind[1:]) if behind else tuple(before)
    known = {label for labels in inputs for label in labels}
    if dots and not behind:
        raise ArgumentError(f"einsum: {equation!r} sums over '...'; write letters for those axes")
    if len(set(result)) != len(result) or not set(result) <= known:
        raise ArgumentError(
            f"einsum: the result of {equation!r} repeats a label, or has one that no operand has"
        )
    return result


def count_ellipsis_axes(labels: Labels) -> int:
    """The number of axes of an ellipsis."""
    return len([label for label in labels if label.startswith(".")])


def _parse(equation: str, operands: Sequence[Any]) -> tuple[list[_Term], Labels]:
    """The operands with their labels, and the labels of the result."""
    labels, output = _parse_equation(equation, tuple([len(spec_of(x).shape) for x in operands]))
    sizes = _label_sizes(equation, operands, labels)
    return [
        _drop_broadcast_axes(_take_diagonals(_Term(x, own)), sizes) for x, own in zip(operands, labels)
    ], output


@functools.lru_cache(maxsize=1024)
def _parse_equation(equation: str, ranks: tuple[int, ...]) -> tuple[list[Labels], Labels]:
    """The labels of operands of these ranks, and those of the result."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    texts = left.split(",")
    if len(texts) != len(ranks):
        raise ArgumentError(f"einsum: {equation!r} has {len(texts)} operands, but {len(ranks)} were given")
    labels = [_label_axes(equation, text, rank) for text, rank in zip(texts, ranks)]
    return labels, _output_labels(equation, texts, labels, right if arrow else None)


def _label_sizes(equation: str, operands: Sequence[Any], labels: Sequence[Labels]) -> dict[str, int]:
    """The length of each label; axes of length 1 broadcast."""
    sizes: dict[str, int] = {}
    for x, own in zip(operands, labels):
        inside: dict[str, int] = {}
        for label, size in zip(own, spec_of(x).shape):
            seen = sizes.setdefault(label, size)
            if inside.setdefault(label, size) != size or (size != seen and 1 not in (size, seen)):
                raise ShapeError(
                    f"einsum: label {label!r} of {equation!r} has an axis of length {seen} and one of {size}"
                )
            sizes[label] = size if seen == 1 else seen
    return sizes


# -- computation -------------------------------------------------------------------------------------------------------
def _take_diagonals(term: _Term) -> _Term:
    """A term with repeated labels replaced by diagonals."""
    x, labels = term
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            one = labels.index(label)
            two = labels.index(label, one + 1)
            x = diagonal(x, 0, one, two)
            labels = (*(own for at, own in enumerate(labels) if at not in (one, two)), label)
    return _Term(x, labels)


def _drop_broadcast_axes(term: _Term, sizes: dict[str, int]) -> _Term:
    """A term without the axes of length 1 that broadcast."""
    x, labels = term
    kept = [at for at, label in enumerate(labels) if spec_of(x).shape[at] == sizes[label]]
    if len(kept) == len(labels):
        return term
    return _Term(reshape(x, tuple(x.shape[at] for at in kept)), tuple(labels[at] for at in kept))


def _sum_out(term: _Term, kept: set[str]) -> _Term:
    """A term summed over the labels that are not in ``kept``."""
    gone = [at for at, label in enumerate(term.labels) if label not in kept]
    if not gone:
        return term
    x = sum(term.x, tuple(gone), dtype=spec_of(term.x).dtype)
    return _Term(x, tuple(label for label in term.labels if label in kept))


def _arrange(term: _Term, order: Sequence[str]) -> Tensor:
    """The tensor with its axes in the order of the labels, and axes of length 1 for labels that it does not have."""
    own = [label for label in order if label in term.labels]
    x = permute(term.x, tuple(term.labels.index(label) for label in own))
    sizes = iter(x.shape)
    return reshape(x, tuple(next(sizes) if label in term.labels else 1 for label in order))


def _multiply(one: _Term, two: _Term, kept: set[str]) -> _Term:
    """The product of two terms, summed over the shared labels that are not in ``kept``."""
    one, two = _sum_out(one, kept | {*two.labels}), _sum_out(two, kept | {*one.labels})
    shared = [label for label in one.labels if label in two.labels]
    batch = [label for label in shared if label in kept]
    inner = [label for label in shared if label not in kept]
    rows = [label for label in one.labels if label not in shared]
    columns = [label for label in two.labels if label not in shared]
    if not inner:
        order = (*batch, *rows, *columns)
        return _Term(_arrange(one, order) * _arrange(two, order), order)
    x, y = _arrange(one, (*batch, *rows, *inner)), _arrange(two, (*batch, *inner, *columns))
    lead, middle = len(batch), len(batch) + len(rows)
    high, low = x.shape[lead:middle], y.shape[lead + len(inner) :]
    deep = math.prod(x.shape[middle:])
    result = matmul(
        reshape(x, (*x.shape[:lead], math.prod(high), deep)),
        reshape(y, (*y.shape[:lead], deep, math.prod(low))),
    )
    return _Term(reshape(result, (*result.shape[:lead], *high, *low)), (*batch, *rows, *columns))


def _find_path(terms: Sequence[_Term], output: Labels) -> Sequence[tuple[int, int]]:
    """The positions of the two terms of each product, which leave the list; their product is appended to it."""
    if len(terms) < 3:
        return [(0, 1)] if len(terms) == 2 else []
    sizes = {label: n for term in terms for label, n in zip(term.labels, spec_of(term.x).shape, strict=True)}
    return _cached_path(tuple(term.labels for term in terms), output, tuple(sizes.items()))


@functools.lru_cache(maxsize=1024)
def _cached_path(
    inputs: tuple[Labels, ...], output: Labels, sizes: tuple[tuple[str, int], ...]
) -> tuple[tuple[int, int], ...]:
    """The path that opt_einsum finds cheapest: of all for up to four terms. Without opt_einsum, from left to right."""
    if not lazy.is_installed("opt_einsum"):
        return ((0, 1), *((0, last) for last in range(len(inputs) - 2, 0, -1)))
    symbols = {label: opt_einsum.get_symbol(at) for at, (label, _) in enumerate(sizes)}
    sides = ["".join(symbols[label] for label in labels) for labels in (*inputs, output)]
    shapes = [tuple(dict(sizes)[label] for label in labels) for labels in inputs]
    path, _ = opt_einsum.contract_path(f"{','.join(sides[:-1])}->{sides[-1]}", *shapes, shapes=True)
    return tuple((min(pair), max(pair)) for pair in path)


def einsum(
    equation: str | Tensor,
    *operands: Tensor | Sequence[object],
    out: Tensor | None = None,
    dtype: DTypeLike | None = None,
    optimize: object = True,
    preferred_element_type: DTypeLike | None = None,
    **options: object,
) -> Tensor:
    """Sums of products in Einstein notation.

    Args:
        equation: such as ``"ij,jk->ik"``; an ellipsis matches any further axes. Axes of length 1
            broadcast. Without an arrow the result has the letters that occur once, in alphabetical order.
        operands: as many tensors as there are terms before the arrow, or one list of them. Instead of an equation, each
            tensor may be followed by a list of numbers of its axes, and the last one by those of the result.
        out: a tensor of the result's shape that is written and returned.
        dtype, preferred_element_type: the dtype to which the operands are cast.
        optimize: accepted, without effect: the order of the products is the one that ``opt_einsum`` finds cheapest.
        options: ``order``, ``casting`` and ``precision`` are accepted, without effect.

    Returns:
        A tensor of the promoted dtype.

    Raises:
        ArgumentError: the equation is invalid, or the number of operands differs.
        ShapeError: an operand does not have as many axes as letters, or axes of one letter differ in length.

    >>> import tandem as td
    >>> td.einsum("ij,j->i", td.ones((2, 3)), td.ones(3)).tolist()
    [3.0, 3.0]
    >>> td.einsum(td.ones((2, 3)), [0, 1], [1]).tolist()
    [2.0, 2.0, 2.0]
    """
    if options and not options.keys() <= _WITHOUT_EFFECT:
        raise ArgumentError(f"einsum: there is no argument {min(options.keys() - _WITHOUT_EFFECT)!r}")
    if not isinstance(equation, str):
        equation, operands = _join_axes((equation, *operands))
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    dtype = preferred_element_type if dtype is None else dtype
    if dtype is not None:
        operands = tuple([astype(x, dtype) for x in operands])
    return _einsum(equation, operands) if out is None else _einsum(equation, operands, out=out)


_LETTERS = ascii_uppercase + ascii_lowercase
_WITHOUT_EFFECT = frozenset(("order", "casting", "precision", "out_sharding"))


def _join_axes(operands: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The equation and tensors of operands that lists of axes follow: ``x, [0, 1], y, [1, 2], [0, 2]``."""
    tensors, axes = operands[: len(operands) & ~1 : 2], operands[1::2]
    if not axes or not all(isinstance(one, (list, tuple)) for one in (*axes, *operands[2 * len(axes) :])):
        raise ArgumentError(
            "einsum: the equation is a str such as 'ij,jk->ik', or a list of axes follows each tensor, not "
            f"{describe(operands[0])}"
        )
    equation = ",".join(map(_name_axes, axes))
    if len(operands) % 2:
        equation += "->" + _name_axes(operands[-1])
    return equation, tensors


def _name_axes(axes: Sequence[Any]) -> str:
    """The letters of numbered axes, which have the order of the numbers."""
    for axis in axes:
        if axis is not ... and not (hasattr(axis, "__index__") and 0 <= axis < len(_LETTERS)):
            raise ArgumentError(f"einsum: axes are numbers from 0 to {len(_LETTERS) - 1}, not {axis!r}")
    return "".join(["..." if axis is ... else _LETTERS[axis] for axis in axes])


@composite(
    "einsum(str equation, Tensor[] operands) -> Tensor",
    doc="""Sums of products in Einstein notation; ``td.einsum(equation, *operands)``.

    Each operand has a letter for each of its axes. Axes of one letter run together; letters that the result does not
    name are summed over. Three or more operands are multiplied in the order that ``opt_einsum`` finds cheapest.

    Args:
        equation: such as ``"ij,jk->ik"``; an ellipsis matches any further axes. Axes of length 1
            broadcast. Without an arrow the result has the letters that occur once, in alphabetical order.
        operands: as many tensors as there are terms before the arrow.

    Returns:
        A tensor of the promoted dtype.

    Raises:
        ArgumentError: the equation is invalid, or the number of operands differs.
        ShapeError: an operand does not have as many axes as letters, or axes of one letter differ in length.

    >>> td.einsum("ij,j->i", td.ones((2, 3)), td.ones(3)).tolist()
    [3.0, 3.0]
    """,
    reference="references.arrays.einsum",
    samples=lambda dtype: [
        SampleInput((equation, tuple(TensorSample(shape) for shape in shapes)))
        for equation, shapes in (
            ("ij->ji", ((2, 3),)),
            ("ii", ((3, 3),)),
            ("iij->ij", ((2, 2, 3),)),
            ("ij,jk", ((2, 3), (3, 4))),
            ("bij,bjk->bik", ((2, 2, 3), (2, 3, 2))),
            ("i,j->ij", ((2,), (3,))),
            ("...ij,...jk->...ik", ((2, 3), (2, 3, 2))),
            ("j...k,lj...->lk...", ((2, 3, 2), (2, 2, 1))),
            ("ij,jk,kl->il", ((2, 3), (3, 2), (2, 2))),
            ("k,nk->", ((3,), (2, 3))),
            ("mnd,mdo->mno", ((1, 2, 3), (2, 3, 2))),
        )
    ],
    errors=lambda: [
        ErrorInput(("ij,jk", (TensorSample((2, 3)),)), TypeError, "has 2 operands"),
        ErrorInput(("ij", (TensorSample((2,)),)), ValueError, "names 2 axes"),
        ErrorInput(("ij,jk", (TensorSample((2, 3)), TensorSample((2, 2)))), ValueError, "axis of length"),
        ErrorInput(("ii", (TensorSample((1, 3)),)), ValueError, "axis of length"),
        ErrorInput(("i->j", (TensorSample((2,)),)), TypeError, "no operand has"),
        ErrorInput(("i;j", (TensorSample((2,)),)), TypeError, "write letters"),
        ErrorInput(("...i->i", (TensorSample((2, 2)),)), TypeError, "sums over"),
    ],
    dtypes=NUMERIC,
    tolerance=SUMS,
    method=False,
    autocast="lower",
    promotes=True,
)
def _einsum(equation: str, operands: Sequence[Any]) -> Tensor:
    terms, output = _parse(equation, operands)
    for first, second in _find_path(terms, output):
        two, one = terms.pop(second), terms.pop(first)
        needed = {label for term in terms for label in term.labels}
        terms.append(_multiply(one, two, {*output, *needed}))
    (value,) = terms
    result = _arrange(_sum_out(value, {*output}), output)
    is_view = len(operands) == 1 and len(output) == len(value.labels)
    return clone(result) if is_view else result
