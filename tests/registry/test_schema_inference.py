"""Schemas inferred from type hints: each hint, each kind of default, each error."""

from __future__ import annotations

import numbers
import re
from collections.abc import Sequence
from typing import Any, List, Optional, Tuple, Union  # noqa: UP035

import pytest
import tandem as td
from tandem.errors import SchemaError
from tandem.registry.dtypes import DType
from tandem.registry.schemas.parser import parse_schema

Tensor = td.Tensor


def f_plain(x: Tensor, y: Optional[Tensor] = None, z: Tensor | None = None) -> Tensor: ...  # noqa: UP045
def f_lists(x: list[Tensor], y: Sequence[int], z: List[Optional[Tensor]], b: list[bool]) -> list[Tensor]: ...  # noqa: UP006, UP045
def f_numbers(i: int = -1, f: float = 1e-05, b: bool = True, c: complex = 2j, s: str = 'a"b') -> None: ...
def f_scalars(a: int | float, b: Union[int, float] = 1.5, c: numbers.Number | None = None) -> Tensor: ...  # noqa: UP007
def f_dtypes(d: DType = td.int8, e: DType | None = None) -> tuple[Tensor, int, float, bool]: ...
def f_keywords(
    x: Tensor, *, k: list[int] | None = None, j: float = float("inf")
) -> Tuple[Tensor, Tensor]: ...  # noqa: UP006
def f_nothing() -> tuple[()]: ...


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (f_plain, "f(Tensor x, Tensor? y=None, Tensor? z=None) -> Tensor"),
        (f_lists, "f(Tensor[] x, SymInt[] y, Tensor?[] z, bool[] b) -> Tensor[]"),
        (f_numbers, r'f(SymInt i=-1, float f=1e-05, bool b=True, complex c=2.0j, str s="a\"b") -> ()'),
        (f_scalars, "f(Scalar a, Scalar b=1.5, Scalar? c=None) -> Tensor"),
        (f_dtypes, "f(ScalarType d=int8, ScalarType? e=None) -> (Tensor, SymInt, float, bool)"),
        (f_keywords, "f(Tensor x, *, SymInt[]? k=None, float j=inf) -> (Tensor, Tensor)"),
        (f_nothing, "f() -> ()"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_hints(function, text):
    schema = td.infer_schema(function, op_name="f")
    assert str(schema) == text
    assert parse_schema(text) == schema
    assert str(td.infer_schema(function)) == text[1:]


def test_the_name():
    schema = td.infer_schema(f_plain, op_name="ns::f.o")
    assert (schema.namespace, schema.name, schema.overload) == ("ns", "f", "o")
    with pytest.raises(SchemaError, match="column 0"):
        td.infer_schema(f_plain, op_name="3f")


def test_mutation():
    assert (
        str(td.infer_schema(f_plain, ["x", "z"]))
        == "(Tensor(a0!) x, Tensor? y=None, Tensor(a2!)? z=None) -> Tensor"
    )
    assert str(td.infer_schema(f_lists, {"x"})).startswith("(Tensor(a0!)[] x, ")
    unknown = td.infer_schema(f_plain, "unknown")
    assert [argument.is_write for argument in unknown.arguments] == [True] * 3 and unknown.kind == "mutable"
    with pytest.raises(SchemaError, match="mutates_args names 'w', and the parameters are x, y, z"):
        td.infer_schema(f_plain, ["w"])
    with pytest.raises(SchemaError, match=r"for one name write \['x'\]"):
        td.infer_schema(f_plain, "x")
    with pytest.raises(SchemaError, match="'i', which is SymInt: only tensors can be written"):
        td.infer_schema(f_numbers, ["i"])


def g_unhinted(x, y: Tensor) -> Tensor: ...
def g_no_result(x: Tensor): ...
def g_dict(x: dict[str, Tensor]) -> Tensor: ...
def g_any(x: Any) -> Tensor: ...
def g_tuple(x: tuple[int, int]) -> Tensor: ...
def g_nested(x: list[list[int]]) -> Tensor: ...
def g_union(x: int | str) -> Tensor: ...
def g_args(*x: Tensor) -> Tensor: ...
def g_kwargs(**x: Tensor) -> Tensor: ...
def g_positional(x: Tensor, /) -> Tensor: ...
def g_default(x: int = 1.5) -> Tensor: ...
def g_none(x: float = None) -> Tensor: ...  # noqa: RUF013
def g_complex(x: complex = 1 + 2j) -> Tensor: ...
def g_string(x: NoSuchName) -> Tensor: ...  # noqa: F821
def g_result(x: Tensor) -> str: ...
def g_results(x: Tensor) -> tuple[Tensor, ...]: ...


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (g_unhinted, "the parameter 'x' has no type hint"),
        (g_no_result, "the result has no type hint; write -> None"),
        (g_dict, "the parameter 'x' has the hint dict"),
        (g_any, "the parameter 'x' has the hint Any"),
        (g_tuple, "the parameter 'x' has the hint tuple[int, int]; write list"),
        (g_nested, "the parameter 'x' has the hint"),
        (g_union, "the parameter 'x' has the hint int | str"),
        (g_args, "the parameter 'x' is variadic positional"),
        (g_kwargs, "the parameter 'x' is variadic keyword"),
        (g_positional, "the parameter 'x' is positional-only"),
        (g_default, "the default 1.5 of the parameter 'x' is no SymInt"),
        (g_none, "the default None of the parameter 'x' is no float; for None write Optional"),
        (g_complex, "the default (1+2j) of the parameter 'x' has no literal"),
        (g_string, "NoSuchName"),
        (g_result, "the result has the hint str"),
        (g_results, "the result has the hint"),
        (3, "takes a function"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_faults(function, text):
    with pytest.raises(SchemaError, match=re.escape(text)) as caught:
        td.infer_schema(function)
    if callable(function):
        assert "accepted hints: Tensor, int" in str(caught.value) and function.__name__ in str(caught.value)
