"""Levels: nested transforms as a stack, and values that belong to one level.

A transform opens a level and wraps the values it works on as :class:`LevelTensor`. An operator called on such a value
goes to the Level key's kernel, which finds the highest level among the arguments, runs the operator on the payloads of
that level's values (values of lower levels, traced values, plain tensors), records the call, and wraps the result.
Lower levels do the same in turn, so gradients of gradients need no second mechanism.

Source: the interpreter stack of functorch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex

from ... import lazy
from ...errors import ConcretizationError, LeakedTracerError, UnsupportedError
from ...operators.declare.declaration import LIBRARY
from ...operators.declare.ownership import shares_memory, unwrap_levels
from ...registry.dispatch import trace
from ...registry.dispatch.guards import adjust_keys
from ...registry.dispatch.keys import AUTOCAST, AUTOGRAD, BACKENDS, DispatchKey, autograd_keys, below
from ...registry.dispatch.state import state
from ...registry.dtypes import DType
from ...registry.function import functions
from ...registry.operator import Operator
from ...registry.values import Device, TensorSpec, describe
from ..autograd.alias_sets import check_unshared, make_alias_set
from ..autograd.autograd_meta import AutogradMeta
from ..autograd.context import ContextNode
from ..autograd.derivative_rules import ARGUMENT, OperatorDerivative, derivative_of
from ..autograd.kernel import (
    autograd,
    check_not_leaf,
    edges_of,
    make_node,
    policies,
    written_values,
)
from ..autograd.lifted_captures import capture_lifters, lift_captures
from ..autograd.node import Node
from ..autograd.view_writes import View, is_alone, rebase, root_of, track_view
from ..tensor.dunders import by_name
from ..tensor.results import map_results
from ..tensor.storage import Storage
from ..tensor.tensor import Tensor
from . import level_allocations
from .level_stack import ALL_RUN as ALL_RUN
from .level_stack import Level as Level
from .level_stack import mark_masked as mark_masked
from .level_stack import open_level as open_level
from .level_stack import push_level as push_level
from .level_stack import stack as stack

if TYPE_CHECKING:
    from ...registry.types import Args, Array, Kwargs

recompute = lazy.Module(".eager.autograd.recompute")

LEVEL = 1 << DispatchKey.Level
BATCHED = 1 << DispatchKey.Batched
PYTHON = 1 << DispatchKey.Python
BELOW_MODES = below(DispatchKey.Mode)
LEVEL_KEYS: dict[
    int, int
] = {}  # the key set of a value by the backends of its payload; native code compares objects
_AUTOGRAD_KEY: dict[int, int] = {}  # by the key set of the backends


class LevelTensor(Tensor):
    """A value of a level: its payload (a value of a lower level, a traced or a plain tensor) and its AutogradMeta."""

    # No slots of its own, so that a tensor made inside a level can become a value of it (:func:`adopt`).
    if TYPE_CHECKING:
        _level: Level
        _payload: Tensor
    else:
        __slots__ = ()
        _level = Tensor.__dict__["_storage"]
        _payload = Tensor.__dict__["_array"]
    _storage = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self._payload.shape

    @property
    def dtype(self) -> DType:
        return self._payload.dtype

    @property
    def device(self) -> Device:
        return self._payload.device

    @property
    def spec(self) -> TensorSpec:
        return self._payload.spec

    @property
    def _strides(self) -> tuple[int, ...]:
        return self._payload._strides

    @property
    def storage_offset(self) -> int:
        return self._payload.storage_offset

    def is_contiguous(self) -> bool:
        return self._payload.is_contiguous()

    def storage(self) -> Storage:
        return self._payload.storage()

    @property
    def _array(self) -> Any:
        check_open(self)
        raise ConcretizationError(
            f"NumPy code was called on a value of {self._level.name}, opened at {self._level.origin}; its derivative "
            "would be lost; use tandem's operators, or x.detach() for the value alone"
        )

    def numpy(self) -> Array:
        if self.requires_grad:
            return self._array  # type: ignore[no-any-return]
        check_open(self)
        return self._payload.numpy()

    def _host(self, what: str) -> Array:
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

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise UnsupportedError(
            f"a value of {self._level.name} cannot be pickled or copied; use x.clone() or x.detach()"
        )

    def __deepcopy__(self, memo: dict[int, object]) -> NoReturn:
        self.__reduce_ex__(4)

    def __copy__(self) -> NoReturn:
        self.__reduce_ex__(4)

    def _copy_object(self) -> Any:
        twin = type(self).__new__(type(self))
        twin._payload, twin._level, twin._meta, twin._keys = (
            self._payload,
            self._level,
            self._meta,
            self._keys,
        )
        return twin

    def _without_history(self) -> Tensor:
        check_open(self)
        return self._payload.detach()


# By the class of a tensor made inside a level: its class after it became a value of the level; see :func:`adopt`.
ADOPTED: dict[type, type] = {Tensor: LevelTensor, LevelTensor: LevelTensor}
# By class, for classes other than Tensor: a function that finds all tensors in the memory of one.
ALIAS_FINDERS: dict[type, Callable[[Any], list[Any] | None]] = {}


def wrap_level(level: Level, payload: Tensor, meta: AutogradMeta | None) -> LevelTensor:
    """Create a value of a level."""
    value = LevelTensor.__new__(LevelTensor)
    value._payload, value._level, value._meta = payload, level, meta
    backends = payload._keys & BACKENDS
    value._keys = LEVEL_KEYS.get(backends) or LEVEL_KEYS.setdefault(backends, LEVEL | backends)
    if level_allocations.open_level_count[0] > 1:
        level_allocations.note_allocation(value)
    return value


def unwrap(level: Level, value: object) -> Any:
    """The payload of a value of this level; any other value unchanged."""
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
    source = "an argument" if node is None else f"the result of {node.op.schema.name}"
    raise LeakedTracerError(
        f"a value of {level.name} is used after it has ended: {describe(value)}, {source}, made inside the call at "
        f"{level.origin}; return it from the function (has_aux=True of td.value_and_grad returns more than the "
        "loss), or store x.detach()"
    )


# -- the kernel --------------------------------------------------------------------------------------------------------
def level_kernel(op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> object:
    """Run an operator on values of levels; the fallback of the Level key."""
    casting = keyset & AUTOCAST
    if casting and op.table[casting.bit_length() - 1].kind != "fallthrough":
        return op.dispatch(keyset & ~LEVEL, args, kwargs)  # the casts and the cast call are recorded instead
    if keyset & AUTOGRAD and capture_lifters.stack:
        args, kwargs = lift_captures(args), {name: lift_captures(value) for name, value in kwargs.items()}
    level = highest_level(op, args, kwargs)
    if level.depth <= stack.floor:
        return op.dispatch(
            keyset & ~LEVEL, args, kwargs
        )  # a value from outside a traced body is one of its inputs
    if level.run is not None:
        if op.table[DispatchKey.Batched].kind == "fallback" and not trace.active:
            return level.run(level, op, args, kwargs)  # skip one dispatch: the level is known
        return op.dispatch(BATCHED, args, kwargs)
    key = _AUTOGRAD_KEY.get(keyset & BACKENDS) or _autograd_key(keyset & BACKENDS)
    if op.table[key].fn is not autograd and not state.exclude & AUTOGRAD:
        return op.dispatch(1 << key | PYTHON | op.layer_keys | keyset & BACKENDS, args, kwargs)
    return record_at(op, level, args, kwargs)


def _autograd_key(backends: int) -> int:
    """The autograd key of the highest backend of a key set."""
    key = (autograd_keys(backends) or AUTOGRAD).bit_length() - 1
    return _AUTOGRAD_KEY.setdefault(backends, key)


def below_autograd(op: Operator, args: Args, kwargs: Kwargs) -> object:
    """Run an operator on the payloads of the innermost level's values, without recording it there.

    Called when a kernel for an Autograd key passes values of a level to the keys below it.
    """
    level = highest_level(op, args, kwargs)
    raw_args = tuple([unwrap_deep(level, arg) for arg in args])
    return run_below(op, level, raw_args, {name: unwrap_deep(level, arg) for name, arg in kwargs.items()})


def record_at(op: Operator, level: Level, args: Args, kwargs: Kwargs) -> Any:
    """Run an operator below a level of ``grad`` and record it; for ``jvp``, call the level's kernel."""
    if level.forward is not None:
        return level.forward(level, op, args, kwargs)
    derivative = derivative_of(op)
    if derivative.decompose is not None:
        return derivative.decompose(*args, **kwargs)
    if derivative.written:
        return _write(derivative, level, args, kwargs)
    raw_args = tuple([unwrap_deep(level, arg) for arg in args])
    raw_kwargs = {name: unwrap_deep(level, arg) for name, arg in kwargs.items()} if kwargs else kwargs
    if policies[0] and not recompute.is_recorded((raw_args, *raw_kwargs.values())):
        compute = partial(run_below, op, level, raw_args, raw_kwargs)
        out = recompute.run_call(op, raw_args, raw_kwargs, compute)
    else:
        out = run_below(op, level, raw_args, raw_kwargs)
    if out is None or state.exclude & AUTOGRAD:
        return out
    mask, edges = edges_of(derivative, args, kwargs, _meta_at(level))
    if not mask:
        return out
    result = _attach(
        make_node(derivative, mask, edges, raw_args, raw_kwargs, out, False), level, raw_args, out
    )
    if derivative.is_view:
        track_view(derivative, args, kwargs, result)
    return result


