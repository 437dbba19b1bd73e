"""``tandem.jax``: tandem with the names and modules of JAX.

numpy.py, nn/, random.py, tree.py, tree_util.py: the modules of these names
key_leaves.py: random keys as leaves of trees
numpy_linalg.py, numpy_fft.py: ``numpy.linalg`` and ``numpy.fft``
lax/: control flow, elementwise functions, reductions, slices
scipy/: ``scipy.special``, ``scipy.linalg``, ``scipy.stats``
ops.py: reductions of segments
configuration.py: ``config``
devices.py: devices, device_put, device_get, block_until_ready
keywords.py: the base of functions with more keywords than an operator
numpy_keywords.py, numpy_products.py: functions of ``numpy`` with JAX's keywords
errors.py: the names of JAX's errors
flatten_util.py: ``ravel_pytree``
tracing.py: jit, disable_jit, clear_caches, make_jaxpr, typeof, named_scope

All other names are those of ``tandem``: ``grad``, ``vmap``, ``custom_vjp``, ... Python integers make int64
tensors, as in JAX with ``jax_enable_x64``.
"""

from ..eager.tensor.tensor import Tensor as _Tensor
from ..spellings.forwarding import forward_to_tandem as _forward_to_tandem
from . import errors as errors
from . import flatten_util as flatten_util
from . import lax as lax
from . import nn as nn
from . import numpy as numpy
from . import ops as ops
from . import random as random
from . import scipy as scipy
from . import tree as tree
from . import tree_util as tree_util
from .configuration import config as config
from .devices import block_until_ready as block_until_ready
from .devices import default_backend as default_backend
from .devices import device_count as device_count
from .devices import device_get as device_get
from .devices import device_put as device_put
from .devices import devices as devices
from .tracing import clear_caches as clear_caches
from .tracing import disable_jit as disable_jit
from .tracing import jit as jit
from .tracing import make_jaxpr as make_jaxpr
from .tracing import named_scope as named_scope
from .tracing import typeof as typeof

Array = _Tensor
local_devices, local_device_count = devices, device_count
__getattr__, __dir__ = _forward_to_tandem(__name__)
