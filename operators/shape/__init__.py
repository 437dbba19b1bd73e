"""Operators that change the shape.

views.py: reshape, permute, broadcast_to
rearrange.py: views composed of these: transpose, squeeze, flip, ...
joining.py: concat, stack, unstack
splitting.py: split and diff
repeating.py: roll, repeat, tile, pad
diagonals.py: diagonal, trace, diag
triangles.py: tril and triu
"""
