"""``tandem.torch.optim.lr_scheduler``: the schedulers of ``tandem.optim.lr_scheduler``."""

from ...optim.lr_scheduler import LRScheduler as _LRScheduler  # noqa: F401 - its former name in PyTorch
from ...spellings.forwarding import forward_to as _forward_to

__getattr__, __dir__ = _forward_to(__name__, "optim.lr_scheduler")
