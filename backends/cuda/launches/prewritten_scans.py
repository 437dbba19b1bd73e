"""Launches of scans in compiled graphs, by the kernels of eager scans."""

from __future__ import annotations

from ....lowering.thunks import NodeThunk
from ....tracer.graph import Node
from ..codegen.kernel import WORKSPACE
from ..kernels.folds import Sizes
from ..kernels.scans import choose_scan_variant, line_sizes, scan_launches
from .prewritten_text import Address, Launch, Scratch, are_tensors

OUT_INDEX = 1  # index of the result among the parameters, after the operand


def scan_sizes(node: Node) -> Sizes:
    """Return the (outer, length, inner) sizes of a scan."""
    return line_sizes(node.op.schema.name, node.args[0].shape, node.args[1])


def can_scan(node: Node) -> bool:
    """Whether the kernels support a scan; they do not where eager scans transpose a copy."""
    if not are_tensors(node.args[0]):
        return False
    return not node.outputs[0].spec.size or choose_scan_variant(scan_sizes(node))[0] != "transposed"


def scan(step: NodeThunk) -> list[Launch]:
    """Return the launches of a scan: one, or two if several thread blocks share a line."""
    node, operand, out = step.node, step.node.args[0].spec, step.node.outputs[0].spec
    launches = scan_launches(node.op.decl.fold, operand.dtype, out.dtype, scan_sizes(node))
    pointers = {0: Address(0), OUT_INDEX: Address(OUT_INDEX), WORKSPACE: Scratch(0)}
    return [
        Launch(
            kernel._replace(grid=grid, temporaries=launches.workspace),
            (*(pointers[param] for param in kernel.params), *launches.counts),
        )
        for kernel, grid in launches.kernels
    ]
