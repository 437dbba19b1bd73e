"""``td.optim.lr_scheduler``: learning rates that follow the epochs, with PyTorch's names and arguments.

- scheduler.py: LRScheduler, the base class
- factors.py: StepLR, ExponentialLR, LinearLR, ...
- functions.py: LambdaLR, MultiplicativeLR
- cosine.py: CosineAnnealingLR, CosineAnnealingWarmRestarts
- cyclic.py: OneCycleLR, CyclicLR
- combined.py: SequentialLR, ChainedScheduler
- plateau.py: ReduceLROnPlateau
"""

from ... import lazy as _lazy
from .combined import ChainedScheduler as ChainedScheduler
from .combined import SequentialLR as SequentialLR
from .cosine import CosineAnnealingLR as CosineAnnealingLR
from .cosine import CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts
from .cyclic import CyclicLR as CyclicLR
from .cyclic import OneCycleLR as OneCycleLR
from .factors import ConstantLR as ConstantLR
from .factors import ExponentialLR as ExponentialLR
from .factors import LinearLR as LinearLR
from .factors import MultiStepLR as MultiStepLR
from .factors import PolynomialLR as PolynomialLR
from .factors import StepLR as StepLR
from .functions import LambdaLR as LambdaLR
from .functions import MultiplicativeLR as MultiplicativeLR
from .plateau import ReduceLROnPlateau as ReduceLROnPlateau
from .scheduler import LRScheduler as LRScheduler

_lazy.refuse_unknown(__name__, "td.optim.lr_scheduler.")
