"""Products of matrices with PyTorch's names: mm, bmm, mv, and addmm and its kind, which add to a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import ShapeError
from ...registry.dtypes import NUMERIC
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.shape_rules import is_known, spec_of
from ..reductions.folds import sum
from .matmul import matmul, outer

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...registry.function import OperatorFunction
    from ...registry.types import Number, Tensor


def _check_ranks(name: str, one: Tensor, two: Tensor, ranks: tuple[int, int]) -> None:
    shapes = spec_of(one).shape, spec_of(two).shape
    if tuple(map(len, shapes)) != ranks:
        raise ShapeError(f"{name}: takes tensors of {ranks[0]} and {ranks[1]} axes, not of shapes {shapes}")
    if ranks[0] == 3 and shapes[0][0] != shapes[1][0]:
        raise ShapeError(f"{name}: the stacks have different lengths, shapes {shapes}")


def _declare_product(
    name: str, ranks: tuple[int, int], doc: str, shapes: str, example: str, reference: str
) -> Callable[[Callable[..., Tensor]], OperatorFunction[Tensor]]:
    second = "vec" if name == "mv" else "other"
    return composite(
        f"{name}(Tensor self, Tensor {second}) -> Tensor",
        doc=make_docstring(
            doc,
            f"""Args:
    self, {second}: {shapes}, of numeric dtype.

Returns:
    A tensor of the promoted dtype.

Raises:
    ShapeError: the tensors have other numbers of axes, or the shapes do not fit.""",
            example,
        ),
        reference=reference,
        samples=("samples.matrix_products.product_samples", *ranks),
        errors=("samples.matrix_products.product_errors", *ranks),
        dtypes=NUMERIC,
        autocast="lower",
        spellings={spelling: second for spelling in ("mat2", "vec2", "other") if spelling != second},
    )


@_declare_product(
    "mm",
    (2, 2),
    "The product of two matrices.",
    "matrices (m, n) and (n, p)",
    "td.mm(td.asarray([[1, 2]]), td.asarray([[3], [4]])) -> [[11]]",
    "numpy.matmul",
)
def mm(self: Tensor, other: Tensor) -> Tensor:
    _check_ranks("mm", self, other, (2, 2))
    return matmul(self, other)


@_declare_product(
    "bmm",
    (3, 3),
    "The products of two stacks of matrices.",
    "stacks (b, m, n) and (b, n, p)",
    "td.bmm(td.ones((1, 1, 2)), td.ones((1, 2, 1))) -> [[[2.0]]]",
    "numpy.matmul",
)
def bmm(self: Tensor, other: Tensor) -> Tensor:
    _check_ranks("bmm", self, other, (3, 3))
    return matmul(self, other)


@_declare_product(
    "mv",
    (2, 1),
    "The product of a matrix and a vector.",
    "a matrix (m, n) and a vector (n)",
    "td.mv(td.asarray([[1, 2]]), td.asarray([3, 4])) -> [11]",
    "numpy.matmul",
)
def mv(self: Tensor, vec: Tensor) -> Tensor:
    _check_ranks("mv", self, vec, (2, 1))
    return matmul(self, vec)


@_declare_product(
    "ger",
    (1, 1),
    "The outer product of two vectors.",
    "vectors (m) and (n)",
    "td.ger(td.asarray([1, 2]), td.asarray([3, 4])) -> [[3, 4], [6, 8]]",
    "numpy.outer",
)
def ger(self: Tensor, other: Tensor) -> Tensor:
    _check_ranks("ger", self, other, (1, 1))
    return outer(self, other)


# -- sums with a tensor ------------------------------------------------------------------------------------------------
def _declare_sum(
    name: str, names: tuple[str, str], ranks: tuple[int, int], doc: str, example: str
) -> Callable[[Callable[..., Tensor]], OperatorFunction[Tensor]]:
    one, two = names
    return composite(
        f"{name}(Tensor self, Tensor {one}, Tensor {two}, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        doc=make_docstring(
            doc,
            f"""Args:
    self: a tensor that broadcasts to the product; it is not read if `beta` is 0.
    {one}, {two}: tensors of {ranks[0]} and {ranks[1]} axes.
    beta, alpha: the factors of `self` and of the product.

Returns:
    A tensor of the shape of the product, of the promoted dtype.

Raises:
    ShapeError: the tensors have other numbers of axes, or the shapes do not fit.""",
            example,
        ),
        reference=f"references.torch_functions.{name}",
        samples=("samples.matrix_products.sum_samples", *ranks, name in ("addmv", "addbmm")),
        errors=("samples.matrix_products.sum_errors", *ranks),
        dtypes=NUMERIC,
        autocast="lower",
        inplace=True,
    )


def _add_product(self: Tensor, product: Tensor, beta: Number, alpha: Number) -> Tensor:
    """``beta * self + alpha * product``."""
    scaled = product if is_known(alpha, 1) else product * alpha
    if is_known(beta, 0):
        return scaled
    result = (self if is_known(beta, 1) else self * beta) + scaled
    if spec_of(result).shape != spec_of(product).shape:
        raise ShapeError(f"{spec_of(self)} does not broadcast to the product {spec_of(product)}")
    return result


@_declare_sum(
    "addmm",
    ("mat1", "mat2"),
    (2, 2),
    "`beta * self + alpha * (mat1 @ mat2)`, of matrices.",
    "td.addmm(td.ones(1), td.asarray([[1.0, 2.0]]), td.asarray([[3.0], [4.0]])) -> [[12.0]]",
)
def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number, alpha: Number) -> Tensor:
    return _add_product(self, mm(mat1, mat2), beta, alpha)


@_declare_sum(
    "addmv",
    ("mat", "vec"),
    (2, 1),
    "`beta * self + alpha * (mat @ vec)`, of a matrix and a vector.",
    "td.addmv(td.ones(1), td.asarray([[1.0, 2.0]]), td.asarray([3.0, 4.0])) -> [12.0]",
)
def addmv(self: Tensor, mat: Tensor, vec: Tensor, *, beta: Number, alpha: Number) -> Tensor:
    return _add_product(self, mv(mat, vec), beta, alpha)


@_declare_sum(
    "addr",
    ("vec1", "vec2"),
    (1, 1),
    "`beta * self + alpha * outer(vec1, vec2)`, of vectors.",
    "td.addr(td.ones(1), td.asarray([1.0]), td.asarray([3.0, 4.0])) -> [[4.0, 5.0]]",
)
def addr(self: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Number, alpha: Number) -> Tensor:
    return _add_product(self, ger(vec1, vec2), beta, alpha)


@_declare_sum(
    "baddbmm",
    ("batch1", "batch2"),
    (3, 3),
    "`beta * self + alpha * (batch1 @ batch2)`, of stacks of matrices.",
    "td.baddbmm(td.ones(1), td.ones((1, 1, 2)), td.ones((1, 2, 1))) -> [[[3.0]]]",
)
def baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number, alpha: Number) -> Tensor:
    return _add_product(self, bmm(batch1, batch2), beta, alpha)


@_declare_sum(
    "addbmm",
    ("batch1", "batch2"),
    (3, 3),
    "`beta * self + alpha * sum(batch1 @ batch2)`, with the sum over the stack.",
    "td.addbmm(td.ones(1), td.ones((2, 1, 2)), td.ones((2, 2, 1))) -> [[5.0]]",
)
def addbmm(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number, alpha: Number) -> Tensor:
    product = bmm(batch1, batch2)
    total = sum(product, 0, dtype=spec_of(product).dtype)
    return _add_product(self, total, beta, alpha)
