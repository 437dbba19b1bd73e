"""``td.nn.utils.parametrize``: parameters that modules compute from others at each access.

Source: ``torch.nn.utils.parametrize``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ...eager.tensor.tensor import Tensor
from ...errors import ArgumentError, ShapeError
from ...named_tuple import NamedTuple
from ..computed import compute_attribute, get_computed, store_attribute
from ..containers import ModuleDict, ModuleList
from ..parameter import Parameter

if TYPE_CHECKING:
    from ..module import Module

M = TypeVar("M", bound="Module")


class ParametrizationList(ModuleList):
    """The modules that compute a tensor, each from the result of the one before, and what the first starts from.

    Attributes:
        original: the tensor that the first module takes; ``original0``, ``original1``, ... if it takes several.
    """

    def __init__(self, modules: list[Module], original: Tensor):
        super().__init__(modules)
        value: Any = original
        for module in reversed(modules):
            if hasattr(module, "right_inverse"):
                value = module.right_inverse(value)
        self.is_tensor = isinstance(value, Tensor)
        for name, tensor in self._name_originals(value).items():
            if isinstance(original, Parameter):
                setattr(self, name, Parameter(tensor, original.requires_grad))
            else:
                self.register_buffer(name, tensor.detach())
        self.original_names = tuple(self._name_originals(value))

    def _name_originals(self, value: Tensor | Sequence[Tensor]) -> dict[str, Tensor]:
        if isinstance(value, Tensor):
            return {"original": value}
        return {f"original{at}": tensor for at, tensor in enumerate(value)}

    def right_inverse(self, value: Tensor) -> None:
        """Set the original tensors so that :meth:`forward` returns a value."""
        result: Any = value
        for module in reversed(list(self)):
            if not hasattr(module, "right_inverse"):
                raise ArgumentError(f"cannot assign: {type(module).__name__} has no method right_inverse")
            result = module.right_inverse(result)
        for name, tensor in self._name_originals(result).items():
            getattr(self, name).detach()[...] = tensor.detach()

    def forward(self) -> Tensor:
        """The computed tensor."""
        result: Tensor
        first, *others = list(self)
        result = first(*(getattr(self, name) for name in self.original_names))
        for module in others:
            result = module(result)
        return result


class _Parametrized(NamedTuple):
    name: str

    def compute(self, module: Module) -> Tensor:
        return module.parametrizations[self.name]()  # type: ignore[no-any-return]

    def invert(self, module: Module, value: Tensor) -> None:
        """Set the tensors that the attribute is computed from."""
        module.parametrizations[self.name].right_inverse(value)


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module computes an attribute by parametrizations; without a name, any attribute."""
    parametrized = getattr(module, "parametrizations", None)
    if not isinstance(parametrized, ModuleDict):
        return False
    return len(parametrized) > 0 if tensor_name is None else tensor_name in parametrized


def register_parametrization(
    module: M, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> M:
    """Let a module compute a parameter or a buffer from the one that it has now.

    Args:
        module: the module; it has an attribute ``parametrizations`` then.
        tensor_name: the parameter or buffer. If it is computed already, the parametrization follows the others.
        parametrization: a module from a tensor to a tensor of the same shape and dtype. A method ``right_inverse``
            computes its input, a tensor or a tuple of several, from an output.
        unsafe: whether shape and dtype may change.

    Returns:
        The module.

    Raises:
        ArgumentError: the module has no such parameter or buffer.
        ShapeError: the parametrization changes the shape or the dtype.

    >>> import tandem as td
    >>> class Symmetric(td.nn.Module):
    ...     def forward(self, x):
    ...         return td.triu(x) + td.triu(x, 1).mT
    >>> layer = td.nn.Linear(3, 3)
    >>> layer = td.nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.mT).all()), [name for name, _ in layer.named_parameters()]
    (True, ['bias', 'parametrizations.weight.original'])
    """
    if is_parametrized(module, tensor_name):
        _check_result(
            tensor_name, parametrization(getattr(module, tensor_name)), getattr(module, tensor_name), unsafe
        )
        module.parametrizations[tensor_name].append(parametrization)
        return module
    names = (*module._names.parameters, *module._names.buffers)
    original = vars(module).get(tensor_name) if tensor_name in names else None
    if original is None:
        raise ArgumentError(f"the module {type(module).__name__} has no parameter or buffer {tensor_name!r}")
    parametrizations = ParametrizationList([parametrization], original)
    _check_result(tensor_name, parametrizations(), original, unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        module.parametrizations = ModuleDict()
    module.parametrizations[tensor_name] = parametrizations
    compute_attribute(module, tensor_name, _Parametrized(tensor_name), "Parametrized")
    return module


def _check_result(name: str, result: Tensor, original: Tensor, unsafe: bool) -> None:
    if not unsafe and (result.shape != original.shape or result.dtype is not original.dtype):
        raise ShapeError(
            f"register_parametrization: the parametrization changes {name!r} from {original.dtype}{original.shape} to "
            f"{result.dtype}{result.shape}; pass unsafe=True to allow it"
        )


def remove_parametrizations(module: M, tensor_name: str, leave_parametrized: bool = True) -> M:
    """Undo :func:`register_parametrization`.

    Args:
        module: the module.
        tensor_name: the parameter or buffer.
        leave_parametrized: whether it keeps its computed value, not the original one.

    Returns:
        The module.

    Raises:
        ArgumentError: it is not computed, or the original one is several tensors and would be kept.
    """
    if not is_parametrized(module, tensor_name) or tensor_name not in get_computed(module):
        raise ArgumentError(
            f"the attribute {tensor_name!r} of {type(module).__name__} has no parametrization"
        )
    parametrizations = module.parametrizations[tensor_name]
    if not leave_parametrized and not parametrizations.is_tensor:
        raise ArgumentError(f"{tensor_name!r} is computed from several tensors; leave its computed value")
    original: Tensor = getattr(parametrizations, parametrizations.original_names[0])
    is_parameter, needs_gradient = isinstance(original, Parameter), original.requires_grad
    value = getattr(module, tensor_name) if leave_parametrized else original
    store_attribute(module, tensor_name)
    del module.parametrizations[tensor_name]
    if not is_parametrized(module):
        del module.parametrizations
    if is_parameter:
        setattr(module, tensor_name, Parameter(value.detach(), needs_gradient))
    else:
        module.register_buffer(tensor_name, value.detach())
    return module
