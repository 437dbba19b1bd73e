"""Matrix products for one combination of dtypes: the variants of the entry of `matmul`."""

from __future__ import annotations

from typing import Any

from ....registry import dtypes as dt
from ....registry.dtypes import DType
from ....registry.operator import Operator
from ..blas_pointers import pointers
from ..emit.host import host
from . import engine, lang, records, rt_matmul, rt_products
from .folds import machine_type
from .records import CODES, Record
from .rt_operands import CODE_BITS

PREFIX = {dt.float32: "s", dt.float64: "d", dt.complex64: "c", dt.complex128: "z"}
_REAL = {dt.complex64: "f32", dt.complex128: "f64"}


def product_ir(dtype: DType) -> str | None:
    """LLVM IR of the product of two matrices of a dtype, exported as `loop`; None where there is no native one."""
    constants: dict[str, Any] = {"ISIZE": dtype.itemsize, "PARTS": 2 if dtype in _REAL else 1}
    if dtype in PREFIX:
        types = {"T": _REAL.get(dtype) or str(machine_type(dtype))}
        return lang.emit({"loop": rt_products.blas_product}, constants, types) if pointers() else None
    name = machine_type(dtype)
    if name is None or not served(dtype):
        return None
    if dtype.is_integer:
        return lang.emit({"loop": rt_products.wrapping_product}, constants, {"T": name})
    bits = int(dtype is dt.bfloat16)
    constants |= {"I_BITS": bits, "O_BITS": bits, "FOLD": 0, "FLOATING": 1}
    return lang.emit({"loop": rt_products.half_product}, constants, {"I": name, "A": "f32", "O": name})


def served(dtype: DType) -> bool:
    """Whether there is a native product of a dtype (where SciPy publishes BLAS)."""
    return (
        dtype in PREFIX or dtype.is_integer or dtype is dt.bfloat16 or (dtype is dt.float16 and host().f16c)
    )


def imports(dtype: DType) -> dict[str, int]:
    """Addresses of what the product of a dtype calls."""
    found = pointers() if dtype in PREFIX else {}
    return {f"blas_{name}": found[f"blas_{PREFIX[dtype]}{name}"] for name in ("gemm", "gemv") if found}


def product_variant(op: Operator, key: int) -> Record:
    """The variant of a key; one that leaves mixed dtypes to Python."""
    one, two = CODES[key & 31], CODES[key >> CODE_BITS & 31]
    ir = product_ir(one) if one is two else None
    if ir is None:
        return records.variant_record(key, 0, None, ())
    code = engine.compile_ir(ir, ["loop"], imports(one))
    found = records.variant_record(key, code["loop"], one, (), code)
    found.set(rt_matmul.V_BLAS, int(one in PREFIX))
    return found


__all__ = ["product_variant", "served"]
