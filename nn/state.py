"""The state of a module: ``state_dict`` with PyTorch's names and layouts, devices and dtypes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from ..eager.autograd.grad_modes import no_grad
from ..eager.tensor.construct import asarray
from ..errors import ArgumentError, ShapeError
from ..named_tuple import NamedTuple
from ..registry.dtypes import DType, bfloat16, float16, float32, float64

if TYPE_CHECKING:
    from ..registry.types import DTypeLike, Tensor, TensorLike
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


def named_state(module: Module, prefix: str = "") -> dict[str, Tensor]:
    """The parameters and persistent buffers in PyTorch's order; those that are shared come several times."""
    result = {}
    for path, inner in module.named_modules(prefix=prefix, remove_duplicate=False):
        names = inner._names
        for name in (
            *names.parameters,
            *(name for name in names.buffers if name not in names.non_persistent),
        ):
            if vars(inner).get(name) is not None:
                result[f"{path}.{name}" if path else name] = vars(inner)[name]
    return result


def state_dict(self: Module, *, prefix: str = "", keep_vars: bool = False) -> OrderedDict[str, Tensor]:
    """The parameters and persistent buffers by name.

    Args:
        prefix: text before each name.
        keep_vars: whether the values are the parameters themselves, not detached tensors that share their memory.

    >>> import tandem as td
    >>> list(td.nn.Linear(2, 3).state_dict())
    ['weight', 'bias']
    """
    state = named_state(self)
    return OrderedDict(
        (prefix + name, value if keep_vars else value.detach()) for name, value in state.items()
    )


def load_state_dict(
    self: Module, state_dict: Mapping[str, TensorLike], strict: bool = True
) -> IncompatibleKeys:
    """Copy values into the parameters and buffers.

    Args:
        state_dict: tensors or arrays by name, such as a PyTorch ``state_dict`` whose values are NumPy arrays.
        strict: whether the names must be those of this module.

    Returns:
        The names in which they differ.

    Raises:
        ArgumentError: with ``strict``, the names differ.
        ShapeError: a value has another shape than the parameter; nothing is copied then.
    """
    own = named_state(self)
    difference = IncompatibleKeys(
        [name for name in own if name not in state_dict], [name for name in state_dict if name not in own]
    )
    if strict and any(difference):
        parts = [f"has no value for {', '.join(difference.missing_keys)}"] if difference.missing_keys else []
        if difference.unexpected_keys:
            parts.append(f"has unknown names {', '.join(difference.unexpected_keys)}")
        raise ArgumentError(f"load_state_dict: the state of a {type(self).__name__} {' and '.join(parts)}")
    values = {name: asarray(state_dict[name]) for name in own if name in state_dict}
    for name, value in values.items():
        if value.shape != own[name].shape:
            raise ShapeError(f"load_state_dict: {name} has shape {own[name].shape}, the value {value.shape}")
    with no_grad():
        for name, value in values.items():
            own[name][...] = value.to(own[name].device, own[name].dtype)
    return difference


# -- devices and dtypes ------------------------------------------------------------------------------------------------
def to(self: M, *target: DTypeLike, dtype: DTypeLike | None = None, device: str | None = None) -> M:
    """Move the parameters and buffers to another device, or cast those that are floating-point to another dtype.

    Those that change are new tensors: make the optimizer afterwards.

    Args:
        target: a device, a dtype, or both.
        dtype: the floating dtype, by keyword.
        device: the device, by keyword.

    Returns:
        This module.
    """

    def convert(tensor: Tensor) -> Tensor:
        result: Tensor = tensor.to(*target, dtype=dtype, device=device)
        if not tensor.dtype.is_floating and result.dtype is not tensor.dtype:
            return tensor.to(result.device)
        return result

    return _convert(self, convert)


def _convert(module: M, convert: Callable[[Tensor], Tensor]) -> M:
    """Replace the tensors of a module by what a function makes of them; shared ones stay shared."""
    results: dict[int, Tensor] = {}
    for inner in module.modules():
        names = inner._names
        for name in (*names.parameters, *names.buffers):
            tensor = vars(inner).get(name)
            if tensor is not None:
                if id(tensor) not in results:
                    results[id(tensor)] = _convert_tensor(tensor, convert)
                vars(inner)[name] = results[id(tensor)]
    return module


def _convert_tensor(tensor: Tensor, convert: Callable[[Tensor], Tensor]) -> Tensor:
    with no_grad():
        result = convert(tensor)
    if result is tensor:
        return tensor
    result = result.detach().requires_grad_(tensor.requires_grad)
    if tensor.grad is not None:
        result.grad = convert(tensor.grad)
    return result


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
