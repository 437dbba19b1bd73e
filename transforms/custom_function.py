"""RuledFunction: the base class of functions with custom rules, which binds their arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from .. import lazy, pytree
from ..errors import ArgumentError, RuleError, TandemError
from ..registry.values import describe
from .arguments import check_callable, replace_positions
from .custom_rules import Leaves

if TYPE_CHECKING:
    from inspect import Signature

    from ..registry.types import Args, Function, Kwargs, Pytree

inspect = lazy.Module("inspect")

R = TypeVar("R")


class RuledFunction(Generic[R]):
    """A function with a custom rule: the base class of ``custom_jvp``, ``custom_vjp`` and ``custom_vmap``.

    The type parameter is the type of the result.

    Args:
        fun: the function.
        nondiff_argnums: positions of arguments that are not differentiated.
        nondiff_argnames: names of such arguments.
    """

    def __init__(
        self,
        fun: Callable[..., R],
        nondiff_argnums: Iterable[int] | int = (),
        nondiff_argnames: Iterable[str] | str = (),
    ):
        check_callable(type(self).__name__, fun)
        functools.update_wrapper(cast(Any, self), fun)
        self.fun = fun
        self.nondiff_argnums = (
            (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        )
        self.nondiff_argnames = (
            (nondiff_argnames,) if isinstance(nondiff_argnames, str) else tuple(nondiff_argnames)
        )
        self._signature = _signature(fun)
        self._check_names()

    def __get__(self, instance: object, owner: type | None = None) -> RuledFunction[R] | MethodType:
        return self if instance is None else MethodType(cast(Any, self), instance)

    def _check_names(self) -> None:
        known = () if self._signature is None else self._signature.parameters
        for name in self.nondiff_argnames:
            if name not in known:
                raise ArgumentError(
                    f"{type(self).__name__}: nondiff_argnames: {name!r} is not a parameter of "
                    f"{self._name}{self._signature}"
                )

    @property
    def _name(self) -> str:
        return getattr(self.fun, "__qualname__", repr(self.fun))

    def _bind(self, args: Args, kwargs: Kwargs) -> BoundCall:
        """Bind the arguments of a call."""
        args = _in_order(self._name, self._signature, args, kwargs)
        count = len(args)
        fixed = {index % count for index in self.nondiff_argnums if -count <= index < count}
        if self.nondiff_argnames and self._signature is not None:
            names = list(self._signature.parameters)
            fixed.update(names.index(name) for name in self.nondiff_argnames)
        return BoundCall(args, fixed)


class BoundCall:
    """The bound arguments of one call, the leaves of the differentiated ones, and the treedef of the result."""

    def __init__(self, args: Args, fixed: set[int]):
        self.args = args
        self.fixed = tuple(args[index] for index in sorted(fixed))
        self.dynamic = [index for index in range(len(args)) if index not in fixed]
        self.leaves, self.treedef = pytree.flatten([args[index] for index in self.dynamic])
        self.outdef = pytree.LEAF

    def with_leaves(self, leaves: Leaves) -> list[object]:
        """All arguments, with the leaves of the differentiated ones replaced."""
        return replace_positions(self.args, self.dynamic, self.treedef.unflatten(leaves))

    def flatten_result(self, out: Pytree) -> Leaves:
        """Flatten the result and remember its structure."""
        leaves, self.outdef = pytree.flatten(out)
        return leaves


def check_pair(name: str, what: str, result: object) -> Sequence[object]:
    """Check that a rule returned a pair."""
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise RuleError(f"{name}: {what}, not {describe(result)}")
    return result


def _signature(fun: Function) -> Signature | None:
    try:
        signature: Signature = inspect.signature(fun)
        return signature
    except ValueError:  # a builtin without one
        return None


def _in_order(name: str, signature: Signature | None, args: Args, kwargs: Kwargs) -> Args:
    """Bind keyword arguments and defaults to their positions."""
    if signature is None:
        return args
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as fault:
        raise fault if isinstance(fault, TandemError) else ArgumentError(f"{name}: {fault}") from None
    if bound.kwargs:
        raise ArgumentError(
            f"{name} has a rule of its own and takes keyword-only arguments: {[*bound.kwargs]}; rules get "
            "arguments by position"
        )
    bound.apply_defaults()
    return tuple(bound.args)
