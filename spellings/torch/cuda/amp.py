"""``tandem.torch.cuda.amp``: autocast of operators on CUDA, and GradScaler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...eager.layers.autocast import autocast as _autocast
from ...optim.grad_scaler import GradScaler as GradScaler
from ...registry.dtypes import float16

if TYPE_CHECKING:
    from ...registry.types import DTypeLike


class autocast(_autocast):
    """:class:`tandem.autocast` for tensors on CUDA.

    Args:
        enabled: False switches autocast off inside the block.
        dtype: the lower precision.
        cache_enabled: whether the cast of a weight is cached until the outermost block ends.

    >>> import tandem.torch as torch
    >>> with torch.cuda.amp.autocast():
    ...     torch.is_autocast_enabled("cuda")
    True
    """

    def __init__(self, enabled: bool = True, dtype: DTypeLike = float16, cache_enabled: bool = True):
        super().__init__("cuda", dtype, enabled, cache_enabled)
