"""The public functions of control flow; their implementation is imported at the first call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from .. import lazy
from ..errors import ArgumentError, ValueArgumentError
from ..registry.values import describe


def _check_functions(name: str, **functions: Any) -> None:
    for what, function in functions.items():
        if not callable(function):
            raise ArgumentError(f"{name}: {what} must be a function, not {describe(function)}")


def _check_unroll(name: str, unroll: Any) -> None:
    if not isinstance(unroll, int) or unroll < 0:
        raise ValueArgumentError(
            f"{name}: unroll must be a non-negative Python int or a bool, not {describe(unroll)}"
        )


def scan(
    f: Callable[[Any, Any], Any],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> Any:
    """Run a function over the leading axis of arrays while carrying along state.

    As ``for x in xs: carry, y = f(carry, x)``, with the ``y`` stacked. Eagerly it is that loop; inside ``td.jit`` it is
    one operator whose loop is compiled. It differentiates in both modes and batches.

    Args:
        f: from the carry and one item of ``xs`` to a pair: the next carry, of the same structure, shapes and dtypes,
            and the result of the step (any pytree, or None).
        init: the first carry, a pytree.
        xs: a pytree of tensors with equal leading axes; None: the function gets None, and ``length`` says how often.
        length: the number of steps, where ``xs`` does not say it.
        reverse: whether to run from the last item to the first; results stay in the order of the items.
        unroll: an int that is not negative, or a bool, for programs written for ``jax.lax.scan``; it changes nothing.
            A step of a compiled loop costs the call of its body, a few nanoseconds; there is next to nothing to save.

    Returns:
        The last carry, and the results of the steps, stacked along a new leading axis.

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
    return lazy.control_machinery("loops").scan("scan", f, init, xs, length, reverse)


def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """Run a function on each item along the leading axes of ``xs``, one after the other, and stack the results.

    Where memory allows, ``td.vmap`` runs all of them at once.

    Args:
        f: from one item to any pytree of tensors.
        xs: a pytree of tensors with equal leading axes.
        batch_size: how many items to run at once, as by ``td.vmap``; the last batch may be smaller. None: one.

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
    return lazy.control_machinery("mapping").map_items(f, xs, batch_size)


def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], Any],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
) -> Any:
    """Run ``val = body_fun(i, val)`` for each ``i`` from ``lower`` up to, not including, ``upper``.

    With bounds that are Python ints it is a ``scan``, which differentiates in both modes; with bounds that are known
    only when a compiled function runs it is a ``while_loop``, which has no reverse mode.

    Args:
        lower: the first index; a NumPy integer is taken as a Python int.
        upper: one past the last.
        body_fun: from an index (an integer tensor of shape ``()``) and the value to the next value.
        init_val: the first value, a pytree.
        unroll: as for :func:`scan`; with bounds that are tensors only None or False.

    Returns:
        The last value.

    Raises:
        ArgumentError: the value changes its structure, shape or dtype; the message names the key path.
        ValueArgumentError: ``unroll`` is negative or not an int, or is set with tensor bounds.

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
    return lazy.control_machinery("loops").fori_loop(lower, upper, body_fun, init_val)


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """Run ``val = body_fun(val)`` as long as ``cond_fun(val)`` holds.

    It differentiates in forward mode. In reverse mode it does so only where it runs as a Python loop, that is eagerly:
    inside ``td.jit`` the number of steps is not known when memory has to be set aside.

    Args:
        cond_fun: from the value to a bool or a bool tensor of shape ``()``.
        body_fun: from the value to the next value, of the same structure, shapes and dtypes.
        init_val: the first value, a pytree.

    Returns:
        The last value.

    Raises:
        ArgumentError: the value changes its structure, shape or dtype, or the condition is not a bool.

    Source: ``jax.lax.while_loop``.

    >>> import tandem as td
    >>> td.while_loop(lambda x: x < 100, lambda x: x * 2, 1)
    tensor(128)
    """
    _check_functions("while_loop", cond_fun=cond_fun, body_fun=body_fun)
    return lazy.control_machinery("loops").while_loop(cond_fun, body_fun, init_val)


def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """Run one of two functions.

    Eagerly it is Python's ``if``; inside ``td.jit`` both are traced and the compiled function runs the one that is
    taken. Under ``td.vmap``, where ``pred`` may differ from example to example, both run, and each example chooses.

    Args:
        pred: a bool, or a tensor of shape ``()`` that counts as true where it is not zero.
        true_fun: called on the operands if ``pred`` is true.
        false_fun: called otherwise; its result has the same structure, shapes and dtypes.
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
    return lazy.control_machinery("branches").cond(pred, true_fun, false_fun, operands)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Run one of several functions.

    Args:
        index: which function, from 0; clipped to the valid range.
        branches: functions whose results have the same structure, shapes and dtypes.
        operands: their arguments, any pytrees.

    Returns:
        The result of the function that was run.

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
    return lazy.control_machinery("branches").switch(index, branches, operands)


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """Compute all prefixes of a sequence under an associative operation, in a logarithmic number of vectorised steps.

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
    return lazy.control_machinery("associative").associative_scan(fn, elems, reverse, axis)
