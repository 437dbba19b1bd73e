"""The device's kernels: a few of its own, and one boxed fallback that runs every other operator on the CPU."""

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

import numpy as np
import tandem as td
from tandem.registry.dtypes import DType
from tandem.registry.operator import Operator

from .tensor import DEVICE, ToyTensor, from_cpu, log, negated, to_cpu, toy_tensor

P = ParamSpec("P")
Copies = dict[int, tuple[ToyTensor, td.Tensor]]  # by id, each tensor of the device and its copy on the CPU
_installed: list[Callable[[], None]] = []


def logged(kernel: Callable[P, td.Tensor]) -> Callable[P, td.Tensor]:
    """A kernel that enters its calls into the log."""

    def run(*args: P.args, **kwargs: P.kwargs) -> td.Tensor:
        log.append((kernel.__name__, "kernel"))
        return kernel(*args, **kwargs)

    run.__qualname__ = f"toy_{kernel.__name__}"
    return run


# -- kernels of the device: they work on the negated elements ----------------------------------------------------------
@logged
def add(self: object, other: object) -> td.Tensor:
    if isinstance(self, ToyTensor) and isinstance(other, ToyTensor) and self.dtype is other.dtype:
        return toy_tensor(self.buffer + other.buffer)  # -x + -y is -(x + y)
    result: td.Tensor = by_cpu(td.ops.td.add.Tensor, (self, other), {})
    return result


@logged
def neg(self: ToyTensor) -> td.Tensor:
    return toy_tensor(-self.buffer)


@logged
def full(shape: Sequence[int], fill_value: complex, *, dtype: DType | None, device: str) -> td.Tensor:
    made = np.full(shape, fill_value, (dtype or td.asarray(fill_value).dtype).np)
    return toy_tensor(negated(made))


# -- the fallback ------------------------------------------------------------------------------------------------------
def fallback(
    op: Operator, keyset: td.DispatchKeySet, args: tuple[object, ...], kwargs: dict[str, object]
) -> object:
    """Run any other operator on the CPU: copy its arguments there, and its results to the device."""
    log.append((op.schema.name, "fallback"))
    return by_cpu(op, args, kwargs)


def by_cpu(op: Operator, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
    """Run an operator on the CPU; what it writes there is written on the device."""
    there: Copies = {}
    given = {name: fetched(value, there) for name, value in kwargs.items()}
    moved = tuple(fetched(value, there) for value in args)
    result = op.redispatch(1 << td.DispatchKey.CPU, *moved, **given)
    for tensor, copy in there.values():
        if op.schema.is_mutable:
            tensor.buffer[...] = negated(copy.numpy())
            tensor.storage().version += 1
    for tensor, copy in there.values():
        if result is copy:  # an in-place operator returns the tensor that it has written
            return tensor
    return sent(result)


def fetched(value: object, there: Copies) -> object:
    if isinstance(value, ToyTensor):
        return there.setdefault(id(value), (value, to_cpu(value)))[1]
    if isinstance(value, tuple):
        return tuple(fetched(item, there) for item in value)
    return "cpu" if value == DEVICE and isinstance(value, str) else value


def sent(value: object) -> object:
    if isinstance(value, td.Tensor):
        return from_cpu(value, DEVICE)
    return tuple(map(sent, value)) if isinstance(value, tuple) else value


# -- registration ------------------------------------------------------------------------------------------------------
def install() -> None:
    """Register the device, its kernels and its fallback."""
    if _installed:
        return
    device = td.register_device(
        DEVICE, "PrivateUse1", from_cpu=from_cpu, to_cpu=to_cpu, tensor_class=ToyTensor
    )
    library = td.Library("td", "IMPL")  # what is registered through it stays as long as it does
    library.impl("add.Tensor", add, "PrivateUse1")
    library.impl("neg", neg, "PrivateUse1")
    library.impl("full", full, "PrivateUse1")
    library.fallback(fallback, "PrivateUse1")
    _installed.extend([device.remove, library.close])


def uninstall() -> None:
    """Unregister everything."""
    while _installed:
        _installed.pop()()
