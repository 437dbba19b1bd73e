"""``tandem.torch.backends``: PyTorch's settings of libraries that tandem does not use; they have no effect.

cuda.py: whether products of matrices may be rounded to TF32
cudnn.py: cuDNN, which is not used
mps.py: Apple's devices, which are not supported
"""

from ... import lazy as _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {},
    {"cuda": ".torch.backends.cuda", "cudnn": ".torch.backends.cudnn", "mps": ".torch.backends.mps"},
)
