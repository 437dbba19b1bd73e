"""``tandem.torch.nn``: the modules of ``tandem.nn``, for programs that import ``torch.nn``.

functional.py: ``torch.nn.functional``
init.py: ``torch.nn.init``
modules.py: ``torch.nn.modules`` and its submodules
parameter.py: ``torch.nn.parameter``
utils: ``torch.nn.utils`` and its modules
"""

from ...spellings.forwarding import forward_to as _forward_to

__getattr__, __dir__ = _forward_to(__name__, "nn")
