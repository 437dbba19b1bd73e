"""Collective operations along named axes of ``vmap``: sums, extrema, gathers and permutations.

Source: the collectives of ``jax.lax``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import pytree
from ..eager.layers.levels import Level, stack
from ..eager.layers.vmap.tensor import wrap_batched
from ..eager.tensor.construct import asarray
from ..eager.tensor.dunders import by_name
from ..eager.tensor.tensor import wrap
from ..errors import ArgumentError, AxisError, AxisNameError, ShapeError
from ..registry.values import SCALARS, describe

Names = Any  # the name of an axis, or a tuple or list of names


def _level(what: str, axis_name: Any) -> Level:
    """The innermost ``vmap`` whose axis has a name."""
    for level in reversed(stack.levels):
        if level.run is not None and level.axis_name is not None and level.axis_name == axis_name:
            return level
    known = [level.axis_name for level in stack.levels if level.axis_name is not None]
    there = f"those in force are {known}" if known else "none is in force"
    raise AxisNameError(
        f"{what}: no vmap around this call has an axis named {axis_name!r}, {there}; name it with "
        f"td.vmap(f, axis_name={axis_name!r})"
    )


def _names(axis_name: Names) -> Sequence[Any]:
    return axis_name if isinstance(axis_name, (tuple, list)) else (axis_name,)


def axis_size(axis_name: Names) -> int:
    """The number of examples along a named axis; of several axes the product.

    Args:
        axis_name: the name, or a tuple of names.

    Returns:
        An int.

    Raises:
        AxisNameError: no ``vmap`` around the call has an axis of that name.

    >>> import tandem as td
    >>> td.vmap(lambda x: x / td.axis_size("i"), axis_name="i")(td.asarray([2.0, 4.0])).tolist()
    [1.0, 2.0]
    """
    size = 1
    for name in _names(axis_name):
        size *= _level("axis_size", name).batch_size
    return size


def axis_index(axis_name: Names) -> Any:
    """The number of the example along a named axis; along several, counted in row-major order.

    Args:
        axis_name: the name, or a tuple of names.

    Returns:
        A 0-d tensor of integers.

    Raises:
        AxisNameError: no ``vmap`` around the call has an axis of that name.

    >>> import tandem as td
    >>> td.vmap(lambda x: x * td.axis_index("i"), axis_name="i")(td.asarray([5, 5, 5])).tolist()
    [0, 5, 10]
    """
    result: Any = 0
    for name in _names(axis_name):
        level = _level("axis_index", name)
        # of no trace: the level may be from outside of the body of a loop that is being traced
        number = wrap_batched(level, wrap(np.arange(level.batch_size)))
        result = number if type(result) is int else result * level.batch_size + number
    return result


def _map_each_axis(what: str, tree: Any, axis_name: Names, work: Callable[[Any, Any, int], Any]) -> Any:
    """Apply ``work(x, name, size)`` to each leaf, axis by axis."""
    levels = [(name, _level(what, name).batch_size) for name in _names(axis_name)]

    def along_all(leaf: Any) -> Any:
        for name, size in levels:
            leaf = work(leaf, name, size)
        return leaf

    return pytree.map_tree(along_all, tree)


def _map_joint_axis(what: str, tree: Any, axis_name: Names, work: Callable[[Any, Any, int], Any]) -> Any:
    """Apply ``work(x, name, size)`` to each leaf, with all axes as one."""
    for name in _names(axis_name):
        _level(what, name)
    return pytree.map_tree(lambda leaf: work(leaf, axis_name, axis_size(axis_name)), tree)


def psum(tree: Any, axis_name: Names) -> Any:
    """The sum over a named axis, the same for all examples.

    Args:
        tree: a tensor or number, or a tree of them; a number is the same for each example.
        axis_name: the name, or a tuple of names.

    Returns:
        A tree like ``tree``.

    Raises:
        AxisNameError: no ``vmap`` around the call has an axis of that name.

    >>> import tandem as td
    >>> td.vmap(lambda x: x / td.psum(x, "i"), axis_name="i")(td.asarray([1.0, 3.0])).tolist()
    [0.25, 0.75]
    """
    add = by_name("axis_sum")
    return _map_each_axis(
        "psum", tree, axis_name, lambda x, name, n: x * n if type(x) in SCALARS else add(asarray(x), name, n)
    )


def pmean(tree: Any, axis_name: Names) -> Any:
    """The mean over a named axis, the same for all examples; arguments and errors are those of :func:`psum`.

    >>> import tandem as td
    >>> td.vmap(lambda x: x - td.pmean(x, "i"), axis_name="i")(td.asarray([1.0, 3.0])).tolist()
    [-1.0, 1.0]
    """
    count = axis_size(axis_name)
    return pytree.map_tree(lambda x: x / count, psum(tree, axis_name))


def _gather(x: Any, name: Any, size: int) -> Any:
    """All examples of an axis along a new leading one; of several axes, those of the last vary fastest."""
    if isinstance(name, (tuple, list)):
        result = asarray(x)
        for one in reversed(name):
            result = _gather(result, one, axis_size(one))
        return by_name("reshape")(result, (size, *asarray(x).shape))
    return by_name("axis_gather")(asarray(x), axis_index(name), name, size)


def pmax(tree: Any, axis_name: Names) -> Any:
    """The largest over a named axis, the same for all examples; arguments and errors are those of :func:`psum`.

    >>> import tandem as td
    >>> td.vmap(lambda x: td.pmax(x, "i"), axis_name="i")(td.asarray([1.0, 3.0])).tolist()
    [3.0, 3.0]
    """
    return _map_each_axis(
        "pmax", tree, axis_name, lambda x, name, size: by_name("max")(_gather(x, name, size), 0)
    )


def pmin(tree: Any, axis_name: Names) -> Any:
    """The smallest over a named axis, the same for all examples; arguments and errors are those of :func:`psum`.

    >>> import tandem as td
    >>> td.vmap(lambda x: td.pmin(x, "i"), axis_name="i")(td.asarray([1.0, 3.0])).tolist()
    [1.0, 1.0]
    """
    return _map_each_axis(
        "pmin", tree, axis_name, lambda x, name, size: by_name("min")(_gather(x, name, size), 0)
    )


def all_gather(tree: Any, axis_name: Any, *, axis: int = 0, tiled: bool = False) -> Any:
    """All examples of a named axis, stacked, the same for each of them.

    Args:
        tree: a tensor or number, or a tree of them.
        axis_name: the name.
        axis: where the new axis is.
        tiled: join the examples along the axis that is there, in the place of a new one.

    Returns:
        A tree like ``tree``.

    Raises:
        AxisNameError: no ``vmap`` around the call has an axis of that name.
        OutOfBoundsError: there is no such axis.

    >>> import tandem as td
    >>> td.vmap(lambda x: td.all_gather(x, "i"), axis_name="i")(td.asarray([1.0, 3.0])).tolist()
    [[1.0, 3.0], [1.0, 3.0]]
    """

    def gather_leaf(x: Any, name: Any, size: int) -> Any:
        result = _gather(x, name, size)
        if tiled:
            return by_name("concat")(list(by_name("unstack")(result, axis=0)), axis)
        return by_name("moveaxis")(result, 0, axis)

    return _map_each_axis("all_gather", tree, axis_name, gather_leaf)


def ppermute(tree: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Each example of a named axis gets what another one has.

    Args:
        tree: a tensor or number, or a tree of them.
        axis_name: the name.
        perm: pairs ``(source, destination)`` of numbers of examples. Examples that are not a destination get zeros.

    Returns:
        A tree like ``tree``.

    Raises:
        AxisNameError: no ``vmap`` around the call has an axis of that name.
        ArgumentError: a source or a destination is named twice, or is no example's number.

    >>> import tandem as td
    >>> turn = [(0, 1), (1, 2), (2, 0)]
    >>> td.vmap(lambda x: td.ppermute(x, "i", turn), axis_name="i")(td.asarray([1.0, 2.0, 3.0])).tolist()
    [3.0, 1.0, 2.0]
    """
    size = _level("ppermute", axis_name).batch_size
    pairs = [(int(source), int(to)) for source, to in perm]
    for numbers in zip(*pairs):
        if len(set(numbers)) != len(numbers) or not all(0 <= number < size for number in numbers):
            raise ArgumentError(
                f"ppermute: perm holds each source and each destination once, from 0 to {size - 1}, not {perm}"
            )
    sources = [next((source for source, to in pairs if to == place), -1) for place in range(size)]
    source = asarray(sources)[axis_index(axis_name)]

    def permute_leaf(x: Any, name: Any, size: int) -> Any:
        value = _gather(x, name, size)[by_name("maximum")(source, 0)]
        return by_name("where")(source >= 0, value, by_name("zeros_like")(value))

    return _map_each_axis("ppermute", tree, axis_name, permute_leaf)


