"""Control flow: ``scan``, ``map``, ``fori_loop``, ``while_loop``, ``cond``, ``switch``, ``associative_scan``.

api.py: the public functions
loops.py: ``scan``, ``fori_loop``, ``while_loop``: Python loops, or operators while tracing
hot_loops.py: eager loops that are compiled when they have run for some time
hot_transforms.py: eager calls of ``vmap`` and ``jvp`` that are compiled likewise
hot_maps.py: those of ``vmap``
snapshots.py: whether a later call of a function captures the same
captured_values.py: the values that bodies capture, as a key
substitution.py: copies of bodies with other tensors
captured_objects.py: what functions read of objects that they capture
code_facts.py: what the bytecode of functions may do
branches.py: ``cond``, ``switch``: Python branches, or an operator while tracing
mapping.py: ``map``
associative.py: ``associative_scan``
structure.py: carries as pytrees
number_dtypes.py: the dtypes of Python numbers that loops carry and branches take
subgraph.py: tracing bodies to graphs, and running graphs
ops.py: the operators, and the kernels that interpret their bodies
on_device.py: their kernels on devices other than the CPU
autograd_kernel.py: the autograd kernel, which records a loop that returns its residuals
reverse.py: reverse mode of scans
reverse_branches.py: reverse mode of ``cond`` and ``switch``
residuals.py: the values of a loop body that are stored for reverse mode, and those that are recomputed
forward.py: forward mode
batching.py: batching rules
custom_calls.py: calls of functions with custom derivatives inside bodies
constants.py: array constants in graphs
divisors.py: ``gcd`` and ``lcm``
scan_items.py: reads at a loop counter as items of a scan
"""
