"""Nodes of compiled graphs that are served by kernels which eager operators have too, launched by machine code: reading
and writing by position, scans, random words. Everything about a launch but addresses is decided at lowering.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...lowering.layout import Layout
from ...lowering.steps import NodeStep
from ...tracer.graph import Node
from . import direct_positions, direct_scans, direct_words
from .direct_text import Launch
from .lowered_ops import ADD_ROWS, CHECKED


class Served(NamedTuple):
    """How nodes of an operator are served.

    Attributes:
        takes: whether one is.
        launches: the kernels of its step.
        dense: whether operands have to be contiguous.
    """

    takes: Callable[[Node], bool]
    launches: Callable[[NodeStep], list[Launch]]
    dense: bool = True


_SCAN = Served(direct_scans.scans, direct_scans.scan)
_WORDS = Served(direct_words.draws, direct_words.words)
SERVED = {
    CHECKED: Served(direct_positions.is_checked, direct_positions.checked),
    ADD_ROWS: Served(direct_positions.adds, direct_positions.add_rows, False),
    "td::index": Served(direct_positions.reads, direct_positions.gather, False),
    "td::index_put": Served(direct_positions.writes, direct_positions.put, False),
    "td::random_bits": _WORDS,
    "td::random_split": _WORDS,
    "td::random_fold_in": Served(direct_words.folds_in, direct_words.folded_keys),
    "td::random_key": Served(direct_words.makes_keys, direct_words.keys_of_seeds),
    "td::random_pick": Served(direct_words.searches, direct_words.picked),
}


def _served(node: Node) -> Served | None:
    return _SCAN if getattr(node.op.decl, "kind", "") == "scan" else SERVED.get(node.op.name)


def direct_reason(node: Node) -> str | None:
    """Why a node is served by launches from machine code, or None if it is not."""
    found = _served(node)
    return "its kernels are launched directly" if found is not None and found.takes(node) else None


def copied_operands(node: Node, layouts: Sequence[Layout]) -> Sequence[bool]:
    """Which operands have to be copied first; some kernels take any strides."""
    found = _served(node)
    dense = found is not None and found.dense
    return [dense and not layout._replace(offset=0).is_contiguous for layout in layouts]


def launches_of(step: NodeStep) -> list[Launch]:
    """The kernels that serve a node which :func:`direct_reason` has accepted."""
    found = _served(step.node)
    return found.launches(step) if found is not None and step.node.outputs[0].spec.size else []
