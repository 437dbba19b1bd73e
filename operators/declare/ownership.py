"""Ownership of results: a result that aliases an argument is copied, unless the schema declares a view.

A composite's body may return its argument, or a view of it, for some shapes only: ``tile`` reshapes a broadcast view,
for example. The same holds for functions that are not operators: loops, branches, collectives.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ... import lazy
from ...registry.function import functions
from ...registry.schemas.schema import Schema
from ...registry.values import TensorBase

if TYPE_CHECKING:
    from ...registry.types import Args, Kwargs, Pytree, T

pytree = lazy.Module(".pytree")  # operators do not need it


def unwrap_levels(value: Any) -> Any:
    """Return the innermost tensor of a value that is wrapped by levels (vmap, grad, ...)."""
    while hasattr(value, "_payload"):
        value = value._payload
    return value


def shares_memory(one: object, two: object) -> bool:
    """Whether two tensors are known to share memory."""
    first, second = unwrap_levels(one), unwrap_levels(two)
    return first is second or (first._memory is not None and first._memory is second._memory)


# Tensor classes whose instances are not views as long as they have no storage.
PLAIN: set[type] = set()


def copy_shared_results(schema: Schema, body: Callable[..., T]) -> Callable[..., T]:
    """Wrap a composite's body so that results that share memory with an argument are copied.

    Args:
        schema: the schema of the operator; a view or an in-place operator is returned as it is.
        body: a function of the schema's arguments.
    """
    if schema.is_view or schema.is_mutable:
        return body

    @functools.wraps(body)
    def kernel(*args: object, **kwargs: object) -> Any:
        result: Any = body(*args, **kwargs)
        if type(result) in PLAIN and result._storage is None:  # fast path: only an argument itself can alias
            for value in (*args, *kwargs.values()) if kwargs else args:
                if value is result or type(value) is tuple:
                    break
            else:
                return result
        return _copy_if_shared(result, args, kwargs)

    return kernel


def _copy_if_shared(result: object, args: Args, kwargs: Kwargs) -> object:
    if isinstance(result, (tuple, list)):
        return type(result)(_copy_if_shared(item, args, kwargs) for item in result)
    if _is_shared(result, args) or _is_shared(result, kwargs.values()):
        return functions["td::clone"](result)
    return result


def _is_shared(result: object, args: Iterable[object]) -> bool:
    """Whether a result is one of the arguments, or shares memory with one."""
    for value in args:
        if isinstance(value, (tuple, list)):
            if _is_shared(result, value):
                return True
        elif value is result:
            return hasattr(value, "dtype") or hasattr(value, "python_type")
        elif (
            isinstance(value, TensorBase) and isinstance(result, TensorBase) and shares_memory(result, value)
        ):
            return True
    return False


def copy_shared_leaves(result: Any, given: Pytree) -> Any:
    """Copy the tensors of a result that share memory with a tensor of the arguments.

    Args:
        result: the result of a function that is not an operator.
        given: its arguments.
    """
    tensors = [x for x in pytree.leaves(given) if isinstance(x, TensorBase)]

    def copy_leaf(leaf: object) -> object:
        shared = isinstance(leaf, TensorBase) and any(leaf is x or shares_memory(leaf, x) for x in tensors)
        return functions["td::clone"](leaf) if shared else leaf

    return pytree.map_tree(copy_leaf, result) if tensors else result
