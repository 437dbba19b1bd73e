"""Compile hot eager calls of ``vmap`` (:mod:`.hot_transforms`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import pytree
from ..eager.layers.vmap.mapping import BatchOptions, StrategyCache, call_on_batches
from ..eager.tensor.tensor import Tensor
from ..errors import TandemError
from .hot_transforms import run_transform

if TYPE_CHECKING:
    from ..registry.types import Args, Function, Kwargs, Pytree


def make_key(options: BatchOptions) -> tuple[object, ...] | None:
    """The options of ``vmap`` as a key; None if its calls are not compiled."""
    in_axes, out_axes, axis_name, axis_size, chunk_size = options
    if not (type(in_axes) is int and type(out_axes) is int):
        leaves, treedef = pytree.flatten((in_axes, out_axes))
        if not all(type(leaf) is int for leaf in leaves):
            return None
        in_axes, out_axes = tuple(leaves), treedef
    if not (axis_name is None or type(axis_name) is str):
        return None
    return "vmap", in_axes, out_axes, axis_name, axis_size, chunk_size


def call(
    key: tuple[object, ...],
    fun: Function,
    options: BatchOptions,
    strategies: StrategyCache,
    args: Args,
    kwargs: Kwargs,
) -> Pytree:
    """Call a function with batches of its arguments, as compiled code if the call is hot.

    Args:
        key: the options as a key.
        fun, options, strategies, args, kwargs: see :func:`call_on_batches`.
    """

    def as_written() -> object:
        return call_on_batches(fun, options, strategies, args, kwargs)

    def transform(fun: Function, leaves: Sequence[object]) -> object:
        given = (tuple(leaves), {}) if treedef is None else treedef.unflatten(leaves)
        return call_on_batches(fun, options, StrategyCache(), *given)

    leaves: Sequence[object] = args
    treedef: pytree.TreeDef | None = None
    if kwargs or not all(type(x) is Tensor for x in args):
        try:
            leaves, treedef = pytree.flatten((args, kwargs))
        except TandemError:
            return as_written()
    return run_transform(key, fun, leaves, treedef, transform, as_written)
