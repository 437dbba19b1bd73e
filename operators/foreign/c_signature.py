"""C prototypes of kernels: the names of the parameters determine the values that are passed.

``double(double, double)`` is a *scalar function*, applied to each element. With pointers it is a *buffer function*::

    void(const float *x, const float *y, float *out, int64_t out.size, double alpha)

A pointer receives the data of the argument or result of the same name. A number receives a size of such an argument
(``x.size``, ``x.ndim``, ``x.shape[0]``), or the scalar argument of the same name. The result is named ``out``; several
results are named ``out0``, ``out1``, ...
"""

from __future__ import annotations

import functools
import re

from ...errors import SchemaError
from ...named_tuple import NamedTuple
from ...registry import dtypes as dt
from ...registry.dtypes import DType

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
_PARAM = (
    r"\s*(?P<const>const\s+)?(?P<type>\w+)\s*(?P<const2>const\s*)?(?P<stars>\**)\s*"
    r"(?:(?P<name>[A-Za-z_]\w*)(?:\.(?P<what>size|ndim|shape\s*\[\s*(?P<axis>-?\d+)\s*\]))?)?\s*"
)
_HEAD = r"\s*(?P<type>\w+)\s*(?P<stars>\**)\s*(?:[A-Za-z_]\w*\s*)?\("
# compiled at first use: lowering imports this module for its types only
_pattern = functools.cache(re.compile)


class Param(NamedTuple):
    """One parameter.

    Attributes:
        dtype: the type of the number, or of what the pointer points to.
        is_pointer: whether the parameter is a pointer to data.
        is_const: whether the function only reads them.
        name: the name of an argument or a result; empty if the prototype has none.
        what: ``""`` (the data, or the number itself), ``"size"``, ``"ndim"`` or ``"shape"``.
        axis: the axis of ``"shape"``.
        column: its column in the text.
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
        SchemaError: the text is not a prototype, or mixes the two kinds; the error has the column.

    >>> from tandem.operators.foreign.c_signature import parse_c_signature
    >>> str(parse_c_signature("void(const float *x, float *out, int64_t x.size)"))
    'void(const float32 *x, float32 *out, int64 x.size)'
    """
    head = _pattern(_HEAD).match(text)
    if head is None:
        raise _syntax_error(text, 0, "expected the type of the result and a parenthesis, such as 'double('")
    if head["stars"]:
        raise _syntax_error(text, head.start("stars"), "a function that returns a pointer cannot be a kernel")
    result = None if head["type"] == "void" else _parse_type(text, head["type"], head.start("type"))
    end = text.rfind(")")
    if end < head.end() or text[end + 1 :].strip(" ;\n\t"):
        raise _syntax_error(text, len(text), "expected a closing parenthesis at the end")
    params, at = [], head.end()
    for part in text[at:end].split(","):
        if part.strip() not in ("", "void"):
            params.append(_parse_param(text, at, at + len(part)))
        at += len(part) + 1
    return _check_signature(CSignature(result, tuple(params), text))


def _parse_param(text: str, start: int, stop: int) -> Param:
    match = _pattern(_PARAM).fullmatch(text, start, stop)
    if match is None:
        raise _syntax_error(
            text, start, "expected a type and a name, such as 'const float *x' or 'int64_t x.shape[0]'"
        )
    if len(match["stars"]) > 1:
        raise _syntax_error(text, match.start("stars"), "pointers to pointers are not supported")
    pointer = bool(match["stars"])
    const = bool(match["const"] or match["const2"])
    what = (match["what"] or "").partition("[")[0].strip()
    if pointer and what:
        raise _syntax_error(text, match.start("what"), f"{what} is a number, not a pointer")
    column = match.start("const" if match["const"] else "type")
    dtype = _parse_type(text, match["type"], column)
    return Param(
        dtype, pointer, const and pointer, match["name"] or "", what, int(match["axis"] or 0), column
    )


def _parse_type(text: str, name: str, column: int) -> DType:
    if name not in TYPES:
        raise _syntax_error(text, column, f"unknown type {name!r}; the types are {', '.join(TYPES)}")
    return TYPES[name]


def _check_signature(signature: CSignature) -> CSignature:
    text, params = signature.text, signature.params
    pointers = [p for p in params if p.is_pointer]
    if signature.result is not None:
        odd = next((p for p in params if p.is_pointer or p.what), None)
        if odd is not None:
            raise _syntax_error(
                text,
                odd.column,
                "a function that returns a number takes numbers, one element of each argument",
            )
        if not params:
            raise _syntax_error(text, len(text), "a scalar function takes at least one number")
    elif not any(not p.is_const for p in pointers):
        raise _syntax_error(
            text, 0, "a void function writes through a pointer that is not const: 'float *out'"
        )
    return signature


def _syntax_error(text: str, column: int, what: str) -> SchemaError:
    mark = " " * column + "^"
    return SchemaError(f"C signature, column {column}: {what}\n  {text}\n  {mark}", column)
