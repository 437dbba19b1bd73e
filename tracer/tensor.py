"""TracerTensor: a tensor without data that represents a value of the graph being traced."""

from __future__ import annotations

from typing import Any, NoReturn

from ..eager.layers.levels import ADOPTED, LevelTensor
from ..eager.layers.vmap.adopt import ADOPTED_BATCHED
from ..eager.layers.vmap.tensor import BatchedTensor
from ..eager.tensor.tensor import Tensor
from ..errors import ConcretizationAttributeError, ConcretizationError
from ..operators.indexing.masks import equal_mask_hooks
from ..registry.dispatch.keys import BACKEND_OF_DEVICE, DispatchKey
from ..registry.dispatch.precedence import traces
from ..registry.dtypes import DType
from ..registry.operator import operators
from ..registry.source import source_line
from ..registry.values import Device, TensorSpec, as_device
from .aliases import Aliases
from .graph import Value, are_computed_alike
from .trace import Trace, check_alive

_TRACED = 1 << DispatchKey.Tracer
_KEYS_ON = {device: _TRACED | 1 << key for device, key in BACKEND_OF_DEVICE.items()}

_ADVICE = {
    "bool": "use td.where(condition, x, y) to choose between values, td.cond(condition, f, g, x) to choose what runs, "
    "td.while_loop to go on as long as it holds; if the condition comes from an argument that takes few values, name "
    "that argument in static_argnames",
    "data": "return the value from the jitted function and convert it outside; if it comes from an argument that "
    "takes few values, name that argument in static_argnames",
    "index": "shapes, axes and the counts of Python loops must be known while tracing: use x.shape, name the argument "
    "in static_argnames, or count with td.fori_loop",
}


_PROPERTIES = ("strides", "storage_offset")


def raise_concretization_error(value: Any, what: str, advice: str) -> NoReturn:
    """Raise the error for Python code that asks a traced value for its data."""
    check_alive(value)
    trace: Trace = value._trace
    kind = ConcretizationAttributeError if what in _PROPERTIES else ConcretizationError
    shown = value.describe() if isinstance(value, TracerTensor) else repr(value)
    raise kind(
        f"{what} needs the data of a traced value {shown}, and data exist only when the compiled function runs\n"
        f"  value:  {trace.describe_origin(value._value)}\n"
        f"  asked:  at {source_line() or 'an unknown line'}\n"
        f"  inside: {trace.name}\n"
        f"What to do: {_ADVICE[advice]}."
    )


class Dataless:
    """Base class of traced tensors and numbers: methods that need data raise ConcretizationError."""

    __slots__ = ()

    def __bool__(self) -> bool:
        raise_concretization_error(self, "bool() (if, while, and, or, not, assert)", "bool")

    def __float__(self) -> float:
        raise_concretization_error(self, "float()", "data")

    def __int__(self) -> int:
        raise_concretization_error(self, "int()", "data")

    def __complex__(self) -> complex:
        raise_concretization_error(self, "complex()", "data")

    def __index__(self) -> int:
        raise_concretization_error(self, "use as an index, a size or an axis", "index")

    def __array__(self, *args: object, **kwargs: object) -> Any:
        raise_concretization_error(self, "conversion to a NumPy array", "data")


class TracerTensor(Dataless, Tensor):
    """A tensor that represents a Value of a graph."""

    __slots__ = ("_aliases", "_trace", "_value")
    _aliases: Aliases | None
    _trace: Trace
    _value: Value

    @property
    def shape(self) -> tuple[int, ...]:
        return self._value.spec.shape

    @property
    def dtype(self) -> DType:
        return self._value.spec.dtype

    @property
    def device(self) -> Device:
        return as_device(self._value.spec.device)

    @property
    def spec(self) -> TensorSpec:
        return self._value.spec

    @property
    def _strides(self) -> tuple[int, ...]:
        raise_concretization_error(self, "strides", "data")

    @property
    def storage_offset(self) -> int:
        raise_concretization_error(self, "storage_offset", "data")

    @property
    def _array(self) -> Any:
        raise_concretization_error(self, "reading its elements or memory", "data")

    def item(self, *args: Any) -> Any:
        raise_concretization_error(self, ".item()", "data")

    def tolist(self) -> NoReturn:
        raise_concretization_error(self, ".tolist()", "data")

    def numpy(self, *args: Any, **kwargs: Any) -> Any:
        raise_concretization_error(self, ".numpy()", "data")

    def __dlpack__(self, *args: object, **kwargs: object) -> object:
        raise_concretization_error(self, "DLPack export", "data")

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise_concretization_error(self, "pickling it", "data")

    def __copy__(self) -> Any:
        return operators["td::clone"](self)

    def __deepcopy__(self, memo: dict[int, object]) -> Any:
        return operators["td::clone"](self)

    @property
    def _memory(self) -> object:
        return self._aliases

    def _has_untracked_aliases(self, known: list[Any]) -> bool | None:
        others = [] if self._aliases is None else self._aliases.others(self)
        return any(all(other is not member for member in known) for other, _ in others)

    def _copy_object(self) -> TracerTensor:
        twin = make_tracer(self._trace, self._value)
        twin._storage = self._storage
        if self._aliases is not None:
            self._aliases.replace(self, twin)
        return twin

    def __repr__(self) -> str:
        if traces.keeps_kernels:  # a trace in place of eager calls, whose tensors have another text
            raise_concretization_error(self, "its text", "data")
        return self.describe()

    def describe(self) -> str:
        """The text of this value in messages."""
        return f"<traced {self._value.spec}>"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)


class LevelTracer(LevelTensor, TracerTensor):
    """A traced tensor that was made inside a level and has become a value of it."""

    __slots__ = ()


class BatchedTracer(BatchedTensor, TracerTensor):
    """A traced tensor that was made inside ``vmap`` and has become a value of it."""

    __slots__ = ()


ADOPTED[TracerTensor] = ADOPTED[LevelTracer] = ADOPTED[BatchedTracer] = LevelTracer
ADOPTED_BATCHED.update(dict.fromkeys((TracerTensor, LevelTracer, BatchedTracer), BatchedTracer))


def make_tracer(trace: Trace, value: Value) -> TracerTensor:
    """Create the tensor of a value of a trace."""
    tensor = TracerTensor.__new__(TracerTensor)
    tensor._value = value
    tensor._trace = trace
    tensor._keys = _KEYS_ON.get(value.spec.device) or _KEYS_ON[value.spec.device.partition(":")[0]]
    tensor._meta = None
    tensor._storage = None
    tensor._aliases = None
    return tensor


def are_equal_masks(one: Any, two: Any) -> bool:
    """Whether two traced masks have the same elements because they are computed alike."""
    if type(one) is not TracerTensor or type(two) is not TracerTensor:
        return False
    return one._trace is two._trace and are_computed_alike(one._value, two._value)


equal_mask_hooks.append(are_equal_masks)
