"""The Python dispatcher taken apart: the same call with one layer at a time replaced by its ready answer.

What a variant saves is that layer's part; what is left when every layer is replaced is the bare call.  A subclass
of Operator changes one method, so that all variants run the dispatcher's own ``__call__``.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import asarray
from ..eager.tensor import wrap
from ..registry.binding import Binder
from ..registry.keys import CPU_KEYS
from ..registry.operator import Entry, Operator, find
from .compare import call
from .measure import Case, Timing, interleave
from .results import Split

PATH = "Python dispatcher"
Override = dict[str, Any]


class _ReadyBinder(Binder):
    """A binder that has bound this call already."""

    def __init__(self, op: Operator, bound: tuple[tuple[Any, ...], dict[str, Any]]):
        super().__init__(op.schema)
        self.bound = bound

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return self.bound


def _variant(op: Operator, methods: Override, slots: Override) -> Operator:
    """A copy of an operator with some methods and slots replaced; the registry does not know it."""
    copy: Operator = object.__new__(type("Variant", (Operator,), {"__slots__": (), **methods}))
    for name in Operator.__slots__:
        if name != "__weakref__":
            setattr(copy, name, slots.get(name, getattr(op, name)))
    return copy


def _layers(op: Operator, args: tuple[Any, ...]) -> dict[str, tuple[Override, Override]]:
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


def _bare(layers: dict[str, tuple[Override, Override]], result: Any) -> tuple[Override, Override]:
    """Every layer taken away at once."""
    methods: Override = {}
    slots: Override = {}
    for own_methods, own_slots in layers.values():
        methods.update(own_methods)
        slots.update(own_slots)
    methods["dispatch"] = lambda self, keyset, args, kwargs: result
    return methods, slots


def _inside_kernel(args: tuple[Any, ...]) -> dict[str, Case]:
    """The pieces of NumPy's own work, and the result object, each as a case of its own."""
    x, y = (np.asarray(arg) for arg in args)
    names = {"add": np.add, "x": x, "y": y, "out": np.add(x, y), "wrap": wrap}
    return {
        "numpy": Case("add(x, y)", names),
        "numpy into a buffer": Case("add(x, y, out)", names),
        "wrapping": Case("wrap(x)", names),
    }


def _parts(times: dict[str, Timing], layers: list[str]) -> dict[str, float]:
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
    op = find("td::add.Tensor")
    args = (asarray(np.ones(size, np.float32)), asarray(np.ones(size, np.float32)))
    layers = _layers(op, args)
    variants = {name: _variant(op, *change) for name, change in layers.items()}
    variants["bare"] = _variant(op, *_bare(layers, op(*args)))
    cases = {"whole": call(_variant(op, {}, {}), args)}
    cases |= {name: call(variant, args) for name, variant in variants.items()} | _inside_kernel(args)
    timings = interleave(cases, seconds=seconds)
    note = "TANDEM_NATIVE=0, and whatever has no stub"
    return Split(PATH, f"add, float32[{size}]", timings["whole"], _parts(timings, list(layers)), note)


def recording_split(size: int = 16, seconds: float = 0.5) -> Split:
    """The same with a gradient recorded: what the Autograd key's boxed kernel adds."""
    op = find("td::add.Tensor")
    ones = np.ones(size, np.float32)
    args = (asarray(ones, requires_grad=True), asarray(ones))
    below = _variant(op, {"keyset": _below_autograd(op)}, {})
    timings = interleave(
        {"whole": call(_variant(op, {}, {}), args), "below": call(below, args)}, seconds=seconds
    )
    under = timings["below"].median
    parts = {"autograd": timings["whole"].median - under, "all below autograd": under}
    return Split(f"{PATH}, recording", f"add, float32[{size}]", timings["whole"], parts)


def _below_autograd(op: Operator) -> Callable[..., int]:
    """The key set method of an operator, computed as ever and then left for the backend alone."""

    def keyset(self: Operator, args: Any, kwargs: Any) -> int:
        return Operator.keyset(self, args, kwargs) & CPU_KEYS

    return keyset
