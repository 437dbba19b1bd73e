"""The native runtime: functions in the native language (see ``compiler/``), one module for each kind of entry.

capi.py: C functions and objects, layouts of CPython's and NumPy's objects, references
rt_arguments.py: arguments that are not tensors
rt_assign.py: ``x[key] = value``, ``basic_put``
rt_backward.py: steps of reverse mode
rt_base.py: structs of all entries, codes of operand types, thread state, falling back to Python
rt_cached_views.py: views of one tensor whose layouts are kept
rt_casts.py: ``cast``, ``astype``
rt_copies.py: strided copies
rt_elementwise.py: elementwise operators
rt_fills.py: ``full``, ``zeros``, ``ones``
rt_folds.py: loops of reductions
rt_gathers.py: ``index``, ``take``
rt_gemm.py: one product of two matrices
rt_gil.py: release of the GIL
rt_guards.py: guards of jitted functions
rt_inplace.py: in-place elementwise operators
rt_jit.py: jitted functions, their result structures
rt_joins.py: ``concat``, ``stack``
rt_kernels.py: operators with a Python kernel
rt_matmul.py: ``matmul``
rt_memory.py: memory of results
rt_numbers.py: weak scalars
rt_operands.py: classification of operands
rt_products.py: matrix products over leading axes
rt_programs.py: loops composed of NumPy's inner loops
rt_record.py: recording a call in autograd's graph
rt_reduce.py: reductions
rt_reshape.py: sizes and strides of ``reshape``
rt_same.py: ``clone``, ``contiguous``, ``stop_gradient``
rt_saved.py: residuals of a recorded call
rt_scans.py: scans
rt_subscript.py: ``x[key]``, ``basic_index``
rt_views.py: ``reshape``, ``permute``, ``broadcast_to``
"""
