"""Check a C signature against the types that ctypes or cffi know of the function."""

from __future__ import annotations

import ctypes
from typing import Any

from ..errors import SchemaError
from ..operators.foreign.c_signature import TYPES, CSignature
from ..registry.dtypes import DType

POINTER = "pointer"
_NUMBERS: dict[Any, DType] = {
    ctypes.c_float: TYPES["float"],
    ctypes.c_double: TYPES["double"],
    ctypes.c_bool: TYPES["bool"],
    **{
        getattr(ctypes, f"c_{name}"): TYPES[name]
        for name in TYPES
        if hasattr(ctypes, f"c_{name}") and "int" in name
    },
}
KnownType = DType | str | None  # a number, POINTER, or not known


def check_own_types(typed: Any, signature: CSignature) -> None:
    """Raise SchemaError if a signature contradicts the function's own types.

    Args:
        typed: a ctypes function, or the cffi type of a function.
        signature: the signature that the function is registered with.

    Raises:
        SchemaError: the number of parameters, the type of a parameter, or the type of the result differs.
    """
    own = _read_ctypes(typed) if hasattr(typed, "argtypes") else _read_cffi(typed)
    if own is None:
        return
    params, result = own
    if len(params) != len(signature.params):
        raise SchemaError(
            f"C signature {signature.text!r}: {len(signature.params)} parameters, and the function takes {len(params)}"
        )
    for index, (known, param) in enumerate(zip(params, signature.params)):
        given: KnownType = POINTER if param.is_pointer else param.dtype
        if known is not None and known != given:
            raise SchemaError(
                f"C signature {signature.text!r}: parameter {index} is {_describe_type(given)}, and the function takes "
                f"{_describe_type(known)}"
            )
    if result is not None and result != signature.result:
        raise SchemaError(
            f"C signature {signature.text!r}: the result is {_describe_type(signature.result)}, and the function gives "
            f"{_describe_type(result)}"
        )


def _describe_type(known: Any) -> str:
    return "a pointer" if known == POINTER else "void" if known is None else f"a number, {known.name}"


def _read_ctypes(function: Any) -> tuple[list[KnownType], KnownType] | None:
    if function.argtypes is None:
        return None
    # c_int is the default restype of ctypes, so it may be unset
    result = None if function.restype is ctypes.c_int else _NUMBERS.get(function.restype)
    return [_read_ctypes_type(kind) for kind in function.argtypes], result


def _read_ctypes_type(kind: Any) -> KnownType:
    pointers = (ctypes.c_void_p, ctypes.c_char_p, ctypes._Pointer)
    return POINTER if isinstance(kind, type) and issubclass(kind, pointers) else _NUMBERS.get(kind)


def _read_cffi(kind: Any) -> tuple[list[KnownType], KnownType] | None:
    if kind.kind != "function" or kind.ellipsis:
        return None
    return [_read_cffi_type(one) for one in kind.args], _read_cffi_type(kind.result)


def _read_cffi_type(kind: Any) -> KnownType:
    return POINTER if kind.kind == "pointer" else TYPES.get(kind.cname)
