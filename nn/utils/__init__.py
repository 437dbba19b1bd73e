"""``td.nn.utils``: gradients, parameters and sequences.

- fusion.py: batch normalization as a part of the layer before it
- gradients.py: clip_grad_norm_, clip_grad_value_, get_total_norm
- norms.py: weight_norm, spectral_norm
- parametrize.py, parametrizations.py: parameters that are computed, ``td.nn.utils.parametrize``
- rnn.py: padded and packed sequences, ``td.nn.utils.rnn``
- vectors.py: parameters as one vector
"""

from . import parametrizations as parametrizations
from . import parametrize as parametrize
from . import rnn as rnn
from .fusion import fuse_conv_bn_eval as fuse_conv_bn_eval
from .fusion import fuse_conv_bn_weights as fuse_conv_bn_weights
from .fusion import fuse_linear_bn_eval as fuse_linear_bn_eval
from .fusion import fuse_linear_bn_weights as fuse_linear_bn_weights
from .gradients import clip_grad_norm_ as clip_grad_norm_
from .gradients import clip_grad_value_ as clip_grad_value_
from .gradients import clip_grads_with_norm_ as clip_grads_with_norm_
from .gradients import get_total_norm as get_total_norm
from .norms import remove_spectral_norm as remove_spectral_norm
from .norms import remove_weight_norm as remove_weight_norm
from .norms import spectral_norm as spectral_norm
from .norms import weight_norm as weight_norm
from .vectors import parameters_to_vector as parameters_to_vector
from .vectors import vector_to_parameters as vector_to_parameters
