"""``tandem.numpy.linalg``: the functions of ``td.linalg``, which also take lists of numbers."""

from ..spellings.forwarding import forward_to as _forward_to
from .array_likes import accept_lists as _accept_lists

__getattr__, __dir__ = _forward_to(__name__, "linalg", adapt=_accept_lists)
