"""Adapt Python functions to kernels: check written arguments and the number of results."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..eager.tensor.inplace import check_writable
from ..eager.tensor.tensor import Tensor
from ..errors import ArgumentError
from ..registry.schemas.schema import Schema
from ..registry.values import describe

Kernel = Callable[..., object]


def adapt_function(schema: Schema, fn: Kernel) -> Kernel:
    """Make a kernel that checks the results and the written arguments of a function against the schema."""
    single = len(schema.returns) == 1 and schema.returns[0].type.form == "base"
    tensor = single and schema.returns[0].type.core == "Tensor"
    kernel = _check_new_tensor(schema, fn) if tensor else fn if single else _check_result_count(schema, fn)
    if kernel is fn and not schema.is_mutable:
        return fn
    if schema.is_mutable:
        kernel = _checked(schema, kernel)
    kernel.__qualname__ = getattr(fn, "__qualname__", repr(fn))
    kernel.is_trusted_kernel = getattr(fn, "is_trusted_kernel", False)  # type: ignore[attr-defined]
    return kernel


def _check_new_tensor(schema: Schema, fn: Kernel) -> Kernel:
    """Make a kernel that raises if the result of ``fn`` is one of its arguments, since it would be an alias."""

    def kernel(*args: object, **kwargs: object) -> object:
        result = fn(*args, **kwargs) if kwargs else fn(*args)
        for arg in args:
            if arg is result:
                raise ArgumentError(
                    f"{schema.full_name}: its result is one of its arguments, so it shares memory with it; results of "
                    "a custom op must be new tensors: return x.clone()"
                )
        return result

    return kernel


def _check_result_count(schema: Schema, fn: Kernel) -> Kernel:
    """Make a kernel that raises if the number of results is not that of the schema."""
    count = len(schema.returns)
    listed = count == 1

    def kernel(*args: object, **kwargs: object) -> object:
        result = fn(*args, **kwargs)
        if not count:
            return None
        if isinstance(result, (tuple, list)) and (listed or len(result) == count):
            return tuple(result)
        wanted = "a list of tensors" if listed else f"{count} results"
        raise ArgumentError(
            f"{schema.full_name}: its kernel must return {wanted} by the schema, not {_describe_results(result)}"
        )

    return kernel


def _describe_results(results: object) -> str:
    return f"{len(results)}" if isinstance(results, (tuple, list)) else describe(results)


def _checked(schema: Schema, fn: Kernel) -> Kernel:
    """Make a kernel that raises if a written argument is read-only; a higher layer increments the versions."""
    indices = [(index, a.name) for index, a in enumerate(schema.positional) if a.is_write]
    keywords = [a.name for a in schema.arguments if a.is_write and a.kwarg_only]

    def kernel(*args: object, **kwargs: object) -> object:
        targets = [
            *_flatten_tensors([args[index] for index, _ in indices]),
            *_flatten_tensors([kwargs[n] for n in keywords]),
        ]
        for target in targets:
            if type(target) is Tensor:
                check_writable(schema.full_name, target)
        return fn(*args, **kwargs)

    return kernel


def _flatten_tensors(values: Iterable[object]) -> list[Tensor]:
    result: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            result.append(value)
        elif isinstance(value, tuple):
            result += _flatten_tensors(value)
    return result
