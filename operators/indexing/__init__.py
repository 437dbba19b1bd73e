"""Indexing.

subscript.py: parses ``x[key]`` into a view and index tensors
slicing.py: basic indexing: views, and their functional writes
masks.py: masks in subscripts: positions, and writes without them
along_axis.py: reads and writes along one axis: gather, scatter, index_add, masked_fill
gather.py: indexing by integer tensors: reads and functional writes
index_reduce.py: writes that combine with the elements, such as ``x.at[i].max(v)``
out_of_bounds.py: the modes of ``x.at``: clip, fill, drop
take.py: take, take_along_axis, nonzero
choosing.py: choose, select, piecewise
flat_indices.py: ravel_multi_index, unravel_index, ix_
index_sets.py: mask_indices, diag_indices_from, tril_indices_from, triu_indices_from
writing.py: put_along_axis, fill_diagonal
positions.py: argwhere, flatnonzero, extract, compress
"""
