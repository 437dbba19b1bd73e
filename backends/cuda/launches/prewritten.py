"""Nodes of compiled graphs that run the prewritten kernels of eager operators: scans, random bits.

Native code launches them; all parameters of a launch except addresses are constants, computed at lowering.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....lowering.layout import Layout
from ....lowering.thunks import NodeThunk
from ....named_tuple import NamedTuple
from ....tracer.graph import Node
from . import prewritten_random, prewritten_scans
from .prewritten_text import Launch


class Prewritten(NamedTuple):
    """The prewritten kernels of an operator.

    Attributes:
        takes: whether the kernels can compute a node.
        launches: the launches of a step.
        dense: whether operands have to be contiguous.
    """

    takes: Callable[[Node], bool]
    launches: Callable[[NodeThunk], list[Launch]]
    dense: bool = True


_SCAN = Prewritten(prewritten_scans.can_scan, prewritten_scans.scan)
_RANDOM_BITS = Prewritten(prewritten_random.can_draw, prewritten_random.draw_bits)
PREWRITTEN = {
    "td::random_bits": _RANDOM_BITS,
    "td::random_split": _RANDOM_BITS,
    "td::random_fold_in": Prewritten(prewritten_random.can_fold_in, prewritten_random.fold_in),
    "td::random_key": Prewritten(prewritten_random.can_make_keys, prewritten_random.make_keys),
    "td::random_pick": Prewritten(prewritten_random.can_search, prewritten_random.search_bounds),
}


def _lookup(node: Node) -> Prewritten | None:
    return _SCAN if getattr(node.op.decl, "kind", "") == "scan" else PREWRITTEN.get(node.op.name)


def explain_prewritten(node: Node) -> str | None:
    """The reason why prewritten kernels compute a node; None if they do not."""
    result = _lookup(node)
    return "its kernels are launched directly" if result is not None and result.takes(node) else None


def prewritten_operands_to_copy(node: Node, layouts: Sequence[Layout]) -> Sequence[bool]:
    """For each operand, whether it is copied first; some kernels support any strides."""
    result = _lookup(node)
    dense = result is not None and result.dense
    return [dense and not layout._replace(offset=0).is_contiguous for layout in layouts]


def make_launches(step: NodeThunk) -> list[Launch]:
    """The launches of a node that :func:`explain_prewritten` has accepted."""
    result = _lookup(step.node)
    return result.launches(step) if result is not None and step.node.outputs[0].spec.size else []
