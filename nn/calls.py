"""Call a module with other tensors in place of its parameters and buffers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .. import pytree
from ..errors import ArgumentError
from .module import Module

if TYPE_CHECKING:
    from ..registry.types import Tensor


def functional_call(
    module: Module,
    tensors: Mapping[str, Tensor],
    args: object = (),
    kwargs: Mapping[str, object] | None = None,
) -> Any:
    """Call a module with some of its parameters and buffers replaced; the module itself is not changed.

    Args:
        module: the module.
        tensors: tensors by name, as in :meth:`Module.named_parameters`; the others are the module's own.
        args: the arguments of the call: a tuple, or the only argument.
        kwargs: its keyword arguments.

    Raises:
        ArgumentError: the module has no tensor of a name.

    Source: ``torch.func.functional_call``.

    >>> import tandem as td
    >>> layer = td.nn.Linear(2, 1, bias=False)
    >>> td.nn.functional_call(layer, {"weight": td.ones((1, 2))}, td.asarray([3.0, 4.0])).tolist()
    [7.0]
    """
    leaves, treedef = pytree.flatten(module)
    by_identity: dict[int, Tensor] = {}
    named = dict(module._named_tensors("parameters", "", True, False))
    named |= dict(module._named_tensors("buffers", "", True, False))
    for name, value in tensors.items():
        if name not in named:
            raise ArgumentError(f"functional_call: the module {type(module).__name__} has no tensor {name!r}")
        by_identity[id(named[name])] = value
    replaced = treedef.unflatten([by_identity.get(id(leaf), leaf) for leaf in leaves])
    return replaced(*(args if isinstance(args, tuple) else (args,)), **(kwargs or {}))
