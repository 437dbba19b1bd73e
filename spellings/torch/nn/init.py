"""``tandem.torch.nn.init``: the initializers of ``tandem.nn.init``."""

from ...spellings.forwarding import forward_to as _forward_to

__getattr__, __dir__ = _forward_to(__name__, "nn.init")
