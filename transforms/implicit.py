"""Implicit differentiation: derivatives of solutions, whatever found them.

A solution ``x`` of ``f(x) = 0`` is found with nothing recorded. Then ``x - S(f(x))`` is ``x`` again, and with ``S`` the
inverse of the derivative of ``f`` by ``x``, held constant, its first derivatives are those of the solution. Each
repetition makes one more order right, so there is one for each transform around the call. ``S`` is a linear function
with a rule of its own, and is never differentiated through.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import pytree
from ..eager.construct import asarray
from ..eager.level_stack import reopened, stack
from ..eager.levels import LevelTensor
from ..eager.modes import no_grad
from ..eager.node import zeros_of
from ..eager.tensor import Tensor
from ..errors import ArgumentError, RuleError, ShapeError, TreeError
from ..registry.values import describe
from .custom_rules import ForwardRule, Leaves, ReverseRule, call
from .forward import jvp, linear_transpose
from .reverse import root_at, stop_gradient

EAGER_ORDERS = 2  # how often backward passes of tensors that require gradients may be differentiated

Solve = Callable[..., Any]


def custom_root(
    f: Callable[[Any], Any], initial_guess: Any, solve: Solve, tangent_solve: Solve, has_aux: bool = False
) -> Any:
    """A root of a function, differentiated by what the function reaches by closures.

    Args:
        f: a function of a tree of tensors that gives such a tree.
        initial_guess: where the search begins.
        solve: ``solve(f, initial_guess)`` gives the root; with ``has_aux`` a pair of that and anything else. It is not
            differentiated: loops, NumPy and anything else may be used.
        tangent_solve: ``tangent_solve(g, y)`` gives ``x`` with ``g(x) = y`` for a linear function ``g``; reverse mode
            transposes it.
        has_aux: whether ``solve`` gives such a pair.

    Returns:
        The root, with ``has_aux`` ``(root, aux)``.

    Raises:
        ArgumentError: something is no function, or ``f`` gives another tree than it takes.

    >>> import tandem as td
    >>> def newton(f, x):
    ...     for _ in range(30):
    ...         x = x - f(x) / td.grad(f)(x)
    ...     return x
    >>> def sqrt(a):
    ...     return td.custom_root(lambda x: x * x - a, 1.0, newton, lambda g, y: y / g(1.0))
    >>> td.grad(sqrt)(4.0), td.grad(td.grad(sqrt))(4.0)
    (tensor(0.25), tensor(-0.03125))
    """
    _check("custom_root", f=f, solve=solve, tangent_solve=tangent_solve)
    with no_grad():
        found = solve(f, stop_gradient(initial_guess))
    root, aux = _split("custom_root", found, has_aux)
    _check_like("custom_root", "solve", root, "the initial guess", initial_guess)
    start = stop_gradient(root)

    def derivative(v: Any) -> Any:
        return jvp(f, (start,), (v,))[1]

    def residual(x: Any) -> Any:
        value = f(x)
        _check_like("custom_root", "f", value, "its argument", x)
        return _negative(value)

    def solve_tangents(g: Any, y: Any) -> Any:
        solution = tangent_solve(g, y)
        _check_like("custom_root", "tangent_solve", solution, "its argument", y)
        return solution

    result = _corrected(start, residual, derivative, solve_tangents, None)
    return (result, aux) if has_aux else result


def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: Any,
    solve: Solve,
    transpose_solve: Solve | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """The solution of ``matvec(x) = b``, differentiated by ``b`` and by what ``matvec`` reaches by closures.

    Args:
        matvec: a linear function of a tree of tensors.
        b: a tree like what it gives.
        solve: ``solve(matvec, b)`` gives ``x``; with ``has_aux`` a pair of that and anything else. It is not
            differentiated where ``transpose_solve`` or ``symmetric`` says how to transpose it.
        transpose_solve: ``transpose_solve(vecmat, b)`` solves the transposed system.
        symmetric: whether ``matvec`` is its own transpose, so that ``solve`` serves both.
        has_aux: whether ``solve`` gives such a pair.

    Returns:
        The solution, with ``has_aux`` ``(solution, aux)``.

    Raises:
        ArgumentError: something is no function.
        RuleError: reverse mode needs ``solve`` transposed, and it cannot be followed; it raises in the backward pass.

    >>> import tandem as td
    >>> def halves(a, b):
    ...     return td.custom_linear_solve(lambda x: a * x, b, lambda mv, y: y / mv(td.ones(2)))
    >>> td.grad(lambda a: halves(a, td.ones(2)).sum())(td.asarray([2.0, 4.0])).tolist()
    [-0.25, -0.0625]
    """
    _check("custom_linear_solve", matvec=matvec, solve=solve)
    with no_grad():
        found = solve(matvec, stop_gradient(b))
    solution, aux = _split("custom_linear_solve", found, has_aux)

    def plain_solve(g: Any, y: Any) -> Any:
        return _split("custom_linear_solve", solve(g, y), has_aux)[0]

    def solve_transposed(g: Any, y: Any) -> Any:
        other: Any = transpose_solve(g, y)  # type: ignore[misc]
        _check_like("custom_linear_solve", "transpose_solve", other, "b", b)
        return other

    back = plain_solve if symmetric else None if transpose_solve is None else solve_transposed

    def residual(x: Any) -> Any:
        product = matvec(x)
        _check_like("custom_linear_solve", "matvec", product, "b", b)
        return pytree.map_tree(lambda one, two: one - two, b, product)

    result = _corrected(stop_gradient(solution), residual, matvec, plain_solve, back)
    return (result, aux) if has_aux else result


def _check(name: str, **functions: Any) -> None:
    for argument, value in functions.items():
        if not callable(value):
            raise ArgumentError(f"{name}: {argument} is a function, not {describe(value)}")


def _check_like(name: str, what: str, found: Any, other: str, like: Any) -> None:
    """Refuse a result that is not of the structure and the shapes of something."""
    leaves, treedef = pytree.flatten(found)
    wanted, there = pytree.flatten(like)
    if treedef != there:
        raise TreeError(
            f"{name}: {what}() gives another structure than {other}{pytree.difference(there, treedef)}"
        )
    for leaf, item, path in zip(leaves, wanted, treedef.paths()):
        if asarray(leaf).shape != asarray(item).shape:
            at = f" at {path}" if path else ""
            raise ShapeError(
                f"{name}: {what}() gives shape {asarray(leaf).shape}{at}, and {other} has {asarray(item).shape}"
            )


def _split(name: str, found: Any, has_aux: bool) -> tuple[Any, Any]:
    if not has_aux:
        return found, None
    if not isinstance(found, tuple) or len(found) != 2:
        raise ArgumentError(f"{name}: with has_aux=True solve gives a pair, not {describe(found)}")
    return found


def _negative(tree: Any) -> Any:
    return pytree.map_tree(lambda leaf: -leaf, tree)


def _corrected(
    start: Any,
    residual: Callable[[Any], Any],
    matvec: Callable[[Any], Any],
    solve: Solve,
    transpose_solve: Solve | None,
) -> Any:
    """The solution with its derivatives: one correction for each order that the levels around can ask for."""
    found, orders, done = start, sum(level.run is None for level in stack.levels), 0
    while True:
        left = residual(found)
        if done == 0:
            orders += EAGER_ORDERS * any(
                isinstance(x, Tensor) and x.requires_grad for x in pytree.leaves(left)
            )
        if done >= orders:
            return found
        step = _solve_constant(matvec, solve, transpose_solve, left, start)
        found = pytree.map_tree(lambda x, dx: x + dx, found, step)
        done += 1


def _is_forward(leaves: Leaves) -> bool:
    """Whether the innermost level that differentiates, among those of the values, is one of ``jvp``."""
    levels = []
    for leaf in leaves:
        while isinstance(leaf, LevelTensor):
            levels += [leaf._level] if leaf._level.run is None else []
            leaf = leaf._payload
    return bool(levels) and max(levels, key=lambda level: level.depth).forward is not None


def _followed(matvec: Callable[[Any], Any], solve: Solve) -> Callable[[Any], Any]:
    """``solve`` as a function of the right-hand side, which is to be transposed as it stands."""

    def followed(y: Any) -> Any:
        found = solve(matvec, y)
        levels = {leaf._level for leaf in pytree.leaves(y) if isinstance(leaf, LevelTensor)}
        results = [leaf for leaf in pytree.leaves(found) if isinstance(leaf, Tensor)]
        if not any(root_at(level, leaf) for level in levels for leaf in results):
            raise RuleError(
                "custom_linear_solve: reverse mode transposes solve, and what it gives does not depend on b as far as "
                "derivatives can see (stop_gradient, or numbers taken out of tensors); give transpose_solve, or say "
                "symmetric=True"
            )
        return found

    return followed


def _solve_constant(
    matvec: Callable[[Any], Any], solve: Solve, transpose_solve: Solve | None, b: Any, like: Any
) -> Any:
    """``x`` with ``matvec(x) = b``, a linear function of ``b`` alone, whose transpose is the other ``solve``."""
    leaves, treedef = pytree.flatten(b)
    outdef = pytree.flatten(like)[1]
    zeros = treedef.unflatten([zeros_of(leaf.spec) for leaf in leaves])
    owner, levels, floor = object(), list(stack.levels), stack.floor

    def ahead(given: Leaves) -> Leaves:
        with no_grad(), reopened(levels, floor):
            return pytree.leaves(solve(matvec, treedef.unflatten(given)))

    def back(given: Leaves) -> Leaves:
        with no_grad(), reopened(levels, floor):
            if transpose_solve is None:
                whole = linear_transpose(_followed(matvec, solve), zeros)
                return pytree.leaves(whole(outdef.unflatten(given))[0])
            transposed = linear_transpose(matvec, like)
            return pytree.leaves(transpose_solve(lambda v: transposed(v)[0], outdef.unflatten(given)))

    def push(given: Leaves, tangents: Leaves) -> tuple[Leaves, Leaves]:
        filled = [zeros_of(x.spec) if t is None else t for x, t in zip(given, tangents)]
        return forwards(given), forwards(filled)

    def forwards(given: Leaves) -> Leaves:
        if _is_forward(given):  # without the transpose, which may be unknown
            return call(ForwardRule("solve", owner, ahead, push), given)
        return call(
            ReverseRule("solve", owner, ahead, lambda g, _: (forwards(g), []), lambda _, g: backwards(g)),
            given,
        )

    def backwards(given: Leaves) -> Leaves:
        return call(
            ReverseRule("transpose", owner, back, lambda g, _: (backwards(g), []), lambda _, g: forwards(g)),
            given,
        )

    return outdef.unflatten(forwards(leaves))
