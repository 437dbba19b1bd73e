"""``vmap``: a function of examples becomes one of batches of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from . import pytree
from .eager.batched.kernel import open_batch
from .eager.batched.tensor import BatchedTensor, wrap_batched
from .eager.construct import asarray
from .eager.dunders import by_name
from .eager.levels import Level
from .errors import ArgumentError, OutOfBoundsError, ShapeError, TandemError, ValueArgumentError
from .operators.batching import one_to_front
from .registry.values import SCALARS, describe


def vmap(
    fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, axis_size: int | None = None
) -> Callable[..., Any]:
    """A function that runs ``fun`` on every example of a batch at once.

    ``fun`` is written for one example and sees one: shapes, axes and indices are those of an example. The operators
    that it calls run once each, on the whole batch. It nests, and combines with ``grad`` and ``jit`` in any order.

    Args:
        fun: a function of tensors and pytrees of them (dicts, lists, tuples, namedtuples, dataclasses).
        in_axes: which axis of each argument the examples lie along: an int, None for an argument that all examples
            share, or a tuple with an item for each positional argument, which may be a pytree that begins as the
            argument does. Negative axes count from the end. Keyword arguments are mapped along axis 0.
        out_axes: where the examples lie in the result, likewise; None: the result does not depend on the example.
        axis_size: the number of examples, where no argument says it.

    Returns:
        A function of batches. What ``fun`` returns that is the same for all examples is repeated along ``out_axes``.

    Raises:
        ArgumentError: ``in_axes`` or ``out_axes`` do not fit the arguments or the result.
        ShapeError: arguments hold different numbers of examples; the message names them.
        OutOfBoundsError: an argument or a result has no such axis.
        ValueArgumentError: no argument is mapped, or a result for which ``out_axes`` says None is.

    >>> import tandem as td
    >>> def distance(p, q):
    ...     return ((p - q) ** 2).sum() ** 0.5
    >>> td.vmap(distance, in_axes=(0, None))(td.asarray([[3.0, 4.0], [6.0, 8.0]]), td.zeros(2))
    tensor([ 5., 10.])
    >>> gradients = td.vmap(td.grad(lambda w, x: (w * x).sum()), in_axes=(None, 0))
    >>> gradients(td.ones(2), td.asarray([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    _check_call(fun, in_axes, axis_size)
    name = f"vmap({getattr(fun, '__qualname__', repr(fun))})"

    prepared: dict[int, dict[Any, Any]] = {}

    @functools.wraps(fun)
    def on_batches(*args: Any, **kwargs: Any) -> Any:
        leaves, treedef = pytree.flatten((args, kwargs))
        axes = _axes_of_arguments(name, in_axes, args, kwargs)
        batches, size = _batches(name, leaves, axes, treedef, axis_size)
        with open_batch(name, size, prepared.setdefault(size, {})) as level:
            given = [leaf if axis is None else wrap_batched(level, leaf) for leaf, axis in zip(batches, axes)]
            inner_args, inner_kwargs = treedef.unflatten(given)
            result = fun(*inner_args, **inner_kwargs)
        return _results(name, level, result, out_axes)

    return on_batches


# -- arguments ---------------------------------------------------------------------------------------------------------
def _check_call(fun: Any, in_axes: Any, axis_size: Any) -> None:
    if not callable(fun):
        raise ArgumentError(f"vmap takes a function, not {describe(fun)}; call it as td.vmap(fun)(*args)")
    if not (in_axes is None or type(in_axes) is int or isinstance(in_axes, tuple | list)):
        raise ArgumentError(
            f"vmap: in_axes is an int, None, or a tuple with an item for each positional argument, not {in_axes!r}"
        )
    if axis_size is not None and (type(axis_size) is not int or axis_size < 0):
        raise ArgumentError(f"vmap: axis_size is a number of examples, not {axis_size!r}")


def _axes_of_arguments(
    name: str, in_axes: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[int | None]:
    """The batch axis of each leaf of the arguments, positional ones first."""
    if isinstance(in_axes, tuple | list):
        if len(in_axes) != len(args):
            raise ArgumentError(
                f"{name}: in_axes has {len(in_axes)} items, and the call has {len(args)} positional arguments"
            )
        axes = [axis for prefix, arg in zip(in_axes, args) for axis in _spread(name, "in_axes", prefix, arg)]
    else:
        axes = _spread(name, "in_axes", in_axes, args)
    return axes + [0] * len(pytree.leaves(kwargs))


def _spread(name: str, what: str, prefix: Any, tree: Any) -> list[int | None]:
    try:
        axes = pytree.spread_prefix(prefix, tree)
    except ArgumentError as fault:
        raise ArgumentError(f"{name}: {what} {prefix!r} does not begin as the value does: {fault}") from None
    for axis in axes:
        if axis is not None and type(axis) is not int:
            raise ArgumentError(f"{name}: {what} holds axes, which are ints or None, not {axis!r}")
    return axes


def _batches(
    name: str, leaves: list[Any], axes: list[int | None], treedef: pytree.TreeDef, axis_size: int | None
) -> tuple[list[Any], int]:
    """The leaves with their batch axes in front, and the number of examples."""
    found, sizes = [], {}
    for index, (leaf, axis) in enumerate(zip(leaves, axes)):
        if axis is None:
            found.append(leaf)
        else:
            tensor, at = _mapped_leaf(name, leaf, axis, index, treedef)
            sizes[index] = tensor.shape[at]
            found.append(one_to_front(tensor, at))
    if not sizes and axis_size is None:
        raise ValueArgumentError(
            f"{name}: no argument is mapped (in_axes is None for all, or there are none), so the number of examples "
            "is not known; say it with axis_size"
        )
    wanted = {*sizes.values()} | ({axis_size} if axis_size is not None else set())
    if len(wanted) > 1:
        raise ShapeError(f"{name}: {_differing(sizes, axes, treedef, axis_size)}")
    return found, wanted.pop()


def _mapped_leaf(name: str, leaf: Any, axis: int, index: int, treedef: pytree.TreeDef) -> tuple[Any, int]:
    """A leaf as a tensor, and the axis, counted from the front."""
    try:
        tensor = asarray(leaf)
    except TandemError as fault:
        place = _place(index, treedef)
        raise type(fault)(f"{name}: {place}: {fault}; in_axes=None leaves it as it is") from None
    rank = len(tensor.shape)
    if not -rank <= axis < rank:
        seen = f"a {type(leaf).__name__}" if type(leaf) in SCALARS else describe(tensor)
        raise OutOfBoundsError(
            f"{name}: {_place(index, treedef)} is {seen} and has no axis {axis} to map over; choose another with "
            "in_axes, or None for what all examples share"
        )
    return tensor, axis % rank


def _place(index: int, treedef: pytree.TreeDef) -> str:
    """Which argument a leaf belongs to, and where in it."""
    kind, _, rest = treedef.paths()[index][1:].partition("]")
    if kind == "1":
        return f"keyword argument {rest[1:-1] if rest.count('[') == 1 else rest}"
    where, _, path = rest[1:].partition("]")
    return f"argument {where}{f', at {path},' if path else ''}"


def _differing(
    sizes: dict[int, int], axes: list[int | None], treedef: pytree.TreeDef, axis_size: int | None
) -> str:
    """Who has which number of examples."""
    groups: dict[int, list[str]] = {}
    for index, size in sizes.items():
        groups.setdefault(size, []).append(f"{_place(index, treedef)} along axis {axes[index]}")
    parts = [
        f"{size} in {places[0]}{f' and {len(places) - 1} more' if len(places) > 1 else ''}"
        for size, places in groups.items()
    ]
    said = [] if axis_size is None else [f"{axis_size} by axis_size"]
    return f"the numbers of examples differ: {', '.join(parts + said)}"


# -- results -----------------------------------------------------------------------------------------------------------
def _results(name: str, level: Level, result: Any, out_axes: Any) -> Any:
    leaves, treedef = pytree.flatten(result)
    axes = _spread(name, "out_axes", out_axes, result)
    rows = enumerate(zip(leaves, axes))
    return treedef.unflatten([_result(name, level, leaf, axis, treedef, i) for i, (leaf, axis) in rows])


def _result(name: str, level: Level, leaf: Any, axis: int | None, treedef: pytree.TreeDef, index: int) -> Any:
    """A leaf of the result with its batch axis where it is wanted."""
    own = isinstance(leaf, BatchedTensor) and leaf._level is level
    if axis is None:
        if own:
            raise ValueArgumentError(
                f"{name}: the result{_at(treedef, index)} differs from example to example, and out_axes is None for "
                "it; say where its examples are to lie"
            )
        return leaf
    payload = leaf._payload if own else _repeated(level, _tensor(name, leaf, treedef, index))
    rank = len(payload.shape)
    if not -rank <= axis < rank:
        raise OutOfBoundsError(
            f"{name}: the result{_at(treedef, index)} is {describe(leaf)}, and with its examples it has no axis {axis}"
        )
    return _one_from_front(payload, axis % rank)


def _tensor(name: str, leaf: Any, treedef: pytree.TreeDef, index: int) -> Any:
    try:
        return asarray(leaf)
    except TandemError as fault:
        place = f"the result{_at(treedef, index)}"
        raise type(fault)(f"{name}: {place}: {fault}; out_axes=None leaves it as it is") from None


def _repeated(level: Level, x: Any) -> Any:
    """What is the same for all examples, once for each, in memory of its own."""
    return by_name("clone")(by_name("broadcast_to")(x, (level.batch_size, *x.shape)))


def _one_from_front(x: Any, axis: int) -> Any:
    if not axis:
        return x
    rank = len(x.shape)
    return by_name("permute")(x, (*range(1, axis + 1), 0, *range(axis + 1, rank)))


def _at(treedef: pytree.TreeDef, index: int) -> str:
    path = treedef.paths()[index]
    return f" at {path}" if path else ""
