"""``tandem.torch.autograd``: the functions of ``tandem.autograd``, and ``Variable``.

function.py: ``torch.autograd.function``
functional.py: ``torch.autograd.functional``
graph.py: ``torch.autograd.graph``
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import lazy as _lazy
from ...spellings.forwarding import forward_to as _forward_to

if TYPE_CHECKING:
    from ...registry.types import Tensor


def Variable(data: Tensor, requires_grad: bool = False) -> Tensor:
    """A tensor on the memory of another one; every tensor is a variable.

    >>> import tandem.torch as torch
    >>> torch.autograd.Variable(torch.ones(2), requires_grad=True).requires_grad
    True
    """
    return data.detach().requires_grad_(requires_grad)


_own = _lazy.attach(
    __name__,
    {},
    {
        "function": ".torch.autograd.function",
        "functional": ".torch.autograd.functional",
        "graph": ".torch.autograd.graph",
    },
)
__getattr__, __dir__ = _forward_to(__name__, "autograd", _own)
