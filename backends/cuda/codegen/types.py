"""C types and literals of the dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....registry import dtypes as dt
from ....registry.dtypes import DType

CTYPE = {
    dt.bool_: "bool",
    dt.int8: "signed char",
    dt.int16: "short",
    dt.int32: "int",
    dt.int64: "long long",
    dt.uint8: "unsigned char",
    dt.uint16: "unsigned short",
    dt.uint32: "unsigned",
    dt.uint64: "unsigned long long",
    dt.float16: "float16",
    dt.bfloat16: "bfloat16",
    dt.float32: "float",
    dt.float64: "double",
    dt.complex64: "complex64",
    dt.complex128: "complex128",
}
"""Dtype -> C type."""


def literal(value: Any, dtype: DType) -> str:
    """A constant of a dtype.

    >>> from tandem.registry import dtypes as dt
    >>> literal(0.1, dt.float32), literal(float("-inf"), dt.float64), literal(2**63, dt.uint64)
    ('0.1f', '-__longlong_as_double(0x7ff0000000000000LL)', '9223372036854775808ULL')
    """
    if dtype in dt.HALVES:
        name = f"to_{dtype.name}"
        return f"{name}({_float(float(value), dt.float32)})"
    if dtype.kind == "c":
        real, number = (dt.float32 if dtype is dt.complex64 else dt.float64), complex(value)
        return f"{CTYPE[dtype]}{{{_float(number.real, real)}, {_float(number.imag, real)}}}"
    if dtype.kind == "f":
        return _float(float(value), dtype)
    if dtype is dt.bool_:
        return "true" if value else "false"
    return _integer(int(value), dtype)


def _integer(value: int, dtype: DType) -> str:
    suffix = {dt.int64: "LL", dt.uint64: "ULL", dt.uint32: "U"}.get(dtype, "")
    lowest = dtype.kind == "i" and dtype.bits >= 32 and value == -(2 ** (dtype.bits - 1))
    text = f"({value + 1}{suffix} - 1)" if lowest else f"{value}{suffix}"
    return text if dtype.bits >= 32 else f"({CTYPE[dtype]}){text}"


def _float(value: float, dtype: DType) -> str:
    single = dtype is dt.float32
    with np.errstate(over="ignore"):
        number = np.float32(value) if single else np.float64(value)
    if np.isnan(number):
        return "__int_as_float(0x7fc00000)" if single else "__longlong_as_double(0x7ff8000000000000LL)"
    if np.isinf(number):
        sign = "-" if number < 0 else ""
        return sign + (
            "__int_as_float(0x7f800000)" if single else "__longlong_as_double(0x7ff0000000000000LL)"
        )
    text = str(number)
    text = text if any(c in text for c in ".e") else f"{text}.0"
    return f"{text}f" if single else text


def bare(text: str) -> str:
    """An expression without its outer parentheses."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for index, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0 and index < len(text) - 1:
            return text
    return text[1:-1]
