"""Convolution layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

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
    stride: tuple[int, ...]
    padding: tuple[int, ...] | str
    dilation: tuple[int, ...]
    output_padding: tuple[int, ...]
    padding_mode: str

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        bias: bool,
        groups: int,
        device: str | None,
        dtype: DTypeLike | None,
        padding_mode: str,
        **windows: Sizes | str,
    ):
        super().__init__()
        if in_channels % groups or out_channels % groups:
            raise ShapeError(
                f"{in_channels} input and {out_channels} output channels are not multiples of {groups} groups"
            )
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = _expand(kernel_size, self.rank)
        for name, value in windows.items():
            setattr(self, name, value if isinstance(value, str) else _expand(value, self.rank))
        self.window_names = tuple(windows)
        self.padding_mode = padding_mode
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

    def _options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.window_names}

    def extra_repr(self) -> str:
        """The channels, the size of the window, and the options that are not the defaults."""
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"]
        for name in ("stride", "padding", "dilation", "output_padding"):
            value = getattr(self, name, None)
            default = (0 if "padding" in name else 1,) * self.rank
            if name in self.window_names and (value != default or name == "stride"):
                parts.append(f"{name}={value}")
        parts += [f"groups={self.groups}"] if self.groups != 1 else []
        parts += ["bias=False"] if self.bias is None else []
        parts += [f"padding_mode={self.padding_mode}"] if self.padding_mode != "zeros" else []
        return ", ".join(parts)


_PADDING_MODES = (
    "zeros",
    "reflect",
    "replicate",
    "circular",
)  # as nn.functional.pad names them, but for zeros


class _Conv(_Convolution):
    """A convolution, a correlation as in other frameworks.

    Args:
        in_channels, out_channels: the numbers of channels.
        kernel_size, stride, padding, dilation: an int, or one for each axis; ``padding`` also ``"same"``, ``"valid"``.
        groups: the number of groups of channels, which are convolved separately.
        bias: whether to add a bias.
        padding_mode: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.
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
        if padding_mode not in _PADDING_MODES:
            raise ValueArgumentError(
                f"{type(self).__name__}: padding_mode must be one of {', '.join(_PADDING_MODES)}, not {padding_mode!r}"
            )
        sizes: dict[str, Sizes | str] = {"stride": stride, "padding": padding, "dilation": dilation}
        super().__init__(
            in_channels, out_channels, kernel_size, bias, groups, device, dtype, padding_mode, **sizes
        )

    def forward(self, input: Tensor) -> Tensor:
        """The convolution of an input ``(N, C, ...)`` or ``(C, ...)``."""
        options = self._options()
        if self.padding_mode != "zeros":
            input = F.pad(input, self._border(), self.padding_mode)
            options["padding"] = 0
        return type(self).function(input, self.weight, self.bias, groups=self.groups, **options)

    def _border(self) -> tuple[int, ...]:
        """The numbers of elements to pad, as ``F.pad`` takes them: two for each axis, the last axis first."""
        if self.padding == "same":
            totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
            pairs = [(total // 2, total - total // 2) for total in totals]
        else:
            given = (0,) * self.rank if isinstance(self.padding, str) else self.padding
            pairs = [(size, size) for size in given]
        return tuple(size for pair in reversed(pairs) for size in pair)


class _ConvTranspose(_Convolution):
    """A transposed convolution.

    Args:
        in_channels, out_channels: the numbers of channels.
        kernel_size, stride, padding, output_padding, dilation: an int, or one for each axis.
        groups: the number of groups of channels.
        bias: whether to add a bias.
        padding_mode: ``"zeros"``.
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
        padding_mode: str = "zeros",
        device: str | None = None,
        dtype: DTypeLike | None = None,
    ):
        if padding_mode != "zeros":
            raise ValueArgumentError(
                f"{type(self).__name__}: padding_mode must be 'zeros', not {padding_mode!r}"
            )
        sizes: dict[str, Sizes | str]
        sizes = {"stride": stride, "padding": padding, "output_padding": output_padding, "dilation": dilation}
        super().__init__(
            in_channels, out_channels, kernel_size, bias, groups, device, dtype, padding_mode, **sizes
        )

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """The transposed convolution of an input ``(N, C, ...)`` or ``(C, ...)``.

        Args:
            input: the input.
            output_size: the sizes of the result's last axes, which decide ``output_padding``; None: as constructed.

        Raises:
            ShapeError: no ``output_padding`` below the stride leads to these sizes.
        """
        options = self._options()
        if output_size is not None:
            options["output_padding"] = self._fit_output(input.shape[-self.rank :], output_size)
        return type(self).function(input, self.weight, self.bias, groups=self.groups, **options)

    def _fit_output(self, sizes: Sequence[int], wanted: Sequence[int]) -> tuple[int, ...]:
        padding = () if isinstance(self.padding, str) else self.padding
        windows = zip(sizes, self.stride, padding, self.dilation, self.kernel_size)
        least = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, d, k in windows]
        extra = tuple(want - size for want, size in zip(tuple(wanted)[-self.rank :], least))
        if len(extra) != self.rank or any(not 0 <= more < s for more, s in zip(extra, self.stride)):
            raise ShapeError(
                f"{type(self).__name__}: output_size {tuple(wanted)} is not from {least} up to the stride more"
            )
        return extra


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
