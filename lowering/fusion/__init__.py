"""Fusion: group nodes into kernels, and schedule each group as a loop-IR kernel.

groups.py: the partition of a graph into fusion groups
loop_ir.py: the loop IR, which the LLVM and CUDA printers read
scalarize.py: the scalar expression of a fused node
schedule.py: the stages and buffers of a group's kernel
index_maps.py: accesses of nodes at integer positions
affine_reads.py: affine index maps of kernels: positions, parts of values, composition
updates.py: kernels that write elements at integer positions
ranges.py: kernels of evenly spaced numbers, expressions of the position
pieces.py: kernels that copy arguments to the parts of a result
"""
