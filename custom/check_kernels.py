"""Tests of kernels for ``opcheck``: schema, fake, determinism, strided and empty arguments, dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..eager.tensor.tensor import Tensor, wrap
from ..errors import TandemError, UnsupportedError
from ..operators.declare.shape_rules import spec_of
from ..registry.dispatch.keys import DispatchKey
from ..registry.dtypes import ALL, DType, as_dtype
from ..registry.values import TensorSpec, describe
from ..tracer.infer import infer, specs_of
from .op import missing_fake_message
from .tested_call import CheckFailure, CheckSkipped, Leaf, Subject, copy_tensor, make_strided_copies

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeGuard

    from ..registry.types import Args, Array, Kwargs


# -- schema ------------------------------------------------------------------------------------------------------------
def check_schema(subject: Subject) -> None:
    """Check that the operator writes, aliases and returns what its schema declares."""
    args, kwargs = subject.copied()
    leaves = subject.leaves(args, kwargs)
    before = [(leaf.tensor._array.tobytes(), leaf.tensor.storage().version) for leaf in leaves]
    result = subject.op(*args, **kwargs)
    for leaf, (contents, version) in zip(leaves, before):
        _check_written(subject, leaf, contents, version)
    _check_results(subject, result)
    results = result if isinstance(result, tuple) else (result,)
    _check_aliases(subject, leaves, results)
    if subject.op.schema.namespace != "td":
        _check_results_independent(subject, results)
        for leaf, (contents, _) in zip(leaves, before):
            if leaf.argument.is_write and leaf.tensor._array.tobytes() == contents and contents:
                _check_ever_written(subject, leaf.name)


def _check_written(subject: Subject, leaf: Leaf, contents: bytes, version: int) -> None:
    changed = leaf.tensor._array.tobytes() != contents
    name = leaf.argument.name
    if changed and not leaf.argument.is_write:
        fix = (
            f'custom_op("{subject.name}", mutates_args={{"{name}"}})'
            if subject.is_custom
            else f"Tensor(a!) {name} in the schema"
        )
        raise CheckFailure(
            f"it writes into its argument {leaf.name!r}, and the schema does not say so: {subject.op.schema}; declare "
            f"it, {fix}, or work on a copy in the kernel: {name} = {name}.clone()"
        )
    if changed and leaf.tensor.storage().version == version:
        raise CheckFailure(
            f"it writes into {leaf.name!r} without raising its version, so that a backward pass would not notice; "
            f"write with operators ({name}.copy_(value)), or add {name}.storage().version += 1 to the kernel"
        )


def _check_ever_written(subject: Subject, name: str) -> None:
    """Check that a call modifies an argument declared as written, for at least one content of it."""
    for content in (-1, 0, 3):

        def filled(x: Tensor, content: int = content) -> Tensor:
            return wrap(np.full_like(x.detach()._array, content, subok=False))

        leaves = subject.leaves()
        tensors = [filled(leaf.tensor) if leaf.name == name else copy_tensor(leaf.tensor) for leaf in leaves]
        args, kwargs = subject.with_tensors(tensors)
        target = next(tensor for leaf, tensor in zip(leaves, tensors) if leaf.name == name)
        before = target._array.tobytes()
        try:
            subject.op(*args, **kwargs)
        except Exception:  # contents that it does not take say nothing
            return
        if target._array.tobytes() != before:
            return
    raise CheckFailure(
        f"it leaves its argument {name!r} as it was, whatever is in it, and the schema says that it writes it: "
        f"{subject.op.schema}; take it out of mutates_args, write into it ({name}.copy_(value)), or "
        "choose arguments with which it writes"
    )


def _check_results_independent(subject: Subject, results: Args) -> None:
    """Check that the results of two calls do not share memory."""
    args, kwargs = subject.copied()
    result = subject.op(*args, **kwargs)
    for one, other in zip(results, result if isinstance(result, tuple) else (result,)):
        if _is_plain(one) and _is_plain(other) and _shares_memory(one.detach()._array, other.detach()._array):
            raise CheckFailure(
                "two calls give results in the same memory, so the second call changes the result of the first: the "
                "kernel keeps a buffer; return a copy of it, out.clone()"
            )


def _check_results(subject: Subject, results: object) -> None:
    """Check the number and the types of the results against the schema."""
    returns = subject.op.schema.returns
    if not returns:
        if results is not None and results != ():
            raise CheckFailure(
                f"it gives {describe(results)}, and by the schema nothing: {subject.op.schema}"
            )
        return
    if len(returns) == 1 and returns[0].type.core == "Tensor":
        items = results if returns[0].type.is_list else (results,)
    elif isinstance(results, tuple) and len(results) == len(returns):
        items = results if all(r.type.core == "Tensor" for r in returns) else ()
    else:
        items = () if len(returns) == 1 else (None,)
    if not isinstance(items, tuple) or not all(isinstance(item, Tensor) for item in items):
        raise CheckFailure(
            f"it gives {describe(results)}, and by the schema {', '.join(str(r) for r in returns)}; return tensors: "
            "td.asarray(array), or register it with td.numpy_kernel(fn) if it works on arrays"
        )


def _check_aliases(subject: Subject, leaves: list[Leaf], results: Args) -> None:
    arrays = [r.detach()._array if _is_plain(r) else None for r in results]
    returns = subject.op.schema.returns
    for index, array in enumerate(arrays):
        own = (
            returns[0 if len(returns) == 1 else index] if index < len(returns) or len(returns) == 1 else None
        )
        declared = own.type.aliases() if own is not None else ()
        names = {name for alias in declared for name in alias.before}
        for leaf in leaves:
            mine = {name for alias in leaf.argument.type.aliases() for name in alias.before}
            if array is not None and _shares_memory(array, leaf.tensor._array) and not mine & names:
                raise CheckFailure(
                    f"its result{_result_number(index, arrays)} shares memory with the argument {leaf.name!r}, and the "
                    "schema does not say so; return a copy, out.clone()"
                    + (", for results of a custom op are new tensors" if subject.is_custom else "")
                    + f", or declare a view through td.Library: Tensor(a) {leaf.argument.name} ... -> Tensor(a)"
                )
        for other, earlier in enumerate(arrays[:index]):
            if array is not None and earlier is not None and not names and _shares_memory(array, earlier):
                raise CheckFailure(
                    f"its results {other} and {index} share memory; return a copy of one: out.clone()"
                )


def _result_number(index: int, results: Sequence[object]) -> str:
    return f" {index}" if len(results) > 1 else ""


def _is_plain(value: object) -> TypeGuard[Tensor]:
    return isinstance(value, Tensor) and value._keys & 1 << DispatchKey.CPU != 0


def _shares_memory(one: Array, other: Array) -> bool:
    return bool(one.size and other.size and np.may_share_memory(one, other) and np.shares_memory(one, other))


# -- fake --------------------------------------------------------------------------------------------------------------
def check_fake(subject: Subject) -> None:
    """Check that the fake predicts the kernel's results."""
    declared = infer_specs(subject, subject.args, subject.kwargs)
    results = subject.op(*(moved := subject.copied())[0], **moved[1])
    value = results if isinstance(results, tuple) else () if results is None else (results,)
    check_specs(subject, declared, value)


