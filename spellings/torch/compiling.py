"""``torch.compile``: ``td.jit`` with PyTorch's arguments, and modules that run compiled."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError
from ..jit.api import jit
from ..nn.module import Module

if TYPE_CHECKING:
    from ..registry.types import Function

_BACKENDS = ("inductor", "eager")
_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


class CompiledModule(Module):
    """A module whose calls run compiled; its parameters are those of the module that it was made from.

    Args:
        module: the module, which is the child ``_orig_mod``.

    Other attributes are those of the module.
    """

    _orig_mod: Module

    def __init__(self, module: Module):
        super().__init__()
        self._orig_mod = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Call the module in compiled code."""
        return _call_module(self._orig_mod, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._orig_mod, name)


@jit
def _call_module(module: Module, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
    return module(*args, **kwargs)


def compile(
    model: Function | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | None = "inductor",
    mode: str | None = None,
    options: Mapping[str, object] | None = None,
    disable: bool = False,
) -> Callable[..., Any]:
    """Compile a function or a module: :func:`tandem.jit` with PyTorch's arguments.

    The whole function is always compiled: where its Python code needs the value of a tensor, the call raises an error,
    as with ``fullgraph=True``.

    Args:
        model: the function or module; None to use ``compile`` with options as a decorator.
        fullgraph, dynamic: accepted for compatibility with PyTorch.
        backend: ``"inductor"``: tandem's compiler; ``"eager"``: the function is not compiled.
        mode: ``"default"``, ``"reduce-overhead"``, ``"max-autotune"`` or ``"max-autotune-no-cudagraphs"``: all are the
            same.
        options: None, since tandem has no options of PyTorch's compiler.
        disable: whether to return the function as it is.

    Returns:
        A jitted function, or a module with the parameters of the module.

    Raises:
        ArgumentError: another backend or mode, or there are options.

    >>> import tandem.torch as torch
    >>> @torch.compile(mode="max-autotune")
    ... def scale(x):
    ...     return 2 * x
    >>> scale(torch.ones(2)).tolist()
    [2.0, 2.0]

    Source: ``torch.compile``.
    """
    if backend not in (None, *_BACKENDS):
        raise ArgumentError(f"compile: backend is one of {', '.join(_BACKENDS)}, not {backend!r}")
    if mode not in (None, *_MODES):
        raise ArgumentError(f"compile: mode is one of {', '.join(_MODES)}, not {mode!r}")
    if options:
        raise ArgumentError("compile: options are those of PyTorch's compiler; leave them out")
    if model is None:
        return functools.partial(compile, backend=backend, disable=disable)
    if disable or backend == "eager":
        return model
    return CompiledModule(model) if isinstance(model, Module) else jit(model)
