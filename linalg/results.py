"""The functions of linalg with several results, which return named tuples as the Array API standard names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..named_tuple import NamedTuple
from ..operators.declare.named_results import NamedResults
from . import eigen, factorizations, solving, tensors

if TYPE_CHECKING:
    from ..registry.types import Tensor


class EigResult(NamedTuple):
    """The result of :func:`eig`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EighResult(NamedTuple):
    """The result of :func:`eigh`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class LstsqResult(NamedTuple):
    """The result of :func:`lstsq`."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


class QRResult(NamedTuple):
    """The result of :func:`qr`."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """The result of :func:`slogdet`."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """The result of :func:`svd`."""

    U: Tensor
    S: Tensor
    Vh: Tensor


eig = NamedResults(eigen.eig, EigResult)
eigh = NamedResults(factorizations.eigh, EighResult)
lstsq = NamedResults(tensors.lstsq, LstsqResult)
qr = NamedResults(factorizations.qr, QRResult)
slogdet = NamedResults(solving.slogdet, SlogdetResult)
svd = NamedResults(factorizations.svd, SVDResult)
