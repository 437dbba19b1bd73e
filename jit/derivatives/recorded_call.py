"""Differentiated calls of a jitted function: on tensors that require gradients, and on values of a level of ``grad``.

A call runs the compiled forward pass and adds one autograd node, whose gradients the compiled backward pass computes.
For gradients of gradients, batched gradients and traces, the node's gradients come from a jitted function of the
arguments instead, which is differentiated, batched and traced like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import pytree
from ...eager.autograd.autograd_meta import AutogradMeta
from ...eager.autograd.derivative_rules import ActiveRules, Rule
from ...eager.autograd.kernel import edge_of
from ...eager.autograd.node import CallName
from ...eager.autograd.recompute import is_over, watch_draws
from ...eager.layers.level_stack import stack
from ...eager.layers.levels import Level, LevelTensor, unwrap, wrap_level
from ...eager.tensor.dunders import by_name
from ...eager.tensor.generator_state import replay_draws
from ...eager.tensor.tensor import Tensor, require_grad, wrap
from ...lowering.interpreter import to_payload
from ...named_tuple import NamedTuple
from ...registry.dispatch.guards import adjust_keys
from ...registry.dispatch.keys import AUTOGRAD
from ...registry.dispatch.state import state
from ...registry.native_type import NativeCallable, accept_entries
from ...registry.values import SCALARS
from ...tracer.graph import compute_derived
from ...tracer.trace import substitute_captures
from .. import writes
from ..arguments import Arguments, BoundArguments
from ..guards.leaves import leaf_key, to_tensor
from ..native_entry import NativeEntry
from ..outputs import CapturedValueError
from ..specialization import Specialization
from ..variants import PASS, Variants, is_data
from .autograd_call import CompiledNode, Derivative
from .joint_trace import compute_gradients, open_recording_level, unwrap_result

if TYPE_CHECKING:
    from ...registry.types import Args, Function, Kwargs

NO_INDICES: frozenset[int] = frozenset()


@accept_entries
class ForwardEntry(NativeCallable):  # type: ignore[misc]
    """Runs the forward pass of a call natively if it is linked; returns the call's values, else None."""

    def __call__(self, /, *args: object, **kwargs: object) -> Any:
        """Return None: the entry is not linked."""
        return None


class GradientCall(NamedTuple):
    """The properties of a call that determine its gradient function.

    Attributes:
        treedef, statics, static_keys: as in :class:`..arguments.BoundArguments`.
        dynamic: indices of the dynamic leaves.
        fixed: the static leaves, in order.
        wanted: indices of the leaves to differentiate by.
        positions: indices in the flat result whose cotangents are given.
        captured: captured tensors to differentiate by as well.
        states: captured generator states; their values before the call are passed at each call.
        unbatched: whether the call drew random numbers outside of ``vmap``.
        mixed: whether it drew inside ``vmap``, and further levels have been opened since.
    """

    treedef: pytree.TreeDef
    statics: tuple[Any, ...]
    static_keys: tuple[object, ...]
    dynamic: tuple[int, ...]
    fixed: tuple[Any, ...]
    wanted: tuple[int, ...]
    positions: tuple[int, ...]
    captured: tuple[Any, ...]
    states: tuple[Any, ...]
    unbatched: bool
    mixed: bool = False

    @property
    def key(self) -> Any:
        """The cache key of the gradient function."""
        fixed = tuple(leaf_key(leaf, identity=True) for leaf in self.fixed)
        reached = tuple(map(id, self.captured)), tuple(map(id, self.states)), self.unbatched, self.mixed
        return self.treedef, self.static_keys, self.dynamic, fixed, self.wanted, self.positions, reached

    def leaves(self, given: Sequence[Any]) -> list[Any]:
        """Merge the dynamic leaves with the static ones."""
        dynamic, fixed, where = iter(given), iter(self.fixed), set(self.dynamic)
        return [next(dynamic) if n in where else next(fixed) for n in range(self.treedef.leaf_count)]


