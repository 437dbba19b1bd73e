"""``tandem.torch.nn.parameter``: ``Parameter``, as in ``tandem.nn``."""

from ...nn.parameter import Parameter as Parameter
