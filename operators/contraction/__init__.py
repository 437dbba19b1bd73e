"""Products that sum over axes.

matmul.py: matmul, outer, vecdot, tensordot
einsum.py: einsum
matrix_products.py: mm, bmm, mv, addmm and its kind
kron.py: the Kronecker and the cross product
products.py: dot, inner, vdot, matvec, vecmat
"""
