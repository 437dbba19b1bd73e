"""Eager kernels of operators.

tensor.py: CudaTensor and its storage
operands.py: checks of devices, numbers passed by value
views.py: view operators
casting.py: copies and casts
creation.py: creation operators, random keys and bits
elementwise.py: elementwise operators
folds.py: reductions
scans.py: scans
indexing.py: indexing operators
gathers.py: eager gather, scatter and nonzero
positions.py: launches of gather, scatter and scatter-add in eager calls
inplace.py: in-place operators
sparse.py: sparse tensors
library.py: the array library (cupy)
library_ops.py: operators that the array library computes
foreign.py: users' kernels
sources.py: prewritten kernels in CUDA C
position_sources.py: CUDA C of gather, scatter and scatter-add
sparse_sources.py: CUDA C of sparse products
"""
