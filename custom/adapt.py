"""Python functions as kernels: what is written has to be writable, and several results are a tuple."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..eager.inplace import check_writable
from ..eager.tensor import Tensor
from ..errors import ArgumentError
from ..registry.schema import Schema
from ..registry.values import describe

Kernel = Callable[..., Any]


def adapted(schema: Schema, fn: Kernel) -> Kernel:
    """The kernel of a function, which holds it to what the schema says about results and writing."""
    single = len(schema.returns) == 1 and schema.returns[0].type.form == "base"
    tensor = single and schema.returns[0].type.core == "Tensor"
    kernel = _new_tensor(schema, fn) if tensor else fn if single else _shaped(schema, fn)
    if kernel is fn and not schema.is_mutable:
        return fn
    if schema.is_mutable:
        kernel = _checked(schema, kernel)
    kernel.__qualname__ = getattr(fn, "__qualname__", repr(fn))
    return kernel


def _new_tensor(schema: Schema, fn: Kernel) -> Kernel:
    """One new tensor: an array would lose the history, and an argument would be written when the result is."""

    def kernel(*args: Any, **kwargs: Any) -> Any:
        found = fn(*args, **kwargs) if kwargs else fn(*args)
        if not isinstance(found, Tensor):
            raise ArgumentError(
                f"{schema.full_name}: its kernel gives {describe(found)}, and by the schema Tensor; return "
                "td.asarray(array), or register it with td.numpy_kernel(fn) if it works on arrays"
            )
        for arg in args:
            if arg is found:
                raise ArgumentError(
                    f"{schema.full_name}: its result is one of its arguments, so it shares memory with it, and results "
                    "of a custom op are new tensors; return x.clone()"
                )
        return found

    return kernel


def _shaped(schema: Schema, fn: Kernel) -> Kernel:
    """Results as the schema has them: none, or a tuple of the right length."""
    count = len(schema.returns)
    listed = count == 1

    def kernel(*args: Any, **kwargs: Any) -> Any:
        found = fn(*args, **kwargs)
        if not count:
            return None
        if isinstance(found, (tuple, list)) and (listed or len(found) == count):
            return tuple(found)
        wanted = "a list of tensors" if listed else f"{count} results"
        raise ArgumentError(
            f"{schema.full_name}: its kernel gives {wanted} by the schema, not {_seen(found)}"
        )

    return kernel


def _seen(found: Any) -> str:
    return f"{len(found)}" if isinstance(found, (tuple, list)) else describe(found)


def _checked(schema: Schema, fn: Kernel) -> Kernel:
    """A kernel that writes, which the memory has to allow. That it was written is counted by the layer above."""
    places = [(place, a.name) for place, a in enumerate(schema.positional) if a.is_write]
    keywords = [a.name for a in schema.arguments if a.is_write and a.kwarg_only]

    def kernel(*args: Any, **kwargs: Any) -> Any:
        targets = [*_tensors([args[place] for place, _ in places]), *_tensors([kwargs[n] for n in keywords])]
        for target in targets:
            if type(target) is Tensor:
                check_writable(schema.full_name, target)
        return fn(*args, **kwargs)

    return kernel


def _tensors(values: list[Any]) -> list[Tensor]:
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, tuple):
            found += _tensors(list(value))
    return found
