"""The state of a module: ``state_dict`` with PyTorch's names and layouts, devices and dtypes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ..eager.autograd.grad_modes import no_grad
from ..eager.tensor.construct import asarray
from ..eager.tensor.copies import set_gradient
from ..errors import StateError
from ..named_tuple import NamedTuple
from ..operators.creation.full import empty_like
from ..registry.dtypes import DType, as_dtype, bfloat16, float16, float32, float64
from . import hooks
from .parameter import Parameter

if TYPE_CHECKING:
    from ..registry.types import DTypeLike, Tensor
    from .module import Module

    M = TypeVar("M", bound=Module)


class IncompatibleKeys(NamedTuple):
    """The names in which a ``state_dict`` and a module differ.

    Attributes:
        missing_keys: names of the module only.
        unexpected_keys: names of the ``state_dict`` only.
    """

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


EXTRA_STATE = "_extra_state"  # the name of what ``get_extra_state`` returns


def named_modules(module: Module, prefix: str = "") -> list[tuple[str, Module]]:
    """The module and its descendants with the prefix of the names of their tensors; shared ones come several times."""
    named = module.named_modules(remove_duplicate=False)
    return [(f"{prefix}{path}." if path else prefix, inner) for path, inner in named]


def _own_state(module: Module) -> dict[str, Tensor]:
    """The module's own parameters and persistent buffers."""
    names = module._names
    kept = (*names.parameters, *(name for name in names.buffers if name not in names.non_persistent))
    return {name: vars(module)[name] for name in kept if vars(module).get(name) is not None}


def named_state(module: Module) -> dict[str, Tensor]:
    """The parameters and persistent buffers in PyTorch's order; those that are shared come several times."""
    return {
        prefix + name: value
        for prefix, inner in named_modules(module)
        for name, value in _own_state(inner).items()
    }


def has_extra_state(module: Module) -> bool:
    """Whether the class of a module defines ``get_extra_state``."""
    return hasattr(type(module), "get_extra_state")


def state_dict(
    self: Module,
    *,
    destination: dict[str, Any] | None = None,
    prefix: str = "",
    keep_vars: bool = False,
) -> OrderedDict[str, Any]:
    """The parameters and persistent buffers by name, and what ``get_extra_state`` of modules returns.

    Args:
        destination: a dict to add them to.
        prefix: text before each name.
        keep_vars: whether the values are the parameters themselves, not detached tensors that share their memory.

    >>> import tandem as td
    >>> list(td.nn.Linear(2, 3).state_dict())
    ['weight', 'bias']
    """
    result: Any = OrderedDict() if destination is None else destination
    named = named_modules(self, prefix)
    for path, inner in named:
        for hook in hooks.select(inner, hooks.BEFORE_SAVING):
            hook.fn(inner, path, keep_vars)
        for name, value in _own_state(inner).items():
            result[path + name] = value if keep_vars else value.detach()
        if has_extra_state(inner):
            result[path + EXTRA_STATE] = inner.get_extra_state()
    for path, inner in reversed(named):
        for hook in hooks.select(inner, hooks.AFTER_SAVING):
            hook.fn(inner, result, path, {})
    return result  # type: ignore[no-any-return]


def load_state_dict(
    self: Module, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
) -> IncompatibleKeys:
    """Copy values into the parameters and buffers.

    Args:
        state_dict: tensors or arrays by name, such as a PyTorch ``state_dict`` whose values are NumPy arrays.
        strict: whether the names must be those of this module.
        assign: whether the values become the parameters and buffers, with their dtype and device, in place of being
            copied into them: make the optimizer afterwards.

    Returns:
        The names in which they differ.

    Raises:
        StateError: with ``strict``, the names differ; or a value has another shape than the parameter. Nothing is
            copied then.
    """
    given: dict[str, Any] = dict(state_dict)
    named = named_modules(self)
    difference = IncompatibleKeys([], [])
    messages: list[str] = []
    for path, inner in named:
        for hook in hooks.select(inner, hooks.BEFORE_LOADING):
            hook.fn(inner, given, path, {}, strict, *difference, messages)
    extra = {path + EXTRA_STATE: inner for path, inner in named if has_extra_state(inner)}
    own = named_state(self)
    difference.missing_keys.extend(name for name in (*own, *extra) if name not in given)
    difference.unexpected_keys.extend(name for name in given if name not in own and name not in extra)
    values = {name: asarray(given[name]) for name in own if name in given}
    for name, value in values.items():
        if value.shape != own[name].shape:
            raise StateError(f"load_state_dict: {name} has shape {own[name].shape}, the value {value.shape}")
    for _, inner in reversed(named):
        for hook in hooks.select(inner, hooks.AFTER_LOADING):
            hook.fn(inner, difference)
    _check_names(self, difference, strict, messages)
    if assign:
        _assign(named, values)
    else:
        with no_grad():
            for name, value in values.items():
                own[name][...] = value.to(own[name].device, own[name].dtype)
    for name, inner in extra.items():
        if name in given:
            inner.set_extra_state(given[name])
    return difference


