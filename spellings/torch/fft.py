"""``tandem.torch.fft``: the functions of ``tandem.fft``."""

from ..spellings.forwarding import forward_to as _forward_to

__getattr__, __dir__ = _forward_to(__name__, "fft")
