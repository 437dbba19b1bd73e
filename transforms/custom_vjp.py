"""``custom_vjp``: a function whose reverse rule is written by hand."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any

from .. import lazy, pytree
from ..eager.tensor import Tensor
from ..errors import ArgumentError, AutogradError
from ..registry.values import describe
from .arguments import check_callable
from .custom_rules import Leaves, ReverseRule, call


class Bound:
    """One call: its arguments in order, those that are differentiated by, and the trees of what comes and goes."""

    def __init__(self, fun: Callable[..., Any], fixed: tuple[int, ...], args: Any, kwargs: Any):
        self.args = _in_order(fun, args, kwargs)
        count = len(self.args)
        places = {place % count for place in fixed if -count <= place < count}
        self.fixed = tuple(self.args[place] for place in sorted(places))
        self.dynamic = [place for place in range(count) if place not in places]
        self.leaves, self.treedef = pytree.flatten([self.args[place] for place in self.dynamic])
        self.outdef: Any = None

    def filled(self, leaves: Leaves) -> list[Any]:
        """All arguments, with these leaves for those that are differentiated by."""
        given = list(self.args)
        for place, value in zip(self.dynamic, self.treedef.unflatten(leaves)):
            given[place] = value
        return given

    def results(self, out: Any) -> Leaves:
        """The leaves of the result; its structure is kept."""
        leaves, self.outdef = pytree.flatten(out)
        return leaves


def _in_order(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Keyword arguments and defaults at their positions."""
    try:
        signature = lazy.module("inspect").signature(fun)
    except ValueError:  # a builtin without one
        return args
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        name = getattr(fun, "__qualname__", repr(fun))
        raise ArgumentError(
            f"{name} has a derivative of its own and takes keyword-only arguments: {[*bound.kwargs]}"
        )
    return tuple(bound.args)


class custom_vjp:
    """A function whose reverse rule is written by hand; used as a decorator, then ``f.defvjp(fwd, bwd)``.

    Args:
        fun: the function, of trees of tensors.
        nondiff_argnums: positions of arguments that are no tensors: functions, flags. ``bwd`` gets them first.

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

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] | int = ()):
        check_callable("custom_vjp", fun)
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff_argnums = (
            (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        )
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Say what the reverse rule is.

        Args:
            fwd: takes what the function takes, and gives ``(result, residuals)``; residuals are a tree of anything.
            bwd: ``bwd(residuals, cotangent)`` gives a tuple with a gradient for each argument, each a tree like the
                argument; None: zero. Arguments of ``nondiff_argnums`` come first, and get no gradient.

        Raises:
            ArgumentError: one is no function.
        """
        check_callable("defvjp", fwd)
        check_callable("defvjp", bwd)
        self.fwd, self.bwd = fwd, bwd

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if self.fwd is None or self.bwd is None:
            raise AutogradError(
                f"{self._name} is a custom_vjp without a rule; call {self._name}.defvjp(fwd, bwd)"
            )
        bound = Bound(self.fun, self.nondiff_argnums, args, kwargs)
        residual_def: list[Any] = [None]
        fwd, bwd = self.fwd, self.bwd

        def run(leaves: Leaves) -> Leaves:
            return bound.results(self.fun(*bound.filled(leaves)))

        def forward(leaves: Leaves) -> tuple[Leaves, Leaves]:
            found = fwd(*bound.filled(leaves))
            if not isinstance(found, tuple) or len(found) != 2:
                raise ArgumentError(
                    f"{self._name}: fwd gives a pair (result, residuals), not {describe(found)}"
                )
            residuals, residual_def[0] = pytree.flatten(found[1])
            return bound.results(found[0]), residuals

        def backward(residuals: Leaves, cotangents: Leaves) -> Leaves:
            given = residual_def[0].unflatten(residuals), bound.outdef.unflatten(cotangents)
            return self._gradients(bound, bwd(*bound.fixed, *given))

        out = call(ReverseRule(self._name, self, run, forward, backward), bound.leaves)
        return bound.outdef.unflatten(out)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    @property
    def _name(self) -> str:
        return getattr(self.fun, "__qualname__", repr(self.fun))

    def _gradients(self, bound: Bound, found: Any) -> Leaves:
        """What ``bwd`` has given, a gradient for each leaf of the arguments."""
        children = bound.treedef.children
        if not isinstance(found, (tuple, list)) or len(found) != len(children):
            raise ArgumentError(
                f"{self._name}: bwd gives a tuple of {len(children)} gradients, one for each argument, not "
                f"{describe(found)}"
            )
        gradients: Leaves = []
        for place, (gradient, child) in enumerate(zip(found, children)):
            gradients += self._of_argument(place, gradient, child)
        return [g if isinstance(leaf, Tensor) else None for g, leaf in zip(gradients, bound.leaves)]

    def _of_argument(self, place: int, gradient: Any, treedef: Any) -> Leaves:
        if gradient is None:
            return [None] * treedef.leaf_count
        leaves, there = pytree.flatten(gradient)
        if there == treedef:
            return leaves
        if (
            there.kind is treedef.kind
            and there.static == treedef.static
            and isinstance(gradient, (dict, tuple, list))
        ):
            parts = gradient.values() if isinstance(gradient, dict) else gradient
            rows = zip(parts, treedef.children)
            return [leaf for part, child in rows for leaf in self._of_argument(place, part, child)]
        raise ArgumentError(
            f"{self._name}: bwd gives for argument {place} another structure than the argument's"
            f"{pytree.difference(treedef, there)}"
        )
