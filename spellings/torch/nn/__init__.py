"""``tandem.torch.nn``: the modules of ``tandem.nn``, for programs that import ``torch.nn``.

functional.py: ``torch.nn.functional``
init.py: ``torch.nn.init``
modules.py: ``torch.nn.modules`` and its submodules
parameter.py: ``torch.nn.parameter``
utils: ``torch.nn.utils`` and its modules
"""

from ... import lazy as _lazy
from ...spellings.forwarding import forward_to as _forward_to

_modules = {
    "functional": ".torch.nn.functional",
    "init": ".torch.nn.init",
    "modules": ".torch.nn.modules",
    "parameter": ".torch.nn.parameter",
    "utils": ".torch.nn.utils",
}
__getattr__, __dir__ = _forward_to(__name__, "nn", _lazy.attach(__name__, {}, _modules))
