"""``tandem.torch.autograd``: the functions of ``tandem.autograd``, and ``Variable``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..spellings.forwarding import forward_to as _forward_to

if TYPE_CHECKING:
    from ..registry.types import Tensor


def Variable(data: Tensor, requires_grad: bool = False) -> Tensor:
    """A tensor on the memory of another one; every tensor is a variable.

    >>> import tandem.torch as torch
    >>> torch.autograd.Variable(torch.ones(2), requires_grad=True).requires_grad
    True
    """
    return data.detach().requires_grad_(requires_grad)


__getattr__, __dir__ = _forward_to(__name__, "autograd")
