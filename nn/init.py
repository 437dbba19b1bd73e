"""``td.nn.init``: initializers, which write into a tensor and return it, with PyTorch's names and arguments.

They draw from the generator of :func:`tandem.nn.manual_seed`, or from the one that is passed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .. import lazy as _lazy
from ..eager.autograd.grad_modes import no_grad
from ..eager.tensor.generator import default_generator
from ..errors import ShapeError, ValueArgumentError
from ..operators.creation.creation import eye
from ..operators.elementwise.selection import where
from ..operators.reductions.sorting import argsort

if TYPE_CHECKING:
    from ..eager.tensor.generator import Generator
    from ..registry.types import Tensor, TensorLike


def _write(tensor: Tensor, value: TensorLike) -> Tensor:
    with no_grad():
        tensor[...] = value
    return tensor


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with a number."""
    return _write(tensor, val)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return _write(tensor, 0)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return _write(tensor, 1)


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity."""
    return _write(tensor, eye(*tensor.shape, dtype=tensor.dtype))


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with numbers from the uniform distribution on the interval from ``a`` to ``b``.

    >>> import tandem as td
    >>> w = td.nn.init.uniform_(td.empty((2, 3)), 1.0, 2.0)
    >>> bool(((w >= 1) & (w < 2)).all())
    True
    """
    draw = (generator or default_generator).uniform(tensor.shape, tensor.dtype)
    return _write(tensor, draw * (b - a) + a)


def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill with numbers from a normal distribution."""
    draw = (generator or default_generator).normal(tensor.shape, tensor.dtype)
    return _write(tensor, draw * std + mean)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with numbers from a normal distribution, drawn again outside of the interval from ``a`` to ``b``."""
    source = generator or default_generator
    low, high = (a - mean) / std, (b - mean) / std
    return _write(tensor, source.truncated_normal(low, high, tensor.shape, tensor.dtype) * std + mean)


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which an activation function scales down the standard deviation.

    Args:
        nonlinearity: ``"linear"``, ``"conv1d"`` and the like, ``"sigmoid"``, ``"tanh"``, ``"relu"``, ``"selu"`` or
            ``"leaky_relu"``.
        param: the slope of ``leaky_relu`` below 0; None: 0.01.

    >>> import tandem as td
    >>> td.nn.init.calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity in ("linear", "sigmoid") or nonlinearity.startswith("conv"):
        return 1.0
    gains = {
        "tanh": 5.0 / 3,
        "relu": math.sqrt(2.0),
        "selu": 3.0 / 4,
        "leaky_relu": math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2)),
    }
    if nonlinearity not in gains:
        raise ValueArgumentError(f"calculate_gain: unknown nonlinearity {nonlinearity!r}")
    return gains[nonlinearity]


def count_fans(tensor: Tensor) -> tuple[int, int]:
    """The inputs of each output of a weight ``(out, in, *window)``, and the outputs of each input."""
    if tensor.ndim < 2:
        raise ShapeError(f"an initializer that scales by the fan needs at least two axes, not {tensor.shape}")
    window = math.prod(tensor.shape[2:])
    return tensor.shape[1] * window, tensor.shape[0] * window


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with uniform numbers of variance ``2 * gain**2 / (fan_in + fan_out)``."""
    bound = gain * math.sqrt(6.0 / sum(count_fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers of variance ``2 * gain**2 / (fan_in + fan_out)``."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(count_fans(tensor))), generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ValueArgumentError(f"kaiming: mode must be 'fan_in' or 'fan_out', not {mode!r}")
    fan = count_fans(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill with uniform numbers of variance ``gain**2 / fan``; ``a`` is the slope of ``leaky_relu``."""
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill with normal numbers of variance ``gain**2 / fan``; ``a`` is the slope of ``leaky_relu``."""
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with a matrix ``(shape[0], -1)`` whose rows, or columns if there are more rows, are orthonormal."""
    if tensor.ndim < 2:
        raise ShapeError(f"orthogonal_: needs at least two axes, not {tensor.shape}")
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    source = generator or default_generator
    matrix = source.orthogonal(max(rows, columns), dtype=tensor.dtype)[:rows, :columns]
    return _write(tensor, matrix.reshape(tensor.shape) * gain)


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Write the weight of a convolution that keeps its input channels, as far as there are output channels.

    Args:
        tensor: the weight, of 3 to 5 axes.
        groups: the number of groups of channels.

    Raises:
        ShapeError: the tensor has other axes, or the output channels are not a multiple of the groups.

    >>> import tandem as td
    >>> td.nn.init.dirac_(td.empty((2, 2, 3))).tolist()
    [[[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]
    """
    if not 3 <= tensor.ndim <= 5 or tensor.shape[0] % groups:
        raise ShapeError(
            f"dirac_: needs a weight of 3 to 5 axes for {groups} groups, not shape {tensor.shape}"
        )
    out_channels = tensor.shape[0] // groups
    value = np.zeros(tensor.shape, tensor.dtype.np)
    center = tuple(size // 2 for size in tensor.shape[2:])
    for group in range(groups):
        for channel in range(min(out_channels, tensor.shape[1])):
            value[(group * out_channels + channel, channel, *center)] = 1
    return _write(tensor, value)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Draw normally distributed elements, and set a share of those of each column to zero.

    Args:
        tensor: a matrix.
        sparsity: the share of zeros.
        std: the standard deviation of the others.
        generator: the generator to draw from; None: that of :func:`tandem.nn.manual_seed`.

    Raises:
        ShapeError: the tensor is not a matrix.
    """
    if tensor.ndim != 2:
        raise ShapeError(f"sparse_: needs a matrix, not shape {tensor.shape}")
    rows, columns = tensor.shape
    normal_(tensor, 0.0, std, generator)
    order = argsort((generator or default_generator).uniform((rows, columns)), axis=0)
    return _write(tensor, where(order < math.ceil(sparsity * rows), 0.0, tensor.detach()))


_lazy.refuse_unknown(__name__, "td.nn.init.")
