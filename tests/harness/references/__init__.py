"""References that tests compare operators with, written apart from the kernels.

A declaration names its reference: ``reference="references.arrays.kron"``.
"""
