"""Convolution layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..errors import ShapeError, ValueArgumentError
from ..operators.creation.full import empty
from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter

if TYPE_CHECKING:
    from ..registry.types import DTypeLike, Tensor

Sizes = int | Sequence[int]


def _expand(value: Sizes, rank: int) -> tuple[int, ...]:
    sizes = (value,) * rank if isinstance(value, int) else tuple(value)
    if len(sizes) != rank:
        raise ValueArgumentError(
            f"a convolution over {rank} axes takes an int or {rank} of them, not {value!r}"
        )
    return sizes


class _Convolution(Module):
    """The base class of convolutions.

    Attributes:
        weight: ``(out_channels, in_channels // groups, *kernel_size)``, transposed convolutions exchange the channels;
            uniform within ``1 / sqrt(fan_in)``.
        bias: ``(out_channels,)``, as the weight; or None.
    """

    rank: int
    function: Callable[..., Tensor]
    is_transposed = False
    weight: Tensor
    bias: Tensor | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        bias: bool,
        groups: int,
        device: str | None,
        dtype: DTypeLike | None,
        **options: object,
    ):
        super().__init__()
        if in_channels % groups or out_channels % groups:
            raise ShapeError(
                f"{in_channels} input and {out_channels} output channels are not multiples of {groups} groups"
            )
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = _expand(kernel_size, self.rank)
        self.options = tuple((name, _freeze(value)) for name, value in options.items())
        first, second = (in_channels, out_channels) if self.is_transposed else (out_channels, in_channels)
        shape = (first, second // groups, *self.kernel_size)
        self.weight = Parameter(empty(shape, dtype=dtype, device=device))
        self.register_parameter(
            "bias", Parameter(empty((out_channels,), dtype=dtype, device=device)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters again."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(init.count_fans(self.weight)[0])
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """The convolution of an input ``(N, C, ...)`` or ``(C, ...)``."""
        return type(self).function(input, self.weight, self.bias, groups=self.groups, **dict(self.options))

    def extra_repr(self) -> str:
        """The channels and the size of the window."""
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"]
        parts += [f"{name}={value}" for name, value in self.options]
        return ", ".join(parts)


def _freeze(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


class _Conv(_Convolution):
    """A convolution, a correlation as in other frameworks.

    Args:
        in_channels, out_channels: the numbers of channels.
        kernel_size, stride, padding, dilation: an int, or one for each axis; ``padding`` also ``"same"``, ``"valid"``.
        groups: the number of groups of channels, which are convolved separately.
        bias: whether to add a bias.
        padding_mode: ``"zeros"``.
        device, dtype: of the parameters.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: str | None = None,
        dtype: DTypeLike | None = None,
    ):
        if padding_mode != "zeros":
            raise ValueArgumentError(
                f"{type(self).__name__}: padding_mode must be 'zeros', not {padding_mode!r}"
            )
        options = {"stride": stride, "padding": padding, "dilation": dilation}
        super().__init__(in_channels, out_channels, kernel_size, bias, groups, device, dtype, **options)


class _ConvTranspose(_Convolution):
    """A transposed convolution.

    Args:
        in_channels, out_channels: the numbers of channels.
        kernel_size, stride, padding, output_padding, dilation: an int, or one for each axis.
        groups: the number of groups of channels.
        bias: whether to add a bias.
        device, dtype: of the parameters.
    """

    is_transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        device: str | None = None,
        dtype: DTypeLike | None = None,
    ):
        options = {
            "stride": stride,
            "padding": padding,
            "output_padding": output_padding,
            "dilation": dilation,
        }
        super().__init__(in_channels, out_channels, kernel_size, bias, groups, device, dtype, **options)


def _make_layer(base: type[_Convolution], name: str, rank: int, function: Callable[..., Tensor]) -> type:
    namespace = {
        "__doc__": base.__doc__,
        "__module__": __name__,
        "rank": rank,
        "function": staticmethod(function),
    }
    return type(name, (base,), namespace)


Conv1d = _make_layer(_Conv, "Conv1d", 1, F.conv1d)
Conv2d = _make_layer(_Conv, "Conv2d", 2, F.conv2d)
Conv3d = _make_layer(_Conv, "Conv3d", 3, F.conv3d)
ConvTranspose1d = _make_layer(_ConvTranspose, "ConvTranspose1d", 1, F.conv_transpose1d)
ConvTranspose2d = _make_layer(_ConvTranspose, "ConvTranspose2d", 2, F.conv_transpose2d)
ConvTranspose3d = _make_layer(_ConvTranspose, "ConvTranspose3d", 3, F.conv_transpose3d)
