"""Indexing.

subscript.py: parses ``x[key]`` into a view and index tensors
slicing.py: basic indexing: views, and their functional writes
gather.py: indexing by integer tensors: reads and functional writes
index_reduce.py: writes that combine with the elements, such as ``x.at[i].max(v)``
bounds.py: the modes of ``x.at``: clip, fill, drop
take.py: take, take_along_axis, nonzero
"""
