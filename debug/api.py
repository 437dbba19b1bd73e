"""The public debugging functions; their implementation is imported at the first call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from .. import lazy

if TYPE_CHECKING:
    from ..registry.types import Pytree, TensorLike
    from .checks import Error

callbacks = lazy.Module(".debug.callbacks")
checks = lazy.Module(".debug.checks")
nan_mode = lazy.Module(".debug.nan_mode")
printing = lazy.Module(".debug.printing")
name_checks = lazy.Module(".debug.name_checks")


P = ParamSpec("P")
R = TypeVar("R")


def print(fmt: str, *args: object, ordered: bool = False, **kwargs: object) -> None:
    """Print a formatted message each time that the program runs, also from jitted functions.

    Args:
        fmt: the message, a format string of ``str.format``.
        args, kwargs: the values to format: tensors, numbers, pytrees of them, or any other objects.
        ordered: accepted for compatibility with JAX; output is always in program order.

    Raises:
        ArgumentError: ``fmt`` is not a string, or does not match the values.

    Inside ``td.vmap`` the message is printed once for each example. Inside ``td.grad`` the primal values are printed,
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
    printing.print_later(fmt, args, kwargs)


def callback(fn: Callable[..., object], *args: object, ordered: bool = False, **kwargs: object) -> None:
    """Call a Python function for its side effects each time that the program runs, also from jitted functions.

    Args:
        fn: the function. It receives a new ndarray for each tensor; its result is ignored.
        args, kwargs: the arguments: tensors, numbers, pytrees of them, or any other objects.
        ordered: accepted for compatibility with JAX; calls are always in program order.

    Inside ``td.vmap`` the function is called once for each example. No gradient flows through it.

    >>> import tandem as td
    >>> seen = []
    >>> f = td.jit(lambda x: (td.debug.callback(seen.append, x), x + 1)[1])
    >>> _ = f(td.asarray(1.0)), f(td.asarray(2.0))
    >>> [float(x) for x in seen]
    [1.0, 2.0]
    """
    callbacks.call_for_effect(fn, args, kwargs)


def strict_names(dtypes: bool = False) -> AbstractContextManager[None]:
    """A context in which calls raise if their meaning differs between NumPy, PyTorch and JAX.

    Args:
        dtypes: whether to raise for calls without ``dtype`` too, where NumPy's default dtype is another one.

    The context is the whole process's. It checks functions of ``td`` and methods of tensors that are looked up by their
    names while it lasts, in eager code and while a jitted function is traced; not the functions of ``td.numpy``,
    ``td.torch`` and ``td.jax``, which have one meaning. docs/other_libraries.md lists the calls.

    Raises:
        AmbiguousNameError: at such a call, with calls that mean one thing only.

    >>> import tandem as td
    >>> with td.debug.strict_names():
    ...     td.asarray([1.0, 3.0]).std(correction=1).item()
    1.4142135381698608
    >>> with td.debug.strict_names():
    ...     td.asarray([1.0, 3.0]).std()
    Traceback (most recent call last):
    tandem.errors.AmbiguousNameError: std: libraries differ in what such a call means. NumPy: divided by N. ...
    """
    result: AbstractContextManager[None] = name_checks.check_names(dtypes)
    return result


def pure_callback(
    fn: Callable[..., object],
    result_spec: Pytree,
    *args: object,
    vmap_method: str | None = None,
    **kwargs: object,
) -> Any:
    """Call a pure Python function of NumPy arrays, also from jitted functions.

    Args:
        fn: the function. It receives an ndarray for each tensor and returns arrays. It has no side effects: equal calls
            may be merged, and a call with an unused result may be removed.
        result_spec: the shapes and dtypes of the results: a pytree of :class:`TensorSpec`, or of any objects with
            ``shape`` and ``dtype``.
        args, kwargs: the arguments: tensors, numbers, pytrees of them, or any other objects.
        vmap_method: the behaviour inside ``td.vmap``. ``"sequential"``: one call for each example; ``"expand_dims"``:
            one call for the batch, with a leading axis of length 1 for tensors that are not batched;
            ``"broadcast_all"``: one call for the batch, with all tensors broadcast to the batch size; None: raise.

    Returns:
        Tensors, in the containers of ``result_spec``.

    Raises:
        ShapeError, DTypeError, ArgumentError: the results do not match ``result_spec`` (at run time).
        NotDifferentiableError: a gradient is requested; :func:`tandem.custom_op` supports one.
        UnsupportedError: an argument is batched by ``td.vmap`` and ``vmap_method`` is None.

    >>> import numpy as np
    >>> import tandem as td
    >>> f = td.jit(lambda x: td.pure_callback(np.sin, x, x) + 1)
    >>> f(td.zeros(2)).tolist()
    [1.0, 1.0]
    """
    return callbacks.call_for_result("pure_callback", fn, result_spec, args, kwargs, vmap_method)


