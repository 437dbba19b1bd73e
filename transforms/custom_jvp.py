"""``custom_jvp``: a function with a custom forward rule, which reverse mode transposes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from .. import pytree
from ..eager.autograd.context import is_broadcastable
from ..eager.tensor.construct import asarray
from ..eager.tensor.tensor import Tensor
from ..errors import ArgumentError, AutogradError, RuleError
from ..registry.values import SCALARS, describe
from .arguments import check_callable, leaves_with_nones
from .custom_function import BoundCall, RuledFunction, check_pair
from .custom_rules import ForwardRule, Leaves, call
from .zeros import SymbolicZero, Tangents, zero_for

if TYPE_CHECKING:
    from ..registry.types import Args, Function, Pytree

R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., object])


class custom_jvp(RuledFunction[R]):
    """A function with a custom forward rule, set by ``f.defjvp(rule)``; usable as a decorator.

    The rule must be linear in the tangents: reverse mode transposes it. It nests with ``vmap`` and ``jit``.
    Differentiated tensors must be arguments, not captured by a closure.

    Args:
        fun: a function of pytrees of tensors and numbers that returns a pytree of tensors.
        nondiff_argnums: positions of arguments that are not differentiated: functions, flags. The rule receives
            them first, in order, as separate arguments.
        nondiff_argnames: names of such arguments.

    Raises:
        ArgumentError: ``fun`` is not callable, or ``nondiff_argnames`` names a parameter that it does not have.

    Source: ``jax.custom_jvp``.

    >>> import tandem as td
    >>> @td.custom_jvp
    ... def log1pexp(x):
    ...     return td.log(1.0 + td.exp(x))
    >>> @log1pexp.defjvp
    ... def log1pexp_rule(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return log1pexp(x), (1.0 - 1.0 / (1.0 + td.exp(x))) * t
    >>> td.grad(log1pexp)(100.0), td.jvp(log1pexp, (0.0,), (1.0,))[1]
    (tensor(1.), tensor(0.5))
    """

    rule: Function | None = None
    symbolic_zeros = False

    def defjvp(self, rule: F, symbolic_zeros: bool = False) -> F:
        """Set the forward rule; usable as a decorator.

        Args:
            rule: ``rule(primals, tangents)``, two tuples with an item for each argument, returns ``(result,
                tangent)``. Arguments of ``nondiff_argnums`` come first, separately. None in the tangent is zero.
            symbolic_zeros: whether the tangent of an argument that is not differentiated is a
                :class:`tandem.SymbolicZero`; if False, it is zeros.

        Returns:
            The rule.

        Raises:
            ArgumentError: ``rule`` is not callable.
        """
        check_callable("defjvp", rule)
        self.rule, self.symbolic_zeros = rule, symbolic_zeros
        return rule

    def defjvps(self, *jvps: Function | None) -> None:
        """Set the contribution of each argument to the tangent.

        Args:
            jvps: for each argument ``jvp(tangent, result, *arguments)``, or None for no contribution.

        Raises:
            ArgumentError: the function has ``nondiff_argnums``.
        """
        if self.nondiff_argnums or self.nondiff_argnames:
            raise ArgumentError("defjvps: with nondiff_argnums write the whole rule, with defjvp")

        def rule(primals: Args, tangents: Args) -> tuple[Pytree, Pytree]:
            out = self(*primals)
            terms = [jvp(t, out, *primals) for jvp, t in zip(jvps, tangents) if jvp is not None]
            if not terms:
                return out, pytree.map_tree(lambda leaf: leaf * 0, out)
            return out, functools.reduce(
                lambda one, two: pytree.map_tree(lambda a, b: a + b, one, two), terms
            )

        self.rule, self.symbolic_zeros = rule, False

    def __call__(self, /, *args: Pytree, **kwargs: Pytree) -> R:
        """Call the function; its derivative is that of the rule."""
        rule = self.rule
        if rule is None:
            raise AutogradError(
                f"{self._name} is a custom_jvp without a rule; call {self._name}.defjvp(rule)"
            )
        bound, symbolic = self._bind(args, kwargs), self.symbolic_zeros

        def run(leaves: Leaves) -> Leaves:
            return bound.flatten_result(self.fun(*bound.with_leaves(leaves)))

        def push(leaves: Leaves, tangents: Tangents) -> tuple[Leaves, Tangents]:
            given = [zero_for(x, symbolic) if t is None else t for x, t in zip(leaves, tangents)]
            trees = tuple(bound.treedef.unflatten(leaves)), tuple(bound.treedef.unflatten(given))
            out, value = check_pair(
                self._name, "the rule must return a pair (result, tangent)", rule(*bound.fixed, *trees)
            )
            results = bound.flatten_result(out)
            return results, self._tangents(bound, results, value)

        out = call(ForwardRule(self._name, self, run, push), bound.leaves)
        result: R = bound.outdef.unflatten(out)
        return result

    def _tangents(self, bound: BoundCall, results: Leaves, tangent: Pytree) -> Tangents:
        """Check the tangents that the rule returned, in which None is zero, and flatten them."""
        leaves = leaves_with_nones(tangent, bound.outdef)
        if leaves is None:
            raise RuleError(
                f"{self._name}: the rule returned a tangent of another structure than the result"
                f"{pytree.difference(bound.outdef, pytree.flatten(tangent)[1])}"
            )
        return [self._tangent(t, x) for t, x in zip(leaves, results)]

    def _tangent(self, tangent: object, value: object) -> Tensor | None:
        if tangent is None or isinstance(tangent, SymbolicZero) or not asarray(value).dtype.is_inexact:
            return None
        if not isinstance(tangent, Tensor):
            dtype = value.dtype if type(tangent) in SCALARS and isinstance(value, Tensor) else None
            tangent = asarray(tangent, dtype=dtype)
        shape = value.shape if isinstance(value, Tensor) else ()
        if tangent.shape != shape and not is_broadcastable(tangent.shape, shape):
            raise RuleError(
                f"{self._name}: the rule returned a tangent of shape {tangent.shape} for {describe(value)}"
            )
        return tangent
