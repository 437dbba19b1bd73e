"""The time of each layer of the Python dispatcher: time a call with one layer at a time replaced by a constant.

The time that a variant saves is that of its layer; the variant with every layer replaced is the bare call. A subclass
of Operator overrides one method, so that all variants run the dispatcher's own ``__call__``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import asarray
from ...eager.tensor.tensor import wrap
from ...registry.dispatch.keys import CPU_KEYS
from ...registry.operator import Entry, Operator, find_operator
from ...registry.schemas.binding import Binder
from .compare import make_call_case
from .measure import Case, Timing, interleave
from .results import Split

if TYPE_CHECKING:
    from ...registry.types import Args, Kwargs

PATH = "Python dispatcher"
Override = dict[str, Any]


class _ReadyBinder(Binder):
    """A binder that has bound this call already."""

    def __init__(self, op: Operator, bound: tuple[tuple[object, ...], dict[str, object]]):
        super().__init__(op.schema)
        self.bound = bound

    def bind(self, args: Args, kwargs: Kwargs) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return self.bound


def _make_variant(op: Operator, methods: Override, slots: Override) -> Operator:
    """A copy of an operator with some methods and slots replaced; the registry does not know it.

    The derivative refers to the operator that it runs, so the copy makes one of its own.
    """
    copy: Operator = object.__new__(type("Variant", (Operator,), {"__slots__": (), **methods}))
    for name in Operator.__slots__:
        if name != "__weakref__":
            setattr(copy, name, slots.get(name, getattr(op, name)))
    copy.derivative = None
    return copy


def _layer_overrides(op: Operator, args: tuple[object, ...]) -> dict[str, tuple[Override, Override]]:
    """For each layer the methods and the slots that take it away."""
    bound, kwargs = op.binder.bind(args, {})
    keyset = op.keyset(bound, kwargs)
    table, mask = op._published or op._publish()
    entry = table[(keyset & mask).bit_length() - 1]
    result = op(*args)
    ready = Entry("kernel", None, lambda *args, **kwargs: result)

    def looked_up(self: Operator, keyset: int, args: Any, kwargs: Any) -> Any:
        return entry.fn(*args, **kwargs)

    return {
        "arguments": ({}, {"_binder": _ReadyBinder(op, (bound, kwargs))}),
        "key set": ({"keyset": lambda self, args, kwargs: keyset}, {}),
        "lookup": ({"dispatch": looked_up}, {}),
        "kernel": ({}, {"_published": ((ready,) * len(table), mask)}),
    }


def _remove_all_layers(
    layers: dict[str, tuple[Override, Override]], result: object
) -> tuple[Override, Override]:
    """Every layer taken away at once."""
    methods: Override = {}
    slots: Override = {}
    for own_methods, own_slots in layers.values():
        methods.update(own_methods)
        slots.update(own_slots)
    methods["dispatch"] = lambda self, keyset, args, kwargs: result
    return methods, slots


def _kernel_cases(args: Args) -> dict[str, Case]:
    """The pieces of NumPy's own work, and the result object, each as a separate case."""
    x, y = (np.asarray(arg) for arg in args)
    names = {"add": np.add, "x": x, "y": y, "out": np.add(x, y), "wrap": wrap}
    return {
        "numpy": Case("add(x, y)", names),
        "numpy into a buffer": Case("add(x, y, out)", names),
        "wrapping": Case("wrap(x)", names),
    }


def _split_times(times: dict[str, Timing], layers: list[str]) -> dict[str, float]:
    whole = times["whole"]
    parts = {"call": times["bare"].median} | {name: max(0.0, whole.saved_by(times[name])) for name in layers}
    kernel = parts.pop("kernel")
    inside = {
        "allocation": max(0.0, times["numpy"].saved_by(times["numpy into a buffer"])),
        "arithmetic (NumPy)": times["numpy into a buffer"].median,
        "result": times["wrapping"].median,
    }
    return parts | {"dtype and shape rules": max(0.0, kernel - sum(inside.values()))} | inside


def python_split(size: int = 16, seconds: float = 1.0) -> Split:
    """``add`` of two plain tensors through the Python dispatcher."""
    op = find_operator("td::add.Tensor")
    args = (asarray(np.ones(size, np.float32)), asarray(np.ones(size, np.float32)))
    layers = _layer_overrides(op, args)
    variants = {name: _make_variant(op, *change) for name, change in layers.items()}
    variants["bare"] = _make_variant(op, *_remove_all_layers(layers, op(*args)))
    cases = {"whole": make_call_case(_make_variant(op, {}, {}), args)}
    cases |= {name: make_call_case(variant, args) for name, variant in variants.items()} | _kernel_cases(args)
    timings = interleave(cases, seconds=seconds)
    note = "TANDEM_NATIVE=0, and whatever has no stub"
    parts = _split_times(timings, list(layers))
    return Split(PATH, f"add, float32[{size}]", timings["whole"], parts, note, checked=True)


def recording_split(size: int = 16, seconds: float = 0.5) -> Split:
    """The same with a gradient recorded: what the Autograd key's boxed kernel adds."""
    op = find_operator("td::add.Tensor")
    ones = np.ones(size, np.float32)
    args = (asarray(ones, requires_grad=True), asarray(ones))
    masked, ready = {"keyset": _make_backend_keyset(op)}, {"dispatch": _make_ready_dispatch(ones)}
    methods = {"whole": {}, "below": masked, "recorded": ready, "bare": masked | ready}
    timings = interleave(
        {name: make_call_case(_make_variant(op, own, {}), args) for name, own in methods.items()},
        seconds=seconds,
    )
    parts = {
        "autograd": max(0.0, timings["recorded"].saved_by(timings["bare"])),
        "all below autograd": timings["below"].median,
    }
    about = f"add, float32[{size}]"
    return Split(f"{PATH}, recording", about, timings["whole"], parts, "cold operators", checked=True)


def _make_ready_dispatch(array: Any) -> Callable[..., Any]:
    """The dispatch method of an operator, with a new tensor of a ready array in place of what is below Autograd."""

    def dispatch(self: Operator, keyset: int, args: Any, kwargs: Any) -> Any:
        return Operator.dispatch(self, keyset, args, kwargs) if keyset & ~CPU_KEYS else wrap(array)

    return dispatch


def _make_backend_keyset(op: Operator) -> Callable[..., int]:
    """The key set method of an operator, computed as ever and then left for the backend alone."""

    def keyset(self: Operator, args: Any, kwargs: Any) -> int:
        return Operator.keyset(self, args, kwargs) & CPU_KEYS

    return keyset
