"""The public ``jit``: trace a function once for each kind of arguments, then run compiled code.

The machinery (tracer, lowering, emitter) is loaded with the first jitted function, not with the package.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, overload

from .. import lazy
from ..errors import ArgumentError

if TYPE_CHECKING:
    from typing import Generic, ParamSpec, TypeVar

    from ..registry.types import Function
    from .function import JitFunction

    P = ParamSpec("P")
    R = TypeVar("R")

    class Jitted(JitFunction, Generic[P, R]):
        """For type checkers: a JitFunction with the parameters and the result of its function."""

        def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:  # type: ignore[override]
            """Call the compiled function."""
            ...

        @overload
        def __get__(self, instance: None, owner: type | None = None) -> Jitted[P, R]: ...
        @overload
        def __get__(self, instance: object, owner: type | None = None) -> Callable[..., R]: ...
        def __get__(self, instance: object, owner: type | None = None) -> object: ...


function = lazy.Module(".jit.function")


@overload
def jit(
    fn: Callable[P, R],
    *,
    static_argnames: str | Iterable[str] = (),
    static_argnums: int | Iterable[int] = (),
    donate_argnames: str | Iterable[str] = (),
    donate_argnums: int | Iterable[int] = (),
) -> Jitted[P, R]: ...
@overload
def jit(
    fn: None = None,
    *,
    static_argnames: str | Iterable[str] = (),
    static_argnums: int | Iterable[int] = (),
    donate_argnames: str | Iterable[str] = (),
    donate_argnums: int | Iterable[int] = (),
) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...
def jit(
    fn: Function | None = None,
    *,
    static_argnames: str | Iterable[str] = (),
    static_argnums: int | Iterable[int] = (),
    donate_argnames: str | Iterable[str] = (),
    donate_argnums: int | Iterable[int] = (),
) -> object:
    """Compile a function: it is traced once for each kind of arguments, and runs as compiled code after that.

    Arguments and results may be tensors, NumPy arrays, Python numbers, strings, functions, and containers of them
    (dict, list, tuple, namedtuple, dataclass, None). A new shape, dtype, layout or structure is a new
    specialization. The values of Python numbers are passed at run time; those of static arguments are fixed for each
    specialization.
    Tensors that the function reaches by closures, globals or attributes are read at each call. Where a tensor requires
    gradients the call is recorded, and forward and backward pass are both compiled.

    Args:
        fn: the function; None to use ``jit`` with options as a decorator.
        static_argnames: names of the parameters whose values are fixed; they must be hashable.
        static_argnums: the same by position.
        donate_argnames, donate_argnums: parameters whose tensors the caller needs no more. Results on the CPU are
            stored in their memory where shape and dtype allow it, and these tensors are then deleted: their use raises
            :class:`tandem.errors.DeletedTensorError`. Tensors of less than 64 KiB are copied, which is cheaper, and
            stay what they were; so do those of recorded and transformed calls.

    Returns:
        A :class:`JitFunction`, which is called like ``fn`` and has ``cache_info()``, ``explain()``, ``trace()`` and
        ``lower()``. In a class body it binds as a function does, and takes an instance of any class: see
        ``docs/jit.md``. Of a ``staticmethod`` or ``classmethod`` the function inside is compiled.

    Raises:
        ArgumentError: ``fn`` is not callable, or a static or donated argument is no parameter of it, or is both.

    >>> import tandem as td
    >>> @td.jit
    ... def scale(x, factor):
    ...     return {"scaled": x * factor}
    >>> scale(td.asarray([1.0, 2.0]), 3)["scaled"].tolist()
    [3.0, 6.0]
    """
    if fn is None:
        return functools.partial(
            jit,
            static_argnames=static_argnames,
            static_argnums=static_argnums,
            donate_argnames=donate_argnames,
            donate_argnums=donate_argnums,
        )
    if isinstance(fn, staticmethod | classmethod):
        inner = jit(
            fn.__func__,
            static_argnames=static_argnames,
            static_argnums=static_argnums,
            donate_argnames=donate_argnames,
            donate_argnums=donate_argnums,
        )
        return type(fn)(inner)
    if not callable(fn):
        raise ArgumentError(f"jit takes a function, not {fn!r}")
    made = function.JitFunction(fn, static_argnames, static_argnums)
    made.set_donated(donate_argnames, donate_argnums)
    return made
