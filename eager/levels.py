"""Levels: nested transforms as a stack, and values that belong to one level.

A transform opens a level and wraps the values it works on as :class:`LevelTensor`. An operator met by such a value goes
to the Level key's kernel, which takes the highest level among the arguments, runs the operator on what that level's
values wrap (values of lower levels, traced values, plain tensors), records it, and wraps the result. Levels below do
the same in turn, so gradients of gradients need no second mechanism.

Source: the interpreter stack of functorch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .. import lazy
from ..errors import ConcretizationError, LeakedTracerError, UnsupportedError
from ..operators.declare import LIBRARY
from ..registry import trace
from ..registry.dtypes import DType
from ..registry.function import functions
from ..registry.keys import AUTOGRAD, BACKENDS, DispatchKey, autograd_keys, below
from ..registry.operator import Operator
from ..registry.state import adjusted, state
from ..registry.values import TensorSpec, describe
from . import made
from .aliases import check_unshared, gather
from .captured import entered, entrances
from .context import ContextNode
from .dunders import by_name
from .level_stack import ALL_RUN as ALL_RUN
from .level_stack import Level as Level
from .level_stack import masked as masked
from .level_stack import open_level as open_level
from .level_stack import pushed as pushed
from .level_stack import stack as stack
from .meta import AutogradMeta
from .node import Node
from .plans import ARGUMENT, Plan, plan_of
from .record import (
    Args,
    Kwargs,
    autograd,
    check_not_leaf,
    edges_of,
    make_node,
    policies,
    written_values,
)
from .results import map_results
from .storage import Storage
from .tensor import Tensor
from .views import View, bottom, is_alone, rebase, root_of, shares, track

LEVEL = 1 << DispatchKey.Level
BATCHED = 1 << DispatchKey.Batched
AUTOCAST = 1 << DispatchKey.Autocast
PYTHON = 1 << DispatchKey.Python
BELOW_MODES = below(DispatchKey.Mode)
_AUTOGRAD_KEY: dict[int, int] = {}  # by the key set of the backends


class LevelTensor(Tensor):
    """A value of a level: a value of the next lower level (or a traced or plain tensor), with its history here."""

    # No slots beside a Tensor's, so that a tensor made inside a level can become a value of it (:func:`adopt`).
    __slots__ = ()
    _level: Any = Tensor.__dict__["_storage"]
    _payload: Any = Tensor.__dict__["_array"]
    _storage = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self._payload.shape  # type: ignore[no-any-return]

    @property
    def dtype(self) -> DType:
        return self._payload.dtype  # type: ignore[no-any-return]

    @property
    def device(self) -> str:
        return self._payload.device  # type: ignore[no-any-return]

    @property
    def spec(self) -> TensorSpec:
        return self._payload.spec  # type: ignore[no-any-return]

    @property
    def strides(self) -> tuple[int, ...]:
        return self._payload.strides  # type: ignore[no-any-return]

    @property
    def storage_offset(self) -> int:
        return self._payload.storage_offset  # type: ignore[no-any-return]

    def is_contiguous(self) -> bool:
        return self._payload.is_contiguous()  # type: ignore[no-any-return]

    def storage(self) -> Storage:
        return self._payload.storage()  # type: ignore[no-any-return]

    @property
    def _array(self) -> Any:
        check_open(self)
        raise ConcretizationError(
            f"NumPy code met a value of {self._level.name}, opened at {self._level.origin}: its derivative would be "
            "lost; use tandem's operators, or x.detach() for the value alone"
        )

    def numpy(self) -> Any:
        if self.requires_grad:
            return self._array
        check_open(self)
        return self._payload.numpy()

    def _host(self, what: str) -> Any:
        check_open(self)
        return self._payload._host(what)

    def __bool__(self) -> bool:
        check_open(self)
        return bool(self._payload)

    def _single(self, what: str) -> Any:
        check_open(self)
        return self._payload._single(what)

    def item(self, *index: int) -> Any:
        check_open(self)
        return self._payload.item(*index)

    def tolist(self) -> Any:
        check_open(self)
        return self._payload.tolist()

    def __repr__(self) -> str:
        return f"<value of {self._level.name}: {self._payload!r}>"

    __str__ = __repr__

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise UnsupportedError(
            f"a value of {self._level.name} cannot be pickled or copied; use x.clone() or x.detach()"
        )

    def __deepcopy__(self, memo: Any) -> Any:
        return self.__reduce_ex__(4)

    def __copy__(self) -> Any:
        return self.__reduce_ex__(4)

    def _twin(self) -> Any:
        twin = type(self).__new__(type(self))
        twin._payload, twin._level, twin._meta, twin._keys = (
            self._payload,
            self._level,
            self._meta,
            self._keys,
        )
        return twin

    def _without_history(self) -> Any:
        check_open(self)
        return self._payload.detach()


# The class of a value of a level that was another tensor when it was made, inside the level; see :func:`adopt`.
ADOPTED: dict[type, type] = {Tensor: LevelTensor, LevelTensor: LevelTensor}
# For other classes than Tensor what finds all tensors in the memory of one.
GATHERERS: dict[type, Callable[[Any], list[Any] | None]] = {}


def wrap_level(level: Level, payload: Any, meta: AutogradMeta | None) -> LevelTensor:
    """A value of a level."""
    value = LevelTensor.__new__(LevelTensor)
    value._payload, value._level, value._meta = payload, level, meta
    value._keys = LEVEL | payload._keys & BACKENDS
    if made.watching[0] > 1:
        made.note(value)
    return value


def unwrap(level: Level, value: Any) -> Any:
    """What a value of this level wraps; anything else unchanged."""
    return value._payload if isinstance(value, LevelTensor) and value._level is level else value


def check_open(value: LevelTensor) -> None:
    """Raise LeakedTracerError for a value whose level has ended."""
    level = value._level
    if level.is_open:
        return
    if level.run is not None:
        raise LeakedTracerError(
            f"a value of {level.name} is used after it has ended: {describe(value)}, one example of a batch of "
            f"{level.batch_size}, made inside the call at {level.origin}; return it from the function"
        )
    node = None if value._meta is None else value._meta.node
    made = "an argument" if node is None else f"the result of {node.op.schema.name}"
    raise LeakedTracerError(
        f"a value of {level.name} is used after it has ended: {describe(value)}, {made}, made inside the call at "
        f"{level.origin}; return it from the function (has_aux=True of td.value_and_grad returns more than the "
        "loss), or store x.detach()"
    )


# -- the kernel --------------------------------------------------------------------------------------------------------
def level_kernel(op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> Any:
    """Run an operator on values of levels; the fallback of the Level key."""
    if keyset & AUTOCAST and op.table[DispatchKey.Autocast].kind != "fallthrough":
        return op.dispatch(keyset & ~LEVEL, args, kwargs)  # what is recorded is the casts and the cast call
    if keyset & AUTOGRAD and entrances.stack:
        args, kwargs = entered(args), {name: entered(value) for name, value in kwargs.items()}
    level = highest_level(op, args, kwargs)
    if level.depth <= stack.floor:
        return op.dispatch(keyset & ~LEVEL, args, kwargs)  # from around a traced body: one of its inputs
    if level.run is not None:
        if op.table[DispatchKey.Batched].kind == "fallback" and not trace.active:
            return level.run(level, op, args, kwargs)  # the short way: the level is known
        return op.dispatch(BATCHED, args, kwargs)
    key = _AUTOGRAD_KEY.get(keyset & BACKENDS) or _autograd_key(keyset & BACKENDS)
    if op.table[key].fn is not autograd and not state.exclude & AUTOGRAD:
        return op.dispatch(1 << key | PYTHON | op.layer_keys | keyset & BACKENDS, args, kwargs)
    return record_at(op, level, args, kwargs)


def _autograd_key(backends: int) -> int:
    """The autograd key of the highest backend of a key set."""
    found = (autograd_keys(backends) or AUTOGRAD).bit_length() - 1
    return _AUTOGRAD_KEY.setdefault(backends, found)


def below_autograd(op: Operator, args: Args, kwargs: Kwargs) -> Any:
    """Run an operator on what the values of the innermost level wrap, without recording it there.

    This is where a kernel for an Autograd key comes to that passes values of a level on to what lies below itself.
    """
    level = highest_level(op, args, kwargs)
    raw_args = tuple([unwrap_deep(level, arg) for arg in args])
    return run_below(op, level, raw_args, {name: unwrap_deep(level, arg) for name, arg in kwargs.items()})


def record_at(op: Operator, level: Level, args: Args, kwargs: Kwargs) -> Any:
    """Run an operator below a level of ``grad`` and record it there by its declaration; of ``jvp``, its kernel."""
    if level.forward is not None:
        return level.forward(level, op, args, kwargs)
    plan = plan_of(op)
    if plan.decompose is not None:
        return plan.decompose(*args, **kwargs)
    if plan.written:
        return _write(plan, level, args, kwargs)
    raw_args = tuple([unwrap_deep(level, arg) for arg in args])
    raw_kwargs = {name: unwrap_deep(level, arg) for name, arg in kwargs.items()} if kwargs else kwargs
    if policies[0] and not lazy.recomputation().records((raw_args, *raw_kwargs.values())):
        compute = partial(run_below, op, level, raw_args, raw_kwargs)
        out = lazy.recomputation().run_call(op, raw_args, raw_kwargs, compute)
    else:
        out = run_below(op, level, raw_args, raw_kwargs)
    if out is None or state.exclude & AUTOGRAD:
        return out
    mask, edges = edges_of(plan, args, kwargs, _meta_at(level))
    if not mask:
        return out
    result = _attach(make_node(plan, mask, edges, raw_args, raw_kwargs, out, False), level, raw_args, out)
    if plan.is_view:
        track(plan, args, kwargs, result)
    return result


def highest_level(op: Operator, args: Args, kwargs: Kwargs) -> Level:
    """The innermost level among the arguments of a call.

    Raises:
        LeakedTracerError: one of the values belongs to a level that has ended.
    """
    found: Level | None = None
    for value in (*args, *kwargs.values()) if kwargs else args:
        for item in value if type(value) is tuple else (value,):
            if isinstance(item, LevelTensor):
                level = item._level
                if not level.is_open:
                    check_open(item)
                if found is None or level.depth > found.depth:
                    found = level
    if found is None:
        raise LeakedTracerError(f"{op.name} reached the Level key without a value of any level")
    return found


def unwrap_deep(level: Level, value: Any) -> Any:
    if isinstance(value, LevelTensor):
        return value._payload if value._level is level else value
    return tuple([unwrap_deep(level, item) for item in value]) if type(value) is tuple else value


def run_below(op: Operator, level: Level, args: Args, kwargs: Kwargs) -> Any:
    if not (level.outer_exclude or state.include or state.exclude):
        return functions.get(op.name, op)(*args, **kwargs)  # its native entry, if it has one
    if level.outer_exclude and not state.exclude & AUTOGRAD:
        with adjusted(exclude=level.outer_exclude):
            return op.dispatch(op.keyset(args, kwargs) & BELOW_MODES, args, kwargs)
    return op.dispatch(op.keyset(args, kwargs) & BELOW_MODES, args, kwargs)


def _meta_at(level: Level) -> Callable[[Any], AutogradMeta | None]:
    def meta_of(value: Any) -> AutogradMeta | None:
        meta = value._meta if isinstance(value, LevelTensor) and value._level is level else None
        return meta if meta is not None and meta.requires_grad else None

    return meta_of


def _attach(node: Any, level: Level, given: Args, out: Any) -> Any:
    if type(out) is not tuple and type(out) is not list:
        return _wrap_result(node, level, given, out, 0)
    return map_results(lambda item, index: _wrap_result(node, level, given, item, index), out)


def _wrap_result(node: Any, level: Level, given: Args, out: Any, index: int) -> Any:
    """A result as a value of the level; integers depend on nothing and stay what they are."""
    if not out.dtype.is_inexact or (type(node) is ContextNode and index in node.constant):
        return out
    for arg in given:
        if arg is out:  # the kernel gave back an argument: two values must not wrap one object
            out = by_name("reshape")(out, out.shape)
            break
    return wrap_level(level, out, AutogradMeta(node, index))


def _write(plan: Plan, level: Level, args: Args, kwargs: Kwargs) -> Any:
    """Run an operator that writes into values of the level; they get the history of the functional operator."""
    targets = written_values(plan, args, kwargs)
    for target in targets:
        check_written(plan.op, level, target)
    inner = plan_of(plan.inner) if plan.inner is not None else plan
    is_known = plan.inner is not None and inner.reason is None and inner.decompose is None
    mask, edges = edges_of(inner, args, kwargs, _meta_at(level))
    before = [unwrap_deep(level, arg) for arg in args]
    for kind, where, _ in inner.active(mask).savers if is_known else ():
        if kind == ARGUMENT:
            before[where] = unwritten(args[0], before[where])
    raw_kwargs = {name: unwrap_deep(level, arg) for name, arg in kwargs.items()}
    out = run_below(plan.op, level, tuple(unwrap_deep(level, arg) for arg in args), raw_kwargs)
    if not state.exclude & AUTOGRAD:
        reason = inner.reason or "it writes in place"
        node = (
            make_node(inner, mask, edges, tuple(before), raw_kwargs, args[0]._payload, False)
            if is_known
            else Node(plan.op, None, edges, reason)
        )
        for target in targets:
            if target.dtype.is_inexact:
                rebase(target, node, set_meta, partial(view_node_at, level))
    return results_written(level, targets, out)


def results_written(level: Level, targets: Args, out: Any) -> Any:
    """The results of an operator that writes: in place of what a written value wraps, the value."""
    given = {id(target._payload): target for target in targets}
    return map_results(lambda item, _: given.get(id(item), item), out)


def check_written(op: Operator, level: Level, target: Any) -> None:
    """Refuse what must not be written inside a level; a tensor that was made inside becomes a value of it."""
    is_own = isinstance(target, LevelTensor) and target._level is level
    if not is_own and not adopt(level, target):
        raise UnsupportedError(
            f"{op.name} would write a value of {level.name} into {describe(target)}, which was not made inside "
            f"{level.name}, or shares memory with what was not; make a new tensor: x = x.at[index].set(value), "
            "x = x + y; or write into a copy that is made inside: x = x.clone()"
        )
    check_not_leaf(op, target, root_of(target)._meta)
    check_unshared(op, target)


def adopt(level: Level, target: Any) -> bool:
    """Make a tensor that was made inside a level a value of it, the same object; False if it is from outside.

    What it was, it wraps from now on; so do all that lie in its memory.
    """
    kind = ADOPTED.get(type(target))
    if kind is None or (target._meta is not None and target._meta.family is not None):
        return False
    members = _company(target)
    if members is None or not made.since(level.depth, members[0]):
        return False
    for member in members:
        payload, meta = member._twin(), member._meta
        if len(members) > 1:
            payload._meta = None
        member.__class__ = kind
        member._payload, member._level, member._meta = payload, level, None if len(members) == 1 else meta
        member._keys = LEVEL | payload._keys & BACKENDS
        made.note(payload)  # levels below may have to adopt it in their turn
    return True


def _company(target: Any) -> list[Any] | None:
    """A tensor and all that lie in its memory, as a family if there are several; None if they cannot be known."""
    lowest = bottom(target)
    gatherer = GATHERERS.get(type(lowest))
    if gatherer is not None:
        found = gatherer(lowest)
        return found if lowest is target else [target] if found is not None and len(found) == 1 else None
    return [target] if is_alone(lowest) and made.owns_memory(lowest._array) else gather(target)


def unwritten(target: Any, value: Any) -> Any:
    """A payload, copied if it lies in the memory that is about to be written."""
    if type(value) is tuple:
        return tuple(unwritten(target, item) for item in value)
    return by_name("clone")(value) if isinstance(value, Tensor) and shares(target, value) else value


def set_meta(value: Any, meta: AutogradMeta) -> None:
    value._meta = meta


def view_node_at(level: Level, view: View, out: Any) -> Node:
    """The node of a view, to the present history of its base."""
    mask, edges = edges_of(view.plan, view.args, view.kwargs, _meta_at(level))
    return make_node(view.plan, mask, edges, view.args, view.kwargs, out._payload, False)


LIBRARY.fallback(level_kernel, DispatchKey.Level)
