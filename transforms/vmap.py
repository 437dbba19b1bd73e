"""``vmap``: vectorize a function over a batch axis; ``register_vmap``: batching rules of operators."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from .. import lazy
from ..errors import ArgumentError
from ..operators.declare.declaration import LIBRARY
from ..registry.dispatch.keys import DispatchKey

if TYPE_CHECKING:
    from ..registry.operator import Operator
    from ..registry.registration import Handle
    from ..registry.types import Args, Function, Kwargs, Pytree

hot_maps = lazy.Module(".control.hot_maps")
mapping = lazy.Module(".eager.layers.vmap.mapping")
pytree = lazy.Module(".pytree")
rules = lazy.Module(".eager.layers.vmap.rules")

F = TypeVar("F", bound=Callable[..., object])


class _FirstAxis:
    """The default of ``in_axes`` and ``out_axes``, which tells an argument that is missing from one that is 0."""

    def __repr__(self) -> str:
        return "0"


_FIRST_AXIS: Any = _FirstAxis()


def _copy_tree(axes: Pytree) -> Pytree:
    """A copy of axes, whose lists may be changed later."""
    if axes is None or type(axes) is int:
        return axes
    leaves, treedef = pytree.flatten(axes)
    return treedef.unflatten(leaves)


def _choose_spelling(name: str, axes: Pytree, spelling: str, dims: Pytree) -> Pytree:
    """The value of an argument that has two names."""
    if axes is not _FIRST_AXIS and dims is not _FIRST_AXIS:
        raise ArgumentError(f"vmap: got {name!r} twice, as {name!r} and as {spelling!r}")
    value = dims if axes is _FIRST_AXIS else axes
    return 0 if value is _FIRST_AXIS else value


def vmap(
    fun: Function,
    in_axes: Pytree = _FIRST_AXIS,
    out_axes: Pytree = _FIRST_AXIS,
    axis_name: Hashable = None,
    axis_size: int | None = None,
    *,
    in_dims: Pytree = _FIRST_AXIS,
    out_dims: Pytree = _FIRST_AXIS,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Vectorize a function: create a function that runs ``fun`` on every example of a batch at once.

    ``fun`` is written for one example; inside it, shapes, axes and indices are those of an example. Each operator that
    it calls runs once, on the whole batch. ``vmap`` nests, and combines with ``grad`` and ``jit`` in any order.

    Args:
        fun: a function of pytrees of tensors (dicts, lists, tuples, namedtuples, dataclasses).
        in_axes: the batch axis of each argument: an int, None for an argument that all examples share, or a tuple with
            an item for each positional argument, which may be a pytree that is a prefix of the argument. Negative axes
            count from the end. Keyword arguments are mapped along axis 0.
        out_axes: the batch axis of each result, in the same notation; None declares that the result does not depend on
            the example.
        axis_name: the name of the batch axis inside ``fun``, for :func:`tandem.psum` and the other collectives; any
            hashable value.
        axis_size: the number of examples, needed if no argument is mapped.
        in_dims: PyTorch's name of ``in_axes``.
        out_dims: PyTorch's name of ``out_axes``.
        chunk_size: the number of examples to compute at once, for less memory; the last chunk may be smaller. None
            computes all at once.

    Returns:
        A function of batches. Results that are the same for all examples are repeated along ``out_axes``.

    Raises:
        ArgumentError: ``in_axes`` or ``out_axes`` does not match the arguments or the result, or is given in two
            spellings.
        ShapeError: arguments have different numbers of examples; the message names them.
        OutOfBoundsError: an argument or a result does not have its batch axis.
        ValueArgumentError: no argument is mapped, or a result with ``out_axes`` None depends on the example.

    Source: ``jax.vmap``.

    >>> import tandem as td
    >>> def distance(p, q):
    ...     return ((p - q) ** 2).sum() ** 0.5
    >>> td.vmap(distance, in_axes=(0, None))(td.asarray([[3.0, 4.0], [6.0, 8.0]]), td.zeros(2))
    tensor([ 5., 10.])
    >>> gradients = td.vmap(td.grad(lambda w, x: (w * x).sum()), in_axes=(None, 0))
    >>> gradients(td.ones(2), td.asarray([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    ins = _choose_spelling("in_axes", in_axes, "in_dims", in_dims)
    outs = _choose_spelling("out_axes", out_axes, "out_dims", out_dims)
    options = mapping.BatchOptions(ins, outs, axis_name, axis_size, chunk_size)
    mapping.check_call(fun, options)
    options = options._replace(in_axes=_copy_tree(ins), out_axes=_copy_tree(outs))
    key, strategies = hot_maps.make_key(options), mapping.StrategyCache()

    @functools.wraps(fun)
    def mapped(*args: object, **kwargs: object) -> object:
        if key is None:
            return mapping.call_on_batches(fun, options, strategies, args, kwargs)
        return hot_maps.call(key, fun, options, strategies, args, kwargs)

    return mapped


@overload
def register_vmap(op: object, rule: Function) -> Handle: ...


@overload
def register_vmap(op: object, rule: None = None) -> Callable[[F], F]: ...


def register_vmap(op: object, rule: Function | None = None) -> Handle | Callable[[F], F]:
    """Register a batching rule for an operator, which replaces the rule of its declaration or its body.

    Args:
        op: the operator, its function, or its full name, such as ``"td::exp"``.
        rule: ``rule(info, in_dims, *args, **kwargs) -> (result, out_dims)``; None to use this as a decorator. The
            arguments are those of the call; ``in_dims`` has for each positional argument 0 if it has the batch axis in
            front, else None (for a list of tensors a tuple of these); ``info.batch_size`` is the number of examples,
            ``info.call`` the operator. ``out_dims`` is the batch axis of the result, or None if the result is the same
            for all examples; for several results a tuple.

    Returns:
        A handle whose ``remove()`` restores the former rule; as a decorator, the function.

    Raises:
        RegistrationError: ``op`` is not an operator, or the rule is not callable.

    >>> import tandem as td
    >>> with td.Library("doc", "DEF") as lib:
    ...     _ = lib.define("total(Tensor x) -> Tensor")
    ...     _ = lib.impl("total", lambda x: td.asarray(x.numpy().sum()), "CPU")
    ...     with td.register_vmap("doc::total", lambda info, in_dims, x: (x.sum(tuple(range(1, x.ndim))), 0)):
    ...         td.vmap(td.ops.doc.total)(td.ones((2, 3))).tolist()
    [3.0, 3.0]
    """
    if rule is None:
        return lambda function: (register_vmap(op, function), function)[1]
    handle: Handle = rules.register_rule(op, rule)
    return handle


def _run_batched(op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> object:
    """The Batched key's fallback: load the layer at the first call, and run the operator on the batch."""
    return mapping.batched(op, keyset, args, kwargs)


LIBRARY.fallback(_run_batched, DispatchKey.Batched)
