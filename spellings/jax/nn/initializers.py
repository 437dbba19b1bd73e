"""``tandem.jax.nn.initializers``: functions that draw the parameters of layers.

An initializer is called with a key, a shape and, if it is not the default, a dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ... import lazy
from ...errors import ShapeError, ValueArgumentError
from ...operators.creation import creation
from ...operators.creation import full as fills
from ...operators.declare.shape_rules import normalize_axis
from ...operators.elementwise.arithmetic import sign
from ...operators.elementwise.casting import astype
from ...operators.elementwise.selection import where
from ...operators.shape.rearrange import matrix_transpose, moveaxis
from ...operators.shape.views import reshape
from ...registry.dtypes import default_float
from ...spellings.forwarding import refuse_unknown

if TYPE_CHECKING:
    from ...operators.random.typed_keys import Key
    from ...registry.types import DTypeLike, Tensor

    Axes = int | Sequence[int]
    Initializer = Callable[..., Tensor]

_linalg: Any = lazy.Module(".linalg")
_random: Any = lazy.Module(".operators.random.namespace")
TRUNCATED_DEVIATION = 0.87962566103423978
"""The standard deviation of a standard normal distribution that is cut at -2 and 2."""


def zeros(key: Key, shape: Sequence[int], dtype: DTypeLike | None = None) -> Tensor:
    """Zeros; the key is not used.

    >>> import tandem.jax as jax
    >>> jax.nn.initializers.zeros(jax.random.key(0), (2,)).tolist()
    [0.0, 0.0]
    """
    return fills.zeros(tuple(shape), dtype=dtype)


def ones(key: Key, shape: Sequence[int], dtype: DTypeLike | None = None) -> Tensor:
    """Ones; the key is not used."""
    return fills.ones(tuple(shape), dtype=dtype)


def constant(value: float, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer: tensors of one value.

    Args:
        value: a number.
        dtype: the dtype of the tensors unless a call gives one; None: the default float.
    """

    def init(key: Key, shape: Sequence[int], dtype: DTypeLike | None = dtype) -> Tensor:
        return creation.full(tuple(shape), value, dtype=dtype or default_float())

    return init


