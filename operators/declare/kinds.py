"""Kinds of operators: functions that declare an operator and fill in the fields that its kind determines.

They correspond to ``unop``, ``naryop`` and ``standard_reduction`` in JAX's ``lax.py``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ...errors import ShapeError
from ...registry.dtypes import DType
from ...registry.schemas.parser import parse_schema
from ...registry.values import TensorSpec
from . import batching
from .declaration import Declaration, declare
from .derivatives import Derivative, NotDifferentiable
from .docstrings import elementwise_doc, make_docstring, reduction_doc, scan_doc
from .ownership import copy_shared_results
from .shape_rules import (
    broadcast_shapes,
    check_rank,
    common_device,
    compute_dtype,
    normalize_axes,
    normalize_axis,
    promote_numbers,
    reduced_shape,
    result_dtype,
    spec_of,
)
from .view_spec import view_shape_rule

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Function, Operand, ShapeRule, Tensor
    from ..scalar_ir.fold import Fold
    from .declaration import Errors, Samples
    from .view_spec import ViewRule

R = TypeVar("R")


# -- elementwise -------------------------------------------------------------------------------------------------------
def elementwise_shape_rule(name: str, result: str, dtypes: Sequence[DType]) -> Callable[..., TensorSpec]:
    """The shape and dtype rule of an elementwise operator: broadcast, promote, check."""

    def shape_rule(*args: Operand) -> TensorSpec:
        computed = compute_dtype(name, result, dtypes, args)
        shape = broadcast_shapes(name, *(spec_of(arg).shape for arg in args))
        return TensorSpec(shape, result_dtype(result, computed), common_device(name, args))

    return shape_rule


def elementwise(
    kind: str,
    schema: str,
    body: Function,
    *,
    doc: str,
    dtypes: Sequence[DType],
    text: str = "",
    example: str = "",
    result: str = "same",
    **fields: Any,
) -> OperatorFunction[Tensor]:
    """Declare an operator with a scalar body; see also :func:`unary` and :func:`binary`.

    Args:
        kind: ``"unary"``, ``"binary"``, ``"comparison"`` or ``"ternary"``.
        schema: the schema.
        body: the scalar body.
        doc: one sentence.
        dtypes: the accepted dtypes.
        text: the sections Args, Returns and Raises of the docstring; empty: those of the kind.
        example: ``"call -> result"``, a doctest.
        result: the rule for the result's dtype; see :class:`.declaration.Declaration`.
        fields: the other fields of :class:`.declaration.Declaration`.

    Returns:
        The operator's function.
    """
    parsed = parse_schema(schema)
    if result == "bool":
        fields.setdefault("derivative", NotDifferentiable(f"{parsed.name} returns bools"))
    fields.setdefault("shape_rule", elementwise_shape_rule(parsed.name, result, dtypes))
    fields.setdefault("batching", batching.elementwise)
    fields.setdefault("errors", ("samples.kinds.elementwise_errors", len(parsed.arguments), dtypes))
    words = make_docstring(doc, text or elementwise_doc(parsed, dtypes, result), example)
    return declare(
        Declaration(schema=schema, kind=kind, body=body, result=result, dtypes=dtypes, doc=words, **fields)
    )


def unary(
    name: str,
    body: Function,
    *,
    domain: tuple[float, float] = (-3.0, 3.0),
    special: Iterable[tuple[Any, ...]] = (),
    **fields: Any,
) -> OperatorFunction[Tensor]:
    """Declare an elementwise operator of one tensor.

    Args:
        name: its name.
        body: the scalar body, ``body(x)``.
        domain: the interval of the tests' random values.
        special: tuples of values to test in addition to random ones and the edge values of the dtype.
        fields: of :func:`elementwise` and of :class:`.declaration.Declaration`: doc and example, reference, dtypes,
            result, derivative, ...; ``result`` is ``"same"``, ``"float"`` (integers become the default float),
            ``"bool"``, ``"real"`` or ``"complex"``.

    Returns:
        The operator's function.
    """
    fields.setdefault("samples", ("samples.kinds.unary_samples", domain, tuple(special)))
    return elementwise("unary", f"{name}(Tensor self) -> Tensor", body, **fields)


def binary(
    name: str,
    body: Function,
    *,
    domain: tuple[float, float] = (-3.0, 3.0),
    special: Iterable[tuple[Any, ...]] = (),
    **fields: Any,
) -> OperatorFunction[Tensor]:
    """Declare an elementwise operator of two tensors; the arguments are those of :func:`unary`."""
    kind = "comparison" if fields.get("result") == "bool" else "binary"
    fields.setdefault("samples", ("samples.kinds.binary_samples", domain, tuple(special)))
    return elementwise(kind, f"{name}.Tensor(Tensor self, Tensor other) -> Tensor", body, **fields)


# -- reductions and scans ----------------------------------------------------------------------------------------------
def reduction_shape_rule(
    name: str, dtype_of: Callable[[DType], DType], dtypes: Sequence[DType], needs_elements: bool = False
) -> Callable[..., TensorSpec]:
    """The shape rule of a reduction over ``axis`` with ``keepdims`` (and ``dtype``, if the schema has it)."""

    def shape_rule(
        self: TensorSpec,
        axis: int | tuple[int, ...] | None = None,
        *,
        keepdims: bool = False,
        dtype: DType | None = None,
    ) -> TensorSpec:
        spec = spec_of(self)
        compute_dtype(name, "same", dtypes, (spec,))
        axes = normalize_axes(
            name, axis if axis is None or isinstance(axis, tuple) else (axis,), len(spec.shape)
        )
        if needs_elements and any(spec.shape[axis] == 0 for axis in axes):
            raise ShapeError(f"{name}: there are no elements to reduce in {spec} over axes {axes}")
        return TensorSpec(
            reduced_shape(spec.shape, axes, keepdims), dtype or dtype_of(spec.dtype), spec.device
        )

    return shape_rule


def reduction(
    name: str,
    fold: Fold,
    *,
    doc: str,
    dtypes: Sequence[DType],
    example: str = "",
    dtype_of: Callable[[DType], DType] = lambda d: d,
    **fields: Any,
) -> OperatorFunction[Tensor]:
    """Declare a reduction that is a fold.

    Args:
        name: its name.
        fold: how elements are combined.
        doc: one sentence.
        dtypes: the accepted dtypes.
        example: ``"call -> result"``, a doctest.
        dtype_of: a function from the dtype of the argument to that of the result.
        fields: the other fields of :class:`.declaration.Declaration`; ``schema`` replaces the default one.

    Returns:
        The operator's function.
    """
    schema = fields.pop("schema", f"{name}(Tensor self, int[]? axis=None, *, bool keepdims=False) -> Tensor")
    words = make_docstring(doc, reduction_doc(parse_schema(schema), dtypes, fold.needs_elements), example)
    fields.setdefault("shape_rule", reduction_shape_rule(name, dtype_of, dtypes, fold.needs_elements))
    fields.setdefault("batching", batching.reduction if "int[]" in schema else batching.index_reduction)
    fields.setdefault("samples", f"samples.kinds.{'reduction' if fold.needs_elements else 'fold'}_samples")
    fields.setdefault("errors", ("samples.kinds.fold_errors", fold.needs_elements, "int[]" in schema))
    return declare(
        Declaration(schema=schema, kind="reduction", fold=fold, dtypes=dtypes, doc=words, **fields)
    )


def scan_shape_rule(
    name: str, dtype_of: Callable[[DType], DType], dtypes: Sequence[DType]
) -> Callable[..., TensorSpec]:
    """The shape rule of a scan along ``axis``, or over the flattened tensor."""

    def shape_rule(self: TensorSpec, axis: int | None = None, *, dtype: DType | None = None) -> TensorSpec:
        spec = spec_of(self)
        compute_dtype(name, "same", dtypes, (spec,))
        if axis is not None:
            normalize_axis(name, axis, len(spec.shape))
        shape = (spec.size,) if axis is None else spec.shape
        return TensorSpec(shape, dtype or dtype_of(spec.dtype), spec.device)

    return shape_rule


def scan(
    name: str,
    fold: Fold,
    *,
    doc: str,
    dtypes: Sequence[DType],
    example: str = "",
    dtype_of: Callable[[DType], DType] = lambda d: d,
    **fields: Any,
) -> OperatorFunction[Tensor]:
    """Declare a scan, a fold that returns all partial results; the arguments are those of :func:`reduction`.

    Raises:
        ValueError: the fold returns an index.
    """
    if fold.returns_index:
        raise ValueError(f"{name}: the partial results of {fold!r} are values, not indices")
    schema = f"{name}(Tensor self, int? axis=None, *, ScalarType? dtype=None) -> Tensor"
    fields.setdefault("shape_rule", scan_shape_rule(name, dtype_of, dtypes))
    fields.setdefault("batching", batching.scan)
    fields.setdefault("samples", "samples.kinds.scan_samples")
    fields.setdefault("errors", "samples.kinds.reduction_errors")
    words = make_docstring(doc, scan_doc(dtypes), example)
    return declare(Declaration(schema=schema, kind="scan", fold=fold, dtypes=dtypes, doc=words, **fields))


# -- views -------------------------------------------------------------------------------------------------------------
def view(schema: str, rule: ViewRule, **fields: Any) -> OperatorFunction[Tensor]:
    """Declare an operator that returns a view of its first argument.

    Args:
        schema: the schema, with ``Tensor(a)`` for the argument and the result.
        rule: ``rule(layout, *arguments)``, from the layout of the tensor to that of the view; see :mod:`.view_spec`.
        fields: the other fields of :class:`.declaration.Declaration`; ``shape_rule``, which may check more, and
            ``kernel``, a faster function of NumPy, replace those that follow from the rule. A view as another dtype
            has both.

    Returns:
        The operator's function.
    """
    name = schema.partition("(")[0]
    shape_rule = check_result_rank(name, fields.pop("shape_rule", None) or view_shape_rule(rule))
    return declare(Declaration(schema=schema, kind="view", shape_rule=shape_rule, view=rule, **fields))


# -- other kinds -------------------------------------------------------------------------------------------------------
def check_result_rank(name: str, shape_rule: ShapeRule) -> ShapeRule:
    """Wrap a shape rule so that it rejects results with more axes than an array can have.

    Not all of NumPy's functions check this: ``numpy.take`` writes out of bounds for a result of 65 axes.
    """

    @functools.wraps(shape_rule)
    def rule(*args: object, **kwargs: object) -> TensorSpec | tuple[TensorSpec, ...]:
        result = shape_rule(*args, **kwargs)
        for spec in result if type(result) is tuple else (result,):
            if isinstance(spec, TensorSpec):
                check_rank(name, spec.shape)
        return result

    return rule


@overload
def array_op(
    kind: str, schema: str, shape_rule: Callable[..., TensorSpec], kernel: Function, **fields: Any
) -> OperatorFunction[Tensor]: ...


@overload
def array_op(
    kind: str, schema: str, shape_rule: Callable[..., tuple[TensorSpec, ...]], kernel: Function, **fields: Any
) -> OperatorFunction[tuple[Tensor, ...]]: ...


@overload
def array_op(
    kind: str, schema: str, shape_rule: ShapeRule, kernel: Function, **fields: Any
) -> OperatorFunction[Any]: ...


def array_op(
    kind: str, schema: str, shape_rule: ShapeRule, kernel: Function, **fields: Any
) -> OperatorFunction[Any]:
    """Declare an operator with an array kernel ``kernel(xp, *arguments)``: a view, gather, scan, creation, ...

    ``xp`` is numpy or cupy. The kernel receives tensors as arrays of ``xp``, and other arguments as the schema declares
    them. A view's kernel returns a view of its first argument; views are declared with :func:`view`, because compiled
    code copies the elements of a view without a rule.
    """
    rule = check_result_rank(schema.partition("(")[0], shape_rule)
    return declare(Declaration(schema=schema, kind=kind, shape_rule=rule, kernel=kernel, **fields))


def composite(
    schema: str,
    *,
    doc: str,
    reference: str | Function,
    samples: Samples,
    dtypes: Sequence[DType],
    explicit: bool = False,
    eager_kernel: Function | None = None,
    derivative: Derivative | None = None,
    shape_rule: ShapeRule | None = None,
    tolerance: Mapping[str, float] | None = None,
    errors: Errors | None = None,
    owns: bool = True,
    promotes: bool = False,
    aliases: tuple[str, ...] = (),
    spellings: Mapping[str, str] | None = None,
    variadic: bool | str | None = None,
    ignored: tuple[str, ...] = (),
    result_type: type[tuple[Any, ...]] | None = None,
    **fields: Any,
) -> Callable[[Callable[..., R]], OperatorFunction[R]]:
    """Declare an operator whose body, the decorated function, calls other operators.

    A result that shares memory with an argument is copied, unless the schema declares a view or ``owns`` is False.
    ``promotes``: the body gets Python numbers beside tensors as tensors of the promoted dtype. Bodies that reshape or
    join their arguments need it; elementwise ones, whose operators promote numbers, do not.
    """

    def wrap(body: Callable[..., R]) -> OperatorFunction[R]:
        body = promote_numbers(parse_schema(schema), body) if promotes else body
        return declare(
            Declaration(
                schema=schema,
                kind="composite",
                doc=doc,
                body=copy_shared_results(parse_schema(schema), body) if owns else body,
                reference=reference,
                samples=samples,
                dtypes=dtypes,
                explicit=explicit,
                eager_kernel=eager_kernel,
                derivative=derivative,
                shape_rule=shape_rule,
                tolerance=tolerance or {},
                errors=errors,
                aliases=aliases,
                spellings=spellings or {},
                variadic=variadic,
                ignored=ignored,
                result_type=result_type,
                **fields,
            )
        )

    return wrap
