"""Check a C signature against the prototype that ctypes or cffi has of the function."""

from __future__ import annotations

import ctypes
from typing import Any

from ..errors import SchemaError
from ..operators.foreign.c_signature import TYPES, CSignature
from ..registry.dtypes import DType

POINTER = "pointer"
_DTYPES: dict[Any, DType] = {
    ctypes.c_float: TYPES["float"],
    ctypes.c_double: TYPES["double"],
    ctypes.c_bool: TYPES["bool"],
    **{
        getattr(ctypes, f"c_{name}"): TYPES[name]
        for name in TYPES
        if hasattr(ctypes, f"c_{name}") and "int" in name
    },
}
CType = DType | str | None  # a number, POINTER, or unknown (void for a signature's result)
Prototype = tuple[list[CType], CType]  # the types of the parameters and of the result


def check_prototype(function: Any, signature: CSignature) -> None:
    """Raise SchemaError if a signature contradicts the prototype of a C function.

    Args:
        function: a ctypes function, or the cffi type of a function.
        signature: the signature that the function is registered with.

    Raises:
        SchemaError: the number of parameters, the type of a parameter, or the type of the result differs.
    """
    prototype = _read_ctypes(function) if hasattr(function, "argtypes") else _read_cffi(function)
    if prototype is None:
        return
    params, result = prototype
    if len(params) != len(signature.params):
        raise SchemaError(
            f"C signature {signature.text!r} has {len(signature.params)} parameters, but the function takes "
            f"{len(params)}; {_FIX}"
        )
    for index, (expected, param) in enumerate(zip(params, signature.params)):
        declared: CType = POINTER if param.is_pointer else param.dtype
        if expected is not None and expected != declared:
            raise SchemaError(
                f"C signature {signature.text!r}: parameter {index} is {_describe_type(declared)}, but the function "
                f"takes {_describe_type(expected)}; {_FIX}"
            )
    if result is not None and result != signature.result:
        raise SchemaError(
            f"C signature {signature.text!r}: the result is {_describe_type(signature.result)}, but the function "
            f"returns {_describe_type(result)}; {_FIX}"
        )


_FIX = "correct the signature, or the types declared in ctypes or cffi"


def _describe_type(ctype: Any) -> str:
    return "a pointer" if ctype == POINTER else "void" if ctype is None else str(ctype.name)


def _read_ctypes(function: Any) -> Prototype | None:
    if function.argtypes is None:
        return None
    # c_int is the default restype of ctypes, so it may be unset
    result = None if function.restype is ctypes.c_int else _DTYPES.get(function.restype)
    return [_read_ctypes_type(ctype) for ctype in function.argtypes], result


def _read_ctypes_type(ctype: Any) -> CType:
    pointers = (ctypes.c_void_p, ctypes.c_char_p, ctypes._Pointer)
    return POINTER if isinstance(ctype, type) and issubclass(ctype, pointers) else _DTYPES.get(ctype)


def _read_cffi(ctype: Any) -> Prototype | None:
    if ctype.kind != "function" or ctype.ellipsis:
        return None
    return [_read_cffi_type(arg) for arg in ctype.args], _read_cffi_type(ctype.result)


def _read_cffi_type(ctype: Any) -> CType:
    return POINTER if ctype.kind == "pointer" else TYPES.get(ctype.cname)
