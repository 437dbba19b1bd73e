"""``detect_anomaly``: ``backward`` names the operator whose derivative is NaN.

Source: ``torch.autograd.anomaly_mode``.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING

from ...errors import AutogradError
from ...registry.dispatch.guards import adjust_keys
from ...registry.dispatch.keys import AUTOGRAD
from ..tensor.results import flat
from ..tensor.tensor import Tensor

if TYPE_CHECKING:
    from .node import Node

# [number of open blocks that check gradients for NaN]
checks = [0]


class detect_anomaly:  # PyTorch's name
    """Context manager: ``backward`` raises an error that names the operator whose derivative is NaN.

    It applies to the whole process, and makes ``backward`` slower.

    Args:
        check_nan: whether gradients are checked.

    >>> import tandem as td
    >>> x = td.asarray([0.0], requires_grad=True)
    >>> with td.autograd.detect_anomaly():
    ...     (td.sqrt(x) * 0.0).sum().backward()
    Traceback (most recent call last):
    tandem.errors.AutogradError: the derivative of sqrt is NaN, for gradients without NaN
    """

    def __init__(self, check_nan: bool = True):
        self._check_nan = check_nan

    def __enter__(self) -> None:
        checks[0] += self._check_nan

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        checks[0] -= self._check_nan


class set_detect_anomaly(detect_anomaly):  # PyTorch's name
    """Switch the check of :class:`detect_anomaly` on or off, from the call on; as a block, until its end.

    Args:
        mode: whether gradients are checked.
        check_nan: with False they are not.

    >>> import tandem as td
    >>> _ = td.autograd.set_detect_anomaly(True)
    >>> _ = td.autograd.set_detect_anomaly(False)
    """

    def __init__(self, mode: bool, check_nan: bool = True):
        super().__init__(mode and check_nan)
        self._before = checks[0]
        checks[0] = int(self._check_nan)

    def __enter__(self) -> None:
        """Enter the block; the check is switched already."""

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        checks[0] = self._before


def has_nan(values: Iterable[object]) -> bool:
    """Whether an element of some tensor is NaN."""
    with adjust_keys(exclude=AUTOGRAD):
        return any(
            bool((item != item).any())
            for item in flat(tuple(values))
            if isinstance(item, Tensor) and item.dtype.is_inexact
        )


def check_gradients(node: Node, cotangents: Iterable[object], gradients: Iterable[object]) -> None:
    """Check the gradients that a node has computed.

    Raises:
        AutogradError: some are NaN, and the gradients that they were computed from are not.
    """
    if has_nan(gradients) and not has_nan(cotangents):
        raise AutogradError(f"the derivative of {node.name} is NaN, for gradients without NaN")