def infer_specs(subject: Subject, args: Args, kwargs: Kwargs) -> tuple[TensorSpec, ...]:
    """Compute the result specs with the fake.

    Raises:
        CheckSkipped: the operator is a composite, or its result shapes are data-dependent.
        CheckFailure: the operator has no fake, or the fake fails without data.
    """
    op = subject.op
    rule = getattr(op.decl, "shape_rule", None)
    if rule is None and op.registered("CompositeImplicit") is not None:
        raise CheckSkipped("it decomposes into operators that have rules of their own")
    if rule is None and op.registered(DispatchKey.Meta) is None:
        if op.schema.namespace == "td":
            raise CheckSkipped("the shape of its result follows from the data")
        raise CheckFailure(missing_fake_message(op))
    try:
        return specs_of(
            infer(op, tuple(map(_to_specs, args)), {name: _to_specs(value) for name, value in kwargs.items()})
        )
    except TandemError as fault:
        if isinstance(fault, UnsupportedError) and op.schema.namespace == "td":
            raise CheckSkipped("the shape of its result follows from the data") from None
        raise CheckFailure(
            f"its fake fails where the kernel works: {fault}\n  a fake sees shapes and dtypes only, never elements"
            if "has no fake" not in str(fault)
            else str(fault)
        ) from None
    except Exception as fault:
        raise CheckFailure(f"its fake raises {type(fault).__name__}: {fault}") from None


