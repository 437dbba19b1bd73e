"""Checks of an operator under the layers: gradient against differences, batch against loop, jit against eager."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..eager.tensor import Tensor, wrap
from ..errors import DTypeError, NotDifferentiableError, TandemError, UnsupportedError
from ..jit import jit
from ..operators.declare import Declaration
from ..operators.derivatives import Custom, NotDifferentiable, reverse_rules
from ..registry.dtypes import float64
from ..vmap import vmap
from .subject import Fault, Leaf, Skip, Subject, copy_of

STEP = {"float64": 1e-6, "float32": 1e-2}
SLACK = {"float64": 1e-5, "float32": 2e-2}


# -- autograd ----------------------------------------------------------------------------------------------------------
def check_autograd(subject: Subject) -> None:
    """A gradient is registered, reaches every argument, and is that of the function; or its absence is said."""
    if subject.op.schema.is_mutable:
        raise Skip("it writes into its arguments")
    leaves = [leaf for leaf in subject.leaves() if leaf.tensor.dtype.kind == "f"]
    wide = _in_float64(subject)
    results = [r for r in subject.call(*_copied(wide)) if isinstance(r, Tensor) and r.dtype.kind == "f"]
    if not leaves or not results:
        raise Skip("no floating-point argument, or no such result")
    reason = _declared_reason(subject)
    if reason is not None:
        _check_said(subject, wide, reason)
        raise Skip(f"it has no derivative: {reason}")
    rng = np.random.default_rng(0)
    cotangents = [rng.standard_normal(r.shape) for r in results]
    gradients = _gradients(subject, wide, cotangents)
    if subject.is_custom:
        _check_given_gradients(subject, wide, cotangents)
    for leaf, gradient in gradients:
        _check_gradient(subject, wide, leaf, gradient, cotangents, rng)


def _copied(bound: tuple[Any, Any]) -> tuple[Any, Any]:
    args, kwargs = bound

    def visit(value: Any) -> Any:
        if isinstance(value, Tensor):
            return copy_of(value)
        return tuple(map(visit, value)) if isinstance(value, tuple) else value

    return visit(args), {name: visit(value) for name, value in kwargs.items()}


def _in_float64(subject: Subject) -> tuple[Any, Any]:
    """The arguments with their floats in float64, if the operator takes it."""

    def wide(x: Any) -> Any:
        return wrap(x.detach()._array.astype(float64.np)) if x.dtype.kind == "f" else copy_of(x)

    bound = subject.changed(wide)
    try:
        subject.call(*_copied(bound))
    except (TandemError, TypeError, ValueError, DTypeError):
        return subject.copied()
    return bound


def _declared_reason(subject: Subject) -> str | None:
    """Why there is no derivative; None where there is one, or where the operator decomposes."""
    decl = subject.op.decl
    if not isinstance(decl, Declaration):
        return (
            None if subject.op.registered("CompositeImplicit") is not None else "it was defined without one"
        )
    if isinstance(decl.derivative, NotDifferentiable):
        return decl.derivative.reason
    return "its declaration has none" if decl.derivative is None and decl.kind != "composite" else None


def _check_said(subject: Subject, bound: tuple[Any, Any], reason: str) -> None:
    """Without a derivative, backward raises; a result that seems to depend on nothing would be a wrong gradient."""
    if "a new tensor" in reason or getattr(subject.op.decl, "kind", "") in ("creation", "random"):
        return
    recorded, tensors = _recorded(subject, bound)
    out = _total(recorded, [np.ones(r.shape) for r in recorded])
    if out is None or not out.requires_grad:
        if any(t.requires_grad for t in tensors) and subject.op.schema.namespace != "td":
            raise Fault(
                "its results require no gradient though its arguments do: a gradient would be lost without a word; "
                f"register one, {subject.stem}.register_autograd(backward, setup_context)"
            )
        return
    try:
        out.backward()
    except NotDifferentiableError:
        return


def _recorded(subject: Subject, bound: tuple[Any, Any]) -> tuple[list[Any], list[Any]]:
    """The floating-point results of a recorded call, and its tensors in the order of the leaves."""
    args, kwargs = _copied(bound)
    tensors = [leaf.tensor for leaf in subject.leaves(args, kwargs)]
    for tensor in tensors:
        if tensor.dtype.kind == "f":
            tensor.requires_grad_()
    found = subject.call(args, kwargs)
    return [r for r in found if isinstance(r, Tensor) and r.dtype.kind == "f"], tensors


def _total(results: list[Any], cotangents: list[Any]) -> Any:
    total = None
    for result, weight in zip(results, cotangents):
        if result.requires_grad:
            part = (result * wrap(np.asarray(weight, result.dtype.np))).sum()
            total = part if total is None else total + part
    return total


def _gradients(subject: Subject, bound: tuple[Any, Any], cotangents: list[Any]) -> list[tuple[Leaf, Any]]:
    results, tensors = _recorded(subject, bound)
    total = _total(results, cotangents)
    if total is None and not _depends(subject, bound, cotangents):
        return []
    if total is None:
        raise Fault(
            "its results require no gradient though its arguments do: a gradient would be lost without a word; "
            f"register one, {subject.stem}.register_autograd(backward, setup_context), but no kernel of an Autograd key"
        )
    try:
        total.backward()
    except Exception as fault:
        raise Fault(
            f"its backward fails: {type(fault).__name__}: {fault}; backward(ctx, *grads) takes one gradient per result "
            f"and returns one per argument of {subject.op.schema}, None for those that have none"
        ) from None
    return [
        (leaf, tensor.grad) for leaf, tensor in zip(subject.leaves(), tensors) if tensor.dtype.kind == "f"
    ]


def _check_given_gradients(subject: Subject, bound: tuple[Any, Any], cotangents: list[Any]) -> None:
    """Backward does not write into the gradients that it is given, which may be those of other operators too."""
    for result, weight in zip(_recorded(subject, bound)[0], cotangents):
        if not result.requires_grad:
            continue
        given = wrap(np.array(weight, result.dtype.np))
        held = given._array.tobytes()
        result.backward(given, retain_graph=True)
        if given._array.tobytes() != held:
            raise Fault(
                "its backward writes into the gradient that it is given, which other operators get too; use operators "
                "that give a new tensor there, or g.clone()"
            )


def _depends(subject: Subject, bound: tuple[Any, Any], cotangents: list[Any]) -> bool:
    """Whether the results change with the floating-point arguments, unless it is declared that no gradient flows."""
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
        (place, 1e-3 * rng.standard_normal(leaf.tensor.shape))
        for place, leaf in enumerate(leaves)
        if leaf.tensor.dtype.kind == "f"
    ]
    return any(_difference(subject, bound, place, move, cotangents) for place, move in moves)


def _check_gradient(
    subject: Subject, bound: tuple[Any, Any], leaf: Leaf, gradient: Any, cotangents: list[Any], rng: Any
) -> None:
    """Compare the gradient by one argument with central differences along random directions."""
    leaves = subject.leaves(*bound)
    place = [one.name for one in leaves].index(leaf.name)
    tensor = leaves[place].tensor
    if gradient is not None and (gradient.shape, gradient.dtype) != (tensor.shape, tensor.dtype):
        raise Fault(f"the gradient for {leaf.name!r} is {gradient.spec}, and the argument {tensor.spec}")
    step = STEP.get(tensor.dtype.name, 0.05)
    slack = max(SLACK.get(tensor.dtype.name, 0.1), subject.rtol or 0.0)
    for _ in range(3):
        direction = rng.standard_normal(tensor.shape)
        numeric = _difference(subject, bound, place, direction * step, cotangents) / (2 * step)
        exact = (
            0.0
            if gradient is None
            else float(np.sum(gradient.detach().numpy().astype(np.float64) * direction))
        )
        size = max(abs(numeric), abs(exact), 1.0)
        if np.isfinite(numeric) and abs(numeric - exact) > slack * size:
            missing = "there is none" if gradient is None else f"along a random direction it is {exact:.6g}"
            raise Fault(
                f"its gradient for {leaf.name!r} is wrong: {missing}, and differences of the function give "
                f"{numeric:.6g}; correct what backward returns for {leaf.argument.name!r}"
                + (" (None says that the result does not depend on it)" if gradient is None else "")
            )


def _difference(
    subject: Subject, bound: tuple[Any, Any], place: int, move: Any, cotangents: list[Any]
) -> float:
    values = []
    for sign in (1, -1):
        tensors = [copy_of(leaf.tensor) for leaf in subject.leaves(*bound)]
        array = tensors[place]._array
        tensors[place] = wrap(np.asarray(array + sign * move).astype(array.dtype))
        args, kwargs = subject.with_tensors(tensors)
        found = [r for r in subject.call(args, kwargs) if isinstance(r, Tensor) and r.dtype.kind == "f"]
        values.append(
            sum(float(np.sum(r.detach().numpy().astype(np.float64) * c)) for r, c in zip(found, cotangents))
        )
    return values[0] - values[1]


# -- vmap --------------------------------------------------------------------------------------------------------------
def check_vmap(subject: Subject) -> None:
    """A batch gives what a loop over its examples gives."""
    if subject.op.schema.is_mutable:
        raise Skip("it writes into its arguments")
    if "random" in subject.effects or getattr(subject.op.decl, "kind", "") in ("random", "creation"):
        raise Skip("it depends on no tensor, or on random numbers")
    leaves = subject.leaves()
    if not leaves:
        raise Skip("no argument is a tensor")
    count = len(leaves)
    patterns = [(True,) * count] + [tuple(j == i for j in range(count)) for i in range(count) if count > 1]
    for pattern in patterns:
        for axis in (0, -1):
            _check_batch(subject, leaves, pattern, axis)


def _examples(leaves: list[Leaf], pattern: tuple[bool, ...]) -> list[list[Any]]:
    """Three examples: the arguments, and the arguments with their elements in other orders."""
    found = []
    for turn in range(3):
        arrays = [leaf.tensor.detach()._array for leaf in leaves]
        found.append(
            [
                np.roll(a.reshape(-1), turn).reshape(a.shape) if batched else a
                for a, batched in zip(arrays, pattern)
            ]
        )
    return found


def _check_batch(subject: Subject, leaves: list[Leaf], pattern: tuple[bool, ...], axis: int) -> None:
    examples = _examples(leaves, pattern)
    try:
        loop = [
            subject.call(*subject.with_tensors([wrap(a.copy()) for a in example])) for example in examples
        ]
    except TandemError:
        raise Skip("the operator refuses its arguments in another order") from None
    if any(not isinstance(r, Tensor) for results in loop for r in results):
        raise Skip("its results are not all tensors")
    if any(r.spec != s.spec for results in loop for r, s in zip(results, loop[0])):
        raise Skip("the shapes of its results depend on the data")
    wanted = tuple(wrap(np.stack([results[k]._array for results in loop])) for k in range(len(loop[0])))
    stacked = [
        wrap(np.stack([example[k] for example in examples], axis)) if batched else wrap(examples[0][k].copy())
        for k, batched in enumerate(pattern)
    ]

    def run(*tensors: Any) -> Any:
        args, kwargs = subject.with_tensors(tensors)
        return subject.op(*args, **kwargs)

    named = ", ".join(leaf.name for leaf, batched in zip(leaves, pattern) if batched)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that there is no rule, and a loop runs it
            found = vmap(run, in_axes=tuple(axis if batched else None for batched in pattern))(*stacked)
    except Exception as fault:
        if subject.op.schema.namespace == "td" and isinstance(fault, UnsupportedError):
            raise Skip(f"vmap refuses it: {fault}") from None
        raise Fault(
            f"a batch of {named} fails: {type(fault).__name__}: {fault}; correct the rule of "
            f"@{subject.stem}.register_vmap, rule(info, in_dims, *args) -> (result, out_dims), or remove it for a loop"
        ) from None
    differs = subject.differ(found if isinstance(found, tuple) else (found,), wanted)
    if differs:
        raise Fault(
            f"a batch of {named} gives something else than a loop over its examples ({differs}); correct the rule of "
            f"@{subject.stem}.register_vmap (the batch axis of an argument is the one in in_dims, None: it has none)"
        )


# -- jit ---------------------------------------------------------------------------------------------------------------
def check_jit(subject: Subject) -> None:
    """The compiled operator gives what the eager one gives, for these arguments and for others like them."""
    leaves = subject.leaves()
    if not leaves or "random" in subject.effects:
        raise Skip("no argument is a tensor, or it is random")

    def run(*tensors: Any) -> Any:
        made = [t.clone() if leaf.argument.is_write else t for t, leaf in zip(tensors, leaves)]
        return subject.call(*subject.with_tensors(made))

    compiled = jit(run)
    for turn in range(3):
        arrays = [leaf.tensor.detach()._array for leaf in leaves]
        given = [np.roll(a.reshape(-1), turn).reshape(a.shape) for a in arrays]
        try:
            wanted = subject.call(*subject.with_tensors([wrap(a.copy()) for a in given]))
        except TandemError:
            continue  # the operator refuses them in another order
        try:
            found = compiled(*[wrap(a.copy()) for a in given])
        except Exception as fault:
            if subject.op.schema.namespace == "td" and isinstance(fault, TandemError):
                raise Skip(f"jit refuses it: {fault}") from None
            raise Fault(f"it fails under jit: {type(fault).__name__}: {fault}") from None
        differs = subject.differ(found, wanted)
        if differs:
            raise Fault(
                f"compiled it gives something else than eagerly ({differs}): a kernel called from compiled code "
                "computes something else than the eager one, or the kernel depends on more than its arguments"
            )
