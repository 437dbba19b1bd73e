"""Collective operations along named axes of ``vmap``: sums, extrema, gathers and permutations.

Source: the collectives of ``jax.lax``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import pytree
from ..eager.layers.levels import Level, stack
from ..eager.layers.vmap.tensor import wrap_batched
from ..eager.tensor.construct import asarray
from ..eager.tensor.dunders import by_name
from ..eager.tensor.tensor import wrap
from ..errors import ArgumentError, AxisError, AxisNameError, ShapeError
from ..operators.declare.ownership import copy_shared_leaves
from ..registry.values import SCALARS, describe

if TYPE_CHECKING:
    from ..registry.types import Pytree, Tensor

AxisNames = Hashable | list[Hashable]  # the name of an axis, or a tuple or list of names
# The function of a leaf, an axis name or several, and the number of examples along the axis.
LeafFunction = Callable[[object, AxisNames, int], object]


def _find_level(what: str, axis_name: object) -> Level:
    """Return the innermost level of ``vmap`` whose axis has this name."""
    for level in reversed(stack.levels):
        if level.run is not None and level.axis_name is not None and level.axis_name == axis_name:
            return level
    known = [level.axis_name for level in stack.levels if level.axis_name is not None]
    available = f"the named axes are {known}" if known else "there is no named axis"
    raise AxisNameError(
        f"{what}: no vmap around this call has an axis named {axis_name!r}; {available}; name it with "
        f"td.vmap(f, axis_name={axis_name!r})"
    )


def _as_names(axis_name: AxisNames) -> Sequence[Hashable]:
    return axis_name if isinstance(axis_name, (tuple, list)) else (axis_name,)


def axis_size(axis_name: AxisNames) -> int:
    """The number of examples along a named axis; for several axes the product of their sizes.

    Args:
        axis_name: the name of the axis, or a tuple or list of names.

    Returns:
        An int.

    Raises:
        AxisNameError: no enclosing ``vmap`` has an axis of that name.

    Source: ``jax.lax.axis_size``.

    >>> import tandem as td
    >>> td.vmap(lambda x: x / td.axis_size("i"), axis_name="i")(td.asarray([2.0, 4.0])).tolist()
    [1.0, 2.0]
    """
    size = 1
    for name in _as_names(axis_name):
        size *= _find_level("axis_size", name).batch_size
    return size


def axis_index(axis_name: AxisNames) -> Any:
    """The index of the example along a named axis; for several axes the index in row-major order.

    Args:
        axis_name: the name of the axis, or a tuple or list of names.

    Returns:
        A tensor of shape ``()`` and dtype int64.

    Raises:
        AxisNameError: no enclosing ``vmap`` has an axis of that name.

    Source: ``jax.lax.axis_index``.

    >>> import tandem as td
    >>> td.vmap(lambda x: x * td.axis_index("i"), axis_name="i")(td.asarray([5, 5, 5])).tolist()
    [0, 5, 10]
    """
    result: Any = 0
    for name in _as_names(axis_name):
        level = _find_level("axis_index", name)
        # not traced: the level may be outside the body of a loop that is being traced
        index = wrap_batched(level, wrap(np.arange(level.batch_size)))
        result = index if type(result) is int else result * level.batch_size + index
    return result


def _map_each_axis(what: str, tree: Pytree, axis_name: AxisNames, function: LeafFunction) -> Pytree:
    """Apply ``function(leaf, name, size)`` to each leaf, once for each axis."""
    sizes = [(name, _find_level(what, name).batch_size) for name in _as_names(axis_name)]

    def apply_along_axes(leaf: object) -> object:
        for name, size in sizes:
            leaf = function(leaf, name, size)
        return leaf

    return copy_shared_leaves(pytree.map_tree(apply_along_axes, tree), tree)


def _map_joint_axis(what: str, tree: Pytree, axis_name: AxisNames, function: LeafFunction) -> Pytree:
    """Apply ``function(leaf, names, size)`` to each leaf, with several axes treated as one."""
    for name in _as_names(axis_name):
        _find_level(what, name)
    result = pytree.map_tree(lambda leaf: function(leaf, axis_name, axis_size(axis_name)), tree)
    return copy_shared_leaves(result, tree)


def psum(tree: Pytree, axis_name: AxisNames) -> Any:
    """Sum over a named axis; all examples receive the same result.

    Args:
        tree: a tensor of any shape and numeric dtype, a number, or a pytree of them; a number is the same for each
            example, so its sum is its product with the number of examples.
        axis_name: the name of the axis, or a tuple or list of names to sum over.

    Returns:
        A pytree with the structure and shapes of ``tree``.

    Raises:
        AxisNameError: no enclosing ``vmap`` has an axis of that name.

    Source: ``jax.lax.psum``.

    >>> import tandem as td
    >>> td.vmap(lambda x: x / td.psum(x, "i"), axis_name="i")(td.asarray([1.0, 3.0])).tolist()
    [0.25, 0.75]
    """
    axis_sum = by_name("axis_sum")

    def sum_leaf(x: Any, name: AxisNames, size: int) -> object:
        return x * size if type(x) in SCALARS else axis_sum(asarray(x), name, size)

    return _map_each_axis("psum", tree, axis_name, sum_leaf)


def pmean(tree: Pytree, axis_name: AxisNames) -> Any:
    """Average over a named axis; all examples receive the same result.

    Args:
        tree: a tensor of any shape and numeric dtype, a number, or a pytree of them.
        axis_name: the name of the axis, or a tuple or list of names to average over.

    Returns:
        A pytree with the structure and shapes of ``tree``; the dtypes are those of a division.

    Raises:
        AxisNameError: no enclosing ``vmap`` has an axis of that name.

    Source: ``jax.lax.pmean``.

    >>> import tandem as td
    >>> td.vmap(lambda x: x - td.pmean(x, "i"), axis_name="i")(td.asarray([1.0, 3.0])).tolist()
    [-1.0, 1.0]
    """
    count = axis_size(axis_name)
    return pytree.map_tree(lambda x: x / count, psum(tree, axis_name))


def _gather(x: object, axis_name: AxisNames, size: int) -> Tensor:
    """Stack all examples of a named axis along a new leading axis; of several axes, the last one varies fastest."""
    if isinstance(axis_name, (tuple, list)):
        result = asarray(x)
        for name in reversed(axis_name):
            result = _gather(result, name, axis_size(name))
        return by_name("reshape")(result, (size, *asarray(x).shape))
    return by_name("axis_gather")(asarray(x), axis_index(axis_name), axis_name, size)


def pmax(tree: Pytree, axis_name: AxisNames) -> Any:
    """Compute the elementwise maximum over a named axis; all examples receive the same result.

    Args:
        tree: a tensor of any shape and real dtype, a number, or a pytree of them.
        axis_name: the name of the axis, or a tuple or list of names.

    Returns:
        A pytree with the structure, shapes and dtypes of ``tree``.

    Raises:
        AxisNameError: no enclosing ``vmap`` has an axis of that name.

    Source: ``jax.lax.pmax``.

    >>> import tandem as td
    >>> td.vmap(lambda x: td.pmax(x, "i"), axis_name="i")(td.asarray([1.0, 3.0])).tolist()
    [3.0, 3.0]
    """
    return _map_each_axis(
        "pmax", tree, axis_name, lambda x, name, size: by_name("max")(_gather(x, name, size), 0)
    )


def pmin(tree: Pytree, axis_name: AxisNames) -> Any:
    """Compute the elementwise minimum over a named axis; all examples receive the same result.

    Args:
        tree: a tensor of any shape and real dtype, a number, or a pytree of them.
        axis_name: the name of the axis, or a tuple or list of names.

    Returns:
        A pytree with the structure, shapes and dtypes of ``tree``.

    Raises:
        AxisNameError: no enclosing ``vmap`` has an axis of that name.

    Source: ``jax.lax.pmin``.

    >>> import tandem as td
    >>> td.vmap(lambda x: td.pmin(x, "i"), axis_name="i")(td.asarray([1.0, 3.0])).tolist()
    [1.0, 1.0]
    """
    return _map_each_axis(
        "pmin", tree, axis_name, lambda x, name, size: by_name("min")(_gather(x, name, size), 0)
    )


def all_gather(tree: Pytree, axis_name: AxisNames, *, axis: int = 0, tiled: bool = False) -> Any:
    """Stack the examples of a named axis; all examples receive the same result.

    Args:
        tree: a tensor of any shape and dtype, a number, or a pytree of them.
        axis_name: the name of the axis, or a tuple or list of names, each of which adds an axis.
        axis: the position of the new axis in the result.
        tiled: concatenate the examples along the existing axis ``axis`` instead of stacking them along a new one.

    Returns:
        A pytree with the structure and dtypes of ``tree``. A tensor of shape ``(a, b)`` becomes one of shape
        ``(size, a, b)`` for ``axis=0``, with ``tiled`` one of shape ``(size * a, b)``.

    Raises:
        AxisNameError: no enclosing ``vmap`` has an axis of that name.
        OutOfBoundsError: ``axis`` is not an axis of the result.

    Source: ``jax.lax.all_gather``.

    >>> import tandem as td
    >>> td.vmap(lambda x: td.all_gather(x, "i"), axis_name="i")(td.asarray([1.0, 3.0])).tolist()
    [[1.0, 3.0], [1.0, 3.0]]
    """

    def gather_leaf(x: object, name: AxisNames, size: int) -> Tensor:
        result = _gather(x, name, size)
        if tiled:
            return by_name("concat")(list(by_name("unstack")(result, axis=0)), axis)
        return by_name("moveaxis")(result, 0, axis)

    return _map_each_axis("all_gather", tree, axis_name, gather_leaf)


def ppermute(tree: Pytree, axis_name: Hashable, perm: Sequence[tuple[int, int]]) -> Any:
    """Permute the examples of a named axis: each destination receives the value of its source.

    Args:
        tree: a tensor of any shape and dtype, a number, or a pytree of them.
        axis_name: the name of the axis.
        perm: pairs ``(source, destination)`` of indices of examples. An example that is not a destination receives
            zeros.

    Returns:
        A pytree with the structure, shapes and dtypes of ``tree``.

    Raises:
        AxisNameError: no enclosing ``vmap`` has an axis of that name.
        ArgumentError: a source or a destination occurs twice, or is not the index of an example.

    Source: ``jax.lax.ppermute``.

    >>> import tandem as td
    >>> turn = [(0, 1), (1, 2), (2, 0)]
    >>> td.vmap(lambda x: td.ppermute(x, "i", turn), axis_name="i")(td.asarray([1.0, 2.0, 3.0])).tolist()
    [3.0, 1.0, 2.0]
    """
    size = _find_level("ppermute", axis_name).batch_size
    pairs = [(int(source), int(destination)) for source, destination in perm]
    for indices in zip(*pairs):
        if len(set(indices)) != len(indices) or not all(0 <= index < size for index in indices):
            raise ArgumentError(
                f"ppermute: perm holds each source and each destination once, from 0 to {size - 1}, not {perm}"
            )
    source_of = {destination: source for source, destination in pairs}
    source = asarray([source_of.get(index, -1) for index in range(size)])[axis_index(axis_name)]

    def permute_leaf(x: object, name: AxisNames, size: int) -> Tensor:
        value = _gather(x, name, size)[by_name("maximum")(source, 0)]
        return by_name("where")(source >= 0, value, by_name("zeros_like")(value))

    return _map_each_axis("ppermute", tree, axis_name, permute_leaf)


def pbroadcast(tree: Pytree, axis_name: Hashable, source: int) -> Any:
    """Broadcast the value of one example of a named axis to all examples.

    Args:
        tree: a tensor of any shape and dtype, a number, or a pytree of them.
        axis_name: the name of the axis.
        source: the index of the example, from 0.

    Returns:
        A pytree with the structure, shapes and dtypes of ``tree``.

    Raises:
        AxisNameError: no enclosing ``vmap`` has an axis of that name.
        ArgumentError: ``source`` is not the index of an example.

    Source: ``jax.lax.pbroadcast``.

    >>> import tandem as td
    >>> td.vmap(lambda x: td.pbroadcast(x, "i", 1), axis_name="i")(td.asarray([1.0, 2.0, 3.0])).tolist()
    [2.0, 2.0, 2.0]
    """
    size = _find_level("pbroadcast", axis_name).batch_size
    if not 0 <= source < size:
        raise ArgumentError(
            f"pbroadcast: source is the number of an example, from 0 to {size - 1}, not {source}"
        )
    return _map_each_axis("pbroadcast", tree, axis_name, lambda x, name, size: _gather(x, name, size)[source])


def _split_axis(what: str, x: Tensor, axis: int, size: int, tiled: bool) -> Tensor:
    """Split an axis into one part for each example, stacked along a new leading axis of length ``size``.

    With ``tiled`` the axis remains, ``size`` times shorter; without, its length is ``size`` and it is removed.
    """
    rank = len(x.shape)
    if not -rank <= axis < rank:
        raise AxisError(f"{what}: {describe(x)} has no axis {axis}")
    axis %= rank
    length = x.shape[axis]
    if length % size or not (tiled or length == size):
        wanted = f"a multiple of the {size} examples" if tiled else f"{size}, the number of examples"
        raise ShapeError(f"{what}: axis {axis} of {describe(x)} has length {length}, not {wanted}")
    block = (length // size,) if tiled else ()
    split = by_name("reshape")(x, (*x.shape[:axis], size, *block, *x.shape[axis + 1 :]))
    return by_name("moveaxis")(split, axis, 0)


def psum_scatter(
    tree: Pytree, axis_name: AxisNames, *, scatter_dimension: int = 0, tiled: bool = False
) -> Any:
    """Sum over a named axis and scatter the result: each example receives one part of the sum.

    Args:
        tree: a tensor of numeric dtype with at least one axis, or a pytree of such tensors.
        axis_name: the name of the axis, or a tuple or list of names, which are treated as one axis.
        scatter_dimension: the axis of the sum that is split; its length is the number of examples.
        tiled: whether the axis remains and each example receives a block of it; its length is a multiple of the number
            of examples then.

    Returns:
        A pytree with the structure and dtypes of ``tree``. The tensors lack the axis ``scatter_dimension``, or with
        ``tiled`` are shorter along it.

    Raises:
        AxisNameError: no enclosing ``vmap`` has an axis of that name.
        AxisError: a tensor does not have the axis ``scatter_dimension``.
        ShapeError: the length of that axis does not match the number of examples.

    Source: ``jax.lax.psum_scatter``.

    >>> import tandem as td
    >>> x = td.asarray([[1.0, 2.0], [10.0, 20.0]])
    >>> td.vmap(lambda x: td.psum_scatter(x, "i"), axis_name="i")(x).tolist()
    [11.0, 22.0]
    """

    def scatter_leaf(x: object, name: AxisNames, size: int) -> Tensor:
        parts = _split_axis("psum_scatter", psum(asarray(x), name), scatter_dimension, size, tiled)
        return parts[axis_index(name)]

    return _map_joint_axis("psum_scatter", tree, axis_name, scatter_leaf)


def all_to_all(
    tree: Pytree, axis_name: AxisNames, split_axis: int, concat_axis: int, *, tiled: bool = False
) -> Any:
    """Send one part of each example to every example: transpose a named axis and an axis of the tensor.

    Args:
        tree: a tensor of any dtype with at least one axis, or a pytree of such tensors.
        axis_name: the name of the axis, or a tuple or list of names, which are treated as one axis.
        split_axis: the axis that is split; its length is the number of examples.
        concat_axis: the position of the new axis along which the received parts are stacked.
        tiled: split the axis into blocks, and concatenate the received blocks along the existing axis ``concat_axis``;
            the length of ``split_axis`` is a multiple of the number of examples then.

    Returns:
        A pytree with the structure and dtypes of ``tree``. Without ``tiled`` the axis ``split_axis`` of each tensor
        has moved to ``concat_axis``.

    Raises:
        AxisNameError: no enclosing ``vmap`` has an axis of that name.
        AxisError: a tensor does not have the axis ``split_axis``.
        ShapeError: the length of that axis does not match the number of examples.

    Source: ``jax.lax.all_to_all``.

    >>> import tandem as td
    >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> td.vmap(lambda x: td.all_to_all(x, "i", 0, 0), axis_name="i")(x).tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """

    def exchange_leaf(x: object, name: AxisNames, size: int) -> Tensor:
        parts = _split_axis("all_to_all", asarray(x), split_axis, size, tiled)
        received = by_name("moveaxis")(_gather(parts, name, size), 1, 0)[axis_index(name)]
        if tiled:
            return by_name("concat")(list(by_name("unstack")(received, axis=0)), concat_axis)
        return by_name("moveaxis")(received, 0, concat_axis)

    return _map_joint_axis("all_to_all", tree, axis_name, exchange_leaf)
