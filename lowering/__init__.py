"""Lowering: from a traced graph to an executable, through passes, kernel selection, fusion and buffer assignment.

lower.py: the stages in order (``STAGES``); ``lower``, ``Lowered``, ``Backend`` and the portable executable
passes/: passes on graphs; on thunks, for backends with expensive launches: duplicate cheap kernels into their readers
cost_model.py: limits and costs of fusion, inlining, rematerialization and partition
kernel_selection.py: how each node is computed, and why
layout.py: shape, strides and offset of views
fusion/: fusion groups, the loop IR, and the schedule of a group as a kernel
thunks.py: the executable steps of a lowered graph
loop_bodies.py: thunks of loops and branches, with lowered bodies
moved_carries.py: carries of loops that change places
destinations.py: kernels that store computed parts where they would be copied to
step_tables.py: the positions of the steps that read and write each value
point_accesses.py: whether a kernel may write its result over a value that it reads
early_reads.py: reading parts of a value before an update takes over its memory
in_place.py: updates that take over the memory of the value that they update
buffer_assignment.py: workspace offsets of intermediates
interpreter.py: running nodes with the eager kernels
foreign_kernels.py: the C, CUDA or LLVM function behind a node's kernel
report.py: the table of kernel choices
drawing.py: the graph as a picture
"""

from __future__ import annotations

from .kernel_selection import Target
from .lower import Backend, Executable, Interpreted, Lowered, Output, lower, register_backend

__all__ = ["Backend", "Executable", "Interpreted", "Lowered", "Output", "Target", "lower", "register_backend"]
