"""``tandem.torch.nn.functional``: the functions of ``tandem.nn.functional``, and ``pdist``."""

from ...spellings.forwarding import forward_to as _forward_to
from ..distances import pdist as pdist

__getattr__, __dir__ = _forward_to(__name__, "nn.functional")
