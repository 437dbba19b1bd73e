"""Compile eager calls of ``vmap`` and ``jvp`` that have taken some time, where nothing forbids it.

A transform runs each operator of its function through its level. Where the function only computes, one trace of the
call stands for all, as that of a loop does (:mod:`.hot_loops`): the same keys, guards and limits hold. If compiled code
raises, the call runs again as it is written, so that its error is that of the operator.

Later calls are recognized by the code of the function, a snapshot of what it reads (:mod:`.snapshots`), and the shapes
and dtypes of their arguments.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from functools import partial
from time import perf_counter
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from .. import pytree
from ..eager.tensor.tensor import Tensor
from ..eager.tensor.weak_scalars import WEAK
from ..named_tuple import NamedTuple
from ..registry.dispatch.state import current
from ..registry.dtypes import DType, default_float
from ..registry.native_type import NativeCallable
from ..registry.values import SCALARS
from . import hot_loops
from .captured_objects import is_plain_object
from .captured_values import describe_number, has_old_gradient, is_pure_class
from .snapshots import Snapshot, make_snapshot
from .structure import Leaves

if TYPE_CHECKING:
    from ..pytree import TreeDef
    from ..registry.types import Array, Function, Pytree

# Calls a transform of a function with a list of leaves.
Transform = Callable[[Any, Any], Any]
KEYED = (
    FunctionType,
    NativeCallable,
    partial,
    MethodType,
)  # callables that may have a key, besides plain objects
MOST_CODES = 128  # codes of functions of which calls are recognized
MOST_WRAPPERS = 8  # transforms of one function around each other
MOST_CALLS = 4  # kinds of calls of one code


class KnownCall(NamedTuple):
    """A kind of calls.

    Attributes:
        key: the transform, its options, and the structure of the arguments.
        specs: for each argument its array's shape and dtype, or the key of a number.
        snapshot: whether a function captures the same.
        flags, default: the meaning of the thread's state, and the default dtype.
        loop: the time that the calls have taken, and their compiled form.
    """

    key: object
    specs: list[object]
    snapshot: Snapshot
    flags: int
    default: DType
    loop: hot_loops.HotLoop


_known: OrderedDict[int, list[KnownCall]] = OrderedDict()


def run_transform(
    key: tuple[object, ...],
    fun: Function,
    leaves: Sequence[Any],
    treedef: TreeDef | None,
    transform: Transform,
    as_written: Callable[[], Pytree],
) -> Pytree:
    """Call a transform of a function, as compiled code if the call is hot.

    Args:
        key: the transform and its options.
        fun: the function.
        leaves: the leaves of the arguments.
        treedef: their structure; None if there is none.
        transform: calls the transform of a function with a list of leaves.
        as_written: makes this call operator by operator.
    """
    if (
        hot_loops.is_known_to_fail(fun)
        or hot_loops.runs_in_python()
        or not (isinstance(fun, KEYED) or is_plain_object(fun, is_pure_class))
    ):
        return as_written()
    flags = current().flags
    specs = _describe_leaves(leaves, hot_loops.UNRECORDED[flags])
    if specs is None:
        return as_written()
    start = perf_counter()
    loop, captured = _find_known((key, treedef), fun, specs, flags)
    call: hot_loops.LoopCall | None = None
    if loop is None or (loop.function is None and loop.orders is not None and loop.is_hot()):
        call = _find_call(key, fun, leaves, treedef, transform)
        if call is None or not all(x._array.flags.c_contiguous for x in call.captured):
            return as_written()
        loop = call.loop
        if loop.seconds:
            _note_known((key, treedef), fun, specs, flags, call)
    result = None
    if loop.orders is not None:  # it has run before
        try:
            given = [x for x in leaves if type(x) is Tensor]
            result = loop.run([*given, *captured]) if call is None else call.run_compiled()
        except Exception:  # the call below raises it, or a clearer one
            result = None
    if result is not None:
        return result[0]
    value = as_written()
    loop.seconds += perf_counter() - start
    if loop.orders is None:
        _note_results(loop, value, {*map(id, leaves), *map(id, captured if call is None else call.captured)})
    return value


def _note_results(loop: hot_loops.HotLoop, value: Pytree, given: Collection[int]) -> None:
    """Note the layouts of a call's results, and which are tensors that were given, by their ids.

    The call is not compiled if a result has gaps, or is not a plain tensor.
    """
    results = pytree.flatten(value)[0]
    loop.given = [id(leaf) in given for leaf in results]
    orders: list[tuple[int, ...] | None] = []
    for leaf in results:
        if type(leaf) is not Tensor or leaf._keys & WEAK:
            loop.is_rejected = True
            break
        array = leaf._array
        order = None if array.flags.c_contiguous else _find_order(array)
        if order is not None and not array.transpose(order).flags.c_contiguous:
            loop.is_rejected = True
        orders.append(order)
    loop.orders = orders


def _find_order(array: Array) -> tuple[int, ...]:
    """The axes of an array, those of the largest strides first."""
    return tuple(sorted(range(array.ndim), key=lambda axis: -array.strides[axis]))


def _describe_leaves(leaves: Sequence[Any], keys: Collection[int]) -> list[object] | None:
    """The shapes and dtypes of contiguous arrays, and the keys of numbers; None if a leaf is neither."""
    specs: list[object] = []
    for leaf in leaves:
        if type(leaf) is Tensor:
            array = leaf._array
            if leaf._keys not in keys or not array.flags.c_contiguous or has_old_gradient(leaf):
                return None
            specs.append((array.shape, array.dtype))
        elif type(leaf) in SCALARS:
            specs.append(describe_number(leaf))
        else:
            return None
    return specs


def _find_known(
    key: object, fun: Function, specs: list[object], flags: int
) -> tuple[hot_loops.HotLoop | None, list[Tensor]]:
    """The loop of a call that is recognized, or None, and the tensors that the function captures."""
    for known in _known.get(_find_code(fun), ()):
        is_same = known.flags == flags and known.default is default_float() and known.specs == specs
        if is_same and known.key == key:
            captured = known.snapshot.find_tensors(fun)
            if captured is not None:
                return known.loop, captured
    return None, []


def _find_code(fun: object) -> int:
    """The id of the code of a function or a method, or of the function that transforms have wrapped."""
    for _ in range(MOST_WRAPPERS):
        if type(fun) is MethodType:
            fun = fun.__func__
        if not isinstance(fun, (FunctionType, NativeCallable)) or "__wrapped__" not in vars(fun):
            break
        fun = vars(fun)["__wrapped__"]
    return id(fun.__code__ if type(fun) is FunctionType else fun)


def _note_known(
    key: object, fun: Function, specs: list[object], flags: int, call: hot_loops.LoopCall
) -> None:
    """Recognize calls of a kind from now on, if nothing that the function reads may change without notice."""
    snapshot = make_snapshot(fun, hot_loops.UNRECORDED[flags], call.captures)
    if snapshot is None:
        return
    number = _find_code(fun)
    others = [one for one in _known.pop(number, ()) if one.loop is not call.loop]
    known = KnownCall(key, specs, snapshot, flags, default_float(), call.loop)
    _known[number] = [known, *others[: MOST_CALLS - 1]]
    if len(_known) > MOST_CODES:
        _known.popitem(last=False)


def _has_named_tuple(treedef: TreeDef) -> bool:
    kind = treedef.kind
    is_one = isinstance(kind, type) and issubclass(kind, tuple) and kind is not tuple
    return is_one or any(map(_has_named_tuple, treedef.children))


def _find_call(
    key: tuple[object, ...],
    fun: Function,
    leaves: Sequence[Any],
    treedef: TreeDef | None,
    transform: Transform,
) -> hot_loops.LoopCall | None:
    if treedef is not None and _has_named_tuple(treedef):
        return None  # the key would keep its class alive, which a function may define at each call

    def run(functions: Sequence[object], init: object, items: Sequence[Tensor]) -> tuple[Any]:
        return (transform(functions[0], init),)

    numbers, flat = [type(leaf) in SCALARS for leaf in leaves], pytree.flatten([0] * len(leaves))[1]
    arguments, trees = (
        Leaves(list(leaves), flat, numbers, list(leaves)),
        () if treedef is None else (treedef,),
    )
    return hot_loops.find_call((key, treedef), (fun,), arguments, (), run, trees)
