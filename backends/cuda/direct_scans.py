"""Scans in compiled graphs: the launches of the kernels that eager scans have."""

from __future__ import annotations

from ...lowering.steps import NodeStep
from ...tracer.graph import Node
from .direct_positions import plain
from .direct_text import Address, Launch, Scratch
from .emit.kernel import WORKSPACE
from .folds import Sizes
from .scans import NODES, line_sizes, scan_launches, way_of_scan

OUT = 1  # behind the one operand


def sizes_of(node: Node) -> Sizes:
    """(outer, length, inner) of what a node scans."""
    return line_sizes(node.op.schema.name, node.args[0].shape, node.args[1])


def scans(node: Node) -> bool:
    """Whether a scan is served; lines that are to be turned first are not."""
    if not plain(node.args[0]):
        return False
    return not node.outputs[0].spec.size or way_of_scan(sizes_of(node))[0] != "turned"


def scan(step: NodeStep) -> list[Launch]:
    """The launches: one, or two if blocks share a line."""
    node, given, out = step.node, step.node.args[0].spec, step.node.outputs[0].spec
    found = scan_launches(NODES[node.op.decl.reduce], given.dtype, out.dtype, sizes_of(node))
    places = {0: Address(0), OUT: Address(OUT), WORKSPACE: Scratch(0)}
    return [
        Launch(
            kernel._replace(grid=grid, temporaries=found.workspace),
            (*(places[param] for param in kernel.params), *found.counts),
        )
        for kernel, grid in found.kernels
    ]
