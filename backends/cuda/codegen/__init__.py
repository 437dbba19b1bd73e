"""Printers of CUDA C.

fused.py: fused kernels of the loop IR
elementwise.py: fused kernels without reductions
tiles.py: fused kernels with transposed operands
rows.py: fused kernels with reductions
row_part.py: one launch of such a kernel
row_loop.py: the loop of one stage
row_reads.py: reads of rows at integer positions
updates.py: writes at integer positions
sorted_updates.py: values combined in the order of their points
schedule.py: the schedule of a reduction: threads, vectors, registers
space.py: the iteration space of a kernel
inline.py: rematerialization of private buffers
eager.py: eager elementwise kernels
eager_folds.py: eager reductions
eager_scans.py: eager scans
reducers.py: the state of reductions
nodes.py: nodes of the scalar IR
complex_nodes.py: nodes on complex numbers
text.py: lines, names and helpers of a kernel
parameters.py: parameters of fused kernels, addresses and indices
types.py: C types and literals
kernel.py: CudaKernel, and the text of modules
helpers.py: the table of device functions
helper_scalars.py: device functions for scalars
helper_complex.py: device functions for complex numbers
helper_memory.py: device functions for vectors, layouts, reductions and scans
helper_sort.py: device functions that sort positions and fold runs of them
"""