def pbroadcast(tree: Any, axis_name: Any, source: int) -> Any:
    """Broadcast the value of one example of a named axis to all examples.

    Args:
        tree: a tensor or number, or a tree of them.
        axis_name: the name.
        source: the number of the example.

    Returns:
        A tree like ``tree``.

    Raises:
        AxisNameError: no ``vmap`` around the call has an axis of that name.
        ArgumentError: there is no such example.

    >>> import tandem as td
    >>> td.vmap(lambda x: td.pbroadcast(x, "i", 1), axis_name="i")(td.asarray([1.0, 2.0, 3.0])).tolist()
    [2.0, 2.0, 2.0]
    """
    size = _level("pbroadcast", axis_name).batch_size
    if not 0 <= source < size:
        raise ArgumentError(
            f"pbroadcast: source is the number of an example, from 0 to {size - 1}, not {source}"
        )
    return _map_each_axis("pbroadcast", tree, axis_name, lambda x, name, size: _gather(x, name, size)[source])


def _split_axis(what: str, x: Any, axis: int, size: int, tiled: bool) -> Any:
    """A tensor with the parts for the examples along a new leading axis; without ``tiled`` the axis cut is gone."""
    rank = len(x.shape)
    if not -rank <= axis < rank:
        raise AxisError(f"{what}: {describe(x)} has no axis {axis}")
    axis %= rank
    length = x.shape[axis]
    if length % size or not (tiled or length == size):
        wanted = f"a multiple of the {size} examples" if tiled else f"{size}, the number of examples"
        raise ShapeError(f"{what}: axis {axis} of {describe(x)} has length {length}, not {wanted}")
    kept = (length // size,) if tiled else ()
    cut = by_name("reshape")(x, (*x.shape[:axis], size, *kept, *x.shape[axis + 1 :]))
    return by_name("moveaxis")(cut, axis, 0)


def psum_scatter(tree: Any, axis_name: Names, *, scatter_dimension: int = 0, tiled: bool = False) -> Any:
    """The sum over a named axis, of which each example gets its part.

    Args:
        tree: a tensor, or a tree of them.
        axis_name: the name, or a tuple of names, which count as one axis.
        scatter_dimension: the axis of the sum that is divided up; as long as there are examples.
        tiled: keep the axis, of which each example gets a block; then it is a multiple as long.

    Returns:
        A tree like ``tree``.

    Raises:
        AxisNameError: no ``vmap`` around the call has an axis of that name.
        AxisError, ShapeError: there is no such axis, or it has another length.

    >>> import tandem as td
    >>> x = td.asarray([[1.0, 2.0], [10.0, 20.0]])
    >>> td.vmap(lambda x: td.psum_scatter(x, "i"), axis_name="i")(x).tolist()
    [11.0, 22.0]
    """

    def scatter_leaf(x: Any, name: Any, size: int) -> Any:
        return _split_axis("psum_scatter", psum(asarray(x), name), scatter_dimension, size, tiled)[
            axis_index(name)
        ]

    return _map_joint_axis("psum_scatter", tree, axis_name, scatter_leaf)


def all_to_all(tree: Any, axis_name: Names, split_axis: int, concat_axis: int, *, tiled: bool = False) -> Any:
    """Each example gives a part of what it has to every example: a transpose of a named axis and one of the tensor.

    Args:
        tree: a tensor, or a tree of them.
        axis_name: the name, or a tuple of names, which count as one axis.
        split_axis: the axis that is divided up; as long as there are examples.
        concat_axis: where the parts that an example gets lie: a new axis of the result.
        tiled: cut the axis into blocks, and join them along the axis that is there; then it is a multiple as long.

    Returns:
        A tree like ``tree``.

    Raises:
        AxisNameError: no ``vmap`` around the call has an axis of that name.
        AxisError, ShapeError: there is no such axis, or it has another length.

    >>> import tandem as td
    >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> td.vmap(lambda x: td.all_to_all(x, "i", 0, 0), axis_name="i")(x).tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """

    def exchange_leaf(x: Any, name: Any, size: int) -> Any:
        parts = _split_axis("all_to_all", asarray(x), split_axis, size, tiled)
        mine = by_name("moveaxis")(_gather(parts, name, size), 1, 0)[axis_index(name)]
        if tiled:
            return by_name("concat")(list(by_name("unstack")(mine, axis=0)), concat_axis)
        return by_name("moveaxis")(mine, 0, concat_axis)

    return _map_joint_axis("all_to_all", tree, axis_name, exchange_leaf)
