"""``td.nn.utils``: gradients, parameters and sequences.

- gradients.py: clip_grad_norm_, clip_grad_value_, get_total_norm
- rnn.py: padded and packed sequences, ``td.nn.utils.rnn``
- vectors.py: parameters as one vector
"""

from . import rnn as rnn
from .gradients import clip_grad_norm_ as clip_grad_norm_
from .gradients import clip_grad_value_ as clip_grad_value_
from .gradients import clip_grads_with_norm_ as clip_grads_with_norm_
from .gradients import get_total_norm as get_total_norm
from .vectors import parameters_to_vector as parameters_to_vector
from .vectors import vector_to_parameters as vector_to_parameters
