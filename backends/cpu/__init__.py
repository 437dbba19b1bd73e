"""The CPU backend: compiled graphs, eager kernels, and the native call path.

blas.py: matrix products in compiled graphs
blas_pointers.py: addresses of BLAS functions
cache.py: disk cache of machine code
body_calls.py: calls of the bodies of loops and branches
callback.py: host callbacks, for nodes without emitted code
codegen/: scalar expressions and loops as LLVM IR
compile.py: lowered graph to executable; the module's ``main``
executable.py: calling convention of compiled graphs
fastpath/: native entries of eager and jitted calls, and the compiler of their language
foreign_calls.py: which native code computes a node; users' C functions in compiled graphs
gil.py: release of the GIL in compiled graphs
index_bounds.py: values of counters for which positions are in bounds
kernels/: eager kernels, by NumPy
linker.py: linker for x86-64 objects
loop_cost.py: estimated run times of eager loops
loop_counters.py: integers that loops count, and numbers of iterations
loop_frame.py: blocks of a loop, with and without bounds checks, and its poll
loop_writer.py: scan, while_loop and switch in compiled graphs
native_kernels/: inner loops of NumPy and SciPy, and emitted ones
numpy_sorting.py: addresses of the functions that NumPy sorts with
object_table.py: tables of constants and callables; errors of bounds checks
random_bits.py: Philox in emitted code
scalar_ranges.py: intervals of the integers in nested loops
scans.py: scans in compiled graphs
step_cost.py: estimated run times of steps
target.py: LLVM target of this machine, and the width of its vectors
timestamps.py: executables that write the time after each step
"""
