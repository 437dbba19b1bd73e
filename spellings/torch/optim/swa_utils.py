"""``tandem.torch.optim.swa_utils``: the averages of ``tandem.optim.swa_utils``."""

from ...spellings.forwarding import forward_to as _forward_to

__getattr__, __dir__ = _forward_to(__name__, "optim.swa_utils")
