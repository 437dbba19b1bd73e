"""``tandem.torch.nn.utils``: the functions of ``tandem.nn.utils``.

parametrizations.py, parametrize.py, rnn.py: the modules of ``torch.nn.utils`` of these names
"""

from .... import lazy as _lazy
from ....spellings.forwarding import forward_to as _forward_to

_modules = {
    "parametrizations": ".torch.nn.utils.parametrizations",
    "parametrize": ".torch.nn.utils.parametrize",
    "rnn": ".torch.nn.utils.rnn",
}
__getattr__, __dir__ = _forward_to(__name__, "nn.utils", _lazy.attach(__name__, {}, _modules))
