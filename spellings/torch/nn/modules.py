"""``tandem.torch.nn.modules`` and its submodules, for programs that import classes from where PyTorch defines them.

Each submodule, such as ``tandem.torch.nn.modules.batchnorm``, has the classes of ``tandem.nn``, and the base classes
that programs compare with, such as ``_BatchNorm``.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from types import ModuleType

from ...nn import convolution, criteria, normalization
from ...nn.convolution import Sizes
from ...spellings.forwarding import forward_to as _forward_to

_SUBMODULES = (
    "activation adaptive batchnorm channelshuffle container conv distance dropout embedding flatten fold instancenorm "
    "lazy linear loss module normalization padding pixelshuffle pooling rnn sparse transformer upsampling utils"
).split()


def _ntuple(n: int, name: str = "parse") -> Callable[[Sizes], tuple[int, ...]]:
    def expand(value: Sizes) -> tuple[int, ...]:
        return tuple(itertools.repeat(value, n)) if isinstance(value, int) else tuple(value)

    expand.__name__ = name
    return expand


_PRIVATE: dict[str, object] = {
    "_BatchNorm": normalization.BatchNorm,
    "_ConvNd": convolution._Convolution,
    "_ConvTransposeNd": convolution._ConvTranspose,
    "_InstanceNorm": normalization.InstanceNorm,
    "_Loss": criteria.Loss,
    "_NormBase": normalization._ChannelNorm,
    "_WeightedLoss": criteria.Loss,
    "_ntuple": _ntuple,
    "_pair": _ntuple(2, "_pair"),
    "_single": _ntuple(1, "_single"),
    "_triple": _ntuple(3, "_triple"),
}


def _make_submodule(name: str) -> ModuleType:
    module = ModuleType(
        f"{__name__}.{name}", f"The classes of ``tandem.nn``, as ``torch.nn.modules.{name}`` has them."
    )
    sys.modules[module.__name__] = module
    vars(module).update(_PRIVATE)
    module.__getattr__, module.__dir__ = _forward_to(module.__name__, "nn")  # type: ignore[method-assign]
    return module


globals().update({name: _make_submodule(name) for name in _SUBMODULES})
__getattr__, __dir__ = _forward_to(__name__, "nn")