class GradientVariants(Variants):
    """Differentiates the calls of one jitted function; its variants compute gradients."""

    def __init__(self, fn: Function, arguments: Arguments, jit: Function):
        super().__init__(fn, arguments, jit)
        self._called = CallName(arguments.name)
        self.entry = ForwardEntry()
        self._native = NativeEntry(self.entry, _return_none, "recorded")

    # -- by the compiled forward pass ------------------------------------------------------------------------------
    def run(
        self,
        specialization: Specialization,
        bound: BoundArguments,
        scalars: Sequence[object],
        level: Level | None,
    ) -> Any:
        """Run the forward pass and add the call's autograd node.

        Args:
            found: a specialization with a derivative.
            bound: the call; values of the level are given as they are.
            scalars: its derived scalars.
            level: the level of ``grad`` that records the call; None for tensors that require gradients.
        """
        derivative: Derivative = specialization.derivative
        leaves = [bound.leaves[index] for index in specialization.dynamic]
        raw = leaves if level is None else [unwrap(level, leaf) for leaf in leaves]
        raw = [leaf if type(leaf) in SCALARS else to_tensor(leaf) for leaf in raw]
        parameters = [*raw, *scalars, *specialization.graph.constants]
        if specialization.outputs.writes:
            writes.check_writes("a jitted function", parameters, specialization.outputs.written)
        for limits in specialization.ranges:
            limits.check(parameters)
        results = specialization.run_with_recovery(
            lambda: derivative.forward.run(*map(to_payload, parameters)), parameters
        )
        fixed = tuple([bound.leaves[index] for index in derivative.fixed])
        return self._add_node(specialization, leaves, fixed, parameters, results, level)

    def link(self, specialization: Specialization, form: object) -> None:
        """Link the forward pass for calls of this form, if native code can run it."""
        twin = specialization.derivative.make_native_twin(specialization)
        twin.hits = specialization.hits
        self._native.link(twin, self._arguments, form)

    def replay(self, args: Args, kwargs: Kwargs) -> Any:
        """Run a call with a native forward pass while the dispatch trace is on; `PASS` if guards fail."""
        result = self._native.replay(args, kwargs)
        return PASS if result is None or result[0] is None else self.finish_native_call(result[0])

    def remove(self, specialization: Specialization) -> None:
        """Unlink one specialization, so that Python runs its calls."""
        if specialization.derivative is not None and specialization.derivative.twin is not None:
            self._native.remove(specialization.derivative.twin)

    def unlink(self) -> None:
        """Unlink all specializations, so that Python runs every call until it links them again."""
        self._native.unlink()

    def finish_native_call(self, values: Sequence[Any]) -> Any:
        """Add the autograd node of a native call; :data:`PASS` if other tensors need gradients than were traced.

        Args:
            values: the specialization, its parameters but for the derived numbers, and the results.
        """
        value: Specialization = values[0]
        derivative: Derivative = value.derivative
        count, captured = derivative.counts
        if derivative.is_plain:
            for index, keys in derivative.tensor_keys:
                if values[index]._keys != keys:
                    return PASS
            return self._add_plain_node(value, derivative, values, 1 + count)
        leaves, end = values[1 : 1 + count], 1 + count + captured
        if [values[index]._keys for index in derivative.tensors] != derivative.keys:
            return PASS
        numbers = compute_derived(value.graph, leaves) if value.scalar_types else ()
        parameters = [*leaves, *numbers, *values[1 + count : end]]
        return self._add_node(value, leaves, derivative.static_leaves(value), parameters, values[end:], None)

    def _add_plain_node(
        self, specialization: Specialization, derivative: Derivative, values: Sequence[Any], first: int
    ) -> Any:
        """Add the autograd node of a native call without writes, captured tensors and derived numbers.

        Args:
            specialization: the specialization.
            derivative: its derivative.
            values: as for :meth:`finish_native_call`.
            first: the index of the first result.
        """
        edges = [edge_of(values[index + 1], values[index + 1]._meta) for index in derivative.indices]
        pull = derivative.pull
        if pull is None:
            pull = partial(self._compute_gradients, specialization, derivative.static_leaves(specialization))
            if not derivative.fixed:
                derivative.pull = pull
        node = CompiledNode(derivative, derivative.called, derivative.active, edges, pull)
        if derivative.holds:
            node.store_residuals(values[1:], derivative.holds, derivative.shown)
        for number in derivative.roots:
            require_grad(values[first + number], AutogradMeta(node, number))
        if derivative.is_single:
            return values[first]
        return specialization.outputs.build(values[1:first], values[first : first + derivative.computed])

    def _add_node(
        self,
        specialization: Specialization,
        leaves: Sequence[Any],
        fixed: tuple[Any, ...],
        parameters: Sequence[Any],
        results: Sequence[Any],
        level: Level | None,
    ) -> Any:
        """Add the autograd node of a call whose forward pass has run.

        Args:
            found: the specialization.
            leaves: the dynamic leaves, as they were passed.
            fixed: the static leaves.
            parameters: the forward graph's parameters.
            results: its results.
            level: the level that records the call, or None.
        """
        derivative: Derivative = specialization.derivative
        if not derivative.roots:
            out = specialization.outputs.build([*leaves, *parameters[len(leaves) :]], results)
            return _detach_leaves(out, derivative.detached) if derivative.detached else out
        targets = [leaves[t] if type(t) is int else t for t in derivative.indices]
        edges = [edge_of(target, target._meta) for target in targets]
        pull = partial(self._compute_gradients, specialization, fixed)
        node = CompiledNode(derivative, derivative.called, derivative.active, edges, pull)
        values = [*parameters, *results]
        for index, _ in specialization.outputs.writes:
            is_captured = index >= len(parameters) - len(specialization.graph.constants)
            if index in derivative.holds and (is_captured or not values[index].dtype.is_inexact):
                # a generator's state or a buffer, which is about to change
                values[index] = values[index].clone()
        node.store_residuals(values, derivative.holds, derivative.shown if level is None else NO_INDICES)
        outcome = list(results[: derivative.computed])
        for number in derivative.roots:
            meta, item = AutogradMeta(node, number), outcome[number]
            outcome[number] = require_grad(item, meta) if level is None else wrap_level(level, item, meta)
        given = parameters if level is None else [*leaves, *parameters[len(leaves) :]]
        out = specialization.outputs.build(given, outcome)
        return _detach_leaves(out, derivative.detached) if derivative.detached else out

    def _compute_gradients(
        self,
        specialization: Specialization,
        fixed: tuple[object, ...],
        values: dict[int, object],
        cotangents: Sequence[Tensor],
    ) -> tuple[Any, ...]:
        """Compute the gradients of a call from its arguments, by a jitted function that can be transformed."""
        derivative: Derivative = specialization.derivative
        graph, count = specialization.graph, len(specialization.graph.inputs)
        first = count + len(graph.derived)  # of the captured tensors; those written are states of generators
        reached = [index for index in specialization.outputs.written if index >= first]
        given = [
            values[n] if n in values else _make_placeholder(graph.parameters[n])
            for n in (*range(count), *reached)
        ]
        form = GradientCall(
            specialization.treedef,
            specialization.static_values,
            specialization.statics,
            specialization.dynamic,
            fixed,
            tuple(t for t in derivative.targets if type(t) is int),
            derivative.positions,
            tuple(t for t in derivative.targets if type(t) is not int),
            tuple(graph.constants[index - first] for index in reached),
            unbatched=True,
        )
        gradients = self.get_gradient_function(form)(tuple(given), tuple(cotangents))
        return tuple(gradients)  # leaves are the first targets

    # -- by a jitted function of the gradients ---------------------------------------------------------------------
    def run_at(self, level: Level, bound: BoundArguments, below: Callable[[BoundArguments], Any]) -> Any:
        """Record a call at a level whose payloads are themselves recorded, batched or traced.

        Args:
            level: the innermost level among the leaves.
            bound: the call.
            below: calls the jitted function with other leaves.
        """
        raw = [unwrap(level, leaf) for leaf in bound.leaves]
        with (
            adjust_keys(exclude=0 if state.exclude & AUTOGRAD else level.outer_exclude),
            watch_draws() as seen,
        ):
            out = below(bound._replace(leaves=raw))
        metas = [autograd_meta_at(level, leaf) for leaf in bound.leaves]
        wanted = tuple(n for n, meta in enumerate(metas) if meta is not None)
        if state.exclude & AUTOGRAD or not wanted:
            return out
        results, treedef = pytree.flatten(out)
        if any(isinstance(item, LevelTensor) and item._level is level for item in results):
            raise CapturedValueError(f"{self._arguments.name} captures a value of {level.name}")
        given = {id(item): leaf for item, leaf in zip(raw, bound.leaves) if isinstance(item, Tensor)}
        positions = tuple(
            n
            for n, item in enumerate(results)
            if isinstance(item, Tensor) and item.dtype.is_inexact and id(item) not in given
        )
        dynamic = tuple(n for n, leaf in enumerate(raw) if is_data(leaf))
        fixed = tuple(leaf for n, leaf in enumerate(raw) if n not in dynamic)
        reached = [pair for n, pair in seen.items() if n not in map(id, raw) and not is_over(pair[0])]
        levels = tuple(stack.levels)
        states, unbatched = tuple(state for state, _ in reached), not any(map(_is_batched, raw))
        call = bound.treedef, bound.statics, bound.static_keys
        form = GradientCall(
            *call, dynamic, fixed, wanted, positions, captured=(), states=states, unbatched=unbatched
        )
        active = ActiveRules(tuple(Rule(n, None, (), 0, False, False) for n in range(len(wanted))), ())
        edges = [edge_of(bound.leaves[n], metas[n]) for n in wanted]  # type: ignore[arg-type]

        def pull(values: dict[int, Any], cotangents: Sequence[Any]) -> tuple[Any, ...]:
            mixed = not unbatched and any(x.batch_size and x not in levels for x in stack.levels)
            gradients = self.get_gradient_function(form._replace(mixed=mixed))
            return tuple(gradients(tuple(values.values()), tuple(cotangents)))

        node = CompiledNode(None, self._called, active, edges, pull)
        saved = [seen[id(raw[n])][1] if id(raw[n]) in seen else raw[n] for n in dynamic]
        saved += [before for _, before in reached]
        node.store_residuals(saved, tuple(range(len(saved))), frozenset())
        node.roots = positions
        for n, item in enumerate(results):
            if n in positions:
                results[n] = wrap_level(level, item, AutogradMeta(node, n))
            else:
                results[n] = given.get(id(item), item)
        return treedef.unflatten(results)

    def get_gradient_function(self, form: GradientCall) -> Any:
        """The jitted function from the dynamic leaves, generator states and cotangents to the wanted gradients."""
        return self._get_variant(form.key, form)

    def _make_function(self, form: GradientCall) -> Any:
        name = self._arguments.name

        def gradients(given: tuple[Any, ...], cotangents: tuple[object, ...]) -> tuple[Any, ...]:
            # The function may write its arguments, as the first call did; copies cost nothing in a trace.
            given = tuple([x.clone() if isinstance(x, Tensor) else x for x in given])
            count = len(form.dynamic)
            leaves = form.leaves(given[:count])
            again = replay_draws(form.states, given[count:], form.unbatched, form.mixed)
            states = substitute_captures([(state,) for state in form.states], given[count:])
            with again, states, open_recording_level(name) as value:
                for index in form.wanted:
                    leaves[index] = wrap_level(value.level, to_tensor(leaves[index]), AutogradMeta())
                out = self._arguments.call(self._fn, form.treedef.unflatten(leaves), form.statics)
                _, metas = unwrap_result(value.level, out)
            pairs = [(metas[index], g) for index, g in zip(form.positions, cotangents)]
            flowing = compute_gradients(
                [(m.node or m, m.index, g) for m, g in pairs if m is not None and g is not None]
            )
            inputs = [leaves[index]._meta for index in form.wanted]
            inputs += [value.value(tensor)._meta for tensor in form.captured]
            return tuple([flowing.get(meta) for meta in inputs])

        return self._mark_variant(gradients, f"backward of {name}")


def _return_none(*args: object, **kwargs: object) -> None:
    """The fallback of the native entry: return None for calls whose guards fail."""


def autograd_meta_at(level: Level, leaf: object) -> AutogradMeta | None:
    """The autograd metadata of a leaf at a level, if it requires a gradient."""
    meta = leaf._meta if isinstance(leaf, LevelTensor) and leaf._level is level else None
    return meta if meta is not None and meta.requires_grad else None


def _is_batched(value: object) -> bool:
    """Whether a value is batched by a level of ``vmap``."""
    while isinstance(value, LevelTensor):
        if value._level.batch_size:
            return True
        value = value._payload
    return False


def _make_placeholder(value: Any) -> object:
    """Make zeros for an argument that the gradients do not depend on."""
    spec = value.spec
    if spec.device == "cpu":
        return wrap(np.zeros(spec.shape, spec.dtype.np))
    return by_name("full")(spec.shape, 0, dtype=spec.dtype, device=spec.device)


def _detach_leaves(out: object, indices: frozenset[int]) -> object:
    """Detach some leaves of a result: views that were made without recording."""
    leaves, treedef = pytree.flatten(out)
    return treedef.unflatten([leaf.detach() if n in indices else leaf for n, leaf in enumerate(leaves)])