def io_callback(
    fn: Callable[..., object], result_spec: Pytree, *args: object, ordered: bool = False, **kwargs: object
) -> Any:
    """Call a Python function with side effects, exactly once for each call in the program and in program order.

    Args:
        fn: the function. It receives an ndarray for each tensor and returns arrays.
        result_spec: the shapes and dtypes of the results, as for :func:`pure_callback`; None for no result.
        args, kwargs: the arguments: tensors, numbers, pytrees of them, or any other objects.
        ordered: accepted for compatibility with JAX; calls are always in program order. Inside ``td.vmap`` the function
            is called for one example after the other.

    Returns:
        Tensors, in the containers of ``result_spec``.

    Raises:
        ShapeError, DTypeError, ArgumentError: the results do not match ``result_spec`` (at run time).
        NotDifferentiableError: a gradient is requested.

    >>> import itertools
    >>> import tandem as td
    >>> count = itertools.count()
    >>> f = td.jit(lambda x: x + td.io_callback(lambda: next(count), td.TensorSpec((), td.int32)))
    >>> [f(td.asarray(10)).item() for _ in range(3)]
    [10, 11, 12]
    """
    return callbacks.call_for_result("io_callback", fn, result_spec, args, kwargs, "sequential")


def nans(inf: bool = False) -> AbstractContextManager[object]:
    """Context manager that raises an error at the first operator that returns a NaN.

    The error names the operator, the source line and the inputs. All operators are checked, including those of backward
    passes; jitted functions run operator by operator. ``TANDEM_DEBUG_NANS=1`` enables the check for the thread that
    imports tandem.

    Args:
        inf: whether to check for infinities too.

    Returns:
        A context manager.

    Raises:
        NanError: an operator in the block returns a NaN.

    >>> import tandem as td
    >>> with td.debug.nans():
    ...     td.log(td.asarray([1.0, -1.0]))
    Traceback (most recent call last):
    ...
    tandem.errors.NanError: td::log gave a NaN at ...
    """
    mode: AbstractContextManager[object] = nan_mode.NanMode(inf)
    return mode


def check(condition: TensorLike, message: str, *args: object, **kwargs: object) -> None:
    """Check a condition: record a failure in the :class:`Error` inside :func:`checkify`, raise it elsewhere.

    Args:
        condition: a boolean scalar.
        message: the error message, a format string of ``str.format``.
        args, kwargs: the values to format: tensors and numbers.

    Raises:
        CheckError: the condition is false and ``checkify`` is not active (for a jitted function, at run time).
        ArgumentError: the condition is not a boolean scalar, or the message does not match the values.

    >>> import tandem as td
    >>> def f(x):
    ...     td.check(x > 0, "x must be positive, not {x}", x=x)
    ...     return td.sqrt(x)
    >>> error, out = td.jit(td.checkify(f))(td.asarray(-4.0))
    >>> error.get()[:27]
    'x must be positive, not -4.'
    """
    checks.check("check", condition, message, args, kwargs)


def debug_check(condition: TensorLike, message: str, *args: object, **kwargs: object) -> None:
    """Check a condition as :func:`check` does, but only inside :func:`checkify`; elsewhere do nothing.

    Args:
        condition: a boolean scalar.
        message: the error message, a format string of ``str.format``.
        args, kwargs: the values to format: tensors and numbers.

    Raises:
        ArgumentError: the condition is not a boolean scalar, or the message does not match the values.

    Source: ``jax.experimental.checkify.debug_check``.

    >>> import tandem as td
    >>> def f(x):
    ...     td.debug_check(x > 0, "x is {}", x)
    ...     return -x
    >>> f(td.asarray(-4.0)).item(), td.checkify(f)(td.asarray(-4.0))[0].get()[:8]
    (4.0, 'x is -4.')
    """
    checks.check("debug_check", condition, message, args, kwargs)


def checkify(
    fun: Callable[P, R], errors: str | Iterable[str] = ("user", "nan", "division", "index")
) -> Callable[P, tuple[Error, R]]:
    """Transform a function to return its errors as a value, together with its result.

    The transform composes with ``jit``, ``vmap`` and ``grad`` in any order; ``vmap`` batches the :class:`Error`.

    Args:
        fun: the function.
        errors: the kinds of errors to collect: ``"user"`` (:func:`check`), ``"nan"`` (an operator returns a NaN),
            ``"division"`` (a divisor is zero), ``"index"`` (an index is out of bounds; it is clamped).

    Returns:
        A function of the same arguments that returns ``(error, result)``; the :class:`Error` is a pytree.

    Raises:
        ValueArgumentError: ``errors`` names another kind.

    >>> import tandem as td
    >>> checked = td.checkify(lambda x, i: td.log(x)[i])
    >>> error, out = checked(td.asarray([1.0, 2.0]), 0)
    >>> error.get() is None
    True
    >>> error, out = td.jit(checked)(td.asarray([1.0, 2.0]), td.asarray(5))
    >>> error.get()[:52]
    'index 5 is out of bounds for axis 0 with size 2 in t'
    """
    checked: Callable[P, tuple[Error, R]] = checks.make_checkified(fun, errors)
    return checked
