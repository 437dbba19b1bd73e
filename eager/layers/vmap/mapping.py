"""The function of batches that ``vmap`` returns: wrap the arguments, run, and unwrap the results."""

from __future__ import annotations

import functools
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from .... import pytree
from ....errors import ArgumentError, AxisError, ShapeError, TandemError, TreeError, ValueArgumentError
from ....named_tuple import NamedTuple
from ....operators.declare.batching import move_to_front
from ....registry.dispatch.unwinding import restore_state_on_error
from ....registry.values import SCALARS, describe
from ...tensor.construct import asarray
from ...tensor.dunders import by_name
from ...tensor.tensor import Tensor
from ..level_stack import name_function
from ..levels import Level
from .kernel import batched as batched
from .kernel import open_batch
from .strategies import StrategyCache as StrategyCache
from .tensor import BatchedTensor, wrap_batched

if TYPE_CHECKING:
    from ....registry.types import Args, Function, Kwargs, Pytree


_GENERAL = object()  # in place of a result


class BatchOptions(NamedTuple):
    """The options of :func:`tandem.vmap`."""

    in_axes: Any
    out_axes: Any
    axis_name: Hashable
    axis_size: int | None
    chunk_size: int | None


def make_batch_function(
    fun: Function, in_axes: Pytree, out_axes: Pytree, axis_name: Hashable, axis_size: int | None
) -> Function:
    """Create the function of batches; see :func:`tandem.vmap` for the arguments."""
    options, strategies = BatchOptions(in_axes, out_axes, axis_name, axis_size, None), StrategyCache()
    check_call(fun, options)

    @functools.wraps(fun)
    def on_batches(*args: object, **kwargs: object) -> Pytree:
        return call_on_batches(fun, options, strategies, args, kwargs)

    return on_batches


@restore_state_on_error
def call_on_batches(
    fun: Function, options: BatchOptions, strategies: StrategyCache, args: Args, kwargs: Kwargs
) -> Pytree:
    """Call a function with batches of its arguments.

    Args:
        fun: the function.
        options: the options of ``vmap``.
        strategies: a cache that belongs to the function and the options.
        args, kwargs: the arguments.
    """
    if not strategies.name:
        strategies.name = f"vmap({name_function(fun)})"
    if not kwargs and options.chunk_size is None:
        result = _call_on_tensors(fun, options, strategies, args)
        if result is not _GENERAL:
            return result
    name = strategies.name
    leaves, treedef = pytree.flatten((args, kwargs))
    axes = _axes_of_arguments(name, options.in_axes, args, treedef)
    batches, size = _batches(name, leaves, axes, treedef, options.axis_size)

    def run(batches: list[Any], size: int) -> Pytree:
        with open_batch(name, size, strategies.setdefault(size, {}), options.axis_name) as level:
            given = [leaf if axis is None else wrap_batched(level, leaf) for leaf, axis in zip(batches, axes)]
            inner_args, inner_kwargs = treedef.unflatten(given)
            result = fun(*inner_args, **inner_kwargs)
        return _results(name, level, result, options.out_axes)

    step = options.chunk_size
    if step is None or size <= step:
        return run(batches, size)
    starts = range(0, size, step)
    chunks = [
        ([leaf if axis is None else leaf[i : i + step] for leaf, axis in zip(batches, axes)], i)
        for i in starts
    ]
    parts = [run(chunk, min(step, size - start)) for chunk, start in chunks]
    return _join_chunks(name, parts, options.out_axes)


def _call_on_tensors(fun: Function, options: BatchOptions, strategies: StrategyCache, args: Args) -> Pytree:
    """Call a function with batches that are all plain tensors; return _GENERAL for other arguments."""
    axes = options.in_axes
    if type(axes) is int:
        axes = (axes,) * len(args)
    elif type(axes) is not tuple or len(axes) != len(args):
        return _GENERAL
    size, batches = options.axis_size, []
    for x, axis in zip(args, axes):
        if type(x) is not Tensor:
            return _GENERAL
        if axis is not None:
            shape = x._array.shape
            if type(axis) is not int or not 0 <= axis < len(shape) or size not in (None, shape[axis]):
                return _GENERAL
            size = shape[axis]
            x = move_to_front(x, axis) if axis else x
        batches.append(x)
    if size is None:
        return _GENERAL
    name = strategies.name
    with open_batch(name, size, strategies.setdefault(size, {}), options.axis_name) as level:
        result = fun(*[x if axis is None else wrap_batched(level, x) for x, axis in zip(batches, axes)])
    if (
        type(result) is BatchedTensor
        and result._level is level
        and type(options.out_axes) is int
        and options.out_axes == 0
    ):
        return result._payload
    return _results(name, level, result, options.out_axes)


