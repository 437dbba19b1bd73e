"""``tandem.torch.utils``: the modules of ``torch.utils`` that programs import.

checkpoint.py: ``torch.utils.checkpoint``
data: ``torch.utils.data``
"""

from ... import lazy as _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__, {}, {"checkpoint": ".torch.utils.checkpoint", "data": ".torch.utils.data"}
)