def highest_level(op: Operator, args: Args, kwargs: Kwargs) -> Level:
    """The innermost level among the arguments of a call.

    Raises:
        LeakedTracerError: one of the values belongs to a level that has ended.
    """
    result: Level | None = None
    for value in (*args, *kwargs.values()) if kwargs else args:
        for item in value if type(value) is tuple else (value,):
            if isinstance(item, LevelTensor):
                level = item._level
                if not level.is_open:
                    check_open(item)
                if result is None or level.depth > result.depth:
                    result = level
    if result is None:
        raise LeakedTracerError(f"{op.name} reached the Level key without a value of any level")
    return result


def unwrap_deep(level: Level, value: object) -> Any:
    """Replace tensors of a level by their payloads, also in tuples."""
    if isinstance(value, LevelTensor):
        return value._payload if value._level is level else value
    return tuple([unwrap_deep(level, item) for item in value]) if type(value) is tuple else value


def run_below(op: Operator, level: Level, args: Args, kwargs: Kwargs) -> Any:
    """Run an operator outside a level, with the keys that were excluded there."""
    if not (level.outer_exclude or state.include or state.exclude):
        return functions.get(op.name, op)(*args, **kwargs)  # its native entry, if it has one
    if level.outer_exclude and not state.exclude & AUTOGRAD:
        with adjust_keys(exclude=level.outer_exclude):
            return op.dispatch(op.keyset(args, kwargs) & BELOW_MODES, args, kwargs)
    return op.dispatch(op.keyset(args, kwargs) & BELOW_MODES, args, kwargs)