# -- arguments ---------------------------------------------------------------------------------------------------------
def check_call(fun: object, options: BatchOptions) -> None:
    """Check the function and the options of ``vmap``.

    Raises:
        ArgumentError: one of them has the wrong type.
    """
    in_axes, _, _, axis_size, chunk_size = options
    if not callable(fun):
        raise ArgumentError(f"vmap takes a function, not {describe(fun)}; call it as td.vmap(fun)(*args)")
    if not (in_axes is None or type(in_axes) is int or isinstance(in_axes, tuple | list)):
        raise ArgumentError(
            f"vmap: in_axes is an int, None, or a tuple with an item for each positional argument, not {in_axes!r}"
        )
    if axis_size is not None and (type(axis_size) is not int or axis_size < 0):
        raise ArgumentError(f"vmap: axis_size is a number of examples, not {axis_size!r}")
    if chunk_size is not None and (type(chunk_size) is not int or chunk_size < 1):
        raise ArgumentError(f"vmap: chunk_size is a number of examples, at least 1, not {chunk_size!r}")


def _axes_of_arguments(name: str, in_axes: Any, args: Args, treedef: pytree.TreeDef) -> list[int | None]:
    """The batch axis of each leaf of the arguments, positional ones first."""
    given, keywords = treedef.children
    if isinstance(in_axes, tuple | list):
        if len(in_axes) != len(args):
            raise TreeError(
                f"{name}: in_axes has {len(in_axes)} items, and the call has {len(args)} positional arguments"
            )
        rows = zip(in_axes, args, given.children)
        axes = [
            axis
            for prefix, arg, there in rows
            for axis in _broadcast_prefix(name, "in_axes", prefix, arg, there)
        ]
    else:
        axes = [in_axes] * given.leaf_count
    return axes + [0] * keywords.leaf_count


def _broadcast_prefix(
    name: str, what: str, prefix: Pytree, tree: Pytree, treedef: pytree.TreeDef
) -> list[int | None]:
    """Broadcast a prefix tree of axes to one axis for each leaf."""
    if prefix is None or type(prefix) is int:
        return [prefix] * treedef.leaf_count
    try:
        axes = pytree.spread_prefix(prefix, tree)
    except ArgumentError as fault:
        raise TreeError(f"{name}: {what} {prefix!r} is not a prefix of the tree: {fault}") from None
    for axis in axes:
        if axis is not None and type(axis) is not int:
            raise ArgumentError(f"{name}: {what} contains {axis!r}; axes are ints or None")
    return axes


def _batches(
    name: str, leaves: list[Any], axes: list[int | None], treedef: pytree.TreeDef, axis_size: int | None
) -> tuple[list[Any], int]:
    """The leaves with their batch axes in front, and the number of examples."""
    batches, sizes = [], {}
    for index, (leaf, axis) in enumerate(zip(leaves, axes)):
        if axis is None:
            batches.append(leaf)
        else:
            tensor, at = _to_batched_leaf(name, leaf, axis, index, treedef)
            sizes[index] = tensor.shape[at]
            batches.append(move_to_front(tensor, at))
    if not sizes and axis_size is None:
        raise ValueArgumentError(
            f"{name}: no argument is mapped (in_axes is None for all, or there are none), so the number of examples "
            "is unknown; pass axis_size"
        )
    distinct = {*sizes.values()} | ({axis_size} if axis_size is not None else set())
    if len(distinct) > 1:
        raise ShapeError(f"{name}: {_describe_sizes(sizes, axes, treedef, axis_size)}")
    return batches, distinct.pop()


def _to_batched_leaf(
    name: str, leaf: object, axis: int, index: int, treedef: pytree.TreeDef
) -> tuple[Tensor, int]:
    """A leaf as a tensor, and the axis, counted from the front."""
    try:
        tensor = asarray(leaf)
    except TandemError as fault:
        path = _describe_leaf(index, treedef)
        raise type(fault)(f"{name}: {path}: {fault}; in_axes=None passes it unchanged") from None
    rank = len(tensor.shape)
    if not -rank <= axis < rank:
        seen = f"a {type(leaf).__name__}" if type(leaf) in SCALARS else describe(tensor)
        raise AxisError(
            f"{name}: {_describe_leaf(index, treedef)} is {seen} and has no axis {axis} to map over; choose another "
            "axis with in_axes, or None for an argument that all examples share"
        )
    return tensor, axis % rank


