"""Implicit differentiation: derivatives of solutions, independent of the solver.

A solution ``x`` of ``f(x) = 0`` is computed without recording. Then ``x - S(f(x))`` equals ``x``, and if ``S`` is the
inverse of the derivative of ``f`` at ``x``, treated as a constant, its first derivatives are those of the solution.
Each repetition makes one more order correct, so there is one for each enclosing transform. ``S`` is a linear function
with a rule of its own, and is never differentiated through.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import pytree
from ..eager.autograd.grad_modes import no_grad
from ..eager.autograd.node import zeros_of
from ..eager.layers.level_stack import reopen_levels, stack
from ..eager.layers.levels import LevelTensor
from ..eager.tensor.construct import asarray
from ..eager.tensor.tensor import Tensor
from ..errors import ArgumentError, RuleError, ShapeError, TreeError
from ..registry.values import describe
from .custom_rules import ForwardRule, Leaves, ReverseRule, call
from .forward import jvp, linear_transpose
from .reverse import stop_gradient
from .tapes import root_at
from .zeros import Tangents

if TYPE_CHECKING:
    from ..registry.types import Function, Pytree

EAGER_ORDERS = 2  # supported orders of derivatives of tensors that require gradients

Solve = Callable[..., object]


def custom_root(
    f: Function, initial_guess: Pytree, solve: Solve, tangent_solve: Solve, has_aux: bool = False
) -> Any:
    """Compute a root of a function, differentiable with respect to the tensors that the function captures.

    Args:
        f: a function of a pytree of floating-point tensors that returns a pytree of the same structure and shapes.
        initial_guess: the pytree of tensors or numbers from which ``solve`` starts.
        solve: ``solve(f, initial_guess)`` returns the root; with ``has_aux`` a pair of the root and any other value. It
            is not differentiated: loops, NumPy and anything else may be used.
        tangent_solve: ``tangent_solve(g, y)`` returns ``x`` with ``g(x) = y`` for a linear function ``g``; reverse mode
            transposes it.
        has_aux: whether ``solve`` returns such a pair.

    Returns:
        The root, a pytree with the structure and shapes of ``initial_guess``; with ``has_aux`` ``(root, aux)``.

    Raises:
        ArgumentError: an argument is not a function, or a function returns a tree of another structure or shape.

    Source: ``jax.lax.custom_root``.

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
    _check_functions("custom_root", f=f, solve=solve, tangent_solve=tangent_solve)
    with no_grad():
        results = solve(f, stop_gradient(initial_guess))
    root, aux = _split_aux("custom_root", results, has_aux)
    _check_like("custom_root", "solve", root, "the initial guess", initial_guess)
    start = stop_gradient(root)

    def derivative(v: Pytree) -> Pytree:
        return jvp(f, (start,), (v,))[1]

    value = _checked("custom_root", "f", f, "its argument", start)
    solve_tangents = _checked("custom_root", "tangent_solve", tangent_solve, "its argument", start)
    result = _attach_derivatives(start, lambda x: _negative(value(x)), derivative, solve_tangents, None)
    return (result, aux) if has_aux else result


