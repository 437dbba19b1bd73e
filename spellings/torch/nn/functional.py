"""``tandem.torch.nn.functional``: the functions of ``tandem.nn.functional``."""

from ...spellings.forwarding import forward_to as _forward_to

__getattr__, __dir__ = _forward_to(__name__, "nn.functional")
