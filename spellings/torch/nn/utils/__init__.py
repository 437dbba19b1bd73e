"""``tandem.torch.nn.utils``: the functions of ``tandem.nn.utils``.

parametrizations.py, parametrize.py, rnn.py: the modules of ``torch.nn.utils`` of these names
"""

from ....spellings.forwarding import forward_to as _forward_to

__getattr__, __dir__ = _forward_to(__name__, "nn.utils")
