"""Functions of JAX about traces: jit, disable_jit, clear_caches, make_jaxpr, typeof, named_scope."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import lazy
from ..eager.layers.dispatch_mode import DispatchMode
from ..eager.tensor.construct import asarray
from ..errors import UnsupportedError
from ..jit.api import jit as compile_function
from ..operators.declare.shape_rules import spec_of
from ..transforms.eval_shape import ShapeDtypeStruct

if TYPE_CHECKING:
    from ..registry.types import Args, Function, Kwargs

_function: Any = lazy.Module(".jit.function")


def jit(
    fun: Function | None = None,
    /,
    *,
    static_argnums: int | Iterable[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Iterable[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    inline: bool = False,
    device: object = None,
    backend: str | None = None,
    compiler_options: object = None,
) -> Any:  # noqa: ANN401
    """Compile a function, see ``td.jit``.

    Args:
        fun: the function; None to use ``jit`` with options as a decorator.
        static_argnums, static_argnames: the parameters whose values are fixed; None: none.
        donate_argnums, donate_argnames: the parameters whose tensors the caller needs no more; None: none.
        keep_unused, inline, device, backend, compiler_options: accepted for compatibility with JAX.

    Source: ``jax.jit``.

    >>> import tandem.jax as jax
    >>> jax.jit(lambda x: x + 1, inline=True, static_argnames=None)(jax.numpy.arange(2)).tolist()
    [1, 2]
    """
    options: dict[str, Any] = {
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "donate_argnums": donate_argnums,
        "donate_argnames": donate_argnames,
    }
    given = {name: value for name, value in options.items() if value is not None}
    return partial(jit, **given) if fun is None else compile_function(fun, **given)


class _RunUncompiled(DispatchMode):
    """A mode that changes nothing; jitted functions run as Python code while a mode is active."""


def disable_jit(disable: bool = True) -> AbstractContextManager[Any]:
    """A context in which jitted functions run as Python code, operator by operator, in this thread.

    Args:
        disable: False: the context changes nothing.

    Source: ``jax.disable_jit``.

    >>> import tandem.jax as jax
    >>> double = jax.jit(lambda x: print(type(x).__name__) or x * 2)
    >>> with jax.disable_jit():
    ...     _ = double(jax.numpy.ones(2))
    Tensor
    """
    return _RunUncompiled() if disable else nullcontext()


def clear_caches() -> None:
    """Remove the specializations of all jitted functions.

    Source: ``jax.clear_caches``.
    """
    for value in gc.get_objects():
        if type(value) is _function.JitFunction:
            value.cache_clear()


def typeof(x: object) -> ShapeDtypeStruct:
    """The shape and dtype of a tensor, an array or a number.

    Source: ``jax.typeof``.

    >>> import tandem.jax as jax
    >>> jax.typeof(jax.numpy.ones(3))
    ShapeDtypeStruct(shape=(3,), dtype=float32)
    """
    spec = spec_of(asarray(x))
    return ShapeDtypeStruct(spec.shape, spec.dtype)


def make_jaxpr(
    fun: Function,
    static_argnums: int | Iterable[int] = (),
    axis_env: None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """A function that traces ``fun`` and returns the graph, which prints as text.

    Args:
        fun: a function that ``jit`` could compile.
        static_argnums: the parameters whose values are fixed.
        axis_env: None.
        return_shape: whether to return a pytree of the shapes and dtypes of the results, too.

    Raises:
        UnsupportedError: ``axis_env`` is given.

    >>> import tandem.jax as jax
    >>> "sin" in str(jax.make_jaxpr(jax.numpy.sin)(jax.numpy.ones(2)))
    True
    """
    if axis_env:
        raise UnsupportedError("make_jaxpr: axis_env is not supported; trace a function that calls vmap")
    traced = jit(fun, static_argnums=static_argnums)

    def trace(*args: Args, **kwargs: Kwargs) -> Any:  # noqa: ANN401
        graph = traced.trace(*args, **kwargs)
        return (graph, traced.eval_shape(*args, **kwargs)) if return_shape else graph

    return trace


@contextmanager
def named_scope(name: str) -> Iterator[None]:
    """A context that names operations in JAX; it changes nothing here."""
    yield
