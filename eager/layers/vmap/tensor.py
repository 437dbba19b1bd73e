"""BatchedTensor: the value inside ``vmap`` that represents each example of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from ....errors import ConcretizationError
from ....registry.dispatch.keys import BACKENDS
from ....registry.source import source_line
from ....registry.values import TensorSpec, describe
from .. import level_allocations
from ..levels import LEVEL, LEVEL_KEYS, Level, LevelTensor, check_open

if TYPE_CHECKING:
    from ....registry.types import Tensor

_ADVICE = {
    "bool": "use td.where(condition, x, y) to choose between values, so that each example chooses for itself",
    "data": "return the value from the function that td.vmap maps and convert it outside",
    "index": "sizes, axes and loop counts must be the same for all examples: pass that argument with in_axes=None, "
    "or loop over the examples instead of using td.vmap; as an index into a tensor, x[i] accepts the value",
}


def concretize(value: BatchedTensor, what: str, advice: str) -> NoReturn:
    """Raise the error for Python code that needs the data of a batched value."""
    check_open(value)
    level = value._level
    raise ConcretizationError(
        f"{what} needs one number, and {describe(value)} inside {level.name} has {level.batch_size}, one for each "
        f"example of the batch (called at {level.origin}, asked at {source_line() or 'an unknown line'}); "
        f"{_ADVICE[advice]}"
    )


class BatchedTensor(LevelTensor):
    """A value of a level of ``vmap``: the payload has the batch axis in front, shape and strides do not."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        return self._payload.shape[1:]

    @property
    def spec(self) -> TensorSpec:
        return TensorSpec(self.shape, self._payload.dtype, self._payload.device)

    @property
    def _strides(self) -> tuple[int, ...]:
        return self._payload._strides[1:]

    def is_contiguous(self) -> bool:
        """Whether the elements of an example are in row-major order without gaps."""
        step = 1
        for size, stride in reversed(list(zip(self.shape, self._strides))):
            if size != 1 and stride != step:
                return 0 in self.shape
            step *= size
        return True

    @property
    def requires_grad(self) -> bool:
        return self._payload.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    @property
    def _array(self) -> Any:
        concretize(self, "NumPy code", "data")

    def _host(self, what: str) -> NoReturn:
        concretize(self, what, "data")

    def numpy(self) -> NoReturn:
        concretize(self, "numpy()", "data")

    def item(self, *index: int) -> NoReturn:
        concretize(self, "item()", "data")

    def tolist(self) -> NoReturn:
        concretize(self, "tolist()", "data")

    def __bool__(self) -> bool:
        concretize(self, "bool() (if, while, and, or, not, assert)", "bool")

    def __float__(self) -> float:
        concretize(self, "float()", "data")

    def __int__(self) -> int:
        concretize(self, "int()", "index")

    def __complex__(self) -> complex:
        concretize(self, "complex()", "data")

    def __index__(self) -> int:
        concretize(self, "use as a size, an axis or a count", "index")

    def _single(self, what: str) -> NoReturn:
        concretize(self, what, "data")

    def _without_history(self) -> Tensor:
        check_open(self)
        return wrap_batched(self._level, self._payload.detach())

    def __repr__(self) -> str:
        return f"<{describe(self)} of {self._level.name}, for each of {self._level.batch_size}>"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)


_new = BatchedTensor.__new__


def wrap_batched(level: Level, payload: Tensor) -> BatchedTensor:
    """Create a value of a level of ``vmap``; ``payload`` has the batch axis in front.

    Native twin: backends/cpu/fastpath/runtime/rt_batches.py:wrap_batch
    """
    batch = _new(BatchedTensor)
    batch._payload, batch._level, batch._meta = payload, level, None
    backends = payload._keys & BACKENDS
    batch._keys = LEVEL_KEYS.get(backends) or LEVEL_KEYS.setdefault(backends, LEVEL | backends)
    if level_allocations.open_level_count[0] > 1:
        level_allocations.note_allocation(batch)
    return batch
