"""``tandem.numpy.linalg``: the functions of ``td.linalg`` with NumPy's arguments, for lists and integers too.

Integers are computed in float64.
"""

from typing import Any as _Any

from numpy.linalg import LinAlgError as LinAlgError

from ..registry.dtypes import float64 as _float64
from ..spellings.forwarding import adapt_own as _adapt_own
from ..spellings.forwarding import forward_to as _forward_to
from ..spellings.integer_arguments import accept_integers as _accept_integers
from .array_likes import accept_lists as _accept_lists
from .decompositions import matrix_rank as matrix_rank
from .decompositions import qr as qr
from .decompositions import svd as svd


def adapt(function: _Any) -> _Any:  # noqa: ANN401
    """The function for lists, and for integers as float64."""
    return _accept_lists(_accept_integers(function, lambda: _float64))


_adapt_own(__name__, ("matrix_rank", "qr", "svd"), adapt)
__getattr__, __dir__ = _forward_to(__name__, "linalg", adapt=adapt)
