"""Rewrite nodes to the form that prewritten kernels support (:mod:`.prewritten`).

Scanned lines become contiguous, seeds and numbers get the dtype of the kernels. The inserted casts and copies are fused
with other kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....eager.tensor.tensor import wrap
from ....lowering.kernel_selection import NUMBERS
from ....lowering.passes.loop_passes import Writer
from ....lowering.passes.rewrite import replace_each
from ....registry.dtypes import DType, int64, uint64
from ....registry.values import TensorSpec
from ....tracer.graph import Graph, Node, Value
from .prewritten_scans import can_scan
from .prewritten_text import are_tensors


def normalize(graph: Graph) -> Graph:
    """Rewrite the nodes of a graph to the form that prewritten kernels support, where possible."""
    return replace_each(graph, _normalize_node)


def _normalize_node(node: Node, out: Graph) -> tuple[Value] | None:
    kind = getattr(node.op.decl, "kind", "")
    rewrite: Any = _scan if kind == "scan" else _NORMALIZERS.get(node.op.name)
    result: Value | None = None if rewrite is None else rewrite(node, _Normalizer(out, node))
    return None if result is None else (result,)


class _Normalizer(Writer):
    """Appends the nodes that replace a node."""

    def __init__(self, out: Graph, node: Node):
        super().__init__(out.nodes, node.source)
        self._out, self._node = out, node

    def append_op(self, name: str, args: tuple[Any, ...], shape: Any, result: DType, **options: Any) -> Value:
        """The result of an operator."""
        device = self._node.outputs[0].spec.device
        return self.call(name, args, shape, Value(TensorSpec((), result, device)), **options)

    def cast(self, x: Value, dtype: DType) -> Value:
        """Cast a tensor to a dtype."""
        return x if x.spec.dtype is dtype else self.append_op("td::cast", (x, dtype), x.shape, dtype)

    def tensor(self, given: Any, dtype: DType) -> Value | None:
        """Convert a tensor, a number or a weak value to a tensor of a dtype; None if that is impossible."""
        if isinstance(given, NUMBERS):
            return self._constant(given, dtype)
        if not isinstance(given, Value) or given.weak is complex:
            return None
        if given.weak is None:
            return self.cast(given, dtype)
        first = int64 if given.weak is int else dtype
        device = self._node.outputs[0].spec.device
        return self.cast(
            self.append_op("td::full", ((), given), (), first, dtype=first, device=device), dtype
        )

    def _constant(self, number: Any, dtype: DType) -> Value:
        value = Value(TensorSpec((), dtype, self._node.outputs[0].spec.device))
        value.index = len(self._out.captured)
        self._out.captured.append(value)
        with np.errstate(all="ignore"):
            self._out.constants.append(wrap(np.asarray(number).astype(dtype.np)))
        return value

    def rebuild(self, args: tuple[Any, ...], dtype: DType | None = None) -> Value | None:
        """The node with other arguments, and its result cast back from ``dtype``; None if no argument differs."""
        node, out = self._node, self._node.outputs[0]
        if all(one is other for one, other in zip(_leaves(args), _leaves(node.args), strict=True)):
            return None
        result = self.append_op(node.op.name, args, out.shape, dtype or out.spec.dtype, **node.kwargs)
        return self.cast(result, out.spec.dtype)


def _leaves(args: tuple[Any, ...]) -> list[Any]:
    return [leaf for arg in args for leaf in (arg if isinstance(arg, (list, tuple)) else (arg,))]


# -- by operator -------------------------------------------------------------------------------------------------------
def _scan(node: Node, write: _Normalizer) -> Value | None:
    """Scan columns that are fewer than the threads of a warp as rows of a transposed copy."""
    x, axis = node.args[:2]
    if not are_tensors(x) or can_scan(node):
        return None
    rank, dtype = len(x.shape), node.outputs[0].spec.dtype
    order = tuple(d for d in range(rank) if d != axis % rank) + (axis % rank,)
    back = tuple(order.index(d) for d in range(rank))
    shape = tuple(x.shape[d] for d in order)
    rows = write.append_op("td::permute", (x, order), shape, x.spec.dtype)
    result = write.append_op(node.op.name, (rows, rank - 1), shape, dtype, **node.kwargs)
    turned = write.append_op("td::permute", (result, back), x.shape, dtype)
    return write.append_op("td::clone", (turned,), x.shape, dtype)


def _fold_in(node: Node, write: _Normalizer) -> Value | None:
    key, data = node.args
    numbers = write.tensor(data % 2**64 if isinstance(data, int) else data, uint64)
    if numbers is None or not are_tensors(key):
        return None
    shape = node.outputs[0].shape
    if key.shape != shape:
        key = write.append_op("td::broadcast_to", (key, shape), shape, key.spec.dtype)
    if numbers.shape != shape[:-1]:
        numbers = write.append_op("td::broadcast_to", (numbers, shape[:-1]), shape[:-1], uint64)
    return write.rebuild((key, numbers))


def _key(node: Node, write: _Normalizer) -> Value | None:
    seed = write.tensor(node.args[0] if isinstance(node.args[0], Value) else None, uint64)
    return None if seed is None else write.rebuild((seed,))


def _pick(node: Node, write: _Normalizer) -> Value | None:
    bounds, x = node.args
    return write.rebuild((write.cast(bounds, x.spec.dtype), x)) if are_tensors(bounds, x) else None


_NORMALIZERS = {
    "td::random_fold_in": _fold_in,
    "td::random_key": _key,
    "td::random_pick": _pick,
}
