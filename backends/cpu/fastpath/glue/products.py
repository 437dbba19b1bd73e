"""Matrix products for one combination of dtypes: the variants of the `matmul` entry, also called by jitted code."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from .....errors import LoweringError
from .....named_tuple import NamedTuple
from .....registry import dtypes as dt
from .....registry.dtypes import DType
from .....registry.operator import Operator
from ...blas_pointers import find_blas_functions
from ...codegen.small_product import Coverage, full_coverage, write_small_product
from ...codegen.text import Module
from ...codegen.vector_product import write_vector_products
from ...target import vector_target
from ..compiler import engine, lang
from ..runtime import rt_products
from ..runtime.rt_base import CODE_BITS
from .structs import CODES, StructMemory, machine_type, make_variant

PREFIX = {dt.float32: "s", dt.float64: "d", dt.complex64: "c", dt.complex128: "z"}
SUMS = (dt.float32, dt.float64)  # the dtypes that products other than those of BLAS are summed in
Axis = tuple[int, int, int, int]


def product_ir(dtype: DType, vectors: bool = True) -> str:
    """Return LLVM IR of the products of a dtype, exported as `loop`; with or without code for those with a vector."""
    name = machine_type(dtype)
    constants: dict[str, Any] = {"ISIZE": dtype.itemsize, "ESIZE": dtype.itemsize}
    if dtype.is_integer:
        types = dict.fromkeys("TE", name)
        return lang.emit({"loop": rt_products.multiply}, constants | {"WRAPS": 1}, types)
    wide = product_dtype(dtype)
    constants |= {
        "ISIZE": wide.itemsize,
        "PARTS": 2 if dtype.kind == "c" else 1,
        "HALF": int(wide is not dtype),
        "BFLOAT16": int(dtype is dt.bfloat16),
        "VECTORS": int(vectors),
    }
    types = {"T": machine_type(wide), "E": name if wide is dtype else "i16", "H": name}
    return lang.emit({"loop": rt_products.multiply}, constants, types)


def small_product_ir(dtype: DType, coverage: Coverage) -> str:
    """Return LLVM IR of products of small matrices of float32 or float64."""
    module = Module()
    write_small_product(module, "small_product", dtype, coverage)
    return str(module)


def vector_products_ir(dtype: DType) -> str:
    """Return LLVM IR of the products of a matrix and a vector of float32 or float64."""
    module = Module()
    write_vector_products(module, dtype)
    return str(module)


def product_dtype(dtype: DType) -> DType:
    """Return the dtype that elements are multiplied and summed in."""
    return dt.float32 if dtype in dt.HALVES else dtype


def is_served(dtype: DType) -> bool:
    """Return whether there is a native product of a dtype; for floats, whether there is a BLAS."""
    if dtype.is_integer:
        return True
    known = dtype in PREFIX or dtype is dt.bfloat16 or (dtype is dt.float16 and vector_target().f16c)
    return known and bool(find_blas_functions())


def blas_imports(dtype: DType) -> dict[str, int]:
    """Return the addresses of the BLAS functions that the product of a dtype calls."""
    prefix = PREFIX.get(product_dtype(dtype))
    value = find_blas_functions() if prefix else {}
    return {f"blas_{name}": value[f"blas_{prefix}{name}"] for name in ("gemm", "gemv") if value}


def compile_product(dtype: DType, vectors: bool = True) -> engine.Code | None:
    """Return the code of the products of a dtype, which stays in the process; None if there is none.

    Args:
        dtype: of the operands and the result.
        vectors: whether products with a vector are computed. Code that need not is compiled in half the time.
    """
    if not is_served(dtype):
        return None
    return _compile_product(
        dtype, vectors or product_dtype(dtype) not in SUMS or (dtype, True) in _compile_product.results
    )


class ProductCode(NamedTuple):
    """Describes what code of matrix products must compute.

    Attributes:
        dtype: the dtype of the matrices.
        vectors: whether one of them may be a vector.
        coverage: for calls of the micro-kernel, the products; None for those of the function for all products.
    """

    dtype: DType
    vectors: bool
    coverage: Coverage | None = None

    @property
    def symbol(self) -> str:
        """Return the name of the function in the IR of a graph."""
        if self.coverage is not None:
            return f"small_product_{self.dtype.name}"
        return f"multiply{'_vectors' if self.vectors else ''}_{self.dtype.name}"


def find_products(called: Iterable[ProductCode]) -> dict[str, int]:
    """Return the addresses of the products that a graph calls, by symbol."""
    result: dict[str, int] = {}
    needed: dict[tuple[str, DType], list[Coverage]] = {}
    for product in sorted(called, key=lambda product: not product.vectors):
        if product.coverage is not None:
            needed.setdefault((product.symbol, product.dtype), []).append(product.coverage)
        elif product.symbol not in result:
            code = compile_product(product.dtype, product.vectors)
            if code is not None:  # without BLAS no product is called
                result[product.symbol] = code["loop"]
    for (symbol, dtype), parts in needed.items():
        tiles = frozenset[tuple[int, int]]().union(*(part.tiles for part in parts))
        small = _find_small_products(dtype, Coverage(tiles, any(part.packs for part in parts)))
        if small is None:
            raise LoweringError("the code of small matrix products cannot be compiled")
        result[symbol] = small["small_product"]
    return result


def _find_small_products(dtype: DType, coverage: Coverage) -> engine.Code | None:
    """Return code that computes at least the products of a coverage, compiled if there is none yet."""
    for known, code in tuple(_compile_small_products.results.items()):
        if known[0] is dtype and known[1].includes(coverage):
            return code
    return _compile_small_products(dtype, coverage)


@engine.KeepFirst
def _compile_product(dtype: DType, vectors: bool) -> engine.Code | None:
    wide = product_dtype(dtype)
    kernels = [_compile_small_products(wide, full_coverage())] if wide in SUMS else []
    if kernels and vectors:
        kernels.append(_compile_vector_products(wide))
    imports = blas_imports(dtype)
    for code in kernels:
        if code is None:
            return None
        imports |= code
    return engine.build_once(
        f"products of {dtype.name} {vectors}",
        partial(product_ir, dtype, vectors),
        ["loop"],
        imports,
        passes=_choose_passes(dtype),
    )


def _choose_passes(dtype: DType) -> engine.Passes:
    """Return LLVM's passes for the code around the micro-kernels or BLAS; that of other dtypes has the loops too."""
    if dtype in SUMS:
        return engine.Passes.FUNCTIONS
    return engine.Passes.MODULE if dtype.kind == "c" else engine.Passes.VECTORS


