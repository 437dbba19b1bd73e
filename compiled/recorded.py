"""Calls of a jitted function that are recorded: on tensors with a history, and on values of a level of ``grad``.

A call runs the compiled forward pass and records one node, whose gradients the compiled backward pass computes. Where
that is watched in its turn (gradients of gradients, batches of them, a trace) the node's gradients come from a jitted
function that computes them from the arguments: it is differentiated and batched like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .. import pytree
from ..eager.dunders import by_name
from ..eager.generator import drawing_again
from ..eager.level_stack import stack
from ..eager.levels import Level, LevelTensor, unwrap, wrap_level
from ..eager.meta import AutogradMeta
from ..eager.node import Named
from ..eager.plans import Active, Rule
from ..eager.recompute import drawn, is_over
from ..eager.record import edge_of
from ..eager.tensor import Tensor, require_grad, wrap
from ..lowering.evaluate import payload
from ..registry.keys import AUTOGRAD
from ..registry.native_type import NativeCallable, accept_entries
from ..registry.state import adjusted, state
from ..registry.values import SCALARS
from ..tracer.graph import derive
from . import writes
from .arguments import Arguments, Bound
from .derivative import CompiledNode, Derivative
from .joint import pulled, recording, taken_out
from .leaves import as_tensor, leaf_key
from .native import NativeEntry
from .outputs import CapturedValueError
from .specialization import Specialization
from .variants import Variants, is_data

NONE: frozenset[int] = frozenset()
MISSED = object()


@accept_entries
class ForwardEntry(NativeCallable):  # type: ignore[misc]
    """Runs the forward pass of a call if machine code for it is at hand; gives the call's values, else None."""

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return None


class Form(NamedTuple):
    """A kind of call whose gradient is a function of its own.

    Attributes:
        treedef, statics, static_keys: as in :class:`.arguments.Bound`.
        moving: numbers of the leaves that are given at each call.
        fixed: the other leaves, in order.
        wanted: numbers of the leaves to differentiate by.
        positions: places in the flat result whose gradients are given.
        captured: captured tensors to differentiate by as well.
        states: states of generators that the function reaches by itself; what they were is given at each call.
        unbatched: whether the call drew under no level of ``vmap``.
        mixed: whether it drew under some, and others have been opened since.
    """

    treedef: pytree.TreeDef
    statics: tuple[Any, ...]
    static_keys: tuple[Any, ...]
    moving: tuple[int, ...]
    fixed: tuple[Any, ...]
    wanted: tuple[int, ...]
    positions: tuple[int, ...]
    captured: tuple[Any, ...]
    states: tuple[Any, ...]
    unbatched: bool
    mixed: bool = False

    @property
    def key(self) -> Any:
        """What two forms with the same gradient function have in common."""
        fixed = tuple(leaf_key(leaf, identity=True) for leaf in self.fixed)
        reached = tuple(map(id, self.captured)), tuple(map(id, self.states)), self.unbatched, self.mixed
        return self.treedef, self.static_keys, self.moving, fixed, self.wanted, self.positions, reached

    def leaves(self, given: Sequence[Any]) -> list[Any]:
        """All leaves, from those that are given at each call."""
        moving, fixed, where = iter(given), iter(self.fixed), set(self.moving)
        return [next(moving) if n in where else next(fixed) for n in range(self.treedef.leaf_count)]


