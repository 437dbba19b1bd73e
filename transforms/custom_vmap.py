"""``custom_vmap`` and ``sequential_vmap``: functions with their own batching rule.

A call is handled by the innermost level among the arguments. A level of ``vmap`` runs the rule. A level that
differentiates runs the derivative of the function, whose batching rule is the derivative of the rule. So the rule is
also used below any number of derivatives.

Source: ``jax.custom_batching``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

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
from .zeros import Tangents

if TYPE_CHECKING:
    from ..registry.types import Function, Pytree, Tensor

mapping = lazy.Module(".control.mapping")

R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., object])


class custom_vmap(RuledFunction[R]):
    """A function with a custom batching rule, which ``vmap`` calls instead of batching the operators of ``fun``.

    Args:
        fun: a function of pytrees of tensors that returns a pytree of tensors of any shapes and dtypes.

    The rule is set by :meth:`def_vmap`. In the bodies of compiled loops and branches, a ``vmap`` around the loop
    batches the operators of ``fun``, as if there were no rule.

    Raises:
        ArgumentError: ``fun`` is not callable.

    Source: ``jax.custom_batching.custom_vmap``.

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

    def __init__(self, fun: Callable[..., R]):
        super().__init__(fun)
        self._rule: Function | None = None

    def def_vmap(self, rule: F) -> F:
        """Set the batching rule; usable as a decorator.

        Args:
            rule: ``rule(axis_size, in_batched, *args) -> (result, out_batched)``. ``axis_size`` is the number of
                examples, an int. ``in_batched`` is a list with a pytree of bools for each argument; the tensors that it
                marks have the examples along axis 0. ``out_batched``, a pytree of bools with the structure of the
                result or a prefix of it, marks the results that have the examples along axis 0.

        Returns:
            The rule.

        Raises:
            ArgumentError: ``rule`` is not callable.

        >>> import tandem as td
        >>> total = td.custom_vmap(lambda x: x.sum())
        >>> @total.def_vmap
        ... def total_rule(axis_size, in_batched, x):
        ...     return x.sum(axis=1), True
        >>> td.vmap(total)(td.ones((2, 3))).tolist()
        [3.0, 3.0]
        """
        check_callable("custom_vmap.def_vmap", rule)
        self._rule = rule
        return rule

    def __call__(self, *args: Pytree, **kwargs: Pytree) -> R:
        """Call the function; keyword arguments are bound to their positions, and defaults are filled in.

        Raises:
            ArgumentError: the arguments do not match the signature, or are keyword-only.
            RuleError: the function has no rule and is called under ``vmap``, or the rule does not return a pair, or
                flags that do not match its result.
        """
        bound = self._bind(args, kwargs)
        function = _Function(self, bound.treedef)
        leaves = _call(function, bound.leaves)
        result: R = function.outdef.unflatten(leaves)
        return result

    def __repr__(self) -> str:
        return f"<custom_vmap {getattr(self.fun, '__qualname__', self.fun)}>"


def sequential_vmap(fun: Callable[..., R]) -> custom_vmap[R]:
    """Create a function that ``vmap`` runs on one example after the other, as :func:`tandem.map` does.

    Args:
        fun: a function of pytrees of tensors that returns a pytree of tensors of any shapes and dtypes.

    Returns:
        A :class:`custom_vmap` of ``fun`` with a rule that loops over the examples.

    Raises:
        ArgumentError: ``fun`` is not callable.

    Source: ``jax.custom_batching.sequential_vmap``.

    >>> import tandem as td
    >>> td.vmap(td.sequential_vmap(lambda x: x @ x))(td.asarray([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [5.0, 25.0]
    """
    function = custom_vmap(fun)

    def one_by_one(axis_size: int, in_batched: Pytree, *args: Pytree) -> tuple[Pytree, bool]:
        leaves, treedef = pytree.flatten(list(args))
        flags = pytree.leaves(in_batched)
        batched = [leaf for leaf, flag in zip(leaves, flags) if flag]

        def on_example(example: Iterable[object]) -> object:
            rest = iter(example)
            return function(*treedef.unflatten([next(rest) if f else x for x, f in zip(leaves, flags)]))

        return mapping.map_items(on_example, batched, None), True

    function.def_vmap(one_by_one)
    return function


