"""``tandem.torch.random``: the state of the global generator, and the functions of ``tandem.random``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..spellings.forwarding import forward_to as _forward_to
from .sampling import get_rng_state as get_rng_state
from .sampling import initial_seed as initial_seed
from .sampling import manual_seed as manual_seed
from .sampling import seed as seed
from .sampling import set_rng_state as set_rng_state

if TYPE_CHECKING:
    from collections.abc import Iterable


@contextlib.contextmanager
def fork_rng(devices: Iterable[object] | None = None, enabled: bool = True) -> Iterator[None]:
    """Restore the state of the global generator when the ``with`` statement ends.

    Args:
        devices: accepted for compatibility with PyTorch; one generator draws for all devices.
        enabled: False: the state is not restored.

    >>> import tandem.torch as torch
    >>> generator = torch.manual_seed(0)
    >>> with torch.random.fork_rng():
    ...     inside = torch.rand(2)
    >>> torch.equal(torch.rand(2), inside)
    True

    Source: ``torch.random.fork_rng``.
    """
    state = get_rng_state()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)


__getattr__, __dir__ = _forward_to(__name__, "random")
