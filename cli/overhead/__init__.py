"""``tandem overhead``: measure the cost of a call, eager and compiled, and split it by layer.

- compare.py: chains of operations and a training step, timed for tandem, NumPy and other libraries
- coverage.py: the share of operator x dtype x layout rows that run native
- layers.py: the time of each layer of the Python dispatcher
- machine.py: the machine and the versions of libraries
- measure.py: interleaved timing with medians and quartiles
- native.py: the time of each layer of native entries
- peers.py: PyTorch, JAX and numba
- picture.py: the plot
- ready.py: native functions that return a ready result in place of one layer
- report.py: the tables for a terminal
- results.py: the results as data classes
- run.py: run all measurements
- workloads.py: the functions that are timed
"""
