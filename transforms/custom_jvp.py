"""``custom_jvp``: a function whose forward rule is written by hand; reverse mode transposes it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any

from .. import pytree
from ..errors import ArgumentError, AutogradError
from ..registry.values import describe
from .arguments import check_callable
from .custom_rules import ForwardRule, Leaves, call
from .custom_vjp import Bound


class custom_jvp:
    """A function whose forward rule is written by hand; used as a decorator, then ``f.defjvp(rule)``.

    Args:
        fun: the function, of trees of tensors.
        nondiff_argnums: positions of arguments that are no tensors: functions, flags. The rule gets them first.

    The rule must be linear in the tangents: reverse mode transposes it. It nests with ``vmap`` and ``jit``. What is
    differentiated by must be an argument, not reached by a closure.

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

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] | int = ()):
        check_callable("custom_jvp", fun)
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff_argnums = (
            (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        )
        self.rule: Callable[..., Any] | None = None

    def defjvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Say what the forward rule is; usable as a decorator.

        Args:
            rule: ``rule(primals, tangents)``, two tuples with an item for each argument, gives ``(result, tangent)``.
                Arguments of ``nondiff_argnums`` come first, each by itself.

        Returns:
            The rule.

        Raises:
            ArgumentError: it is no function.
        """
        check_callable("defjvp", rule)
        self.rule = rule
        return rule

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Say what each argument contributes to the tangent.

        Args:
            jvps: for each argument ``jvp(tangent, result, *arguments)``, or None where it contributes nothing.

        Raises:
            ArgumentError: the function has arguments that are no tensors.
        """
        if self.nondiff_argnums:
            raise ArgumentError("defjvps: with nondiff_argnums write the whole rule, with defjvp")

        def rule(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
            out = self(*primals)
            terms = [jvp(t, out, *primals) for jvp, t in zip(jvps, tangents) if jvp is not None]
            if not terms:
                return out, pytree.map_tree(lambda leaf: leaf * 0, out)
            return out, functools.reduce(
                lambda one, two: pytree.map_tree(lambda a, b: a + b, one, two), terms
            )

        self.rule = rule

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        rule = self.rule
        if rule is None:
            raise AutogradError(
                f"{self._name} is a custom_jvp without a rule; call {self._name}.defjvp(rule)"
            )
        bound = Bound(self.fun, self.nondiff_argnums, args, kwargs)

        def run(leaves: Leaves) -> Leaves:
            return bound.results(self.fun(*bound.filled(leaves)))

        def push(leaves: Leaves, tangents: Leaves) -> tuple[Leaves, Leaves]:
            primals = tuple(bound.treedef.unflatten(leaves))
            found = rule(*bound.fixed, primals, tuple(bound.treedef.unflatten(tangents)))
            if not isinstance(found, tuple) or len(found) != 2:
                raise ArgumentError(
                    f"{self._name}: the rule gives a pair (result, tangent), not {describe(found)}"
                )
            return bound.results(found[0]), self._tangents(bound, found[1])

        out = call(ForwardRule(self._name, self, run, push), bound.leaves)
        return bound.outdef.unflatten(out)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    @property
    def _name(self) -> str:
        return getattr(self.fun, "__qualname__", repr(self.fun))

    def _tangents(self, bound: Bound, found: Any) -> Leaves:
        leaves, there = pytree.flatten(found)
        if there != bound.outdef:
            raise ArgumentError(
                f"{self._name}: the rule gives a tangent of another structure than the result"
                f"{pytree.difference(bound.outdef, there)}"
            )
        return leaves
