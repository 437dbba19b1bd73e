"""``td.optim``: optimizers with PyTorch's ``step()``, and as pure functions over pytrees; loaded at first use.

- rules.py: the update rules of one parameter, which both use
- optimizer.py: SGD, Adam, AdamW, RMSprop
- lr_scheduler.py: learning rates that follow the epochs, ``td.optim.lr_scheduler``
- pure.py: sgd, momentum, adam, adamw, clipping and chains, with ``init`` and ``update``
- schedules.py: learning rates as functions of the number of steps
"""

from .. import lazy as _lazy
from . import lr_scheduler as lr_scheduler
from .optimizer import SGD as SGD
from .optimizer import Adam as Adam
from .optimizer import AdamW as AdamW
from .optimizer import Optimizer as Optimizer
from .optimizer import RMSprop as RMSprop
from .pure import GradientTransformation as GradientTransformation
from .pure import adam as adam
from .pure import adamw as adamw
from .pure import apply_updates as apply_updates
from .pure import chain as chain
from .pure import clip_by_global_norm as clip_by_global_norm
from .pure import clip_by_value as clip_by_value
from .pure import global_norm as global_norm
from .pure import momentum as momentum
from .pure import sgd as sgd
from .schedules import constant_schedule as constant_schedule
from .schedules import cosine_decay_schedule as cosine_decay_schedule
from .schedules import exponential_decay as exponential_decay
from .schedules import join_schedules as join_schedules
from .schedules import linear_schedule as linear_schedule
from .schedules import warmup_cosine_decay_schedule as warmup_cosine_decay_schedule

_lazy.refuse_unknown(__name__, "td.optim.")
