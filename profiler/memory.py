"""Memory profiling: the bytes that results of calls hold, until they are freed."""

from __future__ import annotations

import time
import weakref
from typing import TYPE_CHECKING

from ..eager.tensor.storage import owner_of
from ..eager.tensor.tensor import Tensor
from .events import tensors_in

if TYPE_CHECKING:
    from ..registry.types import Args, Array


class Memory:
    """Counter of the bytes of arrays that profiled calls create.

    Attributes:
        live: the bytes that are allocated now.
        peak: the maximum of ``live``.
        steps: ``(time in ns, live bytes)`` at each change.
    """

    def __init__(self) -> None:
        self.live = self.peak = 0
        self.steps: list[tuple[int, int]] = []
        self._known: dict[int, weakref.ref[Array]] = {}

    def take(self, inputs: Args, results: Args) -> int:
        """Count the new arrays of the results; return their bytes. Each array counts once, until it is freed."""
        old = {id(array) for array in _owned_arrays(inputs)}
        taken = 0
        for array in _owned_arrays(results):
            key, size = id(array), int(array.nbytes)
            if key not in old and key not in self._known:
                self._known[key] = weakref.ref(array, lambda _, key=key, size=size: self._drop(key, size))  # type: ignore[misc]
                taken += size
        if taken:
            self._change(taken)
        return taken

    def _drop(self, key: int, size: int) -> None:
        if self._known.pop(key, None) is not None:
            self._change(-size)

    def _change(self, size: int) -> None:
        self.live += size
        self.peak = max(self.peak, self.live)
        self.steps.append((time.perf_counter_ns(), self.live))


def _owned_arrays(values: Args) -> list[Array]:
    """Return the arrays that own the memory of the dense tensors among the values."""
    return [owner_of(tensor._array) for tensor in tensors_in(values) if type(tensor) is Tensor]
