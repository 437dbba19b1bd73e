"""Call a module with other tensors in place of its parameters and buffers; stacks of those of several modules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import pytree
from ..errors import ArgumentError
from ..operators.shape.joining import stack
from .module import Module

if TYPE_CHECKING:
    from ..registry.types import Tensor


def functional_call(
    module: Module,
    tensors: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
    args: object = (),
    kwargs: Mapping[str, object] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with some of its parameters and buffers replaced; the module itself is not changed.

    Args:
        module: the module.
        tensors: tensors by name, as in :meth:`Module.named_parameters`, or several such dicts; other tensors are the
            module's own.
        args: the arguments of the call: a tuple, or the only argument.
        kwargs: its keyword arguments.
        tie_weights: whether a tensor that has several names is replaced under all of them.
        strict: whether all tensors of the module must be replaced.

    Raises:
        ArgumentError: the module has no tensor of a name, or ``strict`` is not fulfilled.

    Source: ``torch.func.functional_call``.

    >>> import tandem as td
    >>> layer = td.nn.Linear(2, 1, bias=False)
    >>> td.nn.functional_call(layer, {"weight": td.ones((1, 2))}, td.asarray([3.0, 4.0])).tolist()
    [7.0]
    """
    given = (
        dict(tensors) if isinstance(tensors, Mapping) else {k: v for part in tensors for k, v in part.items()}
    )
    named = _name_tensors(module)
    unknown = [name for name in given if name not in named]
    if unknown:
        raise ArgumentError(
            f"functional_call: the module {type(module).__name__} has no tensor {unknown[0]!r}"
        )
    by_identity = {id(named[name]): value for name, value in given.items()}
    missing = [name for name, tensor in named.items() if id(tensor) not in by_identity]
    if strict and missing:
        raise ArgumentError(f"functional_call: strict=True needs {', '.join(missing)} too")
    if not tie_weights:
        return _call_untied(module, given, args, kwargs)
    leaves, treedef = pytree.flatten(module)
    replaced = treedef.unflatten([by_identity.get(id(leaf), leaf) for leaf in leaves])
    return replaced(*(args if isinstance(args, tuple) else (args,)), **(kwargs or {}))


def _name_tensors(module: Module) -> dict[str, Tensor]:
    named = dict(module._named_tensors("parameters", "", True, False))
    return named | dict(module._named_tensors("buffers", "", True, False))


def _call_untied(
    module: Module, given: Mapping[str, Tensor], args: object, kwargs: Mapping[str, object] | None
) -> Any:
    leaves, treedef = pytree.flatten(module)
    replaced = treedef.unflatten(leaves)
    for name, value in given.items():
        path, _, attribute = name.rpartition(".")
        vars(replaced.get_submodule(path))[attribute] = value
    return replaced(*(args if isinstance(args, tuple) else (args,)), **(kwargs or {}))


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Stack the parameters and the buffers of modules of one architecture, for ``vmap`` over :func:`functional_call`.

    Args:
        models: the modules.

    Returns:
        The parameters and the buffers by name, each with a first axis of modules; parameters are leaves that require
        gradients.

    Raises:
        ArgumentError: there are no modules, or their classes or modes differ.

    Source: ``torch.func.stack_module_state``.

    >>> import tandem as td
    >>> params, buffers = td.nn.stack_module_state([td.nn.Linear(2, 1) for _ in range(3)])
    >>> params["weight"].shape, buffers
    ((3, 1, 2), {})
    """
    if not models:
        raise ArgumentError("stack_module_state: needs at least one module")
    if len({(type(model), model.training) for model in models}) > 1:
        raise ArgumentError("stack_module_state: the modules must have one class, and one mode")

    def stack_all(kind: str) -> dict[str, Tensor]:
        states = [dict(model._named_tensors(kind, "", True)) for model in models]
        return {name: stack([state[name].detach() for state in states]) for name in states[0]}

    needed = dict(models[0].named_parameters())
    parameters = {n: x.requires_grad_(needed[n].requires_grad) for n, x in stack_all("parameters").items()}
    return parameters, stack_all("buffers")
