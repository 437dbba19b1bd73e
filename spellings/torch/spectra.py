"""Short-time Fourier transforms, and window functions of signal processing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import fft
from ..errors import ArgumentError, ShapeError, ValueArgumentError
from ..nn.functions.padding import pad_last_axes
from ..operators.creation import windows as _windows
from ..operators.creation.creation import arange, full
from ..operators.creation.full import ones
from ..operators.declare.shape_rules import spec_of
from ..operators.elementwise.trigonometry import cos
from ..operators.indexing.along_axis import index_add
from ..operators.reductions.folds import any
from ..operators.shape.padding import pad
from ..operators.shape.parts import unfold
from ..operators.shape.rearrange import matrix_transpose
from ..operators.shape.views import reshape
from ..registry.dtypes import as_dtype, default_float, float64
from .complex_views import view_as_real
from .creation import finish

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..registry.types import DTypeLike, Tensor


# -- windows -----------------------------------------------------------------------------------------------------------
def _window(
    make: Callable[[int], Tensor],
    length: int,
    periodic: bool,
    dtype: DTypeLike | None,
    device: str | None,
    requires_grad: bool,
) -> Tensor:
    """A window that is symmetric, or whose next value would be the first one."""
    if length < 0:
        raise ValueArgumentError(f"a window has a non-negative length, not {length}")
    wanted = as_dtype(dtype or default_float())
    values = ones((length,), dtype=wanted) if length < 2 else make(length + periodic)[:length].astype(wanted)
    return finish(values.to(device) if device else values, requires_grad)


def hann_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """The Hann window; periodic, for spectra, or symmetric.

    >>> import tandem.torch as torch
    >>> torch.hann_window(2).tolist()
    [0.0, 1.0]
    """
    return _window(_in_float64(_windows.hanning), window_length, periodic, dtype, device, requires_grad)


def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """The Hamming window ``alpha - beta * cos``; periodic, for spectra, or symmetric."""

    def make(count: int) -> Tensor:
        return alpha - beta * cos(arange(count, dtype=float64) * (2 * 3.141592653589793 / (count - 1)))

    return _window(make, window_length, periodic, dtype, device, requires_grad)


def blackman_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """The Blackman window; periodic, for spectra, or symmetric."""
    return _window(_in_float64(_windows.blackman), window_length, periodic, dtype, device, requires_grad)


def bartlett_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """The Bartlett window, a triangle; periodic, for spectra, or symmetric."""
    return _window(_in_float64(_windows.bartlett), window_length, periodic, dtype, device, requires_grad)


def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """The Kaiser window of a shape ``beta``; periodic, for spectra, or symmetric."""

    def make(count: int) -> Tensor:
        return _windows.kaiser(count, beta, dtype=float64)

    return _window(make, window_length, periodic, dtype, device, requires_grad)


def _in_float64(window: Callable[..., Tensor]) -> Callable[[int], Tensor]:
    return lambda count: window(count, dtype=float64)


# -- transforms --------------------------------------------------------------------------------------------------------
def _full_window(name: str, window: Tensor | None, length: int, count: int, like: Tensor) -> Tensor:
    """The window of ``count`` values: the given one, or ones, in the middle of zeros."""
    spec = spec_of(like)
    dtype = {"complex64": "float32", "complex128": "float64"}.get(spec.dtype.name, spec.dtype.name)
    values = full((length,), 1, dtype=dtype, device=spec.device) if window is None else window
    if not 0 < length <= count or spec_of(values).shape != (length,):
        raise ShapeError(
            f"{name}: the window has shape {spec_of(values).shape}; win_length={length} must be its length, and at "
            f"most n_fft={count}"
        )
    before = (count - length) // 2
    return pad(values, ((before, count - length - before),))


def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
) -> Tensor:
    """The spectra of overlapping parts of a signal.

    Args:
        input: a vector, or a matrix with a signal in each row.
        n_fft: the length of a part.
        hop_length: the distance of parts; None: a quarter of ``n_fft``.
        win_length: the length of the window; None: ``n_fft``.
        window: factors of the elements of a part; None: ones.
        center: whether parts are around their positions, so that the signal is padded.
        pad_mode: ``"reflect"``, ``"constant"``, ``"replicate"`` or ``"circular"``.
        normalized: whether to divide by the square root of ``n_fft``.
        onesided: whether only half of a spectrum is returned; None: for real signals.
        return_complex: whether the result is complex; False: real and imaginary parts along a last axis.

    Returns:
        A complex tensor of shape ``(..., frequencies, parts)``.

    Raises:
        ArgumentError: ``return_complex`` is None for a real signal.
        ShapeError: the signal or the window has another shape.

    >>> import tandem.torch as torch
    >>> torch.stft(torch.ones(8), 4, return_complex=True).shape
    (3, 9)
    """
    spec = spec_of(input)
    is_complex = spec.dtype.kind == "c" or (window is not None and spec_of(window).dtype.kind == "c")
    if return_complex is None and not is_complex:
        raise ArgumentError("stft: pass return_complex=True (or False for pairs of real numbers)")
    if len(spec.shape) not in (1, 2):
        raise ShapeError(f"stft: signals are a vector or a matrix, not of shape {spec.shape}")
    signals = reshape(input, (-1, spec.shape[-1]))
    if center:
        signals = pad_last_axes("stft", signals, [(n_fft // 2, n_fft // 2)], pad_mode)
    if spec_of(signals).shape[-1] < n_fft:
        raise ShapeError(
            f"stft: a signal of {spec_of(signals).shape[-1]} values has no part of length {n_fft}"
        )
    factors = _full_window("stft", window, n_fft if win_length is None else win_length, n_fft, signals)
    parts = unfold(signals, -1, n_fft, n_fft // 4 if hop_length is None else hop_length) * factors
    transform = fft.rfft if not is_complex and onesided is not False else fft.fft
    spectra = matrix_transpose(transform(parts, norm="ortho" if normalized else "backward"))
    result = reshape(spectra, (*spec.shape[:-1], *spec_of(spectra).shape[-2:]))
    return view_as_real(result) if return_complex is False else result


def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal with given spectra of its parts: the inverse of :func:`stft`.

    Args:
        input: a complex tensor of shape ``(..., frequencies, parts)``.
        n_fft, hop_length, win_length, window, center, normalized, onesided: those of :func:`stft`.
        length: the length of the signal; None: what the parts cover.
        return_complex: whether the signal is complex.

    Raises:
        ValueArgumentError: the windows leave gaps, where their sum of squares is 0.
        ShapeError: the input or the window has another shape.

    >>> import tandem.torch as torch
    >>> window = torch.hann_window(4)
    >>> spectra = torch.stft(torch.ones(8), 4, window=window, return_complex=True)
    >>> torch.istft(spectra, 4, window=window).round(decimals=3).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    spec = spec_of(input)
    if spec.dtype.kind != "c" or len(spec.shape) not in (2, 3):
        raise ShapeError(f"istft: takes a complex tensor of two or three axes, not {spec}")
    hop = n_fft // 4 if hop_length is None else hop_length
    factors = _full_window("istft", window, n_fft if win_length is None else win_length, n_fft, input)
    spectra = matrix_transpose(reshape(input, (-1, *spec.shape[-2:])))
    norm = "ortho" if normalized else "backward"
    is_half = not return_complex if onesided is None else onesided
    parts = (fft.irfft if is_half else fft.ifft)(spectra, n_fft, norm=norm)
    if not is_half and not return_complex:
        parts = parts.real
    count = spec.shape[-1]
    squares = (factors * factors).expand(1, count, n_fft)
    signals, weights = (_overlap(x, hop) for x in (parts * factors, squares))
    start = n_fft // 2 if center else 0
    whole = spec_of(signals).shape[-1]
    end = start + length if length is not None else whole - start
    signals, weights = signals[:, start:end], weights[:, start:end]
    if bool(any(weights < 1e-11)):
        raise ValueArgumentError(
            "istft: the squares of the windows add up to 0 somewhere; the parts leave gaps"
        )
    result = signals / weights
    if length is not None and end > whole:
        result = pad(result, ((0, 0), (0, end - whole)))
    return reshape(result, (*spec.shape[:-2], spec_of(result).shape[-1]))


def _overlap(parts: Tensor, hop: int) -> Tensor:
    """The sums of parts that are ``hop`` apart; of shape (signals, parts, n)."""
    signals, count, size = spec_of(parts).shape
    indices = reshape(arange(count, device=parts.device), (-1, 1)) * hop + arange(size, device=parts.device)
    empty = parts.new_zeros((signals, (count - 1) * hop + size))
    return index_add(empty, 1, reshape(indices, (-1,)), reshape(parts, (signals, -1)))
