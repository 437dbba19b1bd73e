"""What a C function says about its own types, where it does: beside the signature that it is registered with."""

from __future__ import annotations

import ctypes
from typing import Any

from ..errors import SchemaError
from ..operators.c_signature import TYPES, CSignature
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
Known = DType | str | None  # a number, POINTER, or not known


def check_own_types(typed: Any, signature: CSignature) -> None:
    """Refuse a signature that the function's own types contradict; calls through it would read garbage.

    Args:
        typed: a ctypes function, or the type that cffi has of one.
        signature: what the function is registered with.

    Raises:
        SchemaError: the numbers of parameters differ, or one of them or the result is of another type.
    """
    own = _of_ctypes(typed) if hasattr(typed, "argtypes") else _of_cffi(typed)
    if own is None:
        return
    params, result = own
    if len(params) != len(signature.params):
        raise SchemaError(
            f"C signature {signature.text!r}: {len(signature.params)} parameters, and the function takes {len(params)}"
        )
    for place, (known, param) in enumerate(zip(params, signature.params)):
        given: Known = POINTER if param.is_pointer else param.dtype
        if known is not None and known != given:
            raise SchemaError(
                f"C signature {signature.text!r}: parameter {place} is {_text(given)}, and the function takes "
                f"{_text(known)}"
            )
    if result is not None and result != signature.result:
        raise SchemaError(
            f"C signature {signature.text!r}: the result is {_text(signature.result)}, and the function gives "
            f"{_text(result)}"
        )


def _text(known: Any) -> str:
    return "a pointer" if known == POINTER else "void" if known is None else f"a number, {known.name}"


def _of_ctypes(function: Any) -> tuple[list[Known], Known] | None:
    if function.argtypes is None:
        return None
    # a function of a library whose restype nobody has set claims to give an int
    result = None if function.restype is ctypes.c_int else _NUMBERS.get(function.restype)
    return [_of_ctype(kind) for kind in function.argtypes], result


def _of_ctype(kind: Any) -> Known:
    pointers = (ctypes.c_void_p, ctypes.c_char_p, ctypes._Pointer)
    return POINTER if isinstance(kind, type) and issubclass(kind, pointers) else _NUMBERS.get(kind)


def _of_cffi(kind: Any) -> tuple[list[Known], Known] | None:
    if kind.kind != "function" or kind.ellipsis:
        return None
    return [_of_cffi_type(one) for one in kind.args], _of_cffi_type(kind.result)


def _of_cffi_type(kind: Any) -> Known:
    return POINTER if kind.kind == "pointer" else TYPES.get(kind.cname)
