"""Calls of the micro-kernel of small products for products whose sizes and strides are constants."""

from __future__ import annotations

import math

from ....registry.dtypes import DType
from .text import Function, Module
from .tiny_product import TinyProduct, loop_over_axes


def write_product_calls(module: Module, name: str, dtype: DType, product: TinyProduct, kernel: str) -> None:
    """Add ``void name(ptr a, ptr b, ptr c)``, which stores products in ``c``, a contiguous array.

    Args:
        module: the module.
        name: the function's name.
        dtype: float32 or float64.
        product: the products.
        kernel: the name of the function of `small_product.write_small_product`.
    """
    (m, k, n), size = product.sizes, dtype.itemsize
    words = ", ".join(f"i64 {word}" for word in (m, k, n, *product.a, *product.b, n * size))
    module.helper(f"{name}.table", f"@{name}.table = private unnamed_addr constant [8 x i64] [{words}]")
    module.declare("llvm.memset.p0.i64", "void", "ptr", "i8", "i64", "i1")
    module.declare(kernel, "void", *["ptr"] * 5, pure=False)
    f = Function(module, 1)
    count = math.prod(count for count, *_ in product.axes) * m * n
    f.do(f"call void @llvm.memset.p0.i64(ptr %c, i8 0, i64 {count * size}, i1 false)")
    strides = f.address(f"@{name}.table", "24")
    with loop_over_axes(f, product.axes) as pointers:
        given = ", ".join(f"ptr {pointer}" for pointer in (*pointers, f"@{name}.table", strides))
        f.do(f"call void @{kernel}({given})")
    f.do("ret void")
    module.helper(name, f.text(f"internal void @{name}(ptr %a, ptr %b, ptr %c) #1"))