@engine.KeepFirst
def _compile_small_products(dtype: DType, coverage: Coverage) -> engine.Code | None:
    name = f"small products of {dtype.name}: {sorted(coverage.tiles)} {coverage.packs}"
    make = partial(small_product_ir, dtype, coverage)
    return engine.build_once(name, make, ["small_product"], passes=engine.Passes.CLEAN)


@engine.KeepFirst
def _compile_vector_products(dtype: DType) -> engine.Code | None:
    name, make = f"vector products of {dtype.name}", partial(vector_products_ir, dtype)
    exports = ["rows_by_vector", "columns_by_vector", "dot_product"]
    return engine.build_once(name, make, exports, passes=engine.Passes.FUNCTIONS)


def make_product_variant(op: Operator, key: int) -> StructMemory:
    """Return the variant of a key; for mixed dtypes, one that falls back to Python."""
    one, two = key & 31, key >> CODE_BITS & 31
    code = compile_product(CODES[one]) if one == two and one < len(CODES) else None
    return make_variant(key, code, None if code is None else CODES[one])


def make_call_table(
    sizes: Sequence[int], strides: Sequence[int], axes: Sequence[Axis] = (), *, is_sum: bool = False
) -> list[int]:
    """Return the table of a call of `rt_products.multiply`.

    Args:
        sizes: m, k, n.
        strides: in bytes, those of a (m, k), b (k, n) and c (m).
        axes: the leading axes: size, and the strides of a, b and c; 0 where an operand repeats.
        is_sum: whether the products are summed up in one result.
    """
    counts, steps = [count for count, *_ in axes], [step for _, *steps in axes for step in steps]
    return [*sizes, *strides, int(is_sum), len(axes), *counts, *steps]


def multiply(a: Any, b: Any, out: Any) -> bool:
    """Multiply two arrays of one dtype with the code that hot and jitted calls run.

    Args:
        a, b: arrays whose shapes fit.
        out: a C-contiguous array for the result.

    Returns:
        Whether there is native code for the dtype; if not, `out` is untouched.
    """
    code = compile_product(dt.as_dtype(a.dtype))
    if code is None:
        return False
    if not a.shape[-1]:
        out[...] = 0
        return True
    if not out.size:
        return True
    words = _make_array_table(a if a.ndim > 1 else a[None], b if b.ndim > 1 else b[:, None], out)
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(code["loop"])
    function(a.ctypes.data, b.ctypes.data, out.ctypes.data, ctypes.addressof(words))
    return True


def _make_array_table(one: Any, two: Any, out: Any) -> Any:
    """Return the table of the product of two arrays of matrices, as a C array."""
    m, k, n = (int(size) for size in (*one.shape[-2:], two.shape[-1]))
    lead = tuple(np.broadcast_shapes(one.shape[:-2], two.shape[:-2]))
    across = [
        [step if size != 1 else 0 for size, step in zip(lead, whole.strides[:-2], strict=True)]
        for whole in (np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (one, two))
    ]
    axes = list(zip(lead, *across, out.reshape(*lead, m, n).strides[:-2], strict=True))
    strides = [*one.strides[-2:], *two.strides[-2:], n * out.itemsize]
    table = make_call_table((m, k, n), strides, axes)
    return (ctypes.c_int64 * len(table))(*table)


__all__ = ["compile_product", "is_served", "make_call_table", "make_product_variant", "multiply"]
