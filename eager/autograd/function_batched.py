"""A :class:`.function.Function` under ``vmap`` inside a gradient: forward and backward run on the whole batch.

Source: ``generate_vmap_rule`` of ``torch.autograd.Function``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..layers import level_allocations
from ..layers.levels import Level, stack
from ..layers.vmap.tensor import BatchedTensor, wrap_batched
from ..tensor.dunders import by_name
from ..tensor.results import flat, map_results
from .context import Context

if TYPE_CHECKING:
    from ...registry.types import Args
    from .function import Function


@contextmanager
def reopen_batch_level(level: Level) -> Iterator[Level]:
    """Context manager: make a level of vmap, which may have ended, the innermost level."""
    before_call = level.depth, level.is_open, level.scope
    level.depth, level.is_open = len(stack.levels) + 1, True
    before, stack.levels = stack.levels, [*stack.levels, level]
    level.scope = level_allocations.scope_count()
    level_allocations.open_scope()
    try:
        yield level
    finally:
        level_allocations.close_scope()
        stack.levels = before
        level.depth, level.is_open, level.scope = before_call


def unwrap_all(level: Level, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[bool]]:
    """The payloads of a level's values (other values unchanged), and a flag for each: whether it was one."""
    batched = [isinstance(value, BatchedTensor) and value._level is level for value in args]
    return tuple(v._payload if is_batched else v for v, is_batched in zip(args, batched)), batched


def wrap_all(level: Level, values: Iterable[Any], batched: list[bool]) -> list[object]:
    """Wrap the values whose flag is set as values of a level."""
    return [
        wrap_batched(level, value) if is_batched and value is not None else value
        for value, is_batched in zip(values, batched)
    ]


class _BatchedMethods:
    """Methods of a Function on a whole batch, made from those of a Function on one example."""

    def __init__(self, cls: type[Function], level: Level, batched: list[bool]):
        self.cls, self.level, self.batched = cls, level, batched
        self.results: list[bool] = []

    def forward(self, *raw: object) -> object:
        with reopen_batch_level(self.level) as level:
            out = self.cls.forward(*wrap_all(level, raw, self.batched))
            value, self.results = unwrap_all(level, tuple(flat(out)))
        return map_results(lambda _, number: value[number], out)

    def setup_context(self, ctx: Any, inputs: Args, output: object) -> None:
        ctx.inner = Context(ctx.needs_input_grad)
        with reopen_batch_level(self.level) as level:
            results = wrap_all(level, flat(output), self.results)
            wrapped = map_results(lambda _, number: results[number], output)
            self.cls.setup_context(ctx.inner, tuple(wrap_all(level, inputs, self.batched)), wrapped)
            saved, ctx.batched = unwrap_all(level, ctx.inner._to_save)
            constant, _ = unwrap_all(level, ctx.inner._constant)
            dirty, _ = unwrap_all(level, ctx.inner._dirty)
        ctx.inner._to_save = ctx.inner._constant = ctx.inner._dirty = ()
        ctx.save_for_backward(*saved)
        ctx.mark_non_differentiable(*constant)
        ctx.mark_dirty(*dirty)
        ctx.set_materialize_grads(ctx.inner._materializes)

    def backward(self, ctx: Any, *grads: object) -> object:
        with reopen_batch_level(self.level) as level:
            ctx.inner._to_save = tuple(wrap_all(level, ctx.saved_tensors, ctx.batched))
            result = self.cls.backward(ctx.inner, *wrap_all(level, grads, self.results))
            ctx.inner._to_save = ()
            raw, batched = unwrap_all(level, result if isinstance(result, tuple) else (result,))
        gradients = [
            fit_batch(self.level, g, given, wanted) for g, given, wanted in zip(raw, batched, self.batched)
        ]
        return (*gradients, *raw[len(gradients) :])


def fit_batch(level: Level, gradient: Any, is_batched: bool, is_wanted: bool) -> Any:
    """Broadcast a gradient along the batch axis, or sum it over that axis, to match its input."""
    if gradient is None or is_batched == is_wanted:
        return gradient
    if is_batched:
        return by_name("sum")(gradient, 0)
    return by_name("broadcast_to")(gradient, (level.batch_size, *gradient.shape))


def make_batched_function(
    cls: type[Function], base: type, level: Level, batched: list[bool]
) -> tuple[type[Function], _BatchedMethods]:
    """Create the Function that runs on a whole batch, and the object that knows its batched results after the call."""
    batch = _BatchedMethods(cls, level, batched)
    methods = {name: staticmethod(getattr(batch, name)) for name in ("forward", "setup_context", "backward")}
    return type(cls.__name__, (base,), methods), batch
