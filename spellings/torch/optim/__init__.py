"""``tandem.torch.optim``: the optimizers of ``tandem.optim``, for programs that import ``torch.optim``.

lr_scheduler.py: ``torch.optim.lr_scheduler``
swa_utils.py: ``torch.optim.swa_utils``
"""

from ...spellings.forwarding import forward_to as _forward_to

__getattr__, __dir__ = _forward_to(__name__, "optim")