class Recorder(Variants):
    """Records the calls of one jitted function; its variants compute gradients."""

    def __init__(self, fn: Callable[..., Any], arguments: Arguments, jit: Callable[..., Any]):
        super().__init__(fn, arguments, jit)
        self._called = Named(arguments.name)
        self.entry = ForwardEntry()
        self._native = NativeEntry(self.entry, _nothing, "recorded")

    # -- by the compiled forward pass ------------------------------------------------------------------------------
    def run(self, found: Specialization, bound: Bound, scalars: Sequence[Any], level: Level | None) -> Any:
        """Run the forward pass and record the call.

        Args:
            found: a specialization with a derivative.
            bound: the call; values of the level are given as they are.
            scalars: its derived scalars.
            level: where it is recorded; None: in the history of the tensors.
        """
        derivative: Derivative = found.derivative
        leaves = [bound.leaves[place] for place in found.moving]
        raw = leaves if level is None else [unwrap(level, leaf) for leaf in leaves]
        raw = [leaf if type(leaf) in SCALARS else as_tensor(leaf) for leaf in raw]
        parameters = [*raw, *scalars, *found.graph.constants]
        if found.outputs.writes:
            writes.check("a jitted function", parameters, found.outputs.written)
        for limits in found.ranges:
            limits.check(parameters)
        results = derivative.forward(*map(payload, parameters))
        fixed = tuple([bound.leaves[place] for place in derivative.fixed])
        return self._finish(found, leaves, fixed, parameters, results, level)

    def link(self, found: Specialization, form: Any) -> None:
        """Let machine code run the forward pass of calls of this form, if it can."""
        twin = found.derivative.with_values(found)
        twin.hits = found.hits
        self._native.link(twin, self._arguments, form)

    def unlink(self) -> None:
        """Send every call to Python until a specialization is linked again."""
        self._native.unlink()

    def answered(self, values: Sequence[Any]) -> Any:
        """Record a call whose forward pass machine code has run; :data:`MISSED` if other tensors need gradients.

        Args:
            values: the specialization, its parameters but for the derived numbers, and the results.
        """
        found: Specialization = values[0]
        derivative: Derivative = found.derivative
        count, captured = derivative.counts
        leaves, end = values[1 : 1 + count], 1 + count + captured
        if [values[place]._keys for place in derivative.tensors] != derivative.keys:
            return MISSED
        numbers = derive(found.graph, leaves) if found.scalar_types else ()
        parameters = [*leaves, *numbers, *values[1 + count : end]]
        return self._finish(found, leaves, derivative.fixed_leaves(found), parameters, values[end:], None)

    def _finish(
        self,
        found: Specialization,
        leaves: Sequence[Any],
        fixed: tuple[Any, ...],
        parameters: Sequence[Any],
        results: Sequence[Any],
        level: Level | None,
    ) -> Any:
        """Record a call whose forward pass has run.

        Args:
            found: the specialization.
            leaves: the leaves that are given at each call, as they were given.
            fixed: the other leaves.
            parameters: the forward graph's parameters.
            results: its results.
            level: where the call is recorded.
        """
        derivative: Derivative = found.derivative
        if not derivative.roots:
            return found.outputs.build([*leaves, *parameters[len(leaves) :]], results)
        targets = [leaves[t] if type(t) is int else t for t in derivative.places]
        edges = [edge_of(target, target._meta) for target in targets]
        pull = partial(self._pull, found, fixed)
        node = CompiledNode(derivative, derivative.called, derivative.active, edges, pull)
        values = [*parameters, *results]
        for place, _ in found.outputs.writes:
            if place in derivative.holds and not values[place].dtype.is_inexact:
                values[place] = values[place].clone()  # a generator's state, which is about to change
        node.keep(values, derivative.holds, derivative.shown if level is None else NONE)
        outcome = list(results[: derivative.computed])
        for number in derivative.roots:
            meta, item = AutogradMeta(node, number), outcome[number]
            outcome[number] = require_grad(item, meta) if level is None else wrap_level(level, item, meta)
        given = parameters if level is None else [*leaves, *parameters[len(leaves) :]]
        out = found.outputs.build(given, outcome)
        return _cut(out, derivative.cut) if derivative.cut else out

    def _pull(
        self, found: Specialization, fixed: tuple[Any, ...], values: dict[int, Any], cotangents: Sequence[Any]
    ) -> tuple[Any, ...]:
        """The gradients of a call in terms of its arguments."""
        derivative: Derivative = found.derivative
        graph, count = found.graph, len(found.graph.inputs)
        first = count + len(graph.derived)  # of the captured tensors; those written are states of generators
        reached = [place for place in found.outputs.written if place >= first]
        given = [
            values[n] if n in values else _placeholder(graph.parameters[n]) for n in (*range(count), *reached)
        ]
        form = Form(
            found.treedef,
            found.static_values,
            found.statics,
            found.moving,
            fixed,
            tuple(t for t in derivative.targets if type(t) is int),
            derivative.positions,
            tuple(t for t in derivative.targets if type(t) is not int),
            tuple(graph.constants[place - first] for place in reached),
            unbatched=True,
        )
        gradients = self.gradients_of(form)(tuple(given), tuple(cotangents))
        return tuple(gradients)  # leaves are the first targets

    # -- by a jitted function of the gradients ---------------------------------------------------------------------
    def run_at(self, level: Level, bound: Bound, below: Callable[[Bound], Any]) -> Any:
        """Record a call at a level whose values wrap what is recorded, batched or traced below it.

        Args:
            level: the innermost level among the leaves.
            bound: the call.
            below: calls the jitted function with other leaves.
        """
        raw = [unwrap(level, leaf) for leaf in bound.leaves]
        with adjusted(exclude=0 if state.exclude & AUTOGRAD else level.outer_exclude), drawn() as seen:
            out = below(bound._replace(leaves=raw))
        metas = [meta_at(level, leaf) for leaf in bound.leaves]
        wanted = tuple(n for n, meta in enumerate(metas) if meta is not None)
        if state.exclude & AUTOGRAD or not wanted:
            return out
        results, treedef = pytree.flatten(out)
        if any(isinstance(item, LevelTensor) and item._level is level for item in results):
            raise CapturedValueError(f"{self._arguments.name} reaches a value of {level.name} by itself")
        given = {id(item): leaf for item, leaf in zip(raw, bound.leaves) if isinstance(item, Tensor)}
        positions = tuple(
            n
            for n, item in enumerate(results)
            if isinstance(item, Tensor) and item.dtype.is_inexact and id(item) not in given
        )
        moving = tuple(n for n, leaf in enumerate(raw) if is_data(leaf))
        fixed = tuple(leaf for n, leaf in enumerate(raw) if n not in moving)
        reached = [pair for n, pair in seen.items() if n not in map(id, raw) and not is_over(pair[0])]
        levels = tuple(stack.levels)
        states, unbatched = tuple(state for state, _ in reached), not any(map(_is_batched, raw))
        call = bound.treedef, bound.statics, bound.static_keys
        form = Form(*call, moving, fixed, wanted, positions, captured=(), states=states, unbatched=unbatched)
        active = Active(tuple(Rule(n, None, (), 0, False, False) for n in range(len(wanted))), ())
        edges = [edge_of(bound.leaves[n], metas[n]) for n in wanted]  # type: ignore[arg-type]

        def pull(values: dict[int, Any], cotangents: Sequence[Any]) -> tuple[Any, ...]:
            mixed = not unbatched and any(x.batch_size and x not in levels for x in stack.levels)
            gradients = self.gradients_of(form._replace(mixed=mixed))
            return tuple(gradients(tuple(values.values()), tuple(cotangents)))

        node = CompiledNode(None, self._called, active, edges, pull)
        saved = [seen[id(raw[n])][1] if id(raw[n]) in seen else raw[n] for n in moving]
        saved += [before for _, before in reached]
        node.keep(saved, tuple(range(len(saved))), frozenset())
        node.roots = positions
        for n, item in enumerate(results):
            if n in positions:
                results[n] = wrap_level(level, item, AutogradMeta(node, n))
            else:
                results[n] = given.get(id(item), item)
        return treedef.unflatten(results)

    def gradients_of(self, form: Form) -> Any:
        """The jitted function from the moving leaves, the states of generators and the gradients of the results to
        the gradients of what is wanted."""
        return self._variant(form.key, form)

    def _function(self, form: Form) -> Any:
        name = self._arguments.name

        def gradients(given: tuple[Any, ...], cotangents: tuple[Any, ...]) -> tuple[Any, ...]:
            # What the function writes, it has written before: it gets copies, which cost nothing in a trace.
            given = tuple([x.clone() if isinstance(x, Tensor) else x for x in given])
            count = len(form.moving)
            leaves = form.leaves(given[:count])
            again = drawing_again(form.states, given[count:], form.unbatched, form.mixed)
            with again, recording(name) as found:
                for place in form.wanted:
                    leaves[place] = wrap_level(found.level, as_tensor(leaves[place]), AutogradMeta())
                out = self._arguments.call(self._fn, form.treedef.unflatten(leaves), form.statics)
                _, metas = taken_out(found.level, out)
            pairs = [(metas[place], g) for place, g in zip(form.positions, cotangents)]
            flowing = pulled([(m.node or m, m.index, g) for m, g in pairs if m is not None and g is not None])
            inputs = [leaves[place]._meta for place in form.wanted]
            inputs += [found.value(tensor)._meta for tensor in form.captured]
            return tuple([flowing.get(meta) for meta in inputs])

        return self._marked(gradients, f"backward of {name}")


def _nothing(*args: Any, **kwargs: Any) -> None:
    """What the entry gives for calls that machine code does not know."""


def meta_at(level: Level, leaf: Any) -> AutogradMeta | None:
    """The record that a leaf has at a level, if a gradient is wanted for it."""
    meta = leaf._meta if isinstance(leaf, LevelTensor) and leaf._level is level else None
    return meta if meta is not None and meta.requires_grad else None


def _is_batched(value: Any) -> bool:
    """Whether a value differs from example to example of a level of ``vmap``."""
    while isinstance(value, LevelTensor):
        if value._level.batch_size:
            return True
        value = value._payload
    return False


def _placeholder(value: Any) -> Any:
    """What is passed for an argument that the gradients do not depend on."""
    spec = value.spec
    if spec.device == "cpu":
        return wrap(np.zeros(spec.shape, spec.dtype.np))
    return by_name("full")(spec.shape, 0, dtype=spec.dtype, device=spec.device)


def _cut(out: Any, places: frozenset[int]) -> Any:
    """The result without the history of the leaves in these places: views that were taken without recording."""
    leaves, treedef = pytree.flatten(out)
    return treedef.unflatten([leaf.detach() if n in places else leaf for n, leaf in enumerate(leaves)])
