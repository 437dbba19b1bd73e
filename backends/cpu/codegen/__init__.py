"""Scalar expressions and loops as LLVM IR text, on explicit vectors.

adjacent_folds.py: eager fold loop over rows that are adjacent in memory
casts.py: conversions between dtypes
columns.py: stages that reduce leading dimensions
eager_folds.py: eager loop of a fold
eager_scans.py: eager loop of a scan
elementwise.py: eager loop of an elementwise operator
folds.py: the order in which elements are combined, and the state of a row
functions/: exp, log, sin, erf, pow and other elementary functions
fused.py: fused kernels and their stages, from loop IR
integers.py: integer division, remainders, shifts, powers
libm.py: calls of libm per lane
nested_folds.py: eager fold loop over two axes that do not merge
nodes.py: nodes of the scalar IR
reducers.py: reductions as vectors of partial results
remainders.py: remainders and floor division of floats
small_product.py: small matrix products
text.py: modules, functions, loops and vectors as text
tiles.py: stages that read transposed arrays
user.py: calls of users' scalar functions
vector_product.py: products of a matrix and a vector
vectors.py: loop over whole vectors
"""
