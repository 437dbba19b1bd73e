"""``errstate``, ``seterr`` and ``geterr``: tandem does not warn of divisions by zero and invalid values."""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any

from ..errors import UnsupportedError

_KINDS = ("divide", "over", "under", "invalid")


def seterr(all: str | None = None, **kinds: str | None) -> dict[str, str]:
    """Accept "ignore" and "warn" for kinds of floating-point errors, about which tandem never warns.

    Args:
        all: the mode of all kinds.
        kinds: the modes of ``divide``, ``over``, ``under`` and ``invalid``.

    Returns:
        The modes, as :func:`geterr`.

    Raises:
        UnsupportedError: another mode; ``td.debug.nans()`` raises for NaNs.

    >>> import tandem.numpy as np
    >>> np.seterr(divide="ignore")["divide"]
    'ignore'

    Source: ``numpy.seterr``.
    """
    for name, mode in {"all": all, **kinds}.items():
        if name not in (*_KINDS, "all"):
            raise UnsupportedError(f"seterr: there is no kind {name!r}; the kinds are {', '.join(_KINDS)}")
        if mode not in (None, "ignore", "warn"):
            raise UnsupportedError(
                f"seterr: {name}={mode!r} is not supported; td.debug.nans() is a context that raises for NaNs"
            )
    return geterr()


def geterr() -> dict[str, str]:
    """The modes of floating-point errors: all are ignored.

    Source: ``numpy.geterr``.
    """
    return dict.fromkeys(_KINDS, "ignore")


class errstate(ContextDecorator):
    """A context, or a decorator, with the arguments of :func:`seterr`.

    >>> import tandem.numpy as np
    >>> with np.errstate(divide="ignore"):
    ...     (np.ones(1) / 0).tolist()
    [inf]

    Source: ``numpy.errstate``.
    """

    def __init__(self, **kinds: Any) -> None:  # noqa: ANN401
        seterr(**kinds)

    def __enter__(self) -> None:
        """Enter the context."""

    def __exit__(self, *_: object) -> None:
        """Leave the context."""
