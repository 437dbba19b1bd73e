"""Products of a few elements, written out with their sizes and strides as constants.

Their bits are those of :mod:`.small_product` and :mod:`.vector_product`, which compute larger products, and all eager
ones. A call of these takes longer than a product of 4 x 4 elements.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from ....named_tuple import NamedTuple
from ....registry.dtypes import DType
from .small_product import multiply_add
from .text import REGISTER, Function, Module
from .vector_product import DOT_FACTOR, lane_count

MOST_PRODUCTS = 512
MOST_DEPTH = 16

Strides = tuple[int, int]
"""The distances in bytes between rows and between columns."""


class TinyProduct(NamedTuple):
    """Products of matrices of a few elements.

    Attributes:
        sizes: ``(m, k, n)``.
        a, b: the strides of the operands.
        axes: for each leading axis its size, and the strides in bytes of the operands and of the result.
    """

    sizes: tuple[int, int, int]
    a: Strides
    b: Strides
    axes: tuple[tuple[int, ...], ...] = ()


def is_tiny(m: int, k: int, n: int) -> bool:
    """Return whether a product of a ``m`` by ``k`` and a ``k`` by ``n`` matrix is written out."""
    return m * k * n <= MOST_PRODUCTS and max(m, k, n) <= MOST_DEPTH


def write_tiny_product(module: Module, name: str, dtype: DType, product: TinyProduct) -> None:
    """Add ``void name(ptr a, ptr b, ptr c)``, which stores products in ``c``, a contiguous array.

    Args:
        module: the module.
        name: the function's name.
        dtype: float32 or float64.
        product: the products.
    """
    f = Function(module, 1)
    with loop_over_axes(f, product.axes) as pointers:
        _Product(f, dtype, *pointers).write(product)
    f.do("ret void")
    module.helper(name, f.text(f"internal void @{name}(ptr %a, ptr %b, ptr %c) #0"))


@contextlib.contextmanager
def loop_over_axes(f: Function, axes: Sequence[tuple[int, ...]]) -> Iterator[list[str]]:
    """Write loops over the leading axes of ``%a``, ``%b`` and ``%c``; yield the addresses of one product's matrices."""
    with contextlib.ExitStack() as loops:
        pointers = ["%a", "%b", "%c"]
        for count, *steps in axes:
            at = loops.enter_context(f.loop("0", str(count), "1")).index
            offsets = [f.op(f"mul i64 {at}, {step}") for step in steps]
            pointers = list(map(f.address, pointers, offsets))
        yield pointers


