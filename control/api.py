"""The public functions of control flow; the first call imports the implementation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from .. import lazy
from ..errors import ArgumentError, ValueArgumentError
from ..registry.values import describe

if TYPE_CHECKING:
    from ..registry.types import Function, Pytree, Tensor

associative = lazy.Module(".control.associative")
_branches = lazy.Module(".control.branches")
loops = lazy.Module(".control.loops")
mapping = lazy.Module(".control.mapping")


def _check_functions(name: str, **functions: object) -> None:
    for parameter, function in functions.items():
        if not callable(function):
            raise ArgumentError(f"{name}: {parameter} must be a function, not {describe(function)}")


def _check_unroll(name: str, unroll: object) -> None:
    if not isinstance(unroll, int) or unroll < 0:
        raise ValueArgumentError(
            f"{name}: unroll must be a non-negative Python int or a bool, not {describe(unroll)}"
        )


def scan(
    f: Callable[[Any, Any], Any],
    init: Pytree,
    xs: Pytree = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """Run a function over the leading axis of arrays while carrying along state.

    It computes ``for x in xs: carry, y = f(carry, x)`` and stacks the results ``y``. Eagerly it runs as that Python
    loop, which is compiled when it has run for some time and its body only computes; inside ``td.jit`` it is one
    operator, whose loop is compiled. It supports both modes of differentiation, and ``td.vmap``.

    Args:
        f: a function of the carry and one item of ``xs`` that returns a pair: the next carry, of the same structure,
            shapes and dtypes, and the result of the step (any pytree, or None).
        init: the initial carry, a pytree.
        xs: a pytree of tensors with equal leading axes; if None, ``f`` gets None, and ``length`` sets the number of
            steps.
        length: the number of steps; required if ``xs`` has no leaves.
        reverse: whether to run from the last item to the first; results stay in the order of the items.
        unroll: a non-negative int or a bool, accepted for programs written for ``jax.lax.scan``; it has no effect. A
            step of a compiled loop costs the call of its body, a few nanoseconds, so unrolling would save little.

    Returns:
        The final carry, and the results of the steps, stacked along a new leading axis.

    Raises:
        ArgumentError: the carry that ``f`` returns differs from its input in structure, shape or dtype.
        ShapeError: the leading axes differ.
        ValueArgumentError: the number of steps is not given, or ``unroll`` is negative or not an int.

    Source: ``jax.lax.scan``.

    >>> import tandem as td
    >>> total, sums = td.scan(lambda c, x: (c + x, c + x), 0.0, td.asarray([1.0, 2.0, 3.0]))
    >>> total, sums
    (tensor(6.), tensor([1., 3., 6.]))
    """
    _check_functions("scan", f=f)
    _check_unroll("scan", unroll)
    result: tuple[Any, Any] = loops.scan("scan", f, init, xs, length, reverse)
    return result


def map(f: Callable[[Any], Any], xs: Pytree, *, batch_size: int | None = None) -> Any:
    """Run a function on each item along the leading axes of ``xs``, one after the other, and stack the results.

    If memory allows, ``td.vmap`` runs all of them at once.

    Args:
        f: a function of one item that returns any pytree of tensors.
        xs: a pytree of tensors with equal leading axes.
        batch_size: the number of items to run at once, as ``td.vmap`` does; the last batch may be smaller. None runs
            one item at a time.

    Returns:
        The results, stacked along a new leading axis.

    Raises:
        ShapeError: the leading axes differ.
        ArgumentError: ``batch_size`` is not a positive int.

    Source: ``jax.lax.map``.

    >>> import tandem as td
    >>> td.map(lambda x: x @ x, td.asarray([[1.0, 2.0], [3.0, 4.0]]))
    tensor([ 5., 25.])
    """
    _check_functions("map", f=f)
    return mapping.map_items(f, xs, batch_size)


def fori_loop(
    lower: Tensor | SupportsIndex,
    upper: Tensor | SupportsIndex,
    body_fun: Callable[[Any, Any], Any],
    init_val: Pytree,
    *,
    unroll: int | bool | None = None,
) -> Any:
    """Run ``val = body_fun(i, val)`` for each ``i`` from ``lower`` up to, not including, ``upper``.

    With bounds that are Python ints it is a ``scan``, which supports both modes of differentiation; with bounds that
    are known only when a compiled function runs, and for more than ``2**31`` steps, it is a ``while_loop``, which has
    no reverse mode.

    Args:
        lower: the first index, an int or an integer tensor; a NumPy integer is converted to a Python int.
        upper: one past the last index.
        body_fun: a function of the index (an integer tensor of shape ``()``) and the value that returns the next value.
        init_val: the initial value, a pytree.
        unroll: as for :func:`scan`; only None or False if a bound is a tensor.

    Returns:
        The final value.

    Raises:
        ArgumentError: the value changes its structure, shape or dtype; the message names the key path.
        ValueArgumentError: ``unroll`` is negative or not an int, or is set with tensor bounds.
        ScalarOverflowError: a bound does not fit int64.

    Source: ``jax.lax.fori_loop``.

    >>> import tandem as td
    >>> td.fori_loop(0, 5, lambda i, total: total + i, 0)
    tensor(10)
    """
    _check_functions("fori_loop", body_fun=body_fun)
    lower, upper = (int(bound) if isinstance(bound, np.integer) else bound for bound in (lower, upper))
    if unroll is not None:
        _check_unroll("fori_loop", unroll)
        if unroll and (type(lower) is not int or type(upper) is not int):
            raise ValueArgumentError(
                f"fori_loop: unroll={unroll!r} needs bounds that are Python ints, not {describe(lower)} and "
                f"{describe(upper)}"
            )
    return loops.fori_loop(lower, upper, body_fun, init_val)


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Pytree) -> Any:
    """Run ``val = body_fun(val)`` as long as ``cond_fun(val)`` holds.

    It supports forward mode. It supports reverse mode only eagerly, when it runs as a Python loop: inside ``td.jit``
    the number of steps is unknown when memory for the residuals is allocated.

    Args:
        cond_fun: a function of the value that returns a bool or a bool tensor of shape ``()``.
        body_fun: a function of the value that returns the next value, of the same structure, shapes and dtypes.
        init_val: the initial value, a pytree.

    Returns:
        The final value.

    Raises:
        ArgumentError: the value changes its structure, shape or dtype, or the condition is not a bool.

    Source: ``jax.lax.while_loop``.

    >>> import tandem as td
    >>> td.while_loop(lambda x: x < 100, lambda x: x * 2, 1)
    tensor(128)
    """
    _check_functions("while_loop", cond_fun=cond_fun, body_fun=body_fun)
    return loops.while_loop(cond_fun, body_fun, init_val)


def cond(pred: Tensor | np.bool_ | bool, true_fun: Function, false_fun: Function, *operands: Pytree) -> Any:
    """Run one of two functions.

    Eagerly it is Python's ``if``, whose result never shares memory with an operand; inside ``td.jit`` both functions
    are traced, and the compiled function runs the selected one. Under ``td.vmap``, if ``pred`` is batched, both run,
    and each example selects its result.

    Args:
        pred: a bool, or a tensor of shape ``()``, which is true if it is not zero.
        true_fun: the function that is called on the operands if ``pred`` is true.
        false_fun: the function that is called otherwise; its result has the same structure, shapes and dtypes.
        operands: any pytrees.

    Returns:
        The result of the selected function.

    Raises:
        ArgumentError: the results of the two differ; the message names the key path.
        ShapeError: ``pred`` has axes.

    Source: ``jax.lax.cond``.

    >>> import tandem as td
    >>> f = td.jit(lambda x: td.cond(x.sum() > 0, td.exp, td.negative, x))
    >>> f(td.asarray([0.0, 0.0])), f(td.asarray([0.0, 1.0])).tolist()[0]
    (tensor([-0., -0.]), 1.0)
    """
    _check_functions("cond", true_fun=true_fun, false_fun=false_fun)
    return _branches.cond(pred, true_fun, false_fun, operands)


def switch(index: Tensor | SupportsIndex, branches: Sequence[Function], *operands: Pytree) -> Any:
    """Run one of several functions.

    Args:
        index: the index of the function, from 0; clipped to the valid range.
        branches: functions whose results have the same structure, shapes and dtypes.
        operands: their arguments, any pytrees.

    Returns:
        The result of the selected function.

    Raises:
        ArgumentError: the results of two branches differ; the message names the key path.
        DTypeError: ``index`` is not an integer.

    Source: ``jax.lax.switch``.

    >>> import tandem as td
    >>> td.switch(1, [td.exp, td.negative, td.abs], td.asarray([1.0, -2.0]))
    tensor([-1.,  2.])
    """
    if not isinstance(branches, Collection):
        raise ArgumentError(f"switch: branches must be a list of functions, not {describe(branches)}")
    _check_functions("switch", **{f"branch {i}": branch for i, branch in enumerate(branches)})
    return _branches.switch(index, branches, operands)


def associative_scan(
    fn: Callable[[Any, Any], Any], elems: Pytree, reverse: bool = False, axis: int = 0
) -> Any:
    """Compute all prefixes of a sequence under an associative operation, in a logarithmic number of vectorized steps.

    Args:
        fn: an associative function of two pytrees like ``elems`` whose leaves hold any number of items along ``axis``.
        elems: a pytree of tensors of equal length along ``axis``.
        reverse: whether to compute suffixes instead.
        axis: the axis of the items.

    Returns:
        A pytree like ``elems``: item ``i`` is the combination of the items up to ``i``.

    Raises:
        ShapeError: the leaves have different lengths.
        ArgumentError: ``fn`` returns another structure.

    Source: ``jax.lax.associative_scan``.

    >>> import tandem as td
    >>> td.associative_scan(td.multiply, td.asarray([1.0, 2.0, 3.0, 4.0]))
    tensor([ 1.,  2.,  6., 24.])
    """
    _check_functions("associative_scan", fn=fn)
    return associative.associative_scan(fn, elems, reverse, axis)
