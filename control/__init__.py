"""Control flow: ``scan``, ``map``, ``fori_loop``, ``while_loop``, ``cond``, ``switch``, ``associative_scan``.

api.py: the public functions
loops.py, branches.py, mapping.py, associative.py: their implementations: Python loops, or operators while tracing
structure.py: carries as pytrees
subgraph.py: tracing bodies to graphs, and running graphs
ops.py, on_device.py: the operators and their kernels
autograd_kernel.py, reverse.py, reverse_branches.py, residuals.py: reverse mode
forward.py: forward mode
batching.py: batching rules
custom_calls.py: calls of functions with custom derivatives inside bodies
constants.py: array constants in graphs
scan_items.py: reads at a loop counter as items of a scan
"""
