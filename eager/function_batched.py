"""A :class:`.function.Function` under ``vmap`` where gradients are taken around it: forward and backward on the batch.

Source: ``generate_vmap_rule`` of ``torch.autograd.Function``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from . import made
from .batched.tensor import BatchedTensor, wrap_batched
from .context import Context
from .dunders import by_name
from .levels import Level, stack
from .results import flat, map_results

Methods = dict[str, Callable[..., Any]]


@contextmanager
def again(level: Level) -> Iterator[Level]:
    """A level of vmap, which may have ended, as the innermost for a ``with`` block: a rule runs on a batch of it."""
    depth, is_open = level.depth, level.is_open
    level.depth, level.is_open = len(stack.levels) + 1, True
    stack.levels.append(level)
    made.opened()
    try:
        yield level
    finally:
        made.closed()
        stack.levels.pop()
        level.depth, level.is_open = depth, is_open


def unwrap_all(level: Level, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[bool]]:
    """What the values of a level wrap, and which were values of it."""
    batched = [isinstance(value, BatchedTensor) and value._level is level for value in args]
    return tuple(v._payload if is_batched else v for v, is_batched in zip(args, batched)), batched


def wrap_all(level: Level, values: Any, batched: list[bool]) -> list[Any]:
    """Values of a level, of those that ``batched`` says."""
    return [
        wrap_batched(level, value) if is_batched and value is not None else value
        for value, is_batched in zip(values, batched)
    ]


class _Batch:
    """The methods of the Function that does on a whole batch what another does on an example."""

    def __init__(self, cls: Any, level: Level, batched: list[bool]):
        self.cls, self.level, self.batched = cls, level, batched
        self.results: list[bool] = []

    def forward(self, *raw: Any) -> Any:
        with again(self.level) as level:
            out = self.cls.forward(*wrap_all(level, raw, self.batched))
            found, self.results = unwrap_all(level, tuple(flat(out)))
        return map_results(lambda _, number: found[number], out)

    def setup_context(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.inner = Context(ctx.needs_input_grad)
        with again(self.level) as level:
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
        ctx.set_materialize_grads(ctx.inner._fills)

    def backward(self, ctx: Any, *grads: Any) -> Any:
        with again(self.level) as level:
            ctx.inner._to_save = tuple(wrap_all(level, ctx.saved_tensors, ctx.batched))
            found = self.cls.backward(ctx.inner, *wrap_all(level, grads, self.results))
            ctx.inner._to_save = ()
            raw, batched = unwrap_all(level, found if isinstance(found, tuple) else (found,))
        gradients = [
            fit_batch(self.level, g, given, wanted) for g, given, wanted in zip(raw, batched, self.batched)
        ]
        return (*gradients, *raw[len(gradients) :])


def fit_batch(level: Level, gradient: Any, is_batched: bool, is_wanted: bool) -> Any:
    """A gradient with the batch in front where the input has it, and summed over the batch where not."""
    if gradient is None or is_batched == is_wanted:
        return gradient
    if is_batched:
        return by_name("sum")(gradient, 0)
    return by_name("broadcast_to")(gradient, (level.batch_size, *gradient.shape))


def batch_of(cls: Any, base: type, level: Level, batched: list[bool]) -> tuple[Any, _Batch]:
    """The Function that works on a whole batch, and which of its results have the batch, once it has run."""
    batch = _Batch(cls, level, batched)
    methods = {name: staticmethod(getattr(batch, name)) for name in ("forward", "setup_context", "backward")}
    return type(cls.__name__, (base,), methods), batch
