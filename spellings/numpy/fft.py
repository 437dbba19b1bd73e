"""``tandem.numpy.fft``: the functions of ``td.fft``, which also take lists, and integers as float64."""

from .. import lazy as _lazy
from ..registry.dtypes import float64 as _float64
from ..registry.types import Tensor as _Tensor
from ..spellings.forwarding import forward_to as _forward_to
from .linalg import adapt as _adapt

_fft = _lazy.Module(".fft")


def fftfreq(n: int, d: float = 1.0, device: str = "cpu") -> _Tensor:
    """The frequencies of a Fourier transform, in float64; see ``td.fft.fftfreq``."""
    result: _Tensor = _fft.fftfreq(n, d=d, dtype=_float64, device=device)
    return result


def rfftfreq(n: int, d: float = 1.0, device: str = "cpu") -> _Tensor:
    """The frequencies of a Fourier transform of real numbers, in float64; see ``td.fft.rfftfreq``."""
    result: _Tensor = _fft.rfftfreq(n, d=d, dtype=_float64, device=device)
    return result


__getattr__, __dir__ = _forward_to(__name__, "fft", adapt=_adapt)
