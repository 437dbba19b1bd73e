"""Eager kernels of the CPU key: NumPy, and machine code where bits must agree with compiled graphs.

elementwise.py: operators with a scalar body
folds.py: reductions and scans
foreign.py: users' kernels in C and LLVM IR
foreign_loops.py: compiled loop of a user's scalar function
matmul.py: matrix products
node_functions.py: ufuncs of emitted loops, for inexact functions
random_bits.py: random bits by machine code
register.py: registration of all kernels that declarations describe
sparse_quantized.py: components of sparse and quantized tensors
views.py: views that are declared by their rule alone
"""