class _Batchable:
    """A function of leaves with a batching rule."""

    name: str
    opaque = 0  # the number of leading leaves that are not part of an example

    def run(self, leaves: Leaves) -> Leaves:
        """Run the function on the leaves of one example."""
        raise NotImplementedError

    def batch(self, size: int, flags: list[bool], leaves: Leaves) -> tuple[Leaves, list[bool]]:
        """Run the function on a batch of ``size`` examples, which the leaves whose flag is set have along axis 0."""
        raise NotImplementedError


class _Function(_Batchable):
    """A call of the user's function."""

    def __init__(self, owner: custom_vmap[Any], treedef: pytree.TreeDef):
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
        results, self.outdef = pytree.flatten(rule_result[0])
        try:
            out_flags = pytree.spread_prefix(rule_result[1], rule_result[0])
        except TypeError as fault:
            raise RuleError(f"{self.name}: out_batched does not begin as the result does: {fault}") from None
        for leaf, flag in zip(results, out_flags):
            if flag and asarray(leaf).shape[:1] != (size,):
                raise RuleError(
                    f"{self.name}: its rule gives {describe(leaf)} for a batch of {size} examples"
                )
        return [asarray(leaf) for leaf in results], [bool(flag) for flag in out_flags]


class _JvpFunction(_Batchable):
    """The forward-mode derivative of a function: from values and tangents to values and tangents."""

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
        out_flags: list[bool] = []
        batched = [a or (b and w) for a, b, w in zip(flags, flags[count:], self.wanted)]
        aligned = _align_batches(size, leaves, flags, [*batched, *batched])

        def on_batch(xs: Leaves) -> Leaves:
            out, out_flags[:] = self.of.batch(size, batched, xs)
            return out

        results = self._push(on_batch, aligned)
        return results, [*out_flags, *out_flags]


class _VjpForward(_Batchable):
    """The forward pass of reverse mode: returns the values and the leaves of their ``vjp_fn``.

    A whole batch has one ``vjp_fn``, whose leaves are not part of an example.

    Attributes:
        count: the number of values.
        back: the TreeDef of the ``vjp_fn``.
        size: the number of examples of the batch; 0 without a batch.
        results: for each value, whether it has the examples along axis 0.
        specs: the specs of the values of the batch.
    """

    def __init__(self, of: _Batchable):
        self.of, self.name, self.count, self.size = of, of.name, 0, 0
        self.back = pytree.LEAF
        self.results: list[bool] = []
        self.specs: list[TensorSpec] = []

    def _record(self, run: Callable[[Leaves], Leaves], leaves: Leaves) -> list[Any]:
        values, vjp_fn = vjp(lambda *xs: list(run(list(xs))), *leaves)
        residuals, self.back = pytree.flatten(vjp_fn)
        self.count = len(values)
        return [*values, *residuals]

    def run(self, leaves: Leaves) -> Leaves:
        self.size = 0
        return self._record(self.of.run, leaves)

    def batch(self, size: int, flags: list[bool], leaves: Leaves) -> tuple[Leaves, list[bool]]:
        def on_batch(xs: Leaves) -> Leaves:
            out, self.results = self.of.batch(size, batched, xs)
            return out

        rows = enumerate(zip(leaves, flags))
        # batch every differentiable argument, so that each example has its own gradient
        batched = [flag or (n >= self.of.opaque and asarray(x).dtype.is_inexact) for n, (x, flag) in rows]
        result = self._record(on_batch, _align_batches(size, leaves, flags, batched))
        self.size, self.specs = size, [leaf.spec for leaf in result[: self.count]]
        return result, [*self.results, *[False] * (len(result) - len(self.results))]