def _to_specs(value: object) -> object:
    if isinstance(value, Tensor):
        return spec_of(value)
    return tuple(map(_to_specs, value)) if isinstance(value, tuple) else value


def check_specs(subject: Subject, declared: tuple[TensorSpec, ...], results: Args) -> None:
    """Compare results with the specs of the fake."""
    actual = [r.spec if isinstance(r, Tensor) else describe(r) for r in results]
    if len(actual) != len(declared):
        raise CheckFailure(f"its fake promises {len(declared)} results, and the kernel gives {len(actual)}")
    for index, (spec, real) in enumerate(zip(declared, actual)):
        if spec == real:
            continue
        what = _first_difference(spec, real)
        raise CheckFailure(
            f"its fake promises {spec} for result {index}, and the kernel gives {real}: the {what} is wrong; in "
            f"@{subject.stem}.register_fake return td.empty({getattr(real, 'shape', ())}, dtype=td."
            f"{getattr(getattr(real, 'dtype', None), 'name', '?')}) for these arguments, or correct the kernel"
        )


def _first_difference(spec: TensorSpec, real: object) -> str:
    if getattr(real, "shape", None) != spec.shape:
        return "shape"
    return "dtype" if getattr(real, "dtype", None) is not spec.dtype else "device"


# -- determinism, layouts, no elements ---------------------------------------------------------------------------------
def check_determinism(subject: Subject) -> None:
    """Check that a second call returns the same bits."""
    if "random" in subject.effects or getattr(subject.op.decl, "kind", "") == "random":
        raise CheckSkipped("it is declared to be random")
    first = subject.fresh()
    exact = (
        subject.op.schema.namespace != "td"
    )  # tandem's own may be answered by machine code from some call on
    for _ in range(2):
        again = subject.fresh()
        fault = _describe_difference(first, again) if exact else subject.differ(again, first)
        if fault:
            raise CheckFailure(
                f"another call with the same arguments gives another result ({fault}): the kernel depends on something "
                "that is no argument (Python state, a counter, random numbers, memory that was not written), and jit "
                "may run it any number of times; pass what it needs as an argument"
            )


def _describe_difference(first: Args, second: Args) -> str:
    for index, (one, other) in enumerate(zip(first, second)):
        if isinstance(one, Tensor) and isinstance(other, Tensor):
            if one.spec != other.spec:
                return f"result {index}: {other.spec} after {one.spec}"
            if not np.array_equal(
                one.detach().numpy(), other.detach().numpy(), equal_nan=one.dtype.is_inexact
            ):
                return f"result {index}"
        elif one != other:
            return f"result {index}: {describe(other)} after {describe(one)}"
    return ""


def check_strided(subject: Subject) -> None:
    """Check that results are the same for non-contiguous arguments."""
    if not any(leaf.tensor.shape for leaf in subject.leaves()):
        raise CheckSkipped("no argument has axes")
    wanted = subject.fresh()
    for layout, change in make_strided_copies():
        try:
            result = subject.call(*subject.replace_tensors(change))
        except Exception as fault:
            raise CheckFailure(
                f"it fails on arguments in {layout}: {type(fault).__name__}: {fault}; in the kernel take "
                "x.contiguous(), or numpy.ascontiguousarray(x)"
            ) from None
        differs = subject.differ(result, wanted)
        if differs:
            raise CheckFailure(
                f"with arguments in {layout} it gives something else ({differs}): the kernel takes their memory as "
                "if it were contiguous; take x.contiguous() first"
            )


