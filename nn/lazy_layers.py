"""Layers that learn the number of features or channels of their input from the first call."""

from __future__ import annotations

from typing import Any, TypeAlias

from ..eager.layers.level_stack import stack
from ..eager.tensor.tensor import Tensor
from ..errors import UnsupportedError
from . import convolution, layers, normalization
from .module import Module

Layer: TypeAlias = Any  # a class that is made at run time
_KEPT = ("training", "_hooks")


class Lazy(Module):
    """The base class of layers that become layers of another class when they are called first.

    Until then they have no parameters: make the optimizer after a first call.

    Args:
        args, kwargs: the arguments of that class without the first one.
    """

    base: Layer = Module
    axis: int = 1

    def __init__(self, *args: object, **kwargs: object):
        super().__init__()
        self.arguments, self.options = args, tuple(kwargs.items())

    def forward(self, *input: Tensor, **kwargs: object) -> Tensor:
        """Become a layer for the input, and compute its result.

        Raises:
            UnsupportedError: the call is traced or transformed; a call outside creates the parameters.
        """
        if type(input[0]) is not Tensor or stack.levels or stack.recording:
            raise UnsupportedError(
                f"{type(self).__name__}: call the module once outside of jit, grad and vmap, to create its parameters"
            )
        layer = self.base(input[0].shape[self.axis], *self.arguments, **dict(self.options))
        self._become(layer)
        result: Tensor = self.forward(*input, **kwargs)
        return result

    def _become(self, layer: Module) -> None:
        variables = vars(self)
        kept = {name: variables[name] for name in _KEPT}
        variables.clear()
        variables.update(vars(layer))
        variables.update(kept)
        object.__setattr__(self, "__class__", type(layer))

    def extra_repr(self) -> str:
        """The arguments."""
        return ", ".join([*map(repr, self.arguments), *(f"{name}={value!r}" for name, value in self.options)])


def _make_lazy(base: type[Module], axis: int) -> Layer:
    namespace = {
        "__doc__": f"A :class:`{base.__name__}` without the first argument, which the first input tells.",
        "__module__": __name__,
        "base": base,
        "axis": axis,
    }
    return type(f"Lazy{base.__name__}", (Lazy,), namespace)


LazyLinear = _make_lazy(layers.Linear, -1)
LazyConv1d, LazyConv2d, LazyConv3d = (
    _make_lazy(getattr(convolution, f"Conv{rank}d"), -1 - rank) for rank in (1, 2, 3)
)
LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d = (
    _make_lazy(getattr(convolution, f"ConvTranspose{rank}d"), -1 - rank) for rank in (1, 2, 3)
)
LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d = (
    _make_lazy(getattr(normalization, f"BatchNorm{rank}d"), 1) for rank in (1, 2, 3)
)
LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d = (
    _make_lazy(getattr(normalization, f"InstanceNorm{rank}d"), 1) for rank in (1, 2, 3)
)
