"""Functions of JAX about traces: jit, make_jaxpr, named_scope."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from ..errors import UnsupportedError
from ..jit.api import jit as compile_function

if TYPE_CHECKING:
    from ..registry.types import Args, Function, Kwargs



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
