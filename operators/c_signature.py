"""Signatures of kernels in C: a prototype whose parameters' names say what is passed.

``double(double, double)`` is a *scalar function*, applied to each element. With pointers it is a *buffer function*::

    void(const float *x, const float *y, float *out, int64_t out.size, double alpha)

A pointer is passed the data of the argument or the result that it is called after; a number is passed a size of one
(``x.size``, ``x.ndim``, ``x.shape[0]``) or the number among the arguments that it is called after. Results are ``out``,
or ``out0``, ``out1``, ... where there are several.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..errors import SchemaError
from ..registry import dtypes as dt
from ..registry.dtypes import DType

TYPES: dict[str, DType] = {
    "float": dt.float32,
    "double": dt.float64,
    "bool": dt.bool_,
    "_Bool": dt.bool_,
    "int": dt.int32,
    "long": dt.int64,
    "size_t": dt.uint64,
    "float32": dt.float32,
    "float64": dt.float64,
    **{d.name: d for d in dt.INTEGERS},
    **{f"{d.name}_t": d for d in dt.INTEGERS},
}
_PARAM = re.compile(
    r"\s*(?P<const>const\s+)?(?P<type>\w+)\s*(?P<const2>const\s*)?(?P<stars>\**)\s*"
    r"(?:(?P<name>[A-Za-z_]\w*)(?:\.(?P<what>size|ndim|shape\s*\[\s*(?P<axis>-?\d+)\s*\]))?)?\s*"
)
_HEAD = re.compile(r"\s*(?P<type>\w+)\s*(?P<stars>\**)\s*(?:[A-Za-z_]\w*\s*)?\(")


class Param(NamedTuple):
    """One parameter.

    Attributes:
        dtype: the type of the number, or of what the pointer points to.
        is_pointer: whether data are passed.
        is_const: whether the function only reads them.
        name: of an argument or a result; empty where the prototype gives none.
        what: ``""`` (the data, or the number itself), ``"size"``, ``"ndim"`` or ``"shape"``.
        axis: of ``"shape"``.
        column: where it stands.
    """

    dtype: DType
    is_pointer: bool
    is_const: bool
    name: str
    what: str
    axis: int
    column: int

    def __str__(self) -> str:
        what = f".shape[{self.axis}]" if self.what == "shape" else f".{self.what}" if self.what else ""
        const = "const " if self.is_const else ""
        return f"{const}{self.dtype.name}{' *' if self.is_pointer else ' '}{self.name}{what}".rstrip()


class CSignature(NamedTuple):
    """A prototype: the type of the result (None: void), the parameters, and the text."""

    result: DType | None
    params: tuple[Param, ...]
    text: str

    @property
    def is_scalar(self) -> bool:
        """Whether it is a function of one element of each argument."""
        return self.result is not None

    def __str__(self) -> str:
        result = "void" if self.result is None else self.result.name
        return f"{result}({', '.join(map(str, self.params))})"


def parse_c_signature(text: str) -> CSignature:
    """Parse a prototype.

    Raises:
        SchemaError: it does not parse, or mixes the two kinds; the error has the column.

    >>> from tandem.operators.c_signature import parse_c_signature
    >>> str(parse_c_signature("void(const float *x, float *out, int64_t x.size)"))
    'void(const float32 *x, float32 *out, int64 x.size)'
    """
    head = _HEAD.match(text)
    if head is None:
        raise _fault(text, 0, "expected the type of the result and a parenthesis, such as 'double('")
    if head["stars"]:
        raise _fault(text, head.start("stars"), "a function that returns a pointer cannot be a kernel")
    result = None if head["type"] == "void" else _type(text, head["type"], head.start("type"))
    end = text.rfind(")")
    if end < head.end() or text[end + 1 :].strip(" ;\n\t"):
        raise _fault(text, len(text), "expected a closing parenthesis at the end")
    params, at = [], head.end()
    for part in text[at:end].split(","):
        if part.strip() not in ("", "void"):
            params.append(_param(text, at, at + len(part)))
        at += len(part) + 1
    return _checked(CSignature(result, tuple(params), text))


def _param(text: str, start: int, stop: int) -> Param:
    found = _PARAM.fullmatch(text, start, stop)
    if found is None:
        raise _fault(
            text, start, "expected a type and a name, such as 'const float *x' or 'int64_t x.shape[0]'"
        )
    if len(found["stars"]) > 1:
        raise _fault(text, found.start("stars"), "pointers to pointers are not passed")
    pointer = bool(found["stars"])
    const = bool(found["const"] or found["const2"])
    what = (found["what"] or "").partition("[")[0].strip()
    if pointer and what:
        raise _fault(text, found.start("what"), f"{what} is a number, not a pointer")
    column = found.start("const" if found["const"] else "type")
    dtype = _type(text, found["type"], column)
    return Param(
        dtype, pointer, const and pointer, found["name"] or "", what, int(found["axis"] or 0), column
    )


def _type(text: str, name: str, column: int) -> DType:
    if name not in TYPES:
        raise _fault(text, column, f"unknown type {name!r}; the types are {', '.join(TYPES)}")
    return TYPES[name]


def _checked(signature: CSignature) -> CSignature:
    text, params = signature.text, signature.params
    pointers = [p for p in params if p.is_pointer]
    if signature.result is not None:
        odd = next((p for p in params if p.is_pointer or p.what), None)
        if odd is not None:
            raise _fault(
                text,
                odd.column,
                "a function that returns a number takes numbers, one element of each argument",
            )
        if not params:
            raise _fault(text, len(text), "a scalar function takes at least one number")
    elif not any(not p.is_const for p in pointers):
        raise _fault(text, 0, "a void function writes through a pointer that is not const: 'float *out'")
    return signature


def _fault(text: str, column: int, what: str) -> SchemaError:
    mark = " " * column + "^"
    return SchemaError(f"C signature, column {column}: {what}\n  {text}\n  {mark}", column)
