"""``custom_vjp``: a function whose reverse rule is written by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import pytree
from ..eager.construct import asarray
from ..eager.tensor import Tensor
from ..errors import AutogradError, RuleError
from ..registry.values import describe
from .arguments import check_callable, leaves_with_nones
from .custom_function import Bound, RuledFunction, pair
from .custom_rules import Leaves, ReverseRule, call
from .zeros import CustomVJPPrimal, SymbolicZero, zero_for


class custom_vjp(RuledFunction):
    """A function whose reverse rule is written by hand; used as a decorator, then ``f.defvjp(fwd, bwd)``.

    Args:
        fun: the function, of trees of tensors.
        nondiff_argnums: positions of arguments that are not differentiated by: functions, flags. ``bwd`` gets them
            first, in their order, each by itself.
        nondiff_argnames: names of such arguments.

    The rule serves ``grad``, ``vjp``, ``backward()``; by transposition ``jvp`` too. It nests with ``vmap`` and ``jit``.
    What is differentiated by must be an argument, not reached by a closure.

    >>> import tandem as td
    >>> @td.custom_vjp
    ... def clipped(x, limit):
    ...     return td.clip(x, -limit, limit)
    >>> def clipped_fwd(x, limit):
    ...     return clipped(x, limit), x.shape
    >>> def clipped_bwd(residuals, g):
    ...     return g, None  # straight through
    >>> clipped.defvjp(clipped_fwd, clipped_bwd)
    >>> td.grad(lambda x: clipped(x, 1.0).sum())(td.asarray([0.5, 3.0])).tolist()
    [1.0, 1.0]
    """

    fwd: Callable[..., Any] | None = None
    bwd: Callable[..., Any] | None = None
    symbolic_zeros = False

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Say what the reverse rule is.

        Args:
            fwd: takes what the function takes, and gives ``(result, residuals)``; residuals are a tree of anything.
            bwd: ``bwd(residuals, cotangent)`` gives a tuple with a gradient for each argument, each a tree like the
                argument; None: zero. Arguments of ``nondiff_argnums`` come first, and get no gradient.
            symbolic_zeros: whether ``fwd`` gets for each tensor and number a :class:`tandem.CustomVJPPrimal`, which
                says whether it is differentiated by, and ``bwd`` a :class:`tandem.SymbolicZero` for a result that
                nothing depends on; without, it gets zeros.
            optimize_remat: accepted for the sake of programs written for JAX; there is nothing that it could improve.

        Raises:
            ArgumentError: one is no function.
        """
        check_callable("defvjp", fwd)
        check_callable("defvjp", bwd)
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        fwd, bwd, symbolic = self.fwd, self.bwd, self.symbolic_zeros
        if fwd is None or bwd is None:
            raise AutogradError(
                f"{self._name} is a custom_vjp without a rule; call {self._name}.defvjp(fwd, bwd)"
            )
        bound = self._bind(args, kwargs)
        residual_def: list[Any] = [None]
        outs: Leaves = []

        def run(leaves: Leaves) -> Leaves:
            return bound.results(self.fun(*bound.filled(leaves)))

        def forward(leaves: Leaves, wanted: list[bool]) -> tuple[Leaves, Leaves]:
            given = list(map(CustomVJPPrimal, leaves, wanted)) if symbolic else leaves
            out, kept = pair(self._name, "fwd gives a pair (result, residuals)", fwd(*bound.filled(given)))
            residuals, residual_def[0] = pytree.flatten(kept)
            outs[:] = [zero_for(leaf, True) for leaf in bound.results(out)]
            return bound.results(out), residuals

        def backward(residuals: Leaves, cotangents: Leaves) -> Leaves:
            zeros = outs if symbolic else [_zeros(zero) for zero in outs]
            filled = [zero if g is None else g for g, zero in zip(cotangents, zeros)]
            given = residual_def[0].unflatten(residuals), bound.outdef.unflatten(filled)
            return self._gradients(bound, bwd(*bound.fixed, *given))

        out = call(ReverseRule(self._name, self, run, forward, backward), bound.leaves)
        return bound.outdef.unflatten(out)

    def _gradients(self, bound: Bound, found: Any) -> Leaves:
        """What ``bwd`` has given, a gradient for each leaf of the arguments."""
        children = bound.treedef.children
        if not isinstance(found, (tuple, list)) or len(found) != len(children):
            raise RuleError(
                f"{self._name}: bwd gives a tuple of {len(children)} gradients, one for each argument, not "
                f"{describe(found)}"
            )
        gradients: Leaves = []
        for place, (gradient, child) in enumerate(zip(found, children)):
            leaves = leaves_with_nones(gradient, child)
            if leaves is None:
                there = pytree.flatten(gradient)[1]
                raise RuleError(
                    f"{self._name}: bwd gives for argument {place} another structure than the argument's"
                    f"{pytree.difference(child, there)}"
                )
            gradients += leaves
        return [
            _gradient(g) if isinstance(leaf, Tensor) else None for g, leaf in zip(gradients, bound.leaves)
        ]


def _zeros(zero: Any) -> Any:
    return zero.instantiate() if isinstance(zero, SymbolicZero) else zero


def _gradient(g: Any) -> Any:
    """What ``bwd`` gives for one tensor, as a tensor or None for zero."""
    if g is None or isinstance(g, SymbolicZero):
        return None
    g = asarray(g)
    return g if g.dtype.is_inexact else None
