"""The public debugging functions; their implementation is imported at the first call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from .. import lazy

if TYPE_CHECKING:
    from ..registry.types import Pytree, TensorLike
    from .checks import Error


P = ParamSpec("P")
R = TypeVar("R")


def print(fmt: str, *args: object, ordered: bool = False, **kwargs: object) -> None:
    """Print values when they are known: eagerly at once, from a jitted function each time that it runs.

    Args:
        fmt: what is printed, in the language of ``str.format``.
        args, kwargs: what is put into it: tensors, numbers, pytrees of them, or anything else.
        ordered: has no effect: what is printed comes in the order of the program.

    Raises:
        ArgumentError: ``fmt`` is not a string, or does not match the values.

    Inside ``td.vmap`` it prints once for each example; values that are being differentiated are printed as they are,
    and no gradient flows.

    >>> import tandem as td
    >>> @td.jit
    ... def f(x):
    ...     y = 2 * x
    ...     td.debug.print("x = {x}, y = {y:.2f}", x=x, y=y)
    ...     return y
    >>> _ = f(td.asarray(1.5))
    x = 1.5, y = 3.00
    """
    lazy.debug_machinery("printing").print_later(fmt, args, kwargs)


def callback(fn: Callable[..., object], *args: object, ordered: bool = False, **kwargs: object) -> None:
    """Call a Python function for its effect: eagerly at once, from a jitted function each time that it runs.

    Args:
        fn: gets the arguments with an ndarray of its own for each tensor; what it returns is dropped.
        args, kwargs: tensors, numbers, pytrees of them, or anything else.
        ordered: has no effect: calls come in the order of the program.

    Inside ``td.vmap`` it is called once for each example. No gradient flows through it.

    >>> import tandem as td
    >>> seen = []
    >>> f = td.jit(lambda x: (td.debug.callback(seen.append, x), x + 1)[1])
    >>> _ = f(td.asarray(1.0)), f(td.asarray(2.0))
    >>> [float(x) for x in seen]
    [1.0, 2.0]
    """
    lazy.debug_machinery("callbacks").call_later(fn, args, kwargs)


def pure_callback(
    fn: Callable[..., object],
    result_spec: Pytree,
    *args: object,
    vmap_method: str | None = None,
    **kwargs: object,
) -> Any:
    """The result of a Python function on NumPy arrays, also inside jitted functions.

    Args:
        fn: gets the arguments with an ndarray for each tensor, and gives arrays. It has no effects: it may be called
            once for two equal calls, or never if nobody needs its result.
        result_spec: a pytree of :class:`TensorSpec`, or of anything with ``shape`` and ``dtype``: what ``fn`` gives.
        args, kwargs: tensors, numbers, pytrees of them, or anything else.
        vmap_method: what happens inside ``td.vmap``. ``"sequential"``: one call for each example; ``"expand_dims"``:
            one call for all, where tensors that all examples share have a batch axis of length 1 in front;
            ``"broadcast_all"``: there it has full length; None: an error.

    Returns:
        Tensors, in the containers of ``result_spec``.

    Raises:
        ShapeError, DTypeError, ArgumentError: ``fn`` gives something else than was promised (when it runs).
        NotDifferentiableError: a gradient is asked for; :func:`tandem.custom_op` can have one.
        UnsupportedError: it is met by values of ``td.vmap``, and ``vmap_method`` is None.

    >>> import numpy as np
    >>> import tandem as td
    >>> f = td.jit(lambda x: td.pure_callback(np.sin, x, x) + 1)
    >>> f(td.zeros(2)).tolist()
    [1.0, 1.0]
    """
    return lazy.debug_machinery("callbacks").call_for_result(
        "pure_callback", fn, result_spec, args, kwargs, vmap_method
    )


def io_callback(
    fn: Callable[..., object], result_spec: Pytree, *args: object, ordered: bool = False, **kwargs: object
) -> Any:
    """The result of a Python function that has effects: it is called exactly as often as the program says, in order.

    Args:
        fn: gets the arguments with an ndarray for each tensor, and gives arrays.
        result_spec: as for :func:`pure_callback`; None where it gives nothing.
        args, kwargs: tensors, numbers, pytrees of them, or anything else.
        ordered: has no effect: calls come in the order of the program. Inside ``td.vmap`` that is one example after
            the other.

    Returns:
        Tensors, in the containers of ``result_spec``.

    Raises:
        ShapeError, DTypeError, ArgumentError: ``fn`` gives something else than was promised (when it runs).
        NotDifferentiableError: a gradient is asked for.

    >>> import itertools
    >>> import tandem as td
    >>> count = itertools.count()
    >>> f = td.jit(lambda x: x + td.io_callback(lambda: next(count), td.TensorSpec((), td.int32)))
    >>> [f(td.asarray(10)).item() for _ in range(3)]
    [10, 11, 12]
    """
    return lazy.debug_machinery("callbacks").call_for_result(
        "io_callback", fn, result_spec, args, kwargs, "sequential"
    )


def nans(inf: bool = False) -> AbstractContextManager[object]:
    """Context manager: the first operator that gives a NaN raises an error that names it, the line and the inputs.

    Every operator is looked at, those of backward passes included. Jitted functions run operator by operator inside.
    ``TANDEM_DEBUG_NANS=1`` turns it on for the thread that imports tandem.

    Args:
        inf: whether infinities count too.

    Returns:
        A context manager.

    Raises:
        NanError: an operator gives a NaN (inside of the block).

    >>> import tandem as td
    >>> with td.debug.nans():
    ...     td.log(td.asarray([1.0, -1.0]))
    Traceback (most recent call last):
    ...
    tandem.errors.NanError: td::log gave a NaN at ...
    """
    mode: AbstractContextManager[object] = lazy.debug_machinery("nan_mode").NanMode(inf)
    return mode


def check(condition: TensorLike, message: str, *args: object, **kwargs: object) -> None:
    """Check a condition. Inside :func:`checkify` a failure is recorded in the :class:`Error`; elsewhere it raises.

    Args:
        condition: a boolean scalar.
        message: what is said where it is false, in the language of ``str.format``.
        args, kwargs: what is put into it: tensors and numbers.

    Raises:
        CheckError: it is false, and no ``checkify`` is around (from a jitted function, when it runs).
        ArgumentError: the condition is not a boolean scalar, or the message does not match.

    >>> import tandem as td
    >>> def f(x):
    ...     td.check(x > 0, "x must be positive, not {x}", x=x)
    ...     return td.sqrt(x)
    >>> error, out = td.jit(td.checkify(f))(td.asarray(-4.0))
    >>> error.get()[:27]
    'x must be positive, not -4.'
    """
    lazy.debug_machinery("checks").check("check", condition, message, args, kwargs)


def debug_check(condition: TensorLike, message: str, *args: object, **kwargs: object) -> None:
    """As :func:`check`, but only inside :func:`checkify`; elsewhere it does nothing.

    Args:
        condition: a boolean scalar.
        message: what is said where it is false, in the language of ``str.format``.
        args, kwargs: what is put into it: tensors and numbers.

    Raises:
        ArgumentError: the condition is not a boolean scalar, or the message does not match.

    Source: ``jax.experimental.checkify.debug_check``.

    >>> import tandem as td
    >>> def f(x):
    ...     td.debug_check(x > 0, "x is {}", x)
    ...     return -x
    >>> f(td.asarray(-4.0)).item(), td.checkify(f)(td.asarray(-4.0))[0].get()[:8]
    (4.0, 'x is -4.')
    """
    lazy.debug_machinery("checks").check("debug_check", condition, message, args, kwargs)


def checkify(
    fun: Callable[P, R], errors: str | Iterable[str] = ("user", "nan", "division", "index")
) -> Callable[P, tuple[Error, R]]:
    """Make a function that returns its errors as a value, together with its result.

    It works under ``jit``, ``vmap`` and ``grad`` in any order; under ``vmap`` there is an error for each example.

    Args:
        fun: a function.
        errors: what counts: ``"user"`` (:func:`check`), ``"nan"`` (an operator gives a NaN), ``"division"`` (a divisor
            is zero), ``"index"`` (an index lies outside of the tensor; the element nearest to it is used).

    Returns:
        A function of the same arguments that gives ``(error, result)``; the :class:`Error` is a pytree.

    Raises:
        ValueArgumentError: ``errors`` names something else.

    >>> import tandem as td
    >>> checked = td.checkify(lambda x, i: td.log(x)[i])
    >>> error, out = checked(td.asarray([1.0, 2.0]), 0)
    >>> error.get() is None
    True
    >>> error, out = td.jit(checked)(td.asarray([1.0, 2.0]), td.asarray(5))
    >>> error.get()[:52]
    'index 5 is out of bounds for axis 0 with size 2 in t'
    """
    checked: Callable[P, tuple[Error, R]] = lazy.debug_machinery("checks").make_checkified(fun, errors)
    return checked
