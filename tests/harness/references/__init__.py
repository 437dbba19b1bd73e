"""Reference implementations of operators, independent of the kernels.

A declaration names its reference: ``reference="references.arrays.kron"``.
"""