def _describe_leaf(index: int, treedef: pytree.TreeDef) -> str:
    """Describe the argument of a leaf and the path in it, for messages."""
    kind, _, rest = treedef.paths()[index][1:].partition("]")
    if kind == "1":
        return f"keyword argument {rest[1:-1] if rest.count('[') == 1 else rest}"
    where, _, path = rest[1:].partition("]")
    return f"argument {where}{f', at {path},' if path else ''}"


def _describe_sizes(
    sizes: dict[int, int], axes: list[int | None], treedef: pytree.TreeDef, axis_size: int | None
) -> str:
    """Describe the different numbers of examples, for messages."""
    groups: dict[int, list[str]] = {}
    for index, size in sizes.items():
        groups.setdefault(size, []).append(f"{_describe_leaf(index, treedef)} along axis {axes[index]}")
    parts = [
        f"{size} in {indices[0]}{f' and {len(indices) - 1} more' if len(indices) > 1 else ''}"
        for size, indices in groups.items()
    ]
    said = [] if axis_size is None else [f"{axis_size} by axis_size"]
    return f"the numbers of examples differ: {', '.join(parts + said)}"


# -- results -----------------------------------------------------------------------------------------------------------
def _results(name: str, level: Level, result: Pytree, out_axes: Pytree) -> Pytree:
    leaves, treedef = pytree.flatten(result)
    axes = _broadcast_prefix(name, "out_axes", out_axes, result, treedef)
    rows = enumerate(zip(leaves, axes))
    return treedef.unflatten([_result(name, level, leaf, axis, treedef, i) for i, (leaf, axis) in rows])


def _join_chunks(name: str, parts: list[Pytree], out_axes: Pytree) -> Pytree:
    """Join the results of chunks along the batch axis of each leaf; what all examples share is that of the first."""
    leaves, treedefs = zip(*map(pytree.flatten, parts))
    axes = _broadcast_prefix(name, "out_axes", out_axes, parts[0], treedefs[0])
    joined = [
        column[0] if axis is None else by_name("concat")(column, axis)
        for column, axis in zip(zip(*leaves), axes)
    ]
    return treedefs[0].unflatten(joined)


def _result(
    name: str, level: Level, leaf: Any, axis: int | None, treedef: pytree.TreeDef, index: int
) -> object:
    """Unwrap a leaf of the result and move its batch axis to ``axis``."""
    own = isinstance(leaf, BatchedTensor) and leaf._level is level
    if axis is None:
        if own:
            raise ValueArgumentError(
                f"{name}: the result{_describe_path(treedef, index)} differs between examples, and out_axes is "
                "None for it; pass the axis of the examples in out_axes"
            )
        return leaf
    payload = leaf._payload if own else _repeat(level, _tensor(name, leaf, treedef, index))
    rank = len(payload.shape)
    if not -rank <= axis < rank:
        raise AxisError(
            f"{name}: the result{_describe_path(treedef, index)} is {describe(leaf)}; with the batch axis it still has "
            f"no axis {axis} (out_axes)"
        )
    return _one_from_front(payload, axis % rank)


def _tensor(name: str, leaf: object, treedef: pytree.TreeDef, index: int) -> Tensor:
    try:
        return asarray(leaf)
    except TandemError as fault:
        path = f"the result{_describe_path(treedef, index)}"
        raise type(fault)(f"{name}: {path}: {fault}; out_axes=None returns it unchanged") from None


def _repeat(level: Level, x: Tensor) -> Tensor:
    """Repeat a value that all examples share along a new batch axis, in new memory."""
    return by_name("clone")(by_name("broadcast_to")(x, (level.batch_size, *x.shape)))


def _one_from_front(x: Tensor, axis: int) -> Tensor:
    if not axis:
        return x
    rank = len(x.shape)
    return by_name("permute")(x, (*range(1, axis + 1), 0, *range(axis + 1, rank)))


def _describe_path(treedef: pytree.TreeDef, index: int) -> str:
    path = treedef.paths()[index]
    return f" at {path}" if path else ""
