"""``tandem.torch.nn.utils.rnn``: the functions of ``tandem.nn.utils.rnn``."""

from ....spellings.forwarding import forward_to as _forward_to

__getattr__, __dir__ = _forward_to(__name__, "nn.utils.rnn")
