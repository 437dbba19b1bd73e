"""Nodes brought into the form that the kernels of :mod:`.direct` take: positions of int64, values of a dtype that the
device adds up, lines that lie one after the other. Casts and copies are operators, and become part of kernels around.
So do all of ``eye`` and of ``concat``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...eager.tensor import wrap
from ...lowering.loop_passes import Writer
from ...lowering.resolve import NUMBERS
from ...lowering.rewrite import replace_each
from ...registry.dtypes import DType, bool_, int64, uint64
from ...registry.values import TensorSpec
from ...tracer.graph import Graph, Node, Value
from .direct_positions import plain
from .direct_scans import scans
from .gathers import accumulator
from .lowered_ops import ADD_ROWS, CHECKED


def in_form(graph: Graph) -> Graph:
    """The graph with nodes in the form that kernels take, where there is one."""
    return replace_each(graph, _in_form)


def _in_form(node: Node, out: Graph) -> Value | None:
    kind = getattr(node.op.decl, "kind", "")
    form: Any = _scan if kind == "scan" else _FORMS.get(node.op.name)
    return None if form is None else form(node, _Forms(out, node))


class _Forms(Writer):
    """Appends what stands for a node."""

    def __init__(self, out: Graph, node: Node):
        super().__init__(out.nodes, node.source)
        self._out, self._node = out, node

    def made(self, name: str, args: tuple[Any, ...], shape: Any, result: DType, **options: Any) -> Value:
        """The result of an operator."""
        device = self._node.outputs[0].spec.device
        return self.call(name, args, shape, Value(TensorSpec((), result, device)), **options)

    def typed(self, x: Value, dtype: DType) -> Value:
        """A tensor in a dtype."""
        return x if x.spec.dtype is dtype else self.made("td::cast", (x, dtype), x.shape, dtype)

    def places(self, indices: Any) -> tuple[Any, ...]:
        """Index tensors of int64."""
        return tuple(self.tensor(one, int64) for one in indices)

    def tensor(self, given: Any, dtype: DType) -> Value | None:
        """A tensor, a number, or a number that is known at the call, as a tensor of a dtype; None: as no such one."""
        if isinstance(given, NUMBERS):
            return self._constant(given, dtype)
        if not isinstance(given, Value) or given.weak is complex:
            return None
        if given.weak is None:
            return self.typed(given, dtype)
        first = int64 if given.weak is int else dtype
        device = self._node.outputs[0].spec.device
        return self.typed(self.made("td::full", ((), given), (), first, dtype=first, device=device), dtype)

    def _constant(self, number: Any, dtype: DType) -> Value:
        value = Value(TensorSpec((), dtype, self._node.outputs[0].spec.device))
        value.index = len(self._out.captured)
        self._out.captured.append(value)
        with np.errstate(all="ignore"):
            self._out.constants.append(wrap(np.asarray(number).astype(dtype.np)))
        return value

    def again(self, args: tuple[Any, ...], dtype: DType | None = None) -> Value | None:
        """The node with other arguments, and a result of a dtype that is cast back; None if they are what it had."""
        node, out = self._node, self._node.outputs[0]
        if all(one is other for one, other in zip(_leaves(args), _leaves(node.args), strict=True)):
            return None
        found = self.made(node.op.name, args, out.shape, dtype or out.spec.dtype, **node.kwargs)
        return self.typed(found, out.spec.dtype)


def _leaves(args: tuple[Any, ...]) -> list[Any]:
    return [leaf for arg in args for leaf in (arg if isinstance(arg, (list, tuple)) else (arg,))]


# -- by operator -------------------------------------------------------------------------------------------------------
def _index(node: Node, write: _Forms) -> Value | None:
    array, indices, axis = node.args
    return write.again((array, write.places(indices), axis)) if plain(array) else None


def _checked(node: Node, write: _Forms) -> Value | None:
    return write.again((write.typed(node.args[0], int64), *node.args[1:]))


def _add_rows(node: Node, write: _Forms) -> Value | None:
    indices, value, shape, axis = node.args
    wide = accumulator(value.spec.dtype)
    return write.again((write.places(indices), write.typed(value, wide), shape, axis), wide)


def _index_put(node: Node, write: _Forms) -> Value | None:
    array, indices, value, axis = node.args
    if not plain(array):
        return None
    own = array.spec.dtype
    wide = accumulator(own) if node.kwargs["accumulate"] else own
    given = write.tensor(value, own)
    if given is None:
        return None
    return write.again(
        (write.typed(array, wide), write.places(indices), write.typed(given, wide), axis), wide
    )


def _scan(node: Node, write: _Forms) -> Value | None:
    """Scan columns that are too few for the threads of a warp as rows of a copy."""
    x, axis = node.args[:2]
    if not plain(x) or scans(node):
        return None
    rank, dtype = len(x.shape), node.outputs[0].spec.dtype
    order = tuple(d for d in range(rank) if d != axis % rank) + (axis % rank,)
    back = tuple(order.index(d) for d in range(rank))
    shape = tuple(x.shape[d] for d in order)
    rows = write.made("td::permute", (x, order), shape, x.spec.dtype)
    found = write.made(node.op.name, (rows, rank - 1), shape, dtype, **node.kwargs)
    turned = write.made("td::permute", (found, back), x.shape, dtype)
    return write.made("td::clone", (turned,), x.shape, dtype)


def _fold_in(node: Node, write: _Forms) -> Value | None:
    key, data = node.args
    numbers = write.tensor(data % 2**64 if isinstance(data, int) else data, uint64)
    if numbers is None or not plain(key):
        return None
    shape = node.outputs[0].shape
    if key.shape != shape:
        key = write.made("td::broadcast_to", (key, shape), shape, key.spec.dtype)
    if numbers.shape != shape[:-1]:
        numbers = write.made("td::broadcast_to", (numbers, shape[:-1]), shape[:-1], uint64)
    return write.again((key, numbers))


def _key(node: Node, write: _Forms) -> Value | None:
    seed = write.tensor(node.args[0] if isinstance(node.args[0], Value) else None, uint64)
    return None if seed is None else write.again((seed,))


def _pick(node: Node, write: _Forms) -> Value | None:
    bounds, x = node.args
    return write.again((write.typed(bounds, x.spec.dtype), x)) if plain(bounds, x) else None


def _concat(node: Node, write: _Forms) -> Value | None:
    """Tensors that are joined flattened, flattened first."""
    tensors, axis = node.args
    if axis is not None or not plain(*tensors):
        return None
    shapes = [(one.spec.size,) for one in tensors]
    flat = [write.made("td::reshape", (x, s), s, x.spec.dtype) for x, s in zip(tensors, shapes, strict=True)]
    return write.again((tuple(flat), 0))


def _eye(node: Node, write: _Forms) -> Value | None:
    """Ones where the number of the row, counted from ``k``, is that of the column: nothing is read for it."""
    out, first = node.outputs[0].spec, node.kwargs["k"]
    rows, columns = out.shape
    options = {"dtype": int64, "device": out.device}
    down = write.made("td::arange", (first, first + rows, 1), (rows,), int64, **options)
    across = write.made("td::arange", (0, columns, 1), (columns,), int64, **options)
    turned = write.made("td::reshape", (down, (rows, 1)), (rows, 1), int64)
    return write.typed(write.made("td::eq.Tensor", (turned, across), out.shape, bool_), out.dtype)


_FORMS = {
    "td::concat": _concat,
    "td::eye": _eye,
    "td::index": _index,
    "td::index_put": _index_put,
    ADD_ROWS: _add_rows,
    CHECKED: _checked,
    "td::random_fold_in": _fold_in,
    "td::random_key": _key,
    "td::random_pick": _pick,
}
