"""Normalization layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..eager.autograd.grad_modes import no_grad
from ..errors import ShapeError
from ..operators.creation.full import ones, zeros
from ..registry.dtypes import int64
from . import functional as F
from .module import Module
from .parameter import Parameter

if TYPE_CHECKING:
    from ..registry.types import DTypeLike, Tensor


class _Affine(Module):
    """The base class of layers with a weight of ones and a bias of zeros."""

    weight: Tensor | None
    bias: Tensor | None

    def _make_parameters(
        self,
        shape: tuple[int, ...],
        has_weight: bool,
        has_bias: bool,
        device: str | None,
        dtype: DTypeLike | None,
    ) -> None:
        weight = Parameter(ones(shape, dtype=dtype, device=device)) if has_weight else None
        bias = Parameter(zeros(shape, dtype=dtype, device=device)) if has_bias else None
        self.register_parameter("weight", weight)
        self.register_parameter("bias", bias)

    def reset_parameters(self) -> None:
        """Set the weight to ones and the bias to zeros."""
        with no_grad():
            if self.weight is not None:
                self.weight.fill_(1)
            if self.bias is not None:
                self.bias.fill_(0)

    def _describe_parameters(self, name: str) -> str:
        return f"{name}={getattr(self, name)}, bias={self.bias is not None}"


def _to_shape(value: int | Sequence[int]) -> tuple[int, ...]:
    return (int(value),) if isinstance(value, (int, np.integer)) else tuple(value)


class LayerNorm(_Affine):
    """Shift and scale each example to mean 0 and variance 1 over its last axes.

    Args:
        normalized_shape: the sizes of these axes, or the size of one.
        eps: a number added to the variance.
        elementwise_affine: whether to multiply by a weight.
        bias: whether to add a bias, with ``elementwise_affine``.
        device, dtype: of the parameters.
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: str | None = None,
        dtype: DTypeLike | None = None,
    ):
        super().__init__()
        self.normalized_shape, self.eps = _to_shape(normalized_shape), eps
        self.elementwise_affine = elementwise_affine
        self._make_parameters(
            self.normalized_shape, elementwise_affine, elementwise_affine and bias, device, dtype
        )

    def forward(self, input: Tensor) -> Tensor:
        """The normalized input."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.normalized_shape}, eps={self.eps}, {self._describe_parameters('elementwise_affine')}"


class RMSNorm(_Affine):
    """Divide each example by the root of its mean square over the last axes.

    Args:
        normalized_shape: the sizes of these axes, or the size of one.
        eps: a number added to the mean square; None: the machine epsilon.
        elementwise_affine: whether to multiply by a weight.
        device, dtype: of the weight.
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: str | None = None,
        dtype: DTypeLike | None = None,
    ):
        super().__init__()
        self.normalized_shape, self.eps = _to_shape(normalized_shape), eps
        self.elementwise_affine = elementwise_affine
        self._make_parameters(self.normalized_shape, elementwise_affine, False, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """The normalized input."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(_Affine):
    """Shift and scale each group of channels of each example to mean 0 and variance 1.

    Args:
        num_groups, num_channels: the numbers of groups and of channels.
        eps: a number added to the variance.
        affine: whether to multiply by a weight and, with ``bias``, add a bias.
        device, dtype: of the parameters.
        bias: whether there is a bias, with ``affine``.
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: str | None = None,
        dtype: DTypeLike | None = None,
        *,
        bias: bool = True,
    ):
        super().__init__()
        if num_channels % num_groups:
            raise ShapeError(f"GroupNorm: {num_channels} channels are not a multiple of {num_groups} groups")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self._make_parameters((num_channels,), affine, affine and bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """The normalized input."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The numbers of groups and of channels."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, {self._describe_parameters('affine')}"
        )


class _ChannelNorm(_Affine):
    """The base class of layers that normalize each channel, with running statistics.

    Args:
        num_features: the number of channels.
        eps: a number added to the variance.
        momentum: the share of the batch in the running statistics.
        affine: whether to multiply by a weight and, with ``bias``, add a bias.
        track_running_stats: whether there are running statistics.
        device, dtype: of the parameters and buffers.
        bias: whether there is a bias, with ``affine``.
    """

    ranks: tuple[int, ...] = ()

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: str | None = None,
        dtype: DTypeLike | None = None,
        *,
        bias: bool = True,
    ):
        super().__init__()
        self.num_features, self.eps, self.momentum, self.affine = num_features, eps, momentum, affine
        self.track_running_stats = track_running_stats
        self._make_parameters((num_features,), affine, affine and bias, device, dtype)
        tracked = track_running_stats
        shape = (num_features,)
        self.register_buffer("running_mean", zeros(shape, dtype=dtype, device=device) if tracked else None)
        self.register_buffer("running_var", ones(shape, dtype=dtype, device=device) if tracked else None)
        self.register_buffer(
            "num_batches_tracked", zeros((), dtype=int64, device=device) if tracked else None
        )

    def reset_running_stats(self) -> None:
        """Set the running means to zeros, the variances to ones, and the number of batches to zero."""
        if self.track_running_stats:
            with no_grad():
                self.running_mean.fill_(0)
                self.running_var.fill_(1)
                self.num_batches_tracked.fill_(0)

    def reset_parameters(self) -> None:
        """Set the weight to ones, the bias to zeros, and the running statistics as at first."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input(self, input: Tensor, axis: int = 1) -> None:
        if input.ndim not in self.ranks or input.shape[axis] != self.num_features:
            raise ShapeError(
                f"{type(self).__name__}: takes an input of {' or '.join(map(str, self.ranks))} axes, axis {axis} of "
                f"size {self.num_features}, not one of shape {input.shape}"
            )

    def extra_repr(self) -> str:
        """The number of channels."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, {self._describe_parameters('affine')}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm(_ChannelNorm):
    """Shift and scale each channel, axis 1, by its statistics; the base class of the layers of one rank.

    In training mode they are those of the batch, and the running statistics are updated in place; in a jitted function
    the module must be an argument then, since a jitted function writes into its arguments only.

    Args:
        num_features: the number of channels.
        eps: a number added to the variance.
        momentum: the share of the batch in the running statistics; None: their mean over all batches.
        affine: whether to multiply by a weight and, with ``bias``, add a bias.
        track_running_stats: whether there are running statistics.
        device, dtype: of the parameters and buffers.
        bias: whether there is a bias, with ``affine``.
    """

    def forward(self, input: Tensor) -> Tensor:
        """The normalized input."""
        self._check_input(input)
        momentum: float | Tensor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats:
            with no_grad():
                self.num_batches_tracked[...] = self.num_batches_tracked + 1
            if self.momentum is None:
                momentum = 1.0 / self.num_batches_tracked.to(input.dtype)
        is_batch = self.training or not self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            is_batch,
            momentum,
            self.eps,
        )


class BatchNorm1d(BatchNorm):
    """:class:`BatchNorm` of ``(N, C)`` or ``(N, C, L)``."""

    ranks = (2, 3)


class BatchNorm2d(BatchNorm):
    """:class:`BatchNorm` of ``(N, C, H, W)``."""

    ranks = (4,)


class BatchNorm3d(BatchNorm):
    """:class:`BatchNorm` of ``(N, C, D, H, W)``."""

    ranks = (5,)


class InstanceNorm(_ChannelNorm):
    """Shift and scale each channel of each example to mean 0 and variance 1; the base class of the layers of one rank.

    Args:
        num_features: the number of channels.
        eps: a number added to the variance.
        momentum: the share of the input in the running statistics.
        affine: whether to multiply by a weight and, with ``bias``, add a bias.
        track_running_stats: whether running statistics are kept, and used in evaluation mode.
        device, dtype: of the parameters and buffers.
        bias: whether there is a bias, with ``affine``.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: str | None = None,
        dtype: DTypeLike | None = None,
        *,
        bias: bool = True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        """The normalized input, ``(N, C, ...)`` or ``(C, ...)``."""
        is_single = input.ndim == min(self.ranks)
        self._check_input(input, 0 if is_single else 1)
        result = F.instance_norm(
            input.unsqueeze(0) if is_single else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum or 0.0,
            self.eps,
        )
        return result[0] if is_single else result


class InstanceNorm1d(InstanceNorm):
    """:class:`InstanceNorm` of ``(N, C, L)`` or ``(C, L)``."""

    ranks = (2, 3)


class InstanceNorm2d(InstanceNorm):
    """:class:`InstanceNorm` of ``(N, C, H, W)`` or ``(C, H, W)``."""

    ranks = (3, 4)


class InstanceNorm3d(InstanceNorm):
    """:class:`InstanceNorm` of ``(N, C, D, H, W)`` or ``(C, D, H, W)``."""

    ranks = (4, 5)
