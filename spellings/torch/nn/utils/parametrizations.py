"""``tandem.torch.nn.utils.parametrizations``: the functions of ``tandem.nn.utils.parametrizations``."""

from ....spellings.forwarding import forward_to as _forward_to

__getattr__, __dir__ = _forward_to(__name__, "nn.utils.parametrizations")
