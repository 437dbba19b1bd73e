"""ravel_pytree: flatten a tree of tensors to one vector. The implementation is loaded at the first call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import lazy

_machinery = lazy.Module(".transforms.ravel")


def ravel_pytree(tree: object) -> tuple[Any, Callable[[Any], Any]]:
    """A tree of tensors as one vector, for solvers that know nothing of trees; ``td.tree.ravel`` for short.

    Args:
        tree: a pytree of tensors and numbers.

    Returns:
        ``(vector, unravel)``: the elements of all leaves one behind the other, in the dtype that holds all of them, and
        the function from such a vector to a tree of the same containers, shapes and dtypes. Both can be
        differentiated, batched and jitted; two functions are equal that do the same. Where all leaves have one dtype,
        vectors of another one make trees of that.

    Raises:
        ArgumentError: a leaf is nothing that a tensor can be made of; the message names the key path.
        ShapeError: by that function: not a vector of as many elements.
        DTypeError: by that function: a vector of another dtype for leaves of different dtypes.

    Source: ``jax.flatten_util.ravel_pytree``.

    >>> import tandem as td
    >>> vector, unravel = td.tree.ravel({"w": td.ones((1, 2)), "b": 3.0})
    >>> vector
    tensor([1., 1., 3.])
    >>> unravel(2 * vector)
    {'w': tensor([[2., 2.]]), 'b': tensor(6.)}
    """
    result: tuple[Any, Callable[[Any], Any]] = _machinery.ravel(tree)
    return result
