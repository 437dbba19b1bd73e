"""Sparse tensors in the layouts COO and CSR.

construct.py: create sparse tensors, with checks, and convert between layouts.
indices.py: index arrays on the host or on a device.
kernels.py: operators on sparse tensors.
tensor.py: SparseTensor and its sparsity pattern.
"""
