"""Powers of complex numbers with one real exponent for all lanes: products where the exponent is whole and small."""

from __future__ import annotations

from ....operators.scalar_ir import expr
from ....operators.scalar_ir.expr import apply, arg, const
from ....registry import dtypes as dt
from ....registry.dtypes import DType
from .nodes import count_factors, emit_expr, is_product
from .text import PARTS, REGISTER, Function, Module

# exponents with code of their own, the most frequent first
_CASES = (2.0, 1.0, 3.0, 4.0, -1.0, -2.0, 0.5, 0.0)
_COMPLEX = {PARTS[dtype]: dtype for dtype in (dt.complex64, dt.complex128)}


def uniform_power(f: Function, part: DType, z: str, exponent: str) -> str:
    """Return the powers: a call of a function of one vector, which branches on the exponent.

    See ``expr.uniform_power``.
    """
    name = f"uniform_pow_complex_{REGISTER[part]}_{f.lanes}" + "_split" * f.is_split
    if name not in f.module.parts:
        f.module.helper(name, _write_helper(f.module, name, _COMPLEX[part], f.lanes, f.is_split))
    pairs = f.register_type(_COMPLEX[part])
    return f.op(f"call {pairs} @{name}({pairs} {z}, {pairs} {exponent})")


def _write_helper(module: Module, name: str, dtype: DType, lanes: int, is_split: bool) -> str:
    f = Function(module, lanes)
    f.is_split = is_split
    pairs, element = f.register_type(dtype), REGISTER[PARTS[dtype]]
    z, b = arg(0, dtype), arg(1, dtype)
    real, _ = f.split_parts(element, "%b")
    exponent = f.op(f"extractelement {f.vec(element)} {real}, i64 0")
    for number in _CASES:
        with f.when(f.op(f"fcmp oeq {element} {exponent}, {number!r}")):
            f.do(f"ret {pairs} {emit_expr(f, expr.uniform_power(z, const(number, dtype)), '%z')}")
            f.label(f.fresh("never"))
    with f.when(is_product(f, PARTS[dtype], exponent)):
        f.do(f"ret {pairs} {_multiply(f, dtype, exponent)}")
        f.label(f.fresh("never"))
    f.do(f"ret {pairs} {emit_expr(f, apply('pow', z, b), '%z', '%b')}")
    return f.text(f"internal {pairs} @{name}({pairs} %z, {pairs} %b) #0")


def _multiply(f: Function, dtype: DType, exponent: str) -> str:
    """Return the product of ``expr.multiply_repeatedly``, or its inverse, in a loop over the bits of the exponent."""
    pairs, x, y = f.register_type(dtype), arg(0, dtype), arg(1, dtype)
    negative, count = count_factors(f, PARTS[dtype], exponent)
    first = [(pairs, "%z"), (pairs, "%z"), ("i1", "true")]
    with f.loop("0", str(expr.LARGEST_PRODUCT.bit_length()), "1", first) as loop:
        product, square, is_first = loop.carried
        bit = f.op(f"trunc i64 {f.op(f'lshr i64 {count}, {loop.index}')} to i1")
        longer = f.op(
            f"select i1 {is_first}, {pairs} {square}, {pairs} {emit_expr(f, x * y, product, square)}"
        )
        loop.next = [
            f.op(f"select i1 {bit}, {pairs} {longer}, {pairs} {product}"),
            emit_expr(f, x * x, square),
            f.op(f"select i1 {bit}, i1 false, i1 {is_first}"),
        ]
    product = loop.carried[0]
    return f.op(
        f"select i1 {negative}, {pairs} {emit_expr(f, apply('truediv', 1, x), product)}, {pairs} {product}"
    )
