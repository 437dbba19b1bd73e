"""Kinds of operators: what those of a kind have in common is written here once.

Source: the role that ``unop``, ``naryop`` and ``standard_reduction`` have in JAX's ``lax.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..errors import ShapeError
from ..registry.dtypes import DType
from ..registry.schema_parser import parse_schema
from ..registry.values import TensorSpec
from . import batching
from .declare import Bad, Declaration, Sample, declare
from .derivatives import Derivative, NotDifferentiable
from .documents import documented, elementwise_doc, reduction_doc, scan_doc
from .rules import (
    broadcast_shapes,
    common_device,
    compute_dtype,
    normalize_axes,
    normalize_axis,
    reduced_shape,
    result_dtype,
    spec_of,
)
from .samples import LAYOUTS as LAYOUTS
from .samples import (
    NEEDS_ELEMENTS,
    Rows,
    binary_samples,
    elementwise_errors,
    fold_errors,
    folding_samples,
    reduction_errors,
    reduction_samples,
    scan_samples,
    unary_samples,
)


# -- elementwise -------------------------------------------------------------------------------------------------------
def elementwise_meta(name: str, result: str, dtypes: Sequence[DType]) -> Callable[..., TensorSpec]:
    """The shape and dtype rule of an elementwise operator: broadcast, promote, check."""

    def meta(*args: Any) -> TensorSpec:
        computed = compute_dtype(name, result, dtypes, args)
        shape = broadcast_shapes(name, *(spec_of(arg).shape for arg in args))
        return TensorSpec(shape, result_dtype(result, computed), common_device(name, args))

    return meta


def elementwise(
    kind: str,
    schema: str,
    body: Callable[..., Any],
    *,
    doc: str,
    dtypes: Sequence[DType],
    text: str = "",
    example: str = "",
    result: str = "same",
    **fields: Any,
) -> Any:
    """Declare an operator with a scalar body; :func:`unary` and :func:`binary` are its short forms.

    Args:
        kind: ``"unary"``, ``"binary"``, ``"comparison"`` or ``"ternary"``.
        schema: the schema.
        body: the scalar body.
        doc: one sentence.
        dtypes: the dtypes that it takes.
        text: arguments, returns and raises for the documentation, where the kind's words do not do.
        example: ``"call -> result"``, a doctest.
        result: the rule of the result's dtype.
        fields: the other fields of :class:`.declare.Declaration`.

    Returns:
        The operator's function.
    """
    parsed = parse_schema(schema)
    if result == "bool":
        fields.setdefault("derivative", NotDifferentiable(f"{parsed.name} gives booleans"))
    fields.setdefault("meta", elementwise_meta(parsed.name, result, dtypes))
    fields.setdefault("batching", batching.elementwise)
    fields.setdefault("errors", lambda: elementwise_errors(len(parsed.arguments), dtypes))
    words = documented(doc, text or elementwise_doc(parsed, dtypes, result), example)
    return declare(
        Declaration(schema=schema, kind=kind, body=body, result=result, dtypes=dtypes, doc=words, **fields)
    )


def unary(
    name: str,
    body: Callable[..., Any],
    *,
    domain: tuple[float, float] = (-3.0, 3.0),
    special: Rows = (),
    **fields: Any,
) -> Any:
    """Declare an elementwise operator of one tensor.

    Args:
        name: its name.
        body: the scalar body, ``body(x)``.
        domain: interval that the tests draw from.
        special: tuples of values to test beside those drawn and those that are tested everywhere (:func:`extremes`).
        fields: of :func:`elementwise` and of :class:`.declare.Declaration`: doc and example, reference, dtypes,
            result, derivative, inplace, ...; ``result`` is ``"same"``, ``"float"`` (integers become the default float),
            ``"bool"`` or ``"real"``.

    Returns:
        The operator's function.
    """
    fields.setdefault("samples", lambda dtype: unary_samples(dtype, domain, tuple(special)))
    return elementwise("unary", f"{name}(Tensor self) -> Tensor", body, **fields)


def binary(
    name: str,
    body: Callable[..., Any],
    *,
    domain: tuple[float, float] = (-3.0, 3.0),
    special: Rows = (),
    **fields: Any,
) -> Any:
    """Declare an elementwise operator of two tensors; the arguments are those of :func:`unary`."""
    kind = "comparison" if fields.get("result") == "bool" else "binary"
    fields.setdefault("samples", lambda dtype: binary_samples(dtype, domain, tuple(special)))
    return elementwise(kind, f"{name}.Tensor(Tensor self, Tensor other) -> Tensor", body, **fields)


# -- reductions and scans ----------------------------------------------------------------------------------------------
def reduction_meta(
    name: str, dtype_of: Callable[[DType], DType], dtypes: Sequence[DType]
) -> Callable[..., TensorSpec]:
    """The rule of a reduction over ``axis`` with ``keepdims`` (and ``dtype``, where the schema has it)."""

    def meta(
        self: Any, axis: Any = None, *, keepdims: bool = False, dtype: DType | None = None
    ) -> TensorSpec:
        spec = spec_of(self)
        compute_dtype(name, "same", dtypes, (spec,))
        axes = normalize_axes(
            name, axis if axis is None or isinstance(axis, tuple) else (axis,), len(spec.shape)
        )
        if name in NEEDS_ELEMENTS and any(spec.shape[axis] == 0 for axis in axes):
            raise ShapeError(f"{name}: no element to choose from in {spec} over axes {axes}")
        return TensorSpec(
            reduced_shape(spec.shape, axes, keepdims), dtype or dtype_of(spec.dtype), spec.device
        )

    return meta


def reduction(
    name: str,
    fold: str,
    *,
    doc: str,
    dtypes: Sequence[DType],
    example: str = "",
    dtype_of: Callable[[DType], DType] = lambda d: d,
    **fields: Any,
) -> Any:
    """Declare a reduction that is a fold.

    Args:
        name: its name.
        fold: the combining fold: ``"sum" "prod" "max" "min" "any" "all" "argmax" "argmin"``.
        doc: one sentence.
        dtypes: the dtypes that it takes.
        example: ``"call -> result"``, a doctest.
        dtype_of: the dtype of the result by that of the argument.
        fields: the other fields of :class:`.declare.Declaration`; ``schema`` replaces the usual one.

    Returns:
        The operator's function.
    """
    schema = fields.pop("schema", f"{name}(Tensor self, int[]? axis=None, *, bool keepdims=False) -> Tensor")
    words = documented(doc, reduction_doc(parse_schema(schema), dtypes), example)
    fields.setdefault("meta", reduction_meta(name, dtype_of, dtypes))
    fields.setdefault("batching", batching.reduction if "int[]" in schema else batching.index_reduction)
    fields.setdefault("samples", reduction_samples if fold in NEEDS_ELEMENTS else folding_samples)
    fields.setdefault("errors", lambda: fold_errors(name, "int[]" in schema))
    return declare(
        Declaration(schema=schema, kind="reduction", reduce=fold, dtypes=dtypes, doc=words, **fields)
    )


def scan_meta(
    name: str, dtype_of: Callable[[DType], DType], dtypes: Sequence[DType]
) -> Callable[..., TensorSpec]:
    """The rule of a scan along ``axis``, or over the flattened tensor."""

    def meta(self: Any, axis: int | None = None, *, dtype: DType | None = None) -> TensorSpec:
        spec = spec_of(self)
        compute_dtype(name, "same", dtypes, (spec,))
        if axis is not None:
            normalize_axis(name, axis, len(spec.shape))
        shape = (spec.size,) if axis is None else spec.shape
        return TensorSpec(shape, dtype or dtype_of(spec.dtype), spec.device)

    return meta


def scan(
    name: str,
    fold: str,
    *,
    doc: str,
    dtypes: Sequence[DType],
    example: str = "",
    dtype_of: Callable[[DType], DType] = lambda d: d,
    **fields: Any,
) -> Any:
    """Declare a scan: a fold that keeps what it had at each element; the arguments are those of :func:`reduction`."""
    schema = f"{name}(Tensor self, int? axis=None, *, ScalarType? dtype=None) -> Tensor"
    fields.setdefault("meta", scan_meta(name, dtype_of, dtypes))
    fields.setdefault("batching", batching.scan)
    fields.setdefault("samples", scan_samples)
    fields.setdefault("errors", reduction_errors)
    words = documented(doc, scan_doc(dtypes), example)
    return declare(Declaration(schema=schema, kind="scan", reduce=fold, dtypes=dtypes, doc=words, **fields))


# -- the others --------------------------------------------------------------------------------------------------------
def library(
    kind: str, schema: str, meta: Callable[..., Any], kernel: Callable[..., Any], **fields: Any
) -> Any:
    """Declare an operator served by an array kernel ``kernel(xp, *arguments)``: a view, gather, scan, creation, ...

    ``xp`` is numpy or cupy; tensors arrive as its arrays, everything else as the schema says. A view's kernel returns a
    view of its first argument's memory.
    """
    return declare(Declaration(schema=schema, kind=kind, meta=meta, kernel=kernel, **fields))


def composite(
    schema: str,
    *,
    doc: str,
    reference: str | Callable[..., Any],
    samples: Callable[[DType], Iterable[Sample]],
    dtypes: Sequence[DType],
    explicit: bool = False,
    derivative: Derivative | None = None,
    meta: Callable[..., Any] | None = None,
    tolerance: Mapping[str, float] | None = None,
    errors: Callable[[], Iterable[Bad]] | None = None,
    method: bool = True,
    autocast: str = "",
) -> Callable[[Callable[..., Any]], Any]:
    """Declare an operator whose body, the decorated function, is written with other operators."""

    def wrap(body: Callable[..., Any]) -> Any:
        return declare(
            Declaration(
                schema=schema,
                kind="composite",
                doc=doc,
                body=body,
                reference=reference,
                samples=samples,
                dtypes=dtypes,
                explicit=explicit,
                derivative=derivative,
                meta=meta,
                tolerance=tolerance or {},
                errors=errors,
                method=method,
                autocast=autocast,
            )
        )

    return wrap
