"""Docstrings of operators: the parts that all operators of a kind share."""

from __future__ import annotations

from collections.abc import Sequence

from ...registry.dtypes import COMPLEX, FLOATS, INTEGERS, DType, bool_
from ...registry.schemas.schema import Schema


def make_docstring(summary: str, text: str, example: str) -> str:
    """A docstring of a summary, the kind's text on arguments and results, and a doctest from ``call -> result``."""
    call, arrow, result = example.partition(" -> ")
    shown = f"\n\n>>> import tandem as td\n>>> {call}.tolist()\n{result}\n" if arrow else "\n"
    return f"{summary}\n\n{text}{shown}"


def _describe_dtypes(dtypes: Sequence[DType]) -> str:
    groups = (("bool", (bool_,)), ("integer", INTEGERS), ("real floating", FLOATS), ("complex", COMPLEX))
    names = [name for name, group in groups if set(group) <= set(dtypes)]
    names = names or [dtype.name for dtype in dtypes]
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


_RESULT_DTYPES = {
    "same": "of the {} dtype",
    "float": "of the {} dtype, or the default float for integers and bools",
    "bool": "of dtype bool",
    "real": "of the {} dtype, or its real part's for complex",
    "complex": "of the complex dtype whose parts have the {} dtype",
}


def elementwise_doc(schema: Schema, dtypes: Sequence[DType], result: str) -> str:
    """Arguments, results and errors of an elementwise operator."""
    names = [argument.name for argument in schema.arguments]
    plural = len(names) > 1
    each = "shapes that broadcast; all but one may be Python scalars" if plural else "any shape"
    raises = ["    DTypeError: the dtype is not supported."]
    if plural:
        raises = [
            "    DTypeError: the promoted dtype is not supported, or the dtypes do not promote.",
            "    ShapeError: the shapes do not broadcast.",
            "    ScalarOverflowError: a Python integer does not fit the dtype of the tensor operand.",
        ]
    inputs = f"    {', '.join(names)}: tensor{'s' * plural} of {_describe_dtypes(dtypes)} dtype; {each}."
    result_dtype = _RESULT_DTYPES[result].format("promoted" if plural else "same")
    returns = f"    A tensor of the {'broadcast' if plural else 'same'} shape, {result_dtype}."
    return "\n".join(["Args:", inputs, "", "Returns:", returns, "", "Raises:", *raises])


def reduction_doc(schema: Schema, dtypes: Sequence[DType], needs_elements: bool) -> str:
    """Arguments, results and errors of a reduction."""
    several = any(argument.name == "axis" and argument.type.is_list for argument in schema.arguments)
    typed = any(argument.name == "dtype" for argument in schema.arguments)
    lines = [
        "Args:",
        f"    self: tensor of {_describe_dtypes(dtypes)} dtype, any shape.",
        f"    axis: an axis, {'several, ' * several}or None for all; negative axes count from the last.",
        *["    dtype: dtype of the result; by default the tensor's, int64 or uint64 for integers."] * typed,
        "    keepdims: whether reduced axes remain, with length 1.",
        "",
        "Returns:",
        "    A tensor of the reduced shape.",
        "",
        "Raises:",
        "    DTypeError: the dtype is not supported.",
        "    OutOfBoundsError: an axis is out of bounds.",
        *["    ShapeError: an axis occurs twice."] * several,
        *["    ShapeError: there are no elements to reduce."] * needs_elements,
    ]
    return "\n".join(lines)


def scan_doc(dtypes: Sequence[DType]) -> str:
    """Arguments, results and errors of a scan."""
    return f"""Args:
    self: tensor of {_describe_dtypes(dtypes)} dtype, any shape.
    axis: the axis, or None for the flattened tensor.
    dtype: dtype of the result; by default the tensor's, int64 or uint64 for integers.

Returns:
    A tensor of the same shape, or 1-d if `axis` is None.

Raises:
    DTypeError: the dtype is not supported.
    OutOfBoundsError: the axis is out of bounds."""
