"""``tandem.jax.config``: the options of JAX that have a counterpart."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from .. import lazy
from ..errors import ValueArgumentError
from ..registry.dtype_functions import get_default_dtype, set_default_dtype
from ..registry.dtypes import float32, float64
from .tracing import disable_jit

_debug = lazy.Module(".debug")
# Options that change nothing here: there is one implementation, and products of float32 are computed in float32.
_WITHOUT_EFFECT = frozenset(
    "jax_platforms jax_platform_name jax_default_matmul_precision jax_compilation_cache_dir jax_threefry_partitionable "
    "jax_numpy_dtype_promotion jax_numpy_rank_promotion jax_default_prng_impl jax_traceback_filtering "
    "jax_log_compiles".split()
)
_CONTEXTS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "jax_debug_nans": lambda: _debug.nans(),
    "jax_disable_jit": disable_jit,
}


class Config:
    """The options of JAX: ``jax_enable_x64`` is the default dtype, ``jax_debug_nans`` is ``td.debug.nans``.

    ``jax_debug_nans`` and ``jax_disable_jit`` are options of the thread that sets them.
    """

    def __init__(self) -> None:
        self._contexts: dict[str, AbstractContextManager[Any]] = {}

    @property
    def jax_enable_x64(self) -> bool:
        """Whether Python's floats make float64."""
        return get_default_dtype() is float64

    @property
    def jax_debug_nans(self) -> bool:
        """Whether a call that makes a NaN raises an error."""
        return "jax_debug_nans" in self._contexts

    @property
    def jax_disable_jit(self) -> bool:
        """Whether jitted functions run as Python code."""
        return "jax_disable_jit" in self._contexts

    def update(self, name: str, value: Any) -> None:  # noqa: ANN401
        """Set an option.

        Raises:
            ValueArgumentError: tandem has no such option.

        >>> import tandem.jax as jax
        >>> jax.config.update("jax_enable_x64", False)
        >>> jax.config.jax_enable_x64
        False
        """
        if name == "jax_enable_x64":
            set_default_dtype(float64 if value else float32)
        elif name in _CONTEXTS:
            if value and name not in self._contexts:
                self._contexts[name] = _CONTEXTS[name]()
                self._contexts[name].__enter__()
            elif not value and name in self._contexts:
                self._contexts.pop(name).__exit__(None, None, None)
        elif name not in _WITHOUT_EFFECT:
            raise ValueArgumentError(f"config.update: tandem has no option {name!r}; see td.config")


config = Config()
