"""``tandem.torch.autograd.graph``: hooks of saved tensors and of gradients."""

from ...eager.autograd.residual_hooks import Node as Node
from ...eager.autograd.residual_hooks import disable_saved_tensors_hooks as disable_saved_tensors_hooks
from ...eager.autograd.residual_hooks import register_multi_grad_hook as register_multi_grad_hook
from ...eager.autograd.residual_hooks import save_on_cpu as save_on_cpu
from ...eager.autograd.residual_hooks import saved_tensors_hooks as saved_tensors_hooks
