"""``custom_vjp``: a function with a custom reverse rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from .. import pytree
from ..eager.tensor.construct import asarray
from ..eager.tensor.tensor import Tensor
from ..errors import AutogradError, RuleError
from ..registry.values import describe
from .arguments import check_callable, leaves_with_nones
from .custom_function import BoundCall, RuledFunction, check_pair
from .custom_rules import Leaves, ReverseRule, call
from .zeros import CustomVJPPrimal, SymbolicZero, Tangents, zero_for

if TYPE_CHECKING:
    from ..registry.types import Function, Pytree

R = TypeVar("R")


class custom_vjp(RuledFunction[R]):
    """A function with a custom reverse rule, set by ``f.defvjp(fwd, bwd)``; usable as a decorator.

    ``grad``, ``vjp`` and ``backward()`` use the rule, and ``jvp`` transposes it. It nests with ``vmap`` and ``jit``.
    Differentiated tensors must be arguments, not captured by a closure.

    Args:
        fun: a function of pytrees of tensors and numbers that returns a pytree of tensors.
        nondiff_argnums: positions of arguments that are not differentiated: functions, flags. ``bwd`` receives
            them first, in order, as separate arguments.
        nondiff_argnames: names of such arguments.

    Raises:
        ArgumentError: ``fun`` is not callable, or ``nondiff_argnames`` names a parameter that it does not have.

    Source: ``jax.custom_vjp``.

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

    fwd: Function | None = None
    bwd: Function | None = None
    symbolic_zeros = False

    def defvjp(
        self,
        fwd: Function,
        bwd: Function,
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Set the reverse rule.

        Args:
            fwd: takes the arguments of the function and returns ``(result, residuals)``; residuals are any tree.
            bwd: ``bwd(residuals, cotangent)`` returns a tuple with a gradient for each argument, each a tree like the
                argument, or None for zero. Arguments of ``nondiff_argnums`` come first, and have no gradient.
            symbolic_zeros: whether ``fwd`` receives for each tensor and number a :class:`tandem.CustomVJPPrimal`, which
                tells whether it is differentiated, and ``bwd`` a :class:`tandem.SymbolicZero` for a result without a
                cotangent; if False, it receives zeros.
            optimize_remat: accepted for compatibility with JAX, without effect.

        Raises:
            ArgumentError: ``fwd`` or ``bwd`` is not callable.
        """
        check_callable("defvjp", fwd)
        check_callable("defvjp", bwd)
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros

    def __call__(self, /, *args: Pytree, **kwargs: Pytree) -> R:
        """Call the function; its derivative is that of ``fwd`` and ``bwd``."""
        fwd, bwd, symbolic = self.fwd, self.bwd, self.symbolic_zeros
        if fwd is None or bwd is None:
            raise AutogradError(
                f"{self._name} is a custom_vjp without a rule; call {self._name}.defvjp(fwd, bwd)"
            )
        bound = self._bind(args, kwargs)
        residual_def = [pytree.LEAF]
        outs: list[object] = []

        def run(leaves: Leaves) -> Leaves:
            return bound.flatten_result(self.fun(*bound.with_leaves(leaves)))

        def forward(leaves: Leaves, wanted: list[bool]) -> tuple[Leaves, Leaves]:
            given = list(map(CustomVJPPrimal, leaves, wanted)) if symbolic else leaves
            out, kept = check_pair(
                self._name, "fwd must return a pair (result, residuals)", fwd(*bound.with_leaves(given))
            )
            residuals, residual_def[0] = pytree.flatten(kept)
            outs[:] = [zero_for(leaf, True) for leaf in bound.flatten_result(out)]
            return bound.flatten_result(out), residuals

        def backward(residuals: Leaves, cotangents: Tangents) -> Tangents:
            zeros = outs if symbolic else [_zeros(zero) for zero in outs]
            dense = [zero if g is None else g for g, zero in zip(cotangents, zeros)]
            given = residual_def[0].unflatten(residuals), bound.outdef.unflatten(dense)
            return self._gradients(bound, bwd(*bound.fixed, *given))

        out = call(ReverseRule(self._name, self, run, forward, backward), bound.leaves)
        result: R = bound.outdef.unflatten(out)
        return result

    def _gradients(self, bound: BoundCall, result: object) -> Tangents:
        """Check the result of ``bwd`` and flatten it to a gradient for each leaf of the arguments."""
        children = bound.treedef.children
        if not isinstance(result, (tuple, list)) or len(result) != len(children):
            raise RuleError(
                f"{self._name}: bwd must return a tuple of {len(children)} gradients, one for each argument, not "
                f"{describe(result)}"
            )
        gradients: list[object] = []
        for index, (gradient, child) in enumerate(zip(result, children)):
            leaves = leaves_with_nones(gradient, child)
            if leaves is None:
                there = pytree.flatten(gradient)[1]
                raise RuleError(
                    f"{self._name}: bwd returned for argument {index} another structure than the argument's"
                    f"{pytree.difference(child, there)}"
                )
            gradients += leaves
        return [
            _gradient(g) if isinstance(leaf, Tensor) else None for g, leaf in zip(gradients, bound.leaves)
        ]


def _zeros(zero: object) -> object:
    return zero.instantiate() if isinstance(zero, SymbolicZero) else zero


def _gradient(g: object) -> Tensor | None:
    """Convert a gradient from ``bwd`` to a tensor, or None for zero."""
    if g is None or isinstance(g, SymbolicZero):
        return None
    g = asarray(g)
    return g if g.dtype.is_inexact else None
