"""Products that sum over axes.

matmul.py: matmul, outer, vecdot, tensordot
einsum.py: einsum
kron.py: the Kronecker and the cross product
"""