def _check_names(module: Module, difference: IncompatibleKeys, strict: bool, messages: list[str]) -> None:
    parts = list(messages)
    if strict and difference.missing_keys:
        parts.append(f"has no value for {', '.join(difference.missing_keys)}")
    if strict and difference.unexpected_keys:
        parts.append(f"has unknown names {', '.join(difference.unexpected_keys)}")
    if parts:
        raise StateError(f"load_state_dict: the state of a {type(module).__name__} {' and '.join(parts)}")


def _assign(named: list[tuple[str, Module]], values: Mapping[str, Tensor]) -> None:
    """Replace parameters and buffers by tensors, which require gradients as those before."""
    for path, inner in named:
        for name, old in _own_state(inner).items():
            value = values.get(path + name)
            if value is not None:
                is_parameter = name in inner._names.parameters
                vars(inner)[name] = Parameter(value, old.requires_grad) if is_parameter else value.detach()


# -- devices and dtypes ------------------------------------------------------------------------------------------------
def to(
    self: M,
    *target: DTypeLike | Tensor,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    non_blocking: bool = False,
    memory_format: object = None,
) -> M:
    """Move the parameters and buffers to another device, or cast those that are floating-point to another dtype.

    Those that change are new tensors: make the optimizer afterwards.

    Args:
        target: a device, a dtype, or both; or a tensor that has both.
        dtype: the floating dtype, by keyword.
        device: the device, by keyword.
        non_blocking: return before copies between the host and a CUDA device are done.
        memory_format: accepted; the elements of all tensors are in row-major order.

    Returns:
        This module.
    """

    def convert(tensor: Tensor) -> Tensor:
        result: Tensor = tensor.to(*target, dtype=dtype, device=device, non_blocking=non_blocking)
        if not tensor.dtype.is_floating and result.dtype is not tensor.dtype:
            return tensor.to(result.device)
        return result

    return _convert(self, convert)


def _convert(module: M, convert: Callable[[Tensor], Tensor], recurse: bool = True) -> M:
    """Replace the tensors of a module by what a function makes of them; shared ones stay shared."""
    results: dict[int, Tensor] = {}
    for inner in module.modules() if recurse else [module]:
        names = inner._names
        for name in (*names.parameters, *names.buffers):
            tensor = vars(inner).get(name)
            if tensor is not None:
                if id(tensor) not in results:
                    results[id(tensor)] = _convert_tensor(tensor, convert, name in names.parameters)
                vars(inner)[name] = results[id(tensor)]
    return module


def _convert_tensor(tensor: Tensor, convert: Callable[[Tensor], Tensor], is_parameter: bool) -> Tensor:
    with no_grad():
        result = convert(tensor)
    if result is tensor:
        return tensor
    result = Parameter(result, tensor.requires_grad) if is_parameter else result.detach()
    if tensor.grad is not None:
        set_gradient(result, convert(tensor.grad))
    return result


def to_dtype(self: M, dst_type: DTypeLike) -> M:
    """Cast all parameters and buffers to a dtype."""
    return _convert(self, lambda tensor: tensor.to(as_dtype(dst_type)))


def to_empty(self: M, *, device: str | None, recurse: bool = True) -> M:
    """Replace the parameters and buffers by tensors on a device whose elements are not set.

    Args:
        device: the device; None: that of each tensor.
        recurse: whether those of descendants too.
    """
    return _convert(self, lambda tensor: empty_like(tensor, device=device or tensor.device), recurse)


def cpu(self: M) -> M:
    """Move the module to the CPU."""
    return to(self, device="cpu")


def cuda(self: M, device: int | str | None = None) -> M:
    """Move the module to a GPU."""
    name = "cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device
    return to(self, device=name)


def _make_cast(dtype: DType) -> Callable[[M], M]:
    def cast(self: M) -> M:
        return to(self, dtype=dtype)

    cast.__doc__ = f"Cast the floating-point parameters and buffers to {dtype}."
    return cast


to_float16, to_bfloat16, to_float32, to_float64 = (
    _make_cast(dtype) for dtype in (float16, bfloat16, float32, float64)
)
