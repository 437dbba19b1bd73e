"""The modules whose kernels serve every operator at a key of the eager layers.

The import of the package leaves them out; they are imported before the first dispatch table is computed.
"""

from ..autograd import ad_inplace_or_view as ad_inplace_or_view
from ..autograd import kernel as autograd
from ..meta import kernel as meta
from . import autocast as autocast
from . import levels as levels
from . import subclass as subclass

__all__ = ["ad_inplace_or_view", "autocast", "autograd", "levels", "meta", "subclass"]
