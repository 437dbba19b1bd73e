"""``torch.backends.cudnn``: tandem does not use cuDNN; its convolutions have one algorithm, which is deterministic.

Programs may set these values. They have no effect.

>>> import tandem.torch as torch
>>> torch.backends.cudnn.benchmark = True
>>> torch.backends.cudnn.is_available()
False
"""

enabled = False
benchmark = False
deterministic = True
allow_tf32 = False


def is_available() -> bool:
    """Whether cuDNN is used: no."""
    return False


def version() -> None:
    """The version of cuDNN: none."""
