"""``tandem.torch.cuda``: the functions of ``tandem.cuda``, and seeds.

amp.py: ``torch.cuda.amp``
"""

from ... import lazy as _lazy
from ...spellings.forwarding import forward_to as _forward_to
from ..sampling import manual_seed as _manual_seed


def manual_seed(seed: int) -> None:
    """Reset the global generator, which draws for all devices, to a seed."""
    _manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Reset the global generator, which draws for all devices, to a seed.

    >>> import tandem.torch as torch
    >>> torch.cuda.manual_seed_all(3)
    >>> torch.initial_seed()
    3
    """
    _manual_seed(seed)


_own = _lazy.attach(__name__, {}, {"amp": ".torch.cuda.amp"})
__getattr__, __dir__ = _forward_to(__name__, "cuda", _own)
