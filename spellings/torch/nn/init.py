"""``tandem.torch.nn.init``: the initializers of ``tandem.nn.init``, also under their old names."""

from ...nn import init as _init
from ...spellings.forwarding import forward_to as _forward_to

_calculate_fan_in_and_fan_out = _init.count_fans
_OLD_NAMES = (
    "constant dirac eye kaiming_normal kaiming_uniform normal orthogonal sparse uniform xavier_normal xavier_uniform"
).split()
globals().update({name: getattr(_init, f"{name}_") for name in _OLD_NAMES})

__getattr__, __dir__ = _forward_to(__name__, "nn.init")