def normal(stddev: float = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer: normal numbers of a standard deviation."""

    def init(key: Key, shape: Sequence[int], dtype: DTypeLike | None = dtype) -> Tensor:
        result: Tensor = _random.normal(key, tuple(shape), dtype) * stddev
        return result

    return init


def uniform(scale: float = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer: uniform numbers from 0 to ``scale``."""

    def init(key: Key, shape: Sequence[int], dtype: DTypeLike | None = dtype) -> Tensor:
        result: Tensor = _random.uniform(key, tuple(shape), dtype) * scale
        return result

    return init


def truncated_normal(
    stddev: float = 1e-2, dtype: DTypeLike | None = None, lower: float = -2.0, upper: float = 2.0
) -> Initializer:
    """An initializer: normal numbers within two bounds, times ``stddev``."""

    def init(key: Key, shape: Sequence[int], dtype: DTypeLike | None = dtype) -> Tensor:
        result: Tensor = _random.truncated_normal(key, lower, upper, tuple(shape), dtype) * stddev
        return result

    return init


# -- fans --------------------------------------------------------------------------------------------------------------
def _length(shape: Sequence[int], axes: Axes) -> int:
    return math.prod(shape[axis] for axis in ((axes,) if isinstance(axes, int) else axes))


def _compute_fans(
    shape: Sequence[int], in_axis: Axes, out_axis: Axes, batch_axis: Axes
) -> tuple[float, float]:
    """The numbers of inputs of each output, and of outputs of each input.

    Raises:
        ShapeError: there are fewer than two axes.
    """
    if len(shape) < 2:
        raise ShapeError(f"variance_scaling: a shape has two axes or more, not {tuple(shape)}")
    inputs, outputs, batch = (_length(shape, axes) for axes in (in_axis, out_axis, batch_axis))
    window = math.prod(shape) / max(inputs * outputs * batch, 1)
    return inputs * window, outputs * window


_FANS: dict[str, Callable[[float, float], float]] = {
    "fan_in": lambda inputs, outputs: inputs,
    "fan_out": lambda inputs, outputs: outputs,
    "fan_avg": lambda inputs, outputs: (inputs + outputs) / 2,
    "fan_geo_avg": lambda inputs, outputs: math.sqrt(inputs * outputs),
}


def _draw(
    distribution: str, key: Key, shape: tuple[int, ...], dtype: DTypeLike | None, variance: float
) -> Tensor:
    """Numbers of a distribution around 0 with a variance."""
    deviation = math.sqrt(variance)
    result: Tensor
    if distribution == "normal":
        result = _random.normal(key, shape, dtype) * deviation
    elif distribution == "uniform":
        bound = math.sqrt(3.0) * deviation
        result = _random.uniform(key, shape, dtype, minval=-bound, maxval=bound)
    else:
        result = _random.truncated_normal(key, -2.0, 2.0, shape, dtype) * (deviation / TRUNCATED_DEVIATION)
    return result


def variance_scaling(
    scale: float,
    mode: str,
    distribution: str,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """An initializer: random numbers of the variance ``scale / fan``.

    Args:
        scale: the factor of the variance.
        mode: the fan: ``"fan_in"``, ``"fan_out"``, or their mean ``"fan_avg"`` or ``"fan_geo_avg"``.
        distribution: ``"normal"``, ``"uniform"`` or ``"truncated_normal"``.
        in_axis, out_axis: the axis, or several, of inputs and outputs; others are those of windows.
        batch_axis: axes of tensors that are drawn independently.
        dtype: the dtype of the tensors unless a call gives one; None: the default float.

    Raises:
        ValueArgumentError: another mode or distribution.
        ShapeError: the shape has fewer than two axes.

    Source: ``jax.nn.initializers.variance_scaling``.

    >>> import tandem.jax as jax
    >>> init = jax.nn.initializers.variance_scaling(2.0, "fan_in", "uniform")
    >>> bool(abs(init(jax.random.key(0), (6, 4))).max() <= 1.0)
    True
    """
    if mode not in _FANS:
        raise ValueArgumentError(f"variance_scaling: mode is one of {[*_FANS]}, not {mode!r}")
    if distribution not in ("normal", "uniform", "truncated_normal"):
        raise ValueArgumentError(
            f"variance_scaling: distribution is 'normal', 'uniform' or 'truncated_normal', not {distribution!r}"
        )

    def init(key: Key, shape: Sequence[int], dtype: DTypeLike | None = dtype) -> Tensor:
        fan = _FANS[mode](*_compute_fans(shape, in_axis, out_axis, batch_axis))
        return _draw(distribution, key, tuple(shape), dtype, scale / max(fan, 1.0))

    return init


_normal, _uniform = "truncated_normal", "uniform"
glorot_normal = xavier_normal = partial(variance_scaling, 1.0, "fan_avg", _normal)
glorot_uniform = xavier_uniform = partial(variance_scaling, 1.0, "fan_avg", _uniform)
lecun_normal = partial(variance_scaling, 1.0, "fan_in", _normal)
lecun_uniform = partial(variance_scaling, 1.0, "fan_in", _uniform)
he_normal = kaiming_normal = partial(variance_scaling, 2.0, "fan_in", _normal)
he_uniform = kaiming_uniform = partial(variance_scaling, 2.0, "fan_in", _uniform)


# -- orthogonal matrices -----------------------------------------------------------------------------------------------
def orthogonal(scale: float = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer: matrices with orthonormal rows or columns, whichever are fewer, times ``scale``.

    Args:
        scale: a factor.
        column_axis: the axis of the columns; the others are flattened to that of the rows.
        dtype: the dtype of the tensors unless a call gives one; None: the default float.

    Raises:
        ShapeError: the shape has fewer than two axes.

    Source: ``jax.nn.initializers.orthogonal``.
    """

    def init(key: Key, shape: Sequence[int], dtype: DTypeLike | None = dtype) -> Tensor:
        if len(shape) < 2:
            raise ShapeError(f"orthogonal: a shape has two axes or more, not {tuple(shape)}")
        axis = normalize_axis("orthogonal", column_axis, len(shape))
        rows = shape[axis]
        columns = math.prod(shape) // max(rows, 1)
        matrix, upper = _linalg.qr(_random.normal(key, (max(rows, columns), min(rows, columns)), dtype))
        matrix = matrix * sign(upper.diagonal())
        others = [size for at, size in enumerate(shape) if at != axis]
        result = reshape(matrix_transpose(matrix) if rows < columns else matrix, (rows, *others))
        return moveaxis(result, 0, axis) * scale

    return init


def delta_orthogonal(
    scale: float = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """An initializer of kernels: an orthogonal matrix in the middle of the window, else zeros.

    Args:
        scale: a factor.
        column_axis: the axis of the matrix's columns.
        dtype: the dtype of the tensors unless a call gives one; None: the default float.

    Raises:
        ShapeError: the shape is not one to three axes of a window, inputs, and at least as many outputs.

    Source: ``jax.nn.initializers.delta_orthogonal``.
    """

    def init(key: Key, shape: Sequence[int], dtype: DTypeLike | None = dtype) -> Tensor:
        if len(shape) not in (3, 4, 5) or shape[-1] < shape[-2]:
            raise ShapeError(
                f"delta_orthogonal: a shape has one to three axes of a window, inputs, and at least as many outputs, "
                f"not {tuple(shape)}"
            )
        matrix = orthogonal(scale, column_axis, dtype)(key, shape[-2:])
        is_middle = fills.zeros(tuple(shape[:-2]), dtype=bool)
        is_middle = is_middle.at[tuple((size - 1) // 2 for size in shape[:-2])].set(True)
        result = where(reshape(is_middle, (*shape[:-2], 1, 1)), matrix, 0.0)
        return astype(result, matrix.dtype)

    return init


__getattr__ = refuse_unknown(__name__)
