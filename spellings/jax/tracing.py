"""Functions of JAX about traces and devices: make_jaxpr, named_scope, devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..jit.api import jit

if TYPE_CHECKING:
    from ..registry.types import Args, Function, Kwargs


def make_jaxpr(fun: Function, static_argnums: int | tuple[int, ...] = ()) -> Callable[..., Any]:
    """A function that traces ``fun`` and returns the graph, which prints as text.

    >>> import tandem.jax as jax
    >>> "sin" in str(jax.make_jaxpr(jax.numpy.sin)(jax.numpy.ones(2)))
    True
    """
    traced = jit(fun, static_argnums=static_argnums)

    def trace(*args: Args, **kwargs: Kwargs) -> Any:  # noqa: ANN401
        return traced.trace(*args, **kwargs)

    return trace


@contextmanager
def named_scope(name: str) -> Iterator[None]:
    """A context that names operations in JAX; it changes nothing here."""
    yield
