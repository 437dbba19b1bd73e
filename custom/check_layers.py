"""Tests of layers for ``opcheck``: gradients against finite differences, vmap against a loop, jit against eager."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from ..eager.tensor.tensor import Tensor, wrap
from ..errors import DTypeError, NotDifferentiableError, TandemError, UnsupportedError
from ..jit.api import jit
from ..operators.declare.declaration import Declaration
from ..operators.declare.derivatives import Custom, NotDifferentiable, reverse_rules
from ..registry.dtypes import float64
from ..transforms.vmap import vmap
from .tested_call import CheckFailure, CheckSkipped, Leaf, Subject, copy_tensor

if TYPE_CHECKING:
    from ..registry.types import Args, Array
    from .tested_call import Bound

STEP = {"float64": 1e-6, "float32": 1e-2}
TOLERANCE = {"float64": 1e-5, "float32": 2e-2}


# -- autograd ----------------------------------------------------------------------------------------------------------
def check_autograd(subject: Subject) -> None:
    """Check that the gradient equals finite differences, or that its absence is declared."""
    if subject.op.schema.is_mutable:
        raise CheckSkipped("it writes into its arguments")
    leaves = [leaf for leaf in subject.leaves() if leaf.tensor.dtype.kind == "f"]
    wide = _to_float64(subject)
    results = [
        r for r in subject.call(*_copy_arguments(wide)) if isinstance(r, Tensor) and r.dtype.kind == "f"
    ]
    if not leaves or not results:
        raise CheckSkipped("no floating-point argument, or no such result")
    reason = _declared_reason(subject)
    if reason is not None:
        _check_declared_absence(subject, wide, reason)
        raise CheckSkipped(f"it has no derivative: {reason}")
    rng = np.random.default_rng(0)
    cotangents = [rng.standard_normal(r.shape) for r in results]
    gradients = _gradients(subject, wide, cotangents)
    if subject.is_custom:
        _check_cotangents_unwritten(subject, wide, cotangents)
    for leaf, gradient in gradients:
        _check_gradient(subject, wide, leaf, gradient, cotangents, rng)


def _copy_arguments(bound: Bound) -> Bound:
    args, kwargs = bound

    def visit(value: object) -> object:
        if isinstance(value, Tensor):
            return copy_tensor(value)
        return tuple(map(visit, value)) if isinstance(value, tuple) else value

    return tuple(map(visit, args)), {name: visit(value) for name, value in kwargs.items()}


def _to_float64(subject: Subject) -> Bound:
    """Copy the arguments with floats cast to float64, if the operator accepts it."""

    def wide(x: Tensor) -> Tensor:
        return wrap(x.detach()._array.astype(float64.np)) if x.dtype.kind == "f" else copy_tensor(x)

    bound = subject.replace_tensors(wide)
    try:
        subject.call(*_copy_arguments(bound))
    except (TandemError, TypeError, ValueError, DTypeError):
        return subject.copied()
    return bound


def _declared_reason(subject: Subject) -> str | None:
    """Return the declared reason for a missing derivative; None with a derivative or for a composite."""
    decl = subject.op.decl
    if not isinstance(decl, Declaration):
        return (
            None if subject.op.registered("CompositeImplicit") is not None else "it was defined without one"
        )
    if isinstance(decl.derivative, NotDifferentiable):
        return decl.derivative.reason
    return "its declaration has none" if decl.derivative is None and decl.kind != "composite" else None


def _check_declared_absence(subject: Subject, bound: Bound, reason: str) -> None:
    """Check that backward raises without a derivative, rather than silently dropping the gradient."""
    if "a new tensor" in reason or getattr(subject.op.decl, "kind", "") in ("creation", "random"):
        return
    recorded, tensors = _call_recorded(subject, bound)
    out = _weighted_sum(recorded, [np.ones(r.shape) for r in recorded])
    if out is None or not out.requires_grad:
        if any(t.requires_grad for t in tensors) and subject.op.schema.namespace != "td":
            raise CheckFailure(
                "its results require no gradient though its arguments do: the gradient would be lost silently; "
                f"register one, {subject.stem}.register_autograd(backward, setup_context)"
            )
        return
    try:
        out.backward()
    except NotDifferentiableError:
        return


def _call_recorded(subject: Subject, bound: Bound) -> tuple[list[Tensor], list[Tensor]]:
    """Return the floating-point results of a recorded call, and its tensors in the order of the leaves."""
    args, kwargs = _copy_arguments(bound)
    tensors = [leaf.tensor for leaf in subject.leaves(args, kwargs)]
    for tensor in tensors:
        if tensor.dtype.kind == "f":
            tensor.requires_grad_()
    result = subject.call(args, kwargs)
    return [r for r in result if isinstance(r, Tensor) and r.dtype.kind == "f"], tensors


def _weighted_sum(results: list[Tensor], cotangents: list[Array]) -> Tensor | None:
    total = None
    for result, weight in zip(results, cotangents):
        if result.requires_grad:
            part = (result * wrap(np.asarray(weight, result.dtype.np))).sum()
            total = part if total is None else total + part
    return total


def _gradients(subject: Subject, bound: Bound, cotangents: list[Array]) -> list[tuple[Leaf, Tensor | None]]:
    results, tensors = _call_recorded(subject, bound)
    total = _weighted_sum(results, cotangents)
    if total is None and not _has_dependency(subject, bound, cotangents):
        return []
    if total is None:
        raise CheckFailure(
            "its results require no gradient though its arguments do: the gradient would be lost silently; "
            f"register one, {subject.stem}.register_autograd(backward, setup_context), but no kernel of an Autograd key"
        )
    try:
        total.backward()
    except Exception as fault:
        raise CheckFailure(
            f"its backward fails: {type(fault).__name__}: {fault}; backward(ctx, *grads) takes one gradient per result "
            f"and returns one per argument of {subject.op.schema}, None for those that have none"
        ) from None
    return [
        (leaf, tensor.grad) for leaf, tensor in zip(subject.leaves(), tensors) if tensor.dtype.kind == "f"
    ]


def _check_cotangents_unwritten(subject: Subject, bound: Bound, cotangents: list[Array]) -> None:
    """Check that backward does not write to its cotangents, which other operators may share."""
    for result, weight in zip(_call_recorded(subject, bound)[0], cotangents):
        if not result.requires_grad:
            continue
        cotangent = wrap(np.array(weight, result.dtype.np))
        before = cotangent._array.tobytes()
        result.backward(cotangent, retain_graph=True)
        if cotangent._array.tobytes() != before:
            raise CheckFailure(
                "its backward writes into its cotangent, which other operators receive too; write into "
                "g.clone(), or use operators that return new tensors"
            )


def _has_dependency(subject: Subject, bound: Bound, cotangents: list[Array]) -> bool:
    """Return whether the results depend on the floating-point arguments, from declaration or differences."""
    decl = subject.op.decl
    if (
        isinstance(decl, Declaration)
        and decl.derivative is not None
        and not isinstance(decl.derivative, Custom)
    ):
        return bool(reverse_rules(decl.derivative))
    rng = np.random.default_rng(1)
    leaves = subject.leaves(*bound)
    moves = [
        (index, 1e-3 * rng.standard_normal(leaf.tensor.shape))
        for index, leaf in enumerate(leaves)
        if leaf.tensor.dtype.kind == "f"
    ]
    return any(_central_difference(subject, bound, index, move, cotangents) for index, move in moves)


def _check_gradient(
    subject: Subject,
    bound: Bound,
    leaf: Leaf,
    gradient: Tensor | None,
    cotangents: list[Array],
    rng: np.random.Generator,
) -> None:
    """Compare the gradient of one argument with central differences along random directions."""
    leaves = subject.leaves(*bound)
    index = [one.name for one in leaves].index(leaf.name)
    tensor = leaves[index].tensor
    if gradient is not None and (gradient.shape, gradient.dtype) != (tensor.shape, tensor.dtype):
        raise CheckFailure(
            f"the gradient for {leaf.name!r} is {gradient.spec}, and the argument {tensor.spec}"
        )
    step = STEP.get(tensor.dtype.name, 0.05)
    tolerance = max(TOLERANCE.get(tensor.dtype.name, 0.1), subject.rtol or 0.0)
    for _ in range(3):
        direction = rng.standard_normal(tensor.shape)
        numeric = _central_difference(subject, bound, index, direction * step, cotangents) / (2 * step)
        exact = (
            0.0
            if gradient is None
            else float(np.sum(gradient.detach().numpy().astype(np.float64) * direction))
        )
        size = max(abs(numeric), abs(exact), 1.0)
        if np.isfinite(numeric) and abs(numeric - exact) > tolerance * size:
            missing = "there is none" if gradient is None else f"along a random direction it is {exact:.6g}"
            raise CheckFailure(
                f"its gradient for {leaf.name!r} is wrong: {missing}, and differences of the function give "
                f"{numeric:.6g}; correct what backward returns for {leaf.argument.name!r}"
                + (" (None says that the result does not depend on it)" if gradient is None else "")
            )


def _central_difference(
    subject: Subject, bound: Bound, index: int, move: Array, cotangents: list[Array]
) -> float:
    values = []
    for sign in (1, -1):
        tensors = [copy_tensor(leaf.tensor) for leaf in subject.leaves(*bound)]
        array = tensors[index]._array
        tensors[index] = wrap(np.asarray(array + sign * move).astype(array.dtype))
        args, kwargs = subject.with_tensors(tensors)
        items = [r for r in subject.call(args, kwargs) if isinstance(r, Tensor) and r.dtype.kind == "f"]
        values.append(
            sum(float(np.sum(r.detach().numpy().astype(np.float64) * c)) for r, c in zip(items, cotangents))
        )
    return values[0] - values[1]


# -- vmap --------------------------------------------------------------------------------------------------------------
def check_vmap(subject: Subject) -> None:
    """Check that vmap equals a loop over the examples."""
    if subject.op.schema.is_mutable:
        raise CheckSkipped("it writes into its arguments")
    if "random" in subject.effects or getattr(subject.op.decl, "kind", "") in ("random", "creation"):
        raise CheckSkipped("it depends on no tensor, or on random numbers")
    leaves = subject.leaves()
    if not leaves:
        raise CheckSkipped("no argument is a tensor")
    count = len(leaves)
    patterns = [(True,) * count] + [tuple(j == i for j in range(count)) for i in range(count) if count > 1]
    for pattern in patterns:
        for axis in (0, -1):
            _check_batch(subject, leaves, pattern, axis)


def _make_examples(leaves: list[Leaf], pattern: tuple[bool, ...]) -> list[list[Array]]:
    """Make three examples: the arguments, and the arguments with their elements in another order."""
    result = []
    for shift in range(3):
        arrays = [leaf.tensor.detach()._array for leaf in leaves]
        result.append([rearrange_elements(a, shift) if batched else a for a, batched in zip(arrays, pattern)])
    return result


def rearrange_elements(array: Array, shift: int) -> Array:
    """The elements rotated by ``shift``, as another example for an operator.

    Sorted elements stay sorted, because binary searches are defined for these only: one replaces all smaller ones.
    """
    values, in_order = array.reshape(-1), np.sort(array, None)
    if values.size and (np.array_equal(in_order, values) or np.array_equal(in_order, values[::-1])):
        result: Array = np.maximum(array, in_order[shift % values.size])
    else:
        result = np.roll(values, shift).reshape(array.shape)
    return result


def _check_batch(subject: Subject, leaves: list[Leaf], pattern: tuple[bool, ...], axis: int) -> None:
    examples = _make_examples(leaves, pattern)
    try:
        loop = [
            subject.call(*subject.with_tensors([wrap(a.copy()) for a in example])) for example in examples
        ]
    except TandemError:
        raise CheckSkipped("the operator refuses its arguments in another order") from None
    if any(not isinstance(r, Tensor) for results in loop for r in results):
        raise CheckSkipped("its results are not all tensors")
    tensors = [[r for r in results if isinstance(r, Tensor)] for results in loop]
    if any(r.spec != s.spec for results in tensors for r, s in zip(results, tensors[0])):
        raise CheckSkipped("the shapes of its results depend on the data")
    wanted = tuple(wrap(np.stack([results[k]._array for results in tensors])) for k in range(len(tensors[0])))
    stacked = [
        wrap(np.stack([example[k] for example in examples], axis)) if batched else wrap(examples[0][k].copy())
        for k, batched in enumerate(pattern)
    ]

    def run(*tensors: Tensor) -> object:
        args, kwargs = subject.with_tensors(tensors)
        return subject.op(*args, **kwargs)

    named = ", ".join(leaf.name for leaf, batched in zip(leaves, pattern) if batched)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that there is no rule, and a loop runs it
            result = vmap(run, in_axes=tuple(axis if batched else None for batched in pattern))(*stacked)
    except Exception as fault:
        if subject.op.schema.namespace == "td" and isinstance(fault, UnsupportedError):
            raise CheckSkipped(f"vmap refuses it: {fault}") from None
        raise CheckFailure(
            f"a batch of {named} fails: {type(fault).__name__}: {fault}; correct the rule of "
            f"@{subject.stem}.register_vmap, rule(info, in_dims, *args) -> (result, out_dims), or remove it for a loop"
        ) from None
    differs = subject.differ(result if isinstance(result, tuple) else (result,), wanted)
    if differs:
        raise CheckFailure(
            f"a batch of {named} differs from a loop over its examples ({differs}); correct the rule of "
            f"@{subject.stem}.register_vmap (the batch axis of an argument is the one in in_dims, None: it has none)"
        )


# -- jit ---------------------------------------------------------------------------------------------------------------
def check_jit(subject: Subject) -> None:
    """Check that the compiled operator equals the eager one, for these arguments and similar ones."""
    leaves = subject.leaves()
    if not leaves or "random" in subject.effects:
        raise CheckSkipped("no argument is a tensor, or it is random")

    def run(*tensors: Tensor) -> Args:
        writable = [t.clone() if leaf.argument.is_write else t for t, leaf in zip(tensors, leaves)]
        return subject.call(*subject.with_tensors(writable))

    compiled = jit(run)
    for shift in range(3):
        arrays = [leaf.tensor.detach()._array for leaf in leaves]
        rotated = [rearrange_elements(a, shift) for a in arrays]
        try:
            wanted = subject.call(*subject.with_tensors([wrap(a.copy()) for a in rotated]))
        except TandemError:
            continue  # the operator refuses them in another order
        try:
            result = compiled(*[wrap(a.copy()) for a in rotated])
        except Exception as fault:
            if subject.op.schema.namespace == "td" and isinstance(fault, TandemError):
                raise CheckSkipped(f"jit refuses it: {fault}") from None
            raise CheckFailure(f"it fails under jit: {type(fault).__name__}: {fault}") from None
        differs = subject.differ(result, wanted)
        if differs:
            raise CheckFailure(
                f"the compiled result differs from the eager one ({differs}): a kernel called from compiled code "
                "differs from the eager kernel, or a kernel depends on more than its arguments"
            )
