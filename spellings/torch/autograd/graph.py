"""``tandem.torch.autograd.graph``: hooks of saved tensors."""

from ...eager.autograd.residual_hooks import Node as Node
from ...eager.autograd.residual_hooks import save_on_cpu as save_on_cpu
from ...eager.autograd.residual_hooks import saved_tensors_hooks as saved_tensors_hooks