class _Product:
    """Writes one product of the matrices at ``a`` and ``b`` to ``c``."""

    def __init__(self, f: Function, dtype: DType, a: str, b: str, c: str):
        self.f, self.dtype, self.size, self.element = f, dtype, dtype.itemsize, REGISTER[dtype]
        self.a, self.b, self.c = a, b, c

    def write(self, product: TinyProduct) -> None:
        """Write the product."""
        (m, k, n), a, b = product.sizes, product.a, product.b
        if n == 1:
            self.multiply_by_vector(m, k, self.a, a, self.b, b[0])
        elif m == 1:
            self.multiply_by_vector(n, k, self.b, (b[1], b[0]), self.a, a[1])
        else:
            self.multiply_matrices(product.sizes, a, b)

    def multiply_matrices(self, sizes: tuple[int, int, int], a: Strides, b: Strides) -> None:
        """Write a row of the result after the other, with a chain of FMAs for each element."""
        (m, k, n), f = sizes, self.f
        with f.width(n):
            rows = [self._load(self.b, p * b[0], b[1], n) for p in range(k)]
            for i in range(m):
                chain = "zeroinitializer"
                for p, row in enumerate(rows):
                    factor = f.load_splat(self.dtype, f.address(self.a, str(i * a[0] + p * a[1])))
                    chain = multiply_add(f, self.element, factor, row, chain)
                self._store(chain, i * n)

    def multiply_by_vector(self, m: int, k: int, x: str, strides: Strides, v: str, step: int) -> None:
        """Write the products of the rows of ``x`` with the vector ``v``: partial sums, which are added in a tree."""
        lanes = lane_count(self.dtype) * (DOT_FACTOR if m == 1 else 1)
        if strides[1] == self.size and (m == 1 or strides[0] != self.size):
            sums = self._sum_rows(m, k, x, strides[0], v, step, lanes)
        else:
            sums = self._sum_columns(m, k, x, strides, v, step, lanes)
        with self.f.width(m):
            self._store(sums, 0)

    def _sum_columns(self, m: int, k: int, x: str, strides: Strides, v: str, step: int, lanes: int) -> str:
        """Return the sum of the columns of ``x``, each times an element of ``v``."""
        f, sums = self.f, ["zeroinitializer"] * min(k, lanes)
        with f.width(m):
            for p in range(k):
                column = self._load(x, p * strides[1], strides[0], m)
                factor = f.load_splat(self.dtype, f.address(v, str(p * step)))
                sums[p % lanes] = multiply_add(f, self.element, column, factor, sums[p % lanes])
            half = _round_up(len(sums))
            while half > 1:
                half //= 2
                sums = [self._add(*sums[j::half]) for j in range(min(half, len(sums)))]
        return sums[0]

    def _sum_rows(self, m: int, k: int, x: str, stride: int, v: str, step: int, lanes: int) -> str:
        """Return the sums of the rows of ``x``, each times ``v``; a register holds the partial sums of a row."""
        f, width = self.f, _round_up(min(k, lanes))
        with f.width(width):
            rows = ["zeroinitializer"] * m
            for start in range(0, k, lanes):
                count = min(lanes, k - start)
                factor = self._load(v, start * step, step, count)
                for i in range(m):
                    row = f.load_some(self.dtype, f.address(x, str(i * stride + start * self.size)), count)
                    rows[i] = multiply_add(f, self.element, row, factor, rows[i])
        return self._add_lanes(rows, width)

    def _add_lanes(self, vectors: list[str], width: int) -> str:
        """Return the sums of vectors of partial sums in one vector: halves are added until one lane is left of each."""
        f, m, each = (
            self.f,
            len(vectors),
            1,
        )  # a vector holds the partial sums of `each` rows, `width` of each
        while width > 1 or len(vectors) > 1:
            half = max(width // 2, 1)
            pairs = list(zip(vectors[::2], [*vectors[1::2], "poison"]))
            starts = range(0, (2 if len(vectors) > 1 else 1) * each * width, width)
            with f.width(each * width):
                halves = [
                    [f.pick(self.element, *pair, [s + at for s in starts for at in lanes]) for pair in pairs]
                    for lanes in (range(low, low + half) for low in range(0, width, half))
                ]
            each, width = len(starts), half
            with f.width(each * width):
                vectors = [self._add(*parts) for parts in zip(*halves)]
        with f.width(each):
            return f.pick(self.element, vectors[0], "poison", range(m))

    # -- elements --------------------------------------------------------------------------------------------------
    def _load(self, base: str, offset: int, step: int, count: int) -> str:
        """Return ``count`` elements at a distance of ``step`` bytes, and 0 in the other lanes."""
        f, start = self.f, self.f.address(base, str(offset))
        if step == self.size or count == 1:
            return f.load_some(self.dtype, start, count)
        vector = "zeroinitializer"
        for lane in range(count):
            value = f.load(self.element, f.address(start, str(lane * step)))
            vector = f.op(f"insertelement {f.vec(self.element)} {vector}, {self.element} {value}, i64 {lane}")
        return vector

    def _add(self, first: str, *rest: str) -> str:
        for other in rest:
            first = self.f.op(f"fadd {self.f.vec(self.element)} {first}, {other}")
        return first

    def _store(self, vector: str, at: int) -> None:
        """Store the lanes of a sum, which begins at 0, so that it is not -0."""
        total = self._add("zeroinitializer", vector)
        self.f.store_vector(self.dtype, total, self.f.address(self.c, str(at * self.size)))


def _round_up(count: int) -> int:
    """Return the smallest power of two that is not below ``count``."""
    return 1 << (count - 1).bit_length()
