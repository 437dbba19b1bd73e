"""Eager tensors and the layers of the dispatcher that run on them.

tensor/: Tensor, its methods, construction and copies.
autograd/: reverse and forward mode.
layers/: transforms, functionalization, autocast, modes, subclasses.
meta/: tensors without data.
sparse/: sparse tensors.
quantized/: quantized tensors.
"""