def custom_linear_solve(
    matvec: Function,
    b: Pytree,
    solve: Solve,
    transpose_solve: Solve | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """Solve ``matvec(x) = b``, differentiable with respect to ``b`` and the tensors that ``matvec`` captures.

    Args:
        matvec: a linear function of a pytree of floating-point or complex tensors.
        b: a pytree with the structure and shapes of the result of ``matvec``.
        solve: ``solve(matvec, b)`` returns ``x``; with ``has_aux`` a pair of ``x`` and any other value. It is not
            differentiated if ``transpose_solve`` or ``symmetric`` is given.
        transpose_solve: ``transpose_solve(vecmat, b)`` solves the transposed system.
        symmetric: whether ``matvec`` is its own transpose, so that ``solve`` serves both.
        has_aux: whether ``solve`` returns such a pair.

    Returns:
        The solution, with ``has_aux`` ``(solution, aux)``.

    Raises:
        ArgumentError: an argument is not a function, or a function returns a tree of another structure or shape.
        RuleError: reverse mode must transpose ``solve``, which is not differentiable; raised in the backward pass.

    Source: ``jax.lax.custom_linear_solve``.

    >>> import tandem as td
    >>> def halves(a, b):
    ...     return td.custom_linear_solve(lambda x: a * x, b, lambda mv, y: y / mv(td.ones(2)))
    >>> td.grad(lambda a: halves(a, td.ones(2)).sum())(td.asarray([2.0, 4.0])).tolist()
    [-0.25, -0.0625]
    """
    _check_functions("custom_linear_solve", matvec=matvec, solve=solve)
    with no_grad():
        results = solve(matvec, stop_gradient(b))
    solution, aux = _split_aux("custom_linear_solve", results, has_aux)

    def plain_solve(g: Function, y: Pytree) -> Pytree:
        return _split_aux("custom_linear_solve", solve(g, y), has_aux)[0]

    def residual(x: Pytree) -> Pytree:
        return pytree.map_tree(lambda one, two: one - two, b, product(x))

    product = _checked("custom_linear_solve", "matvec", matvec, "b", b)
    transposed = plain_solve if symmetric else transpose_solve
    if transpose_solve is not None and not symmetric:
        transposed = _checked("custom_linear_solve", "transpose_solve", transpose_solve, "b", b)
    result = _attach_derivatives(stop_gradient(solution), residual, matvec, plain_solve, transposed)
    return (result, aux) if has_aux else result


def _check_functions(name: str, **functions: object) -> None:
    for argument, value in functions.items():
        if not callable(value):
            raise ArgumentError(f"{name}: {argument} is a function, not {describe(value)}")


def _check_like(name: str, what: str, tree: Pytree, other: str, like: Pytree) -> None:
    """Raise an error if a result differs in structure or shapes from another tree."""
    leaves, treedef = pytree.flatten(tree)
    wanted, there = pytree.flatten(like)
    if treedef != there:
        raise TreeError(
            f"{name}: {what}() returned another structure than {other}{pytree.difference(there, treedef)}"
        )
    for leaf, item, path in zip(leaves, wanted, treedef.paths()):
        if asarray(leaf).shape != asarray(item).shape:
            at = f" at {path}" if path else ""
            raise ShapeError(
                f"{name}: {what}() returned shape {asarray(leaf).shape}{at}, and {other} has {asarray(item).shape}"
            )


def _checked(name: str, what: str, function: Function, other: str, like: Pytree) -> Function:
    """``function``, with a check that its result has the structure and shapes of ``like``."""

    def checked(*args: object) -> Pytree:
        result = function(*args)
        _check_like(name, what, result, other, like)
        return result

    return checked


def _split_aux(name: str, result: object, has_aux: bool) -> tuple[Pytree, Pytree]:
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise ArgumentError(f"{name}: with has_aux=True solve must return a pair, not {describe(result)}")
    return result


def _negative(tree: Pytree) -> Pytree:
    return pytree.map_tree(lambda leaf: -leaf, tree)


def _attach_derivatives(
    start: Pytree,
    residual: Function,
    matvec: Function,
    solve: Solve,
    transpose_solve: Solve | None,
) -> Pytree:
    """Attach derivatives to a solution: one correction for each order that the enclosing levels may need."""
    result, orders, done = start, sum(level.run is None for level in stack.levels), 0
    while True:
        left = residual(result)
        if done == 0:
            orders += EAGER_ORDERS * any(
                isinstance(x, Tensor) and x.requires_grad for x in pytree.leaves(left)
            )
        if done >= orders:
            return result
        step = _LinearSolve(matvec, solve, transpose_solve, left, start)(left)
        result = pytree.map_tree(lambda x, dx: x + dx, result, step)
        done += 1


def _is_forward(leaves: Leaves) -> bool:
    """Whether the innermost differentiating level of the values is one of ``jvp``."""
    levels = []
    for leaf in leaves:
        while isinstance(leaf, LevelTensor):
            levels += [leaf._level] if leaf._level.run is None else []
            leaf = leaf._payload
    return bool(levels) and max(levels, key=lambda level: level.depth).forward is not None


def _check_depends_on_input(matvec: Function, solve: Solve) -> Function:
    """``solve`` as a function of the right-hand side, checked to depend on it, for transposition."""

    def checked_solve(y: Pytree) -> Pytree:
        result = solve(matvec, y)
        levels = {leaf._level for leaf in pytree.leaves(y) if isinstance(leaf, LevelTensor)}
        results = [leaf for leaf in pytree.leaves(result) if isinstance(leaf, Tensor)]
        is_recorded = stack.recording is not None and any(map(stack.recording.owns, results))
        if not is_recorded and not any(root_at(level, leaf) for level in levels for leaf in results):
            raise RuleError(
                "custom_linear_solve: reverse mode transposes solve, but its result does not depend differentiably "
                "on b (stop_gradient, or numbers taken out of tensors); pass transpose_solve or symmetric=True"
            )
        return result

    return checked_solve


class _LinearSolve:
    """The solution of ``matvec(x) = b`` as a linear function of ``b`` alone, with custom derivative rules.

    The transpose solves the transposed system. Its own transpose is the function again, so derivatives of any order are
    defined, and ``solve`` is never differentiated through.

    Args:
        matvec: a linear function.
        solve: ``solve(matvec, b)`` returns ``x``.
        transpose_solve: ``transpose_solve(vecmat, b)`` solves the transposed system; None transposes ``solve``.
        b: a right-hand side, a tree of tensors.
        x: a tree with the structure of the solution.
    """

    def __init__(self, matvec: Function, solve: Solve, transpose_solve: Solve | None, b: Pytree, x: Pytree):
        self.matvec, self.solve, self.transpose_solve, self.x = matvec, solve, transpose_solve, x
        leaves, self.treedef = pytree.flatten(b)
        self.outdef = pytree.flatten(x)[1]
        self.zeros = self.treedef.unflatten([zeros_of(leaf.spec) for leaf in leaves])
        self.levels, self.floor = list(stack.levels), stack.floor

    def __call__(self, b: Pytree) -> Pytree:
        """The solution for a right-hand side."""
        return self.outdef.unflatten(self._apply(pytree.leaves(b)))

    def _apply(self, leaves: Leaves) -> Sequence[Any]:
        if _is_forward(leaves):  # needs no transpose, which may be unknown
            return call(ForwardRule("solve", self, self._run, self._push), leaves)
        return call(
            ReverseRule(
                "solve",
                self,
                self._run,
                lambda b, _: (self._apply(b), []),
                lambda _, g: self._apply_transpose(g),
                is_open=True,
            ),
            leaves,
        )

    def _apply_transpose(self, leaves: Leaves) -> Sequence[Any]:
        return call(
            ReverseRule(
                "transpose",
                self,
                self._run_transpose,
                lambda g, _: (self._apply_transpose(g), []),
                lambda _, b: self._apply(b),
                is_open=True,
            ),
            leaves,
        )

    def _run(self, leaves: Leaves) -> Leaves:
        with no_grad(), reopen_levels(self.levels, self.floor):
            return pytree.leaves(self.solve(self.matvec, self.treedef.unflatten(leaves)))

    def _run_transpose(self, leaves: Leaves) -> Leaves:
        cotangent = self.outdef.unflatten(leaves)
        with no_grad(), reopen_levels(self.levels, self.floor):
            if self.transpose_solve is None:
                transposed = linear_transpose(_check_depends_on_input(self.matvec, self.solve), self.zeros)
                return pytree.leaves(transposed(cotangent)[0])
            vecmat = linear_transpose(self.matvec, self.x)
            return pytree.leaves(self.transpose_solve(lambda v: vecmat(v)[0], cotangent))

    def _push(self, leaves: Sequence[Any], tangents: Tangents) -> tuple[Leaves, Tangents]:
        filled = [zeros_of(x.spec) if t is None else t for x, t in zip(leaves, tangents)]
        return self._apply(leaves), self._apply(filled)
