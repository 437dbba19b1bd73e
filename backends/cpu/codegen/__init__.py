"""Scalar expressions and loops as LLVM IR text, on explicit vectors.

blocks.py: instructions, branches and loops
casts.py: conversions between dtypes
checked_blocks.py: updates of many single elements
columns.py: stages that reduce leading dimensions
complex_nodes.py: nodes on complex numbers
complex_powers.py: powers of complex numbers with one exponent
consecutive.py: positions that count along the last dimension
elementwise.py: eager loop of an elementwise operator
folds/: reductions and scans
functions/: polynomials of exp, log, sin, erf, pow and other elementary functions
fused.py: fused kernels, from loop IR
stage_printer.py: the stages of fused kernels
integers.py: integer division, remainders, shifts, powers
intervals.py: interval arithmetic on integer expressions
lazy_operands.py: branches around costly operands in code that computes single numbers
libm.py: scalar calls of libm per lane: fmod; sin, cos and tan of huge arguments
nodes.py: nodes of the scalar IR
remainders.py: remainders and floor division of floats
scalars.py: vectors of one element as scalars
shifted_tiles.py: micro-kernel of convolutions that multiply shifted planes
small_product.py: micro-kernels of small matrix products
text.py: modules, functions and vectors as text
tiles.py: stages that read transposed arrays
index_maps.py: reads and updates at integer positions
tiny_product.py: products of a few elements, written out
ufunc_calls.py: calls of the inner loops of NumPy's ufuncs
ufunc_loops.py: loops with the signature of a ufunc's loops
user.py: calls of users' scalar functions
vector_product.py: matrix-vector and dot products (gemv)
product_calls.py: calls of the micro-kernel of small products
reciprocals.py: division of integers by multiplication with a reciprocal
row_vectors.py: kernels with short rows
interleaving.py: loads and stores of all columns of rows with few elements
vector_stage.py: vectors of a stage along its last dimension
vectors.py: loop over whole vectors
window_rows.py: folds of one short window as scalars
window_tiles.py: micro-kernel of convolutions with large kernels
"""