def _meta_at(level: Level) -> Callable[[object], AutogradMeta | None]:
    def meta_of(value: object) -> AutogradMeta | None:
        meta = value._meta if isinstance(value, LevelTensor) and value._level is level else None
        return meta if meta is not None and meta.requires_grad else None

    return meta_of


def _attach(node: Node, level: Level, given: Args, out: object) -> object:
    if type(out) is not tuple and type(out) is not list:
        return _wrap_result(node, level, given, out, 0)
    return map_results(lambda item, index: _wrap_result(node, level, given, item, index), out)


def _wrap_result(node: Node, level: Level, given: tuple[Any, ...], out: Any, index: int) -> Any:
    """Wrap a result as a value of the level; integer results have no derivative and are returned unchanged."""
    if not out.dtype.is_inexact or (type(node) is ContextNode and index in node.constant):
        return out
    for arg in given:
        if arg is out:  # the kernel returned an argument: two values must not wrap one object
            out = by_name("reshape")(out, out.shape)
            break
    return wrap_level(level, out, AutogradMeta(node, index))


def _write(derivative: OperatorDerivative, level: Level, args: tuple[Any, ...], kwargs: Kwargs) -> object:
    """Run an in-place operator on values of the level; they get the node of the functional operator."""
    targets = written_values(derivative, args, kwargs)
    for target in targets:
        check_written(derivative.op, level, target)
    inner = derivative_of(derivative.inner) if derivative.inner is not None else derivative
    is_known = derivative.inner is not None and inner.reason is None and inner.decompose is None
    mask, edges = edges_of(inner, args, kwargs, _meta_at(level))
    before = [unwrap_deep(level, arg) for arg in args]
    for kind, where, _ in inner.active(mask).savers if is_known else ():
        if kind == ARGUMENT:
            before[where] = copy_if_aliased(args[0], before[where])
    raw_kwargs = {name: unwrap_deep(level, arg) for name, arg in kwargs.items()}
    out = run_below(derivative.op, level, tuple(unwrap_deep(level, arg) for arg in args), raw_kwargs)
    if not state.exclude & AUTOGRAD:
        reason = inner.reason or "it writes in place"
        node = (
            make_node(inner, mask, edges, tuple(before), raw_kwargs, args[0]._payload, False)
            if is_known
            else Node(derivative.op, None, edges, reason)
        )
        for target in targets:
            if target.dtype.is_inexact:
                rebase(target, node, set_meta, partial(view_node_at, level))
    return replace_written(level, targets, out)


