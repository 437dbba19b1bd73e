"""Reductions and scans as LLVM IR.

adjacent.py: eager loop over rows that are adjacent in memory
complex_sums.py: eager loop of sums of complex numbers, by those of their parts
eager.py: eager loop of a fold, in order if the order matters
fold_loop.py: shared code of the eager loops: columns and short rows
masks.py: reductions of bools
nested.py: eager loop over two axes that do not merge
order.py: the order in which elements are combined, and the state of a row
reducers.py: reductions as vectors of partial results
scans.py: loops of scans, eager and in compiled graphs
unordered.py: eager loop of a fold in any order, and of the index of an extremum
"""
