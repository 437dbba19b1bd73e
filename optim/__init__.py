"""``td.optim``: optimizers with PyTorch's ``step()``, and as pure functions over pytrees; loaded at first use.

- rules: the update rules of one parameter, from which both forms follow
- optimizer.py: Optimizer, the base class
- rule_optimizer.py: RuleOptimizer, the base class of those that have a rule
- algorithms.py: SGD, Adam, RMSprop, ...: their classes
- lr_scheduler: learning rates that follow the epochs, ``td.optim.lr_scheduler``
- lbfgs.py, line_search.py, pure_lbfgs.py: LBFGS, which steps all parameters together
- grad_scaler.py: GradScaler, for gradients in float16
- swa_utils.py: averages of models, ``td.optim.swa_utils``
- pure.py: sgd, adam, rmsprop, ..., clipping and chains, with ``init`` and ``update``
- schedules.py: learning rates as functions of the number of steps
"""

from .. import lazy as _lazy
from . import lr_scheduler as lr_scheduler
from . import swa_utils as swa_utils
from .algorithms import ASGD as ASGD
from .algorithms import SGD as SGD
from .algorithms import Adadelta as Adadelta
from .algorithms import Adagrad as Adagrad
from .algorithms import Adam as Adam
from .algorithms import Adamax as Adamax
from .algorithms import AdamW as AdamW
from .algorithms import NAdam as NAdam
from .algorithms import RAdam as RAdam
from .algorithms import RMSprop as RMSprop
from .algorithms import Rprop as Rprop
from .grad_scaler import GradScaler as GradScaler
from .lbfgs import LBFGS as LBFGS
from .optimizer import Optimizer as Optimizer
from .pure import GradientTransformation as GradientTransformation
from .pure import adadelta as adadelta
from .pure import adagrad as adagrad
from .pure import adam as adam
from .pure import adamax as adamax
from .pure import adamw as adamw
from .pure import apply_updates as apply_updates
from .pure import asgd as asgd
from .pure import chain as chain
from .pure import clip_by_global_norm as clip_by_global_norm
from .pure import clip_by_value as clip_by_value
from .pure import global_norm as global_norm
from .pure import momentum as momentum
from .pure import nadam as nadam
from .pure import radam as radam
from .pure import rmsprop as rmsprop
from .pure import rprop as rprop
from .pure import sgd as sgd
from .pure_lbfgs import lbfgs as lbfgs
from .schedules import constant_schedule as constant_schedule
from .schedules import cosine_decay_schedule as cosine_decay_schedule
from .schedules import exponential_decay as exponential_decay
from .schedules import join_schedules as join_schedules
from .schedules import linear_schedule as linear_schedule
from .schedules import warmup_cosine_decay_schedule as warmup_cosine_decay_schedule

_lazy.refuse_unknown(__name__, "td.optim.")
