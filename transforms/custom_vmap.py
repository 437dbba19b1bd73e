"""``custom_vmap`` and ``sequential_vmap``: functions with their own batching rule.

A call is handled by the innermost level among the arguments. A level of ``vmap`` runs the rule. A level that
differentiates runs the derivative of the function, which has a batching rule too: the derivative of the rule. So the
rule is found below any number of derivatives.

Source: ``jax.custom_batching``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import lazy, pytree
from ..eager.autograd.function_batched import unwrap_all, wrap_all
from ..eager.autograd.node import zeros_of
from ..eager.layers.levels import LevelTensor
from ..eager.layers.vmap.tensor import wrap_batched
from ..eager.tensor.construct import asarray
from ..eager.tensor.dunders import by_name
from ..errors import RuleError, UnsupportedError
from ..registry.dispatch.keys import AUTOGRAD
from ..registry.dispatch.state import state
from ..registry.values import TensorSpec, describe
from .arguments import check_callable
from .custom_function import RuledFunction
from .custom_rules import ForwardRule, Leaves, ReverseRule, innermost_level
from .custom_rules import call as call_ruled
from .forward import jvp
from .reverse import vjp


class custom_vmap(RuledFunction):
    """A function with a rule for batches, in the place of what ``vmap`` would make of its operators.

    Args:
        fun: a function of trees of tensors that gives such a tree.

    The rule is set by :meth:`def_vmap`. In the bodies of loops and branches that are compiled, a ``vmap`` around the
    loop makes batches of the operators of ``fun``, as if there were no rule.

    >>> import tandem as td
    >>> @td.custom_vmap
    ... def twice(x):
    ...     return 2 * x
    >>> @twice.def_vmap
    ... def _(axis_size, in_batched, x):
    ...     return 2 * x + 0.5, in_batched[0]
    >>> twice(td.asarray(1.0)), td.vmap(twice)(td.asarray([1.0, 2.0]))
    (tensor(2.), tensor([2.5, 4.5]))
    """

    def __init__(self, fun: Callable[..., Any]):
        super().__init__(fun)
        self._rule: Callable[..., Any] | None = None

    def def_vmap(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the rule.

        Args:
            rule: ``rule(axis_size, in_batched, *args) -> (result, out_batched)``. The arguments that ``in_batched``, a
                list with a tree of bools for each, marks have their examples along axis 0; so has what ``out_batched``,
                a tree of bools like the result or one that it begins with, marks in the result.

        Returns:
            The rule, so that this is a decorator.
        """
        check_callable("custom_vmap.def_vmap", rule)
        self._rule = rule
        return rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result; arguments by name are put in their places, and defaults filled in.

        Raises:
            ArgumentError: the arguments do not fit the signature, or are keyword-only.
            RuleError: there is no rule, and the function is called under ``vmap``; or the rule gives no pair, or flags
                that do not fit its result.
        """
        bound = self._bind(args, kwargs)
        function = _Function(self, bound.treedef)
        result = _call(function, bound.leaves)
        return function.outdef.unflatten(result)

    def __repr__(self) -> str:
        return f"<custom_vmap {getattr(self.fun, '__qualname__', self.fun)}>"


def sequential_vmap(fun: Callable[..., Any]) -> custom_vmap:
    """A function that ``vmap`` runs on one example after the other, as :func:`tandem.map` does.

    Args:
        fun: a function of trees of tensors that gives such a tree.

    Returns:
        A :class:`custom_vmap`.

    >>> import tandem as td
    >>> td.vmap(td.sequential_vmap(lambda x: x @ x))(td.asarray([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [5.0, 25.0]
    """
    function = custom_vmap(fun)

    def one_by_one(axis_size: int, in_batched: Any, *args: Any) -> Any:
        leaves, treedef = pytree.flatten(list(args))
        flags = pytree.leaves(in_batched)
        moving = [leaf for leaf, flag in zip(leaves, flags) if flag]

        def on_example(items: Any) -> Any:
            rest = iter(items)
            return function(*treedef.unflatten([next(rest) if f else x for x, f in zip(leaves, flags)]))

        return lazy.control_machinery("mapping").map_items(on_example, moving, None), True

    function.def_vmap(one_by_one)
    return function


class _Batchable:
    """A function of leaves that says how it runs on a batch of them; ``flags`` are those with examples along axis 0."""

    name: str
    opaque = 0  # how many of the first leaves belong to no example

    def run(self, leaves: Leaves) -> Leaves:
        raise NotImplementedError

    def batch(self, size: int, flags: list[bool], leaves: Leaves) -> tuple[Leaves, list[bool]]:
        raise NotImplementedError


class _Function(_Batchable):
    """A call of the user's function."""

    def __init__(self, owner: custom_vmap, treedef: pytree.TreeDef):
        self.owner, self.treedef, self.outdef = owner, treedef, treedef
        self.name = f"custom_vmap({getattr(owner.fun, '__qualname__', owner.fun)})"

    def run(self, leaves: Leaves) -> Leaves:
        result, self.outdef = pytree.flatten(self.owner.fun(*self.treedef.unflatten(leaves)))
        return result

    def batch(self, size: int, flags: list[bool], leaves: Leaves) -> tuple[Leaves, list[bool]]:
        if self.owner._rule is None:
            raise RuleError(f"{self.name} has no rule for vmap; set it with def_vmap")
        rule_result = self.owner._rule(size, self.treedef.unflatten(flags), *self.treedef.unflatten(leaves))
        if not isinstance(rule_result, (tuple, list)) or len(rule_result) != 2:
            raise RuleError(
                f"{self.name}: its rule gives a pair (result, out_batched), not {describe(rule_result)}"
            )
        value, self.outdef = pytree.flatten(rule_result[0])
        try:
            out_flags = pytree.spread_prefix(rule_result[1], rule_result[0])
        except TypeError as fault:
            raise RuleError(f"{self.name}: out_batched does not begin as the result does: {fault}") from None
        for leaf, flag in zip(value, out_flags):
            if flag and asarray(leaf).shape[:1] != (size,):
                raise RuleError(
                    f"{self.name}: its rule gives {describe(leaf)} for a batch of {size} examples"
                )
        return [asarray(leaf) for leaf in value], [bool(flag) for flag in out_flags]


class _JvpFunction(_Batchable):
    """The function of values and tangents that gives values and tangents."""

    def __init__(self, of: _Batchable, wanted: list[bool]):
        self.of, self.wanted, self.name = of, wanted, of.name

    def _push(self, run: Callable[[Leaves], Leaves], leaves: Leaves) -> Leaves:
        count = len(self.wanted)
        given = [t if w else None for t, w in zip(leaves[count:], self.wanted)]
        values, tangents = jvp(lambda *xs: list(run(list(xs))), leaves[:count], given)
        return [*values, *tangents]

    def run(self, leaves: Leaves) -> Leaves:
        return self._push(self.of.run, leaves)

    def batch(self, size: int, flags: list[bool], leaves: Leaves) -> tuple[Leaves, list[bool]]:
        count = len(self.wanted)
        items: list[bool] = []
        whole = [a or (b and w) for a, b, w in zip(flags, flags[count:], self.wanted)]
        even = _align_batches(size, leaves, flags, [*whole, *whole])

        def on_batch(xs: Leaves) -> Leaves:
            out, items[:] = self.of.batch(size, whole, xs)
            return out

        results = self._push(on_batch, even)
        return results, [*items, *items]


class _VjpForward(_Batchable):
    """The function that gives the values, and the leaves of their ``vjp_fn``.

    That of a whole batch is one function, whose leaves belong to no example.

    Attributes:
        count: the number of values.
        back: TreeDef of the ``vjp_fn``.
        size: of the batch, 0 if there is none.
        results: which values differ from example to example.
        specs: those of the values of the batch.
    """

    def __init__(self, of: _Batchable):
        self.of, self.name, self.count, self.size = of, of.name, 0, 0
        self.back: Any = None
        self.results: list[bool] = []
        self.specs: list[Any] = []

    def _record(self, run: Callable[[Leaves], Leaves], leaves: Leaves) -> Leaves:
        values, back = vjp(lambda *xs: list(run(list(xs))), *leaves)
        residuals, self.back = pytree.flatten(back)
        self.count = len(values)
        return [*values, *residuals]

    def run(self, leaves: Leaves) -> Leaves:
        self.size = 0
        return self._record(self.of.run, leaves)

    def batch(self, size: int, flags: list[bool], leaves: Leaves) -> tuple[Leaves, list[bool]]:
        def on_batch(xs: Leaves) -> Leaves:
            out, self.results = self.of.batch(size, whole, xs)
            return out

        rows = enumerate(zip(leaves, flags))
        whole = [flag or (n >= self.of.opaque and asarray(x).dtype.is_inexact) for n, (x, flag) in rows]
        result = self._record(
            on_batch, _align_batches(size, leaves, flags, whole)
        )  # a gradient for each example
        self.size, self.specs = size, [leaf.spec for leaf in result[: self.count]]
        return result, [*self.results, *[False] * (len(result) - len(self.results))]


class _VjpBackward(_Batchable):
    """The function of the leaves of a ``vjp_fn`` and of cotangents that gives the cotangents of the arguments."""

    def __init__(self, of: _VjpForward):
        self.of, self.name = of, of.name
        self.opaque = of.back.leaf_count

    def run(self, leaves: Leaves) -> Leaves:
        if self.of.size:
            raise UnsupportedError(
                f"{self.name}: the derivative of its rule is of a whole batch, and is asked for by one example, where "
                "a loop or a derivative of one is traced; take the vmap inside of it"
            )
        return self._pull(leaves)

    def _pull(self, leaves: Leaves) -> Leaves:
        return list(self.of.back.unflatten(leaves[: self.opaque])(leaves[self.opaque :]))

    def batch(self, size: int, flags: list[bool], leaves: Leaves) -> tuple[Leaves, list[bool]]:
        count = self.opaque
        even = _align_batches(size, leaves[count:], flags[count:], self.of.results)
        result = self._pull([*leaves[:count], *even])
        return result, [n >= self.of.of.opaque and leaf.dtype.is_inexact for n, leaf in enumerate(result)]


def _align_batches(size: int, leaves: Leaves, flags: list[bool], wanted: list[bool]) -> Leaves:
    """The leaves with their examples along axis 0 where that is wanted, summed over it where it is not."""
    result = []
    for leaf, flag, want in zip(leaves, flags, wanted):
        if leaf is not None and want and not flag:
            leaf = by_name("broadcast_to")(asarray(leaf), (size, *asarray(leaf).shape))
        result.append(by_name("sum")(leaf, 0) if leaf is not None and flag and not want else leaf)
    return result


def _call(function: _Batchable, leaves: Leaves) -> Leaves:
    """Call a function at the innermost level among its arguments."""
    level = innermost_level(leaves)
    if level is None or (level.run is None and state.exclude & AUTOGRAD):
        return function.run(leaves)
    if level.run is not None:
        raw, flags = unwrap_all(level, tuple(leaves))
        value, batched = function.batch(level.batch_size, flags, list(raw))
        return wrap_all(level, value, batched)
    if level.forward is not None:
        return call_ruled(ForwardRule(function.name, object(), function.run, _push(function)), leaves)
    return call_ruled(_reverse(function), leaves)


def _zeros_of_batch(leaf: Any) -> Leaves:
    """A zero that differs from example to example of the innermost batch that a value belongs to, if there is one."""
    while isinstance(leaf, LevelTensor):
        if leaf._level.run is not None:
            return [wrap_batched(leaf._level, by_name("zeros")((leaf._level.batch_size,)))]
        leaf = leaf._payload
    return []


def _or_zeros(cotangent: Any, spec: TensorSpec) -> Any:
    """A cotangent of an example of a batch."""
    return zeros_of(spec._replace(shape=spec.shape[1:])) if cotangent is None else cotangent


def _push(function: _Batchable) -> Callable[[Leaves, Leaves], tuple[Leaves, Leaves]]:
    def push(leaves: Leaves, tangents: Leaves) -> tuple[Leaves, Leaves]:
        wanted = [t is not None for t in tangents]
        given = [x if t is None else t for x, t in zip(leaves, tangents)]
        result = _call(_JvpFunction(function, wanted), [*leaves, *given])
        return result[: len(result) // 2], result[len(result) // 2 :]

    return push


def _reverse(function: _Batchable) -> ReverseRule:
    recorded = _VjpForward(function)
    wants: list[bool] = []
    zeros: Leaves = []

    def forward(leaves: Leaves, wanted: list[bool]) -> tuple[Leaves, Leaves]:
        wants[:] = wanted
        zeros[:] = [zero for leaf in leaves for zero in _zeros_of_batch(leaf)]
        result = _call(recorded, leaves)
        return result[: recorded.count], result[recorded.count :]

    def backward(residuals: Leaves, cotangents: Leaves) -> Leaves:
        if recorded.size:  # the examples have to be seen, also where all cotangents are the same for them
            rows = zip(cotangents, recorded.results, recorded.specs)
            cotangents = [sum(zeros, _or_zeros(g, spec)) if flag else g for g, flag, spec in rows]
        result = _call(_VjpBackward(recorded), [*residuals, *cotangents])
        return [g if wanted else None for g, wanted in zip(result, wants)]

    return ReverseRule(function.name, object(), function.run, forward, backward)
