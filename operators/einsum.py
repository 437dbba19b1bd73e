"""Sums of products in Einstein's notation, as products of matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import lazy
from ..errors import ArgumentError, ShapeError
from ..registry.dtypes import NUMERIC
from .casting import clone
from .contraction import SUMS, matmul
from .declare import Bad, Draw, Sample
from .diagonals import diagonal
from .kinds import composite
from .reductions import sum
from .rules import spec_of
from .views import permute, reshape

references = lazy.Functions("operators.references_arrays")

Labels = tuple[str, ...]


class _Term(NamedTuple):
    """A tensor and the label of each of its axes."""

    x: Any
    labels: Labels


# -- what is written ---------------------------------------------------------------------------------------------------
def _letters(equation: str, text: str) -> tuple[list[str], list[str]]:
    """The labels before and behind the ellipsis; without one, all of them before it."""
    before, dots, behind = text.partition("...")
    if not all(letter.isalpha() for letter in before + behind):
        raise ArgumentError(
            f"einsum: {equation!r} holds {text!r}; write letters, commas, one '...' an operand and one '->'"
        )
    return (list(before), ["...", *behind]) if dots else (list(before), [])


def _labels(equation: str, text: str, rank: int) -> Labels:
    """One label for each axis; those of the ellipsis are numbered from the right."""
    before, behind = _letters(equation, text)
    named = len(before) + max(len(behind) - 1, 0)
    if named > rank or (named < rank and not behind):
        raise ShapeError(f"einsum: {text!r} in {equation!r} names {named} axes, and its operand has {rank}")
    dots = [f"...{rank - named - at}" for at in range(rank - named)]
    return (*before, *dots, *behind[1:])


def _output(equation: str, texts: Sequence[str], inputs: Sequence[Labels], written: str | None) -> Labels:
    """The labels of the result: what is written, or those that occur once, in alphabetical order."""
    most = max((sum_of_dots(labels) for labels in inputs), default=0)
    dots = tuple(f"...{at}" for at in range(most, 0, -1))
    if written is None:
        letters = "".join(texts).replace(".", "")
        return (*dots, *sorted(letter for letter in set(letters) if letters.count(letter) == 1))
    before, behind = _letters(equation, written)
    found = (*before, *dots, *behind[1:]) if behind else tuple(before)
    known = {label for labels in inputs for label in labels}
    if dots and not behind:
        raise ArgumentError(f"einsum: {equation!r} sums over '...'; give those axes letters")
    if len(set(found)) != len(found) or not set(found) <= known:
        raise ArgumentError(
            f"einsum: the result of {equation!r} names a label twice, or one that no operand has"
        )
    return found


def sum_of_dots(labels: Labels) -> int:
    """How many axes an ellipsis stands for."""
    return len([label for label in labels if label.startswith(".")])


def _read(equation: str, operands: Sequence[Any]) -> tuple[list[_Term], Labels]:
    """The operands with their labels, and the labels of the result."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    texts = left.split(",")
    if len(texts) != len(operands):
        raise ArgumentError(f"einsum: {equation!r} is for {len(texts)} operands, not {len(operands)}")
    labels = [_labels(equation, text, len(spec_of(x).shape)) for text, x in zip(texts, operands)]
    output = _output(equation, texts, labels, right if arrow else None)
    sizes = _sizes(equation, operands, labels)
    return [_narrow(_diagonals(_Term(x, own)), sizes) for x, own in zip(operands, labels)], output


def _sizes(equation: str, operands: Sequence[Any], labels: Sequence[Labels]) -> dict[str, int]:
    """The length of each label; axes of length 1 broadcast."""
    sizes: dict[str, int] = {}
    for x, own in zip(operands, labels):
        inside: dict[str, int] = {}
        for label, size in zip(own, spec_of(x).shape):
            seen = sizes.setdefault(label, size)
            if inside.setdefault(label, size) != size or (size != seen and 1 not in (size, seen)):
                raise ShapeError(
                    f"einsum: {label!r} in {equation!r} is an axis of length {seen} and one of {size}"
                )
            sizes[label] = size if seen == 1 else seen
    return sizes


# -- what is computed --------------------------------------------------------------------------------------------------
def _diagonals(term: _Term) -> _Term:
    """A term in which no label occurs twice."""
    x, labels = term
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            one = labels.index(label)
            two = labels.index(label, one + 1)
            x = diagonal(x, 0, one, two)
            labels = (*(own for at, own in enumerate(labels) if at not in (one, two)), label)
    return _Term(x, labels)


def _narrow(term: _Term, sizes: dict[str, int]) -> _Term:
    """A term without the axes of length 1 that broadcast."""
    x, labels = term
    kept = [at for at, label in enumerate(labels) if spec_of(x).shape[at] == sizes[label]]
    if len(kept) == len(labels):
        return term
    return _Term(reshape(x, tuple(x.shape[at] for at in kept)), tuple(labels[at] for at in kept))


def _summed(term: _Term, kept: set[str]) -> _Term:
    """A term summed over the labels that nobody else has."""
    gone = [at for at, label in enumerate(term.labels) if label not in kept]
    if not gone:
        return term
    x = sum(term.x, tuple(gone), dtype=spec_of(term.x).dtype)
    return _Term(x, tuple(label for label in term.labels if label in kept))


