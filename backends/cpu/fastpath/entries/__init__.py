"""Native entries, in the native language (see ``compiler/``): one module for each kind of operator, and jitted calls.

They call the functions of ``runtime/``.

rt_asarray.py: ``asarray``
rt_assign.py: ``x[key] = value``, ``basic_put``
rt_attributes.py: ``x.shape``, ``x.item()``, ``float(x)`` and other reads of the array
rt_cached_views.py: views of one tensor, and lists of them, whose layouts are kept
rt_view_steps.py: recorded calls of composites of views, as calls of view operators
rt_copies.py: strided copies; ``copy.copy(x)`` and ``copy.deepcopy(x)``
rt_counts.py: ``bincount``
rt_elementwise.py: elementwise operators, ``cast``, ``astype``
rt_fills.py: ``full``, ``zeros``, ``ones``
rt_forward.py: functions of ``tandem.numpy``, which pass calls to an operator
rt_gathers.py: ``index``, ``take``
rt_guards.py: guards of jitted functions
rt_index_keys.py: keys of NumPy's arrays and scalars, and of lists
rt_inplace.py: in-place elementwise operators
rt_jit.py: jitted functions, their result structures
rt_joins.py: ``concat``, ``stack``
rt_kernels.py: operators with a Python kernel
rt_loop_calls.py: operators with a native kernel
rt_matmul.py: ``matmul``
rt_ranges.py: ``arange``, ``linspace``, ``eye``
rt_parts.py: ``x.real`` and ``x.imag``
rt_operator_slots.py: slots of the type Tensor that call special methods: ``x + y``, ``x[i]``
rt_protocols.py: ``__array_ufunc__``, ``__array_function__``
rt_reduce.py: reductions
rt_results.py: results of jitted functions that are views or copies, and writes into arguments
rt_row_writes.py: writes at positions along an axis, in place
rt_scans.py: scans
rt_subscript.py: ``x[key]``, ``basic_index``
rt_type_slots.py: slots of the type Tensor: its deallocator, buffer, length, numbers and iterator
rt_views.py: ``reshape``, ``permute``, ``broadcast_to``, ``x.T``, ``clone``, ``contiguous``, ``stop_gradient``
"""
