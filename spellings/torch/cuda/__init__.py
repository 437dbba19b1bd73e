"""``tandem.torch.cuda``: the functions of ``tandem.cuda``.

amp.py: ``torch.cuda.amp``
"""

from ... import lazy as _lazy
from ...spellings.forwarding import forward_to as _forward_to

_own = _lazy.attach(__name__, {}, {"amp": ".torch.cuda.amp"})
__getattr__, __dir__ = _forward_to(__name__, "cuda", _own)