class _VjpBackward(_Batchable):
    """The backward pass: from the leaves of a ``vjp_fn`` and cotangents to the cotangents of the arguments."""

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

    def _pull(self, leaves: Leaves) -> list[Tensor]:
        return list(self.of.back.unflatten(leaves[: self.opaque])(leaves[self.opaque :]))

    def batch(self, size: int, flags: list[bool], leaves: Leaves) -> tuple[Leaves, list[bool]]:
        count = self.opaque
        aligned = _align_batches(size, leaves[count:], flags[count:], self.of.results)
        result = self._pull([*leaves[:count], *aligned])
        return result, [n >= self.of.of.opaque and leaf.dtype.is_inexact for n, leaf in enumerate(result)]


def _align_batches(size: int, leaves: Leaves, flags: list[bool], wanted: list[bool]) -> Leaves:
    """Broadcast along axis 0 the leaves that must be batched and are not; sum over it those that must not be."""
    result = []
    for leaf, flag, want in zip(leaves, flags, wanted):
        if leaf is not None and want and not flag:
            leaf = by_name("broadcast_to")(asarray(leaf), (size, *asarray(leaf).shape))
        result.append(by_name("sum")(leaf, 0) if leaf is not None and flag and not want else leaf)
    return result


def _call(function: _Batchable, leaves: Leaves) -> Sequence[Any]:
    """Call a function at the innermost level among its arguments."""
    level = innermost_level(leaves)
    if level is None or (level.run is None and state.exclude & AUTOGRAD):
        return function.run(leaves)
    if level.run is not None:
        raw, flags = unwrap_all(level, tuple(leaves))
        results, batched = function.batch(level.batch_size, flags, list(raw))
        return wrap_all(level, results, batched)
    if level.forward is not None:
        return call_ruled(ForwardRule(function.name, object(), function.run, _push(function)), leaves)
    return call_ruled(_reverse(function), leaves)


def _zeros_of_batch(leaf: object) -> list[Tensor]:
    """A batched zero of shape ``()`` at the innermost level of ``vmap`` that a value belongs to, or an empty list."""
    while isinstance(leaf, LevelTensor):
        if leaf._level.run is not None:
            return [wrap_batched(leaf._level, by_name("zeros")((leaf._level.batch_size,)))]
        leaf = leaf._payload
    return []


def _or_zeros(cotangent: Tensor | None, spec: TensorSpec) -> Tensor:
    """The cotangent of one example of a batch; zeros for None."""
    return zeros_of(spec._replace(shape=spec.shape[1:])) if cotangent is None else cotangent


def _push(function: _Batchable) -> Callable[[Leaves, Tangents], tuple[Leaves, Tangents]]:
    """The forward rule of a function: from arguments and tangents to results and tangents."""

    def push(leaves: Leaves, tangents: Tangents) -> tuple[Leaves, Tangents]:
        wanted = [t is not None for t in tangents]
        given = [x if t is None else t for x, t in zip(leaves, tangents)]
        result = _call(_JvpFunction(function, wanted), [*leaves, *given])
        return result[: len(result) // 2], result[len(result) // 2 :]

    return push


def _reverse(function: _Batchable) -> ReverseRule:
    """The reverse rule of a function."""
    recorded = _VjpForward(function)
    wants: list[bool] = []
    zeros: list[Tensor] = []

    def forward(leaves: Leaves, wanted: list[bool]) -> tuple[Leaves, Leaves]:
        wants[:] = wanted
        zeros[:] = [zero for leaf in leaves for zero in _zeros_of_batch(leaf)]
        result = _call(recorded, leaves)
        return result[: recorded.count], result[recorded.count :]

    def backward(residuals: Leaves, cotangents: Tangents) -> Tangents:
        if recorded.size:  # the cotangents must be batched, even if they are the same for all examples
            rows = zip(cotangents, recorded.results, recorded.specs)
            cotangents = [sum(zeros, _or_zeros(g, spec)) if flag else g for g, flag, spec in rows]
        result = _call(_VjpBackward(recorded), [*residuals, *cotangents])
        return [g if wanted else None for g, wanted in zip(result, wants)]

    return ReverseRule(function.name, object(), function.run, forward, backward)