def check_empty(subject: Subject) -> None:
    """Check that results of empty arguments have the fake's specs, or that the call raises."""
    first = next((leaf.tensor.shape[0] for leaf in subject.leaves() if leaf.tensor.shape), None)
    if first is None:
        raise CheckSkipped("no argument has axes")

    def emptied(x: Tensor) -> Tensor:
        array = x.detach()._array
        return wrap(array[:0].copy() if array.ndim and array.shape[0] == first else array.copy())

    args, kwargs = subject.replace_tensors(emptied)
    try:
        declared = infer_specs(subject, args, kwargs)
    except (CheckFailure, CheckSkipped):
        raise CheckSkipped("its fake refuses, or does not know, arguments without elements") from None
    try:
        results = subject.op(*args, **kwargs)
    except (TandemError, ValueError):
        return
    except Exception as fault:
        raise CheckFailure(
            f"on arguments without elements it fails with {type(fault).__name__}: {fault}; return a result without "
            "elements, or raise td.errors.ShapeError"
        ) from None
    value = results if isinstance(results, tuple) else () if results is None else (results,)
    check_specs(subject, declared, value)


# -- dtypes ------------------------------------------------------------------------------------------------------------
def check_dtypes(subject: Subject) -> None:
    """Check that the operator runs for its declared dtypes, and that the results match the fake."""
    leaves = subject.leaves()
    if not leaves:
        raise CheckSkipped("no argument is a tensor")
    own = leaves[0].tensor.dtype
    declared = declared_dtypes(subject)
    tried = [d for d in declared or ALL if d is own or _is_convertible(d, own)]
    if not tried:
        raise CheckSkipped(f"its dtypes are not about {leaves[0].name}")
    ran = 0
    for dtype in tried:
        args, kwargs = subject.replace_tensors(lambda x, dtype=dtype: _cast(x, own, dtype))  # type: ignore[misc]
        try:
            results = subject.op(*args, **kwargs)
        except Exception as fault:
            if declared and not isinstance(fault, TandemError):
                raise CheckFailure(
                    f"{dtype.name} is among its dtypes, and it fails: {type(fault).__name__}: {fault}"
                ) from None
            if declared and dtype is not own and getattr(subject.op.decl, "kind", "") == "custom":
                raise CheckFailure(f"{dtype.name} is among its dtypes, and it is refused: {fault}") from None
            continue
        ran += 1
        value = results if isinstance(results, tuple) else () if results is None else (results,)
        try:
            expected = infer_specs(subject, args, kwargs)
        except CheckSkipped:
            continue
        try:
            check_specs(subject, expected, value)
        except CheckFailure as fault:
            raise CheckFailure(f"for {dtype.name}: {fault}") from None
    if not ran:
        raise CheckFailure(f"it runs for none of {', '.join(d.name for d in tried)}")


def declared_dtypes(subject: Subject) -> list[DType]:
    """Return the dtypes in the declaration or the registrations; empty if neither has any."""
    items = list(getattr(subject.op.decl, "dtypes", ()) or ())
    entry = subject.op.table[DispatchKey.CPU]
    by_dtype = getattr(entry, "dtypes", None) or {}
    return items or [as_dtype(name) for name in by_dtype]


def _is_convertible(dtype: DType, own: DType) -> bool:
    """Return whether arguments of dtype ``own`` can be converted to ``dtype`` for a test."""
    return dtype.kind == own.kind or (own.kind == "f" and dtype.kind == "f")


def _cast(x: Tensor, own: DType, dtype: DType) -> Tensor:
    array = x.detach()._array
    return wrap(array.astype(dtype.np) if x.dtype is own else array.copy())
