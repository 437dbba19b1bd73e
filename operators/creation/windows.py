"""Window functions: hanning, hamming, bartlett, blackman and kaiser."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...registry.dtypes import FLOATS, DType, default_float, float64
from ..declare.batching import get_operator
from ..declare.declaration import SampleInput
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..elementwise.arithmetic import abs
from ..elementwise.casting import cast
from ..elementwise.exponential import sqrt
from ..elementwise.trigonometry import cos
from .creation import arange, full

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...registry.function import OperatorFunction
    from ...registry.types import Tensor

_ARGS = """Args:
    n: the number of values.{more}
    dtype: a real floating dtype; None: float32.
    device: its device; None: the CPU.

Returns:
    A 1-d tensor, computed in float64 and rounded once."""


def _window(
    name: str, summary: str, example: str
) -> Callable[[Callable[..., Tensor]], OperatorFunction[Tensor]]:
    return composite(
        f"{name}(int n, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
        doc=make_docstring(summary, _ARGS.format(more=""), example),
        reference=f"references.numpy_functions.{name}",
        samples=lambda dtype: [SampleInput((n,), {"dtype": dtype}) for n in (0, 1, 2, 5, 12)],
        dtypes=FLOATS,
        method=False,
        spellings={"M": "n"},
    )


def _angles(n: int, device: str | None) -> Tensor:
    """n angles from 0 to a full turn; 0 for one value."""
    return arange(n, dtype=float64, device=device) * (2 * math.pi / max(n - 1, 1))


def _finish(values: Tensor, n: int, dtype: DType | None, device: str | None) -> Tensor:
    """The values in the dtype asked for; 1 for a window of one value."""
    if n == 1:
        return full((1,), 1, dtype=dtype or default_float(), device=device)
    return cast(values, dtype or default_float())


@_window("hanning", "The Hann window: a raised cosine.", "td.hanning(3) -> [0.0, 1.0, 0.0]")
def hanning(n: int, *, dtype: DType | None, device: str | None) -> Tensor:
    return _finish(0.5 - 0.5 * cos(_angles(n, device)), n, dtype, device)


@_window("hamming", "The Hamming window: a cosine raised by 0.54.", "td.hamming(1) -> [1.0]")
def hamming(n: int, *, dtype: DType | None, device: str | None) -> Tensor:
    return _finish(0.54 - 0.46 * cos(_angles(n, device)), n, dtype, device)


@_window("blackman", "The Blackman window: a sum of two cosines.", "td.blackman(1) -> [1.0]")
def blackman(n: int, *, dtype: DType | None, device: str | None) -> Tensor:
    angles = _angles(n, device)
    return _finish(0.42 - 0.5 * cos(angles) + 0.08 * cos(2 * angles), n, dtype, device)


@_window(
    "bartlett", "The Bartlett window: a triangle that is 0 at the ends.", "td.bartlett(3) -> [0.0, 1.0, 0.0]"
)
def bartlett(n: int, *, dtype: DType | None, device: str | None) -> Tensor:
    position = arange(n, dtype=float64, device=device) * (2 / max(n - 1, 1))
    return _finish(1 - abs(position - 1), n, dtype, device)


@composite(
    "kaiser(int n, float beta, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
    doc=make_docstring(
        "The Kaiser window, by the Bessel function of order 0.",
        _ARGS.format(more="\n    beta: the shape: 0 is a rectangle, larger values are narrower."),
        "td.kaiser(3, 0.0) -> [1.0, 1.0, 1.0]",
    ),
    reference="references.numpy_functions.kaiser",
    samples=lambda dtype: [
        SampleInput((n, beta), {"dtype": dtype})
        for n, beta in ((0, 1.0), (1, 5.0), (2, 5.0), (7, 14.0), (12, 0.0))
    ],
    dtypes=FLOATS,
    tolerance={"float64": 1e-13},
    method=False,
    spellings={"M": "n"},
)
def kaiser(n: int, beta: float, *, dtype: DType | None, device: str | None) -> Tensor:
    position = arange(n, dtype=float64, device=device) * (2 / max(n - 1, 1)) - 1
    i0 = get_operator("special_i0")
    inside = sqrt(abs(1 - position * position))
    return _finish(i0(beta * inside) / i0(full((), beta, dtype=float64, device=device)), n, dtype, device)