def replace_written(level: Level, targets: tuple[Tensor, ...], out: object) -> object:
    """The results of an in-place operator, with the payload of a written value replaced by the value."""
    given = {id(target._payload): target for target in targets}  # type: ignore[attr-defined]
    return map_results(lambda item, _: given.get(id(item), item), out)


def check_written(op: Operator, level: Level, target: Tensor) -> None:
    """Raise UnsupportedError if a tensor must not be written inside a level; adopt one that was made inside."""
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
    """Turn a tensor that was made inside a level into a value of it, in place; return False if it is older.

    Its former contents become the payload; the same is done to all tensors that share its memory.
    """
    kind = ADOPTED.get(type(target))
    if kind is None or (target._meta is not None and target._meta.alias_set is not None):
        return False
    members = find_alias_members(target)
    if members is None or not level_allocations.is_made_since(level.scope, members[0]):
        return False
    for member in members:
        payload, meta = member._copy_object(), member._meta
        if len(members) > 1:
            payload._meta = None
        member.__class__ = kind
        member._payload, member._level, member._meta = payload, level, None if len(members) == 1 else meta
        member._keys = LEVEL | payload._keys & BACKENDS
        level_allocations.note_allocation(payload)  # levels below may have to adopt it in their turn
    return True


def find_alias_members(target: Tensor) -> list[Any] | None:
    """A tensor and all that share its memory, merged into an alias set; None if not all were found."""
    lowest = unwrap_levels(target)
    gatherer = ALIAS_FINDERS.get(type(lowest))
    if gatherer is not None:
        result = gatherer(lowest)
        return result if lowest is target else [target] if result is not None and len(result) == 1 else None
    return (
        [target]
        if is_alone(lowest) and level_allocations.owns_memory(lowest._array)
        else make_alias_set(target)
    )


def copy_if_aliased(target: Tensor, value: object) -> object:
    """Copy a payload if it shares the memory that is about to be written."""
    if type(value) is tuple:
        return tuple(copy_if_aliased(target, item) for item in value)
    return by_name("clone")(value) if isinstance(value, Tensor) and shares_memory(target, value) else value


def set_meta(value: Tensor, meta: AutogradMeta) -> None:
    """Set the autograd data of a tensor."""
    value._meta = meta


def view_node_at(level: Level, view: View, out: LevelTensor) -> Node:
    """Create the node of a view, with an edge to the current node of its base."""
    mask, edges = edges_of(view.derivative, view.args, view.kwargs, _meta_at(level))
    return make_node(view.derivative, mask, edges, view.args, view.kwargs, out._payload, False)


LIBRARY.fallback(level_kernel, DispatchKey.Level)
