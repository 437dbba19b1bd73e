"""The native runtime: functions in the native language (see ``compiler/``) that the entries of ``entries/`` share.

capi.py: C functions and objects, layouts of CPython's and NumPy's objects, references
rt_base.py: structs of all entries, codes of operand types, thread state, falling back to Python
rt_entry.py: what all entries do around their own function, and the results of native functions
rt_operands.py: classification of operands; tensors of NumPy's arrays and scalars
rt_batches.py: calls on values of levels of `vmap`
rt_arguments.py: arguments that are not tensors
rt_keys.py: keys of cached calls
rt_layouts.py: sizes and strides of arrays
rt_numbers.py: weak scalars
rt_lists.py: tensors of nested lists
rt_loops.py: calls of inner loops, and plans of such calls
rt_memory.py: memory of results
rt_spare_arrays.py: arrays of destroyed tensors, which new ones take
rt_spare_numbers.py: destroyed tensors without axes, which new ones are made of
rt_outputs.py: writes into tensors, the argument `out`
rt_temporaries.py: operands whose memory a result may take
rt_gil.py: release of the GIL
rt_record.py: recording a call in autograd's graph
rt_saved.py: residuals of a recorded call
rt_backward.py: steps of reverse mode
rt_halves.py: 16-bit floats
rt_gemm.py: one product of two matrices
rt_products.py: matrix products over leading axes
"""
