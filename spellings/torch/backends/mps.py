"""``torch.backends.mps``: tandem has no devices of Apple's Metal."""


def is_available() -> bool:
    """Whether there is such a device: no.

    >>> import tandem.torch as torch
    >>> "mps" if torch.backends.mps.is_available() else "cpu"
    'cpu'
    """
    return False


def is_built() -> bool:
    """Whether tandem has code for such devices: no."""
    return False
