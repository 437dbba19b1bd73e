"""Operators that change the shape.

views.py: reshape, permute, broadcast_to
parts.py: chunk, narrow, split_with_sizes, unflatten, unfold, t, block_diag
rearrange.py: views composed of these: transpose, squeeze, flip, ...
joining.py: concat, stack, unstack
splitting.py: split and diff
bitcast.py: bitcast, a view as elements of another dtype
complex_view.py: view_part, the real or the imaginary parts of complex numbers
strided.py: as_strided, a view with given sizes and strides
repeating.py: roll, repeat, tile
padding.py: pad, with the modes of NumPy
grids.py: broadcast_arrays and meshgrid
diagonals.py: diagonal, trace, diag
triangles.py: tril and triu
stacking.py: vstack, hstack, atleast_1d, ...
several.py: atleast_1d, atleast_2d and atleast_3d of several tensors
cutting.py: array_split, vsplit, hsplit, dsplit
turning.py: rot90, fliplr, flipud, rollaxis, diagflat
inserting.py: append, insert, delete, resize, trim_zeros
blocks.py: block
"""