def _arranged(term: _Term, order: Sequence[str]) -> Any:
    """The tensor with its axes in the order of the labels, one of length 1 for each that it lacks."""
    own = [label for label in order if label in term.labels]
    x = permute(term.x, tuple(term.labels.index(label) for label in own))
    sizes = iter(x.shape)
    return reshape(x, tuple(next(sizes) if label in term.labels else 1 for label in order))


def _product(one: _Term, two: _Term, kept: set[str]) -> _Term:
    """Two terms multiplied, and summed over the labels that both have and nobody needs."""
    one, two = _summed(one, kept | {*two.labels}), _summed(two, kept | {*one.labels})
    shared = [label for label in one.labels if label in two.labels]
    batch = [label for label in shared if label in kept]
    inner = [label for label in shared if label not in kept]
    rows = [label for label in one.labels if label not in shared]
    columns = [label for label in two.labels if label not in shared]
    if not inner:
        order = (*batch, *rows, *columns)
        return _Term(_arranged(one, order) * _arranged(two, order), order)
    x, y = _arranged(one, (*batch, *rows, *inner)), _arranged(two, (*batch, *inner, *columns))
    lead, middle = len(batch), len(batch) + len(rows)
    high, low = x.shape[lead:middle], y.shape[lead + len(inner) :]
    deep = math.prod(x.shape[middle:])
    found = matmul(
        reshape(x, (*x.shape[:lead], math.prod(high), deep)),
        reshape(y, (*y.shape[:lead], deep, math.prod(low))),
    )
    return _Term(reshape(found, (*found.shape[:lead], *high, *low)), (*batch, *rows, *columns))


def einsum(equation: str, *operands: Any) -> Any:
    """Sums of products in Einstein's notation.

    Args:
        equation: such as ``"ij,jk->ik"``; an ellipsis stands for further axes. Axes of length 1
            broadcast. Without an arrow the result has the letters that occur once, in alphabetical order.
        operands: as many tensors as there are terms before the arrow, or one list of them.

    Returns:
        A tensor of the promoted dtype.

    Raises:
        ArgumentError: the equation is none, or it is for another number of operands.
        ShapeError: an operand has another number of axes, or axes of one letter differ in length.

    >>> import tandem as td
    >>> td.einsum("ij,j->i", td.ones((2, 3)), td.ones(3)).tolist()
    [3.0, 3.0]
    """
    if not isinstance(equation, str):
        raise ArgumentError(
            f"einsum: the equation is a str such as 'ij,jk->ik', not {type(equation).__name__}"
        )
    is_list = len(operands) == 1 and isinstance(operands[0], (list, tuple))
    return _einsum(equation, operands[0] if is_list else operands)


@composite(
    "einsum(str equation, Tensor[] operands) -> Tensor",
    doc="""Sums of products in Einstein's notation; ``td.einsum(equation, *operands)``.

    Each operand has a letter for each of its axes. Axes of one letter run together; letters that the result does not
    name are summed over. Products are taken from left to right.

    Args:
        equation: such as ``"ij,jk->ik"``; an ellipsis stands for further axes. Axes of length 1
            broadcast. Without an arrow the result has the letters that occur once, in alphabetical order.
        operands: as many tensors as there are terms before the arrow.

    Returns:
        A tensor of the promoted dtype.

    Raises:
        ArgumentError: the equation is none, or it is for another number of operands.
        ShapeError: an operand has another number of axes, or axes of one letter differ in length.

    >>> td.einsum("ij,j->i", td.ones((2, 3)), td.ones(3)).tolist()
    [3.0, 3.0]
    """,
    reference=references.einsum,
    samples=lambda dtype: [
        Sample((equation, tuple(Draw(shape) for shape in shapes)))
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
        Bad(("ij,jk", (Draw((2, 3)),)), TypeError, "for 2 operands"),
        Bad(("ij", (Draw((2,)),)), ValueError, "names 2 axes"),
        Bad(("ij,jk", (Draw((2, 3)), Draw((2, 2)))), ValueError, "axis of length"),
        Bad(("ii", (Draw((1, 3)),)), ValueError, "axis of length"),
        Bad(("i->j", (Draw((2,)),)), TypeError, "no operand has"),
        Bad(("i;j", (Draw((2,)),)), TypeError, "write letters"),
        Bad(("...i->i", (Draw((2, 2)),)), TypeError, "sums over"),
    ],
    dtypes=NUMERIC,
    tolerance=SUMS,
    method=False,
    autocast="lower",
)
def _einsum(equation: str, operands: Sequence[Any]) -> Any:
    terms, output = _read(equation, operands)
    found = terms[0]
    for at, term in enumerate(terms[1:], 1):
        later = {label for other in terms[at + 1 :] for label in other.labels}
        found = _product(found, term, {*output, *later})
    result = _arranged(_summed(found, {*output}), output)
    is_view = len(operands) == 1 and len(output) == len(found.labels)
    return clone(result) if is_view else result
